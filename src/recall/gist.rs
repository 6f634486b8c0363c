//! What a day, a place or a person was like, out of the episodes themselves: no language model.
//!
//! In: episodes in order of time, and the span and local zone they are told in. Out: a [`Gist`]: a few sentences, counts,
//! and the episodes that carry them.
//!
//! ```text
//!  stays ──────────► at Home until 08:40, at Office from 09:05 …
//!  meetings ───────► Met Alice twice (at Office, 1 h 5 min in all) …
//!  sounds, scenes ─► Heard mostly speech …; saw a desk and trees
//!  words ──────────► the sentences that stand for the others (gist/sentences.rs), as they were said or noted
//! ```
//!
//! The same episodes give the same gist. Every length is that part of an episode which lies within the span. Names, stays
//! and sentences held are bounded, so that a gist of 20,000 episodes takes no more memory than one of 1,000.
//! Never: I/O, the clock, a gist that percept wrote as a source of another.

mod compose;
mod sentences;
mod tally;
mod words;

use crate::domain::episode::Episode;
use crate::domain::episode::EpisodeRecord;
use crate::domain::episode::Metadata;
use crate::domain::id::BootId;
use crate::domain::id::DeviceId;
use crate::domain::id::EpisodeId;
use crate::domain::id::SessionId;
use crate::domain::id::SourceId;
use crate::domain::modality::Modality;
use crate::domain::time::ClockQuality;
use crate::domain::time::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use sentences::Sentence;
use sentences::Sentences;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use tally::Once;
use tally::Tally;

/// The tool name of every gist that percept writes.
pub const TOOL_NAME: &str = "gist";

/// Episodes a gist names and is linked to.
pub const SOURCES_MAX: usize = 32;

/// Stays told apart; later ones count in the sums only.
const STAYS_MAX: usize = 512;

/// Days told apart, for "on 9 days".
const DAYS_MAX: usize = 1_000;

/// Facts of a person or a place that are told.
const FACTS_MAX: usize = 3;

/// `YAMNet`'s classes that tell of a room, or of nothing, and not of a sound.
const AMBIENCE: [&str; 6] = [
    "Silence",
    "Inside, small room",
    "Inside, large room or hall",
    "Inside, public space",
    "Outside, rural or natural",
    "Outside, urban or manmade",
];

/// The least weight of an occurrence, in seconds: an instant counts, too.
const LEAST_S: f64 = 1.0;

/// What a gist is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A local day.
    Day,
    /// A place, by name.
    Place(String),
    /// A person, by name.
    Person(String),
}

impl Subject {
    /// `day`, `place` or `person`, and the name; a day has none.
    #[must_use]
    pub fn kind_and_name(&self) -> (&'static str, &str) {
        match self {
            Self::Day => ("day", ""),
            Self::Place(name) => ("place", name),
            Self::Person(name) => ("person", name),
        }
    }
}

/// What a gist is about, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// What.
    pub subject: Subject,
    /// From this moment on.
    pub since: Timestamp,
    /// Until before this one.
    pub until: Timestamp,
    /// The zone times are told in.
    pub zone: TimeZone,
}

/// A finished gist.
#[derive(Debug, Clone, PartialEq)]
pub struct Gist {
    /// One to a few sentences.
    pub content: String,
    /// Subject, span, counts and the ids of the sources.
    pub metadata: Metadata,
    /// When its earliest episode began, within the span.
    pub from: Timestamp,
    /// When its latest one ended, within the span.
    pub to: Timestamp,
    /// The episodes that carry it, at most [`SOURCES_MAX`], with how much (0–1).
    pub sources: Vec<(EpisodeId, f64)>,
    /// People who were met, the most important first.
    pub people: Vec<String>,
    /// Places where the device stayed, the most important first.
    pub places: Vec<String>,
}

/// A stay at a place.
#[derive(Debug, Clone, PartialEq)]
struct Stay {
    id: EpisodeId,
    place: String,
    from: Timestamp,
    to: Timestamp,
    is_over: bool,
}

/// Gathers what a gist is made of.
#[derive(Debug)]
pub struct GistBuilder {
    frame: Frame,
    episodes: u64,
    by_modality: BTreeMap<&'static str, u64>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    stays: Vec<Stay>,
    stay_total: Tally,
    trips: u64,
    distance_m: f64,
    people: Tally,
    /// Where each person was met, and who was met at each place: (person, place).
    met_at: BTreeMap<(String, String), u64>,
    sounds: Tally,
    unnamed_sound_ms: i64,
    objects: Tally,
    scenes: u64,
    tools: Tally,
    sentences: Sentences,
    facts: Vec<String>,
    days: BTreeSet<Date>,
    parts_of_day: [u64; 4],
}

impl Frame {
    /// A local day.
    #[must_use]
    pub fn day(date: Date, zone: &TimeZone) -> Option<Self> {
        Self::dates(Subject::Day, date, date, zone)
    }

    /// A subject from the beginning of one local date to the end of another. `None` beyond what a calendar holds.
    #[must_use]
    pub fn dates(subject: Subject, first: Date, last: Date, zone: &TimeZone) -> Option<Self> {
        let start = |date: Date| {
            let start = date.to_zoned_datetime(zone.clone()).ok()?.timestamp();
            Some(Timestamp::from_millis(start.as_millisecond()))
        };
        Some(Self { subject, since: start(first)?, until: start(last.tomorrow().ok()?)?, zone: zone.clone() })
    }

    /// A subject in the calendar month of a date.
    #[must_use]
    pub fn month(subject: Subject, date: Date, zone: &TimeZone) -> Option<Self> {
        Self::dates(subject, date.first_of_month(), date.last_of_month(), zone)
    }

    /// The id of the frame's gist, as `device_id` writes it.
    #[must_use]
    pub fn id(&self, device_id: &DeviceId) -> EpisodeId {
        let (first, last) = self.local_dates();
        let (kind, name) = self.subject.kind_and_name();
        EpisodeId::of_gist(device_id, &format!("{kind} {name}"), &format!("{first} {last}"))
    }

    /// The first and the last local date it touches.
    #[must_use]
    pub fn local_dates(&self) -> (Date, Date) {
        let first = words::local(self.since, &self.zone).date();
        (first, words::local(self.until.plus_millis(-1), &self.zone).date().max(first))
    }

    /// What of a span lies within the frame.
    fn clip(&self, from: Timestamp, to: Timestamp) -> (Timestamp, Timestamp) {
        let from = from.clamp(self.since, self.until);
        (from, to.clamp(from, self.until.max(from)))
    }
}

impl Gist {
    /// The row of this gist of `frame`, as `device_id` writes it. It belongs to no run and no boot, so that a run that is
    /// replaced or a clock that is corrected leaves it to be made again.
    #[must_use]
    pub fn record(&self, frame: &Frame, device_id: &DeviceId) -> EpisodeRecord {
        let (kind, _) = frame.subject.kind_and_name();
        let episode = Episode {
            id: frame.id(device_id),
            external_id: None,
            device_id: device_id.clone(),
            session_id: SessionId::new(TOOL_NAME),
            source: SourceId::new(format!("{TOOL_NAME}:{kind}")),
            timestamp: self.from,
            ended_at: self.to.max(self.from),
            boot_id: BootId::new(TOOL_NAME),
            monotonic_ms: 0,
            clock_quality: ClockQuality::Network,
            modality: Modality::Gist,
            tool_name: TOOL_NAME.to_owned(),
            content: self.content.clone(),
            importance: Modality::Gist.default_importance(),
            decay_class: Modality::Gist.default_decay(),
            metadata: self.metadata.clone(),
        };
        EpisodeRecord { episode, embeddings: Vec::new(), facts: Vec::new(), media: Vec::new() }
    }
}

/// The subject and span that the metadata of a gist name.
#[must_use]
pub fn frame_of(metadata: &Metadata) -> Option<(Subject, Timestamp, Timestamp)> {
    let text = |key: &str| metadata.get(key).and_then(serde_json::Value::as_str);
    let time = |key: &str| metadata.get(key).and_then(serde_json::Value::as_i64).map(Timestamp::from_millis);
    let name = || text("subject").map(str::to_owned);
    let subject = match text("gist")? {
        "day" => Subject::Day,
        "place" => Subject::Place(name()?),
        "person" => Subject::Person(name()?),
        _ => return None,
    };
    Some((subject, time("since")?, time("until")?))
}

impl GistBuilder {
    /// Knows of nothing yet.
    #[must_use]
    pub fn new(frame: Frame) -> Self {
        Self {
            frame,
            episodes: 0,
            by_modality: BTreeMap::new(),
            from: None,
            to: None,
            stays: Vec::new(),
            stay_total: Tally::default(),
            trips: 0,
            distance_m: 0.0,
            people: Tally::default(),
            met_at: BTreeMap::new(),
            sounds: Tally::default(),
            unnamed_sound_ms: 0,
            objects: Tally::default(),
            scenes: 0,
            tools: Tally::default(),
            sentences: Sentences::default(),
            facts: Vec::new(),
            days: BTreeSet::new(),
            parts_of_day: [0; 4],
        }
    }

    /// Takes an episode: one that overlaps the frame, in order of time, each once.
    pub fn add(&mut self, episode: &Episode) {
        if episode.tool_name == TOOL_NAME && episode.modality == Modality::Gist {
            return;
        }
        let (from, to) = self.frame.clip(episode.timestamp, episode.ended_at);
        self.episodes += 1;
        *self.by_modality.entry(episode.modality.as_str()).or_default() += 1;
        self.from = Some(self.from.map_or(from, |known| known.min(from)));
        self.to = Some(self.to.map_or(to, |known| known.max(to)));
        self.end_open_stay(episode);
        let once = |weight: f64| Once { id: episode.id, from, length_ms: to.millis_since(from), weight };
        match (episode.tool_name.as_str(), episode.modality) {
            ("multimodal_memory", _) => self.add_moment(episode, once(seconds(from, to))),
            (_, Modality::Spatial) => self.add_spatial(episode, (from, to)),
            (_, Modality::Audio) => self.add_sound(episode, once(seconds(from, to))),
            (_, Modality::Visual) => self.add_scene(episode, (from, to)),
            // Notes and summaries speak for themselves.
            (_, Modality::Text | Modality::Gist) => {}
            (_, Modality::Social | Modality::Code | Modality::ToolResult) => {
                self.tools.add(&episode.tool_name, once(1.0))
            }
        }
        if is_told(episode) && episode.tool_name != "multimodal_memory" {
            let is_quotation = episode.modality == Modality::Audio;
            self.sentences.add(&episode.content, &sentence(episode, is_quotation));
        }
    }

    /// Takes a fact about the subject that was told, not sensed.
    pub fn add_fact(&mut self, sentence: &str) {
        if self.facts.len() < FACTS_MAX {
            self.facts.push(sentence.to_owned());
        }
    }

    /// A stay whose end was not seen lasts until the device is known to be elsewhere.
    fn end_open_stay(&mut self, episode: &Episode) {
        let moves = episode.modality == Modality::Spatial && matches!(kind(episode), Some("stay" | "trip"));
        let (at, _) = self.frame.clip(episode.timestamp, episode.timestamp);
        if moves && let Some(stay) = self.stays.last_mut().filter(|stay| !stay.is_over) {
            stay.to = stay.to.max(at);
            stay.is_over = true;
        }
    }

    fn add_spatial(&mut self, episode: &Episode, (from, to): (Timestamp, Timestamp)) {
        if matches!((kind(episode), &self.frame.subject), (Some("stay"), Subject::Place(_))) {
            self.note_time(from);
        }
        match (kind(episode), text(episode, "place")) {
            (Some("stay"), Some(place)) if self.stays.len() < STAYS_MAX => {
                let is_over = episode.metadata.get("is_over").and_then(serde_json::Value::as_bool).unwrap_or(true);
                self.stays.push(Stay { id: episode.id, place: place.to_owned(), from, to, is_over });
            }
            (Some("stay"), Some(place)) => {
                let once = Once { id: episode.id, from, length_ms: to.millis_since(from), weight: seconds(from, to) };
                self.stay_total.add(place, once);
            }
            (Some("trip"), _) => {
                self.trips += 1;
                let metres = episode.metadata.get("distance_m").and_then(serde_json::Value::as_f64).unwrap_or(0.0);
                self.distance_m += metres.max(0.0);
            }
            _ => {}
        }
    }

    fn add_sound(&mut self, episode: &Episode, once: Once) {
        match text(episode, "sound_class") {
            Some(class) if AMBIENCE.contains(&class) => {}
            Some(class) => self.sounds.add(class, once),
            None if is_told(episode) => {}
            None => self.unnamed_sound_ms = self.unnamed_sound_ms.saturating_add(once.length_ms),
        }
    }

    fn add_scene(&mut self, episode: &Episode, (from, to): (Timestamp, Timestamp)) {
        self.scenes += 1;
        let labels = episode.metadata.get("labels").and_then(serde_json::Value::as_array);
        for label in labels.into_iter().flatten() {
            let Some(name) = label.get("label").and_then(serde_json::Value::as_str) else { continue };
            let score = label.get("score").and_then(serde_json::Value::as_f64).unwrap_or(0.0).clamp(0.0, 1.0);
            // The root of the time: an hour's view of a wall must not hide all else that was seen.
            let weight = score * seconds(from, to).sqrt();
            let once = Once { id: episode.id, from, length_ms: to.millis_since(from), weight };
            self.objects.add(name, once);
        }
    }

    /// A moment's sounds and pictures have episodes of their own; what only it has are who was met and what was said.
    fn add_moment(&mut self, episode: &Episode, once: Once) {
        if let Some(person) = text(episode, "person") {
            self.people.add(person, once);
            let place = text(episode, "place").unwrap_or_default().to_owned();
            if self.met_at.len() < tally::NAMES_MAX {
                *self.met_at.entry((person.to_owned(), place)).or_default() += 1;
            }
        }
        if matches!(self.frame.subject, Subject::Person(_)) {
            self.note_time(once.from);
            if let Some(class) = text(episode, "sound_class") {
                self.sounds.add(class, Once { weight: 1.0, ..once });
            }
        }
        if let Some(said) = compose::said(&episode.content) {
            self.sentences.add(said, &sentence(episode, true));
        } else if episode.modality == Modality::Text && !has_no_words(episode) {
            self.sentences.add(&episode.content, &sentence(episode, false));
        }
    }

    /// For "on 9 days, mostly in the morning".
    fn note_time(&mut self, at: Timestamp) {
        if self.days.len() < DAYS_MAX {
            self.days.insert(words::local(at, &self.frame.zone).date());
        }
        self.parts_of_day[words::part_of_day(at, &self.frame.zone)] += 1;
    }

    /// The gist; `None` when there was nothing to make it of.
    #[must_use]
    pub fn finish(mut self) -> Option<Gist> {
        let to = self.to?;
        if let Some(stay) = self.stays.last_mut().filter(|stay| !stay.is_over) {
            stay.to = stay.to.max(to);
        }
        for stay in &self.stays {
            let weight = seconds(stay.from, stay.to);
            let once = Once { id: stay.id, from: stay.from, length_ms: stay.to.millis_since(stay.from), weight };
            self.stay_total.add(&stay.place, once);
        }
        compose::gist(&self)
    }
}

/// Length in seconds, at least [`LEAST_S`].
#[expect(clippy::cast_precision_loss, reason = "spans stay far below 2^53 ms")]
fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    (to.millis_since(from) as f64 / 1_000.0).max(LEAST_S)
}

fn text<'a>(episode: &'a Episode, key: &str) -> Option<&'a str> {
    episode.metadata.get(key).and_then(serde_json::Value::as_str).filter(|text| !text.trim().is_empty())
}

fn kind(episode: &Episode) -> Option<&str> {
    text(episode, "kind")
}

/// Whether its words come from somebody and not from one of percept's own sensors.
fn is_told(episode: &Episode) -> bool {
    episode.external_id.is_some() || episode.source.kind().is_none()
}

/// What a capture says that noticed nothing.
fn has_no_words(episode: &Episode) -> bool {
    episode.content == "Multimodal capture"
}

fn sentence(episode: &Episode, is_quotation: bool) -> Sentence {
    let (id, at, importance) = (episode.id, episode.timestamp, episode.importance);
    Sentence { id, at, importance, text: String::new(), is_quotation }
}

#[cfg(test)]
mod tests;

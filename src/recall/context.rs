//! What is worth knowing now, as compact JSON within a token budget.
//!
//! ```text
//!  place, people here ─┐
//!  heard, seen         ├─► by value, most valuable first ─► as much as fits ─► one JSON object
//!  recalled            ─┘
//! ```
//!
//! In: a [`Situation`], each list in the order of its worth. Out: an object that is never longer than the budget; what did
//! not fit is counted in `left_out`. A sentence that is too long for the room that is left is cut, down to
//! [`SENTENCE_BYTES_MIN`]; below that it and all that follow it in its list are left out, and other lists may still fit.
//! Never: the store, the clock, a model's own tokenizer: `tokens` estimates on the safe side.

mod tokens;

use crate::domain::id::EpisodeId;
use crate::domain::time::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

/// Smallest budget: the time, the place and one person fit.
pub const TOKENS_MIN: usize = 64;

/// Greatest budget. No list here is long enough to need more.
pub const TOKENS_MAX: usize = 32_000;

/// Budget of who names none.
pub const TOKENS_DEFAULT: usize = 1_000;

/// Longest sentence, in bytes, however much room there is: one tool's long output must not crowd out the rest.
pub const SENTENCE_BYTES_MAX: usize = 400;

/// Shortest piece of a sentence that still says something, in bytes.
pub const SENTENCE_BYTES_MIN: usize = 40;

/// Room for `,"left_out":NNNN`, in tokens.
const LEFT_OUT_TOKENS: usize = 8;

/// Digits of an id that are told: enough for `percept show`.
const ID_DIGITS: usize = 8;

/// Where the device is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whereabouts {
    /// The place's name, unless it is on the way.
    pub place: Option<String>,
    /// The sentence of the stay or trip.
    pub what: String,
    /// Since when.
    pub since: Timestamp,
}

/// How a person is near.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Has come and not left.
    Here,
    /// Was met; nobody knows whether they are still here.
    Met,
    /// Has left a short time ago.
    Left,
}

/// Someone who is, or just was, near.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The name.
    pub name: String,
    /// How near.
    pub presence: Presence,
    /// When they came, were met, or left.
    pub at: Timestamp,
}

/// An episode, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noticed {
    /// Its id.
    pub id: EpisodeId,
    /// When it began.
    pub at: Timestamp,
    /// Its sentence.
    pub what: String,
}

/// All that is known of now, each list most valuable first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Situation {
    /// Where.
    pub place: Option<Whereabouts>,
    /// Who.
    pub people: Vec<Person>,
    /// Sounds of the last minutes.
    pub heard: Vec<Noticed>,
    /// Scenes of the last minutes.
    pub seen: Vec<Noticed>,
    /// What the situation, or the words asked about, bring back.
    pub recalled: Vec<Noticed>,
}

/// Where in the object a part stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Place,
    People,
    Heard,
    Seen,
    Recalls,
}

impl Part {
    const fn key(self) -> &'static str {
        match self {
            Self::Place => "place",
            Self::People => "people",
            Self::Heard => "heard",
            Self::Seen => "seen",
            Self::Recalls => "recalls",
        }
    }

    /// Lower comes first. Where and who come before all else; then what is recalled, heard and seen take turns, the recalled
    /// twice as often: it is what a reader cannot notice by itself. Who was asked about gets all that is recalled first.
    fn turn(self, rank: usize, is_asked: bool) -> usize {
        match self {
            Self::Place => 0,
            Self::People => 1,
            Self::Recalls if is_asked => 2,
            Self::Recalls => 3 + rank * 2,
            Self::Heard | Self::Seen => 3 + rank * 4,
        }
    }
}

/// Assembles the object. `tokens` is brought within [`TOKENS_MIN`] and [`TOKENS_MAX`]; `is_asked` says that the recalled
/// episodes answer a question.
#[must_use]
pub fn assemble(situation: &Situation, now: Timestamp, zone: &TimeZone, tokens: usize, is_asked: bool) -> Value {
    let budget = tokens.clamp(TOKENS_MIN, TOKENS_MAX);
    let words = Words { now, zone };
    let mut object = Map::new();
    object.insert("now".to_owned(), words.in_full(now).into());
    let mut left_out = 0_usize;
    let mut full: Vec<Part> = Vec::new();
    for (part, value) in candidates(situation, &words, is_asked) {
        // A list that has left one out takes no lesser one: it has no holes.
        if full.contains(&part) || !add(&mut object, part, value, budget - LEFT_OUT_TOKENS) {
            full.push(part);
            left_out += 1;
        }
    }
    if left_out > 0 {
        object.insert("left_out".to_owned(), left_out.into());
    }
    Value::Object(object)
}

fn candidates(situation: &Situation, words: &Words<'_>, is_asked: bool) -> Vec<(Part, Value)> {
    let mut found: Vec<(usize, Part, Value)> = Vec::new();
    if let Some(place) = &situation.place {
        found.push((Part::Place.turn(0, is_asked), Part::Place, words.place(place)));
    }
    for (rank, person) in situation.people.iter().enumerate() {
        found.push((Part::People.turn(rank, is_asked), Part::People, words.person(person)));
    }
    let lists = [(Part::Recalls, &situation.recalled), (Part::Heard, &situation.heard), (Part::Seen, &situation.seen)];
    let fresh: Vec<EpisodeId> = situation.heard.iter().chain(&situation.seen).map(|noticed| noticed.id).collect();
    for (part, list) in lists {
        // What was just heard or seen is no memory of it.
        let list = list.iter().filter(|noticed| part != Part::Recalls || !fresh.contains(&noticed.id));
        for (rank, noticed) in list.enumerate() {
            found.push((part.turn(rank, is_asked), part, words.noticed(noticed)));
        }
    }
    // Stable: within a turn the order of the parts stays.
    found.sort_by_key(|(turn, _, _)| *turn);
    found.into_iter().map(|(_, part, value)| (part, value)).collect()
}

/// Adds the value if it fits, cut if need be.
fn add(object: &mut Map<String, Value>, part: Part, value: Value, budget: usize) -> bool {
    let with = |value: Value| {
        let mut with = object.clone();
        put(&mut with, part, value);
        let is_within = serde_json::to_string(&with).is_ok_and(|json| tokens::estimate(&json) <= budget);
        is_within.then_some(with)
    };
    let Some(fitting) = with(value.clone()).or_else(|| longest(&value, with)) else { return false };
    *object = fitting;
    true
}

/// What fits with as much of the value's sentence as possible; `None` when too little of it would be left.
fn longest<T>(value: &Value, fit: impl Fn(Value) -> Option<T>) -> Option<T> {
    let what = value.get("what")?.as_str()?;
    let with_length = |bytes: usize| {
        let mut value = value.clone();
        value["what"] = cut(what, bytes).into();
        fit(value)
    };
    let (mut low, mut high) = (SENTENCE_BYTES_MIN, what.len());
    let mut best = with_length(low).filter(|_| low < high)?;
    while high - low > 1 {
        let middle = low.midpoint(high);
        match with_length(middle) {
            Some(fitting) => (low, best) = (middle, fitting),
            None => high = middle,
        }
    }
    Some(best)
}

fn put(object: &mut Map<String, Value>, part: Part, value: Value) {
    if part == Part::Place {
        object.insert(part.key().to_owned(), value);
        return;
    }
    match object.get_mut(part.key()).and_then(Value::as_array_mut) {
        Some(list) => list.push(value),
        None => drop(object.insert(part.key().to_owned(), Value::Array(vec![value]))),
    }
}

const ELLIPSIS: &str = "…";

/// At most `bytes_max` bytes of the text, ended between two characters, and a sign that more followed.
fn cut(text: &str, bytes_max: usize) -> String {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{ELLIPSIS}", text[..end].trim_end())
}

/// One line, not too long.
fn sentence(text: &str) -> String {
    let mut line = String::with_capacity(SENTENCE_BYTES_MAX + 4);
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > SENTENCE_BYTES_MAX {
            return cut(&line, SENTENCE_BYTES_MAX - ELLIPSIS.len());
        }
    }
    line
}

/// Words the parts as of now.
struct Words<'a> {
    now: Timestamp,
    zone: &'a TimeZone,
}

impl Words<'_> {
    fn place(&self, place: &Whereabouts) -> Value {
        let mut value = Map::new();
        if let Some(name) = &place.place {
            value.insert("name".to_owned(), sentence(name).into());
        }
        value.insert("what".to_owned(), sentence(&place.what).into());
        value.insert("since".to_owned(), self.time(place.since).into());
        Value::Object(value)
    }

    fn person(&self, person: &Person) -> Value {
        let key = match person.presence {
            Presence::Here => "here_since",
            Presence::Met => "met",
            Presence::Left => "left",
        };
        json!({"name": sentence(&person.name), key: self.time(person.at)})
    }

    fn noticed(&self, noticed: &Noticed) -> Value {
        let id: String = noticed.id.to_string().chars().take(ID_DIGITS).collect();
        json!({"at": self.time(noticed.at), "what": sentence(&noticed.what), "id": id})
    }

    /// What the people in the conversation call that time: `09:55` today, `2026-11-29 21:40` on another day.
    fn time(&self, time: Timestamp) -> String {
        match (self.local(time), self.local(self.now)) {
            (Some(time), Some(now)) if time.date() == now.date() => time.strftime("%H:%M").to_string(),
            (Some(time), _) => time.strftime("%Y-%m-%d %H:%M").to_string(),
            (None, _) => time.to_string(),
        }
    }

    /// `2026-11-30T10:05+01:00`.
    fn in_full(&self, time: Timestamp) -> String {
        self.local(time).map_or_else(|| time.to_string(), |time| time.strftime("%Y-%m-%dT%H:%M%:z").to_string())
    }

    fn local(&self, time: Timestamp) -> Option<jiff::ZonedDateTime> {
        let time = jiff::Timestamp::from_millisecond(time.as_millis()).ok()?;
        Some(time.to_zoned_datetime(self.zone.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::DeviceId;
    use crate::domain::id::ExternalId;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::from_millis(1_796_000_000_000);

    fn noticed(name: &str, what: &str) -> Noticed {
        let id = EpisodeId::of_external(&DeviceId::new("d"), &ExternalId::new(name));
        Noticed { id, at: NOW, what: what.to_owned() }
    }

    fn person(name: &str, presence: Presence) -> Person {
        let hours = if presence == Presence::Left { 5 * 3_600_000 + 53 * 60_000 + 20_000 } else { 0 };
        Person { name: name.to_owned(), presence, at: NOW.plus_millis(-hours) }
    }

    fn full() -> Situation {
        let list =
            |kind: &str| (0..20).map(|rank| noticed(&format!("{kind}{rank}"), &format!("{kind} {rank}"))).collect();
        let place = Whereabouts { place: Some("Kitchen".into()), what: "At Kitchen since 09:00".into(), since: NOW };
        Situation {
            place: Some(place),
            people: vec![person("Alice", Presence::Here), person("Bob", Presence::Left)],
            heard: list("heard"),
            seen: list("seen"),
            recalled: list("recalled"),
        }
    }

    fn names(value: &Value, key: &str) -> Vec<String> {
        let list = value[key].as_array().cloned().unwrap_or_default();
        list.iter().map(|entry| entry["what"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn with_room_everything_is_there_in_local_time() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();

        let value = assemble(&full(), NOW, &zone, TOKENS_MAX, false);

        assert_eq!(value["now"], "2026-11-30T01:53+01:00");
        assert_eq!(value["place"]["name"], "Kitchen");
        assert_eq!(value["people"][0], json!({"name": "Alice", "here_since": "01:53"}));
        assert_eq!(value["people"][1], json!({"name": "Bob", "left": "2026-11-29 20:00"}));
        assert_eq!(["heard", "seen", "recalls"].map(|key| names(&value, key).len()), [20, 20, 20]);
        assert!(value.get("left_out").is_none());
    }

    #[test]
    fn the_most_valuable_comes_first_and_what_is_left_out_is_counted() {
        let value = assemble(&full(), NOW, &TimeZone::UTC, 250, false);
        let asked = assemble(&full(), NOW, &TimeZone::UTC, 250, true);

        assert_eq!(value["place"]["name"], "Kitchen");
        assert_eq!(value["people"].as_array().unwrap().len(), 2);
        assert_eq!(names(&value, "recalls"), ["recalled 0", "recalled 1"]);
        assert_eq!((names(&value, "heard"), names(&value, "seen")), (vec!["heard 0".into()], vec!["seen 0".into()]));
        assert_eq!(value["left_out"], 56);
        assert_eq!(names(&asked, "recalls"), ["recalled 0", "recalled 1", "recalled 2", "recalled 3", "recalled 4"]);
        assert!(asked.get("heard").is_none());
    }

    #[test]
    fn a_long_sentence_is_cut_to_the_room_that_is_left() {
        let long = Situation { heard: vec![noticed("a", &"wörd ".repeat(60))], ..Situation::default() };

        let roomy = assemble(&long, NOW, &TimeZone::UTC, 1_000, false);
        let narrow = assemble(&long, NOW, &TimeZone::UTC, 80, false);
        let endless = Situation { heard: vec![noticed("a", &"x".repeat(100_000))], ..Situation::default() };
        let bounded = assemble(&endless, NOW, &TimeZone::UTC, 1_000, false);

        assert_eq!(names(&roomy, "heard")[0].len(), "wörd ".len() * 60 - 1);
        let what = &names(&narrow, "heard")[0];
        assert!(what.ends_with('…') && what.starts_with("wörd wörd") && what.len() > SENTENCE_BYTES_MIN, "{what}");
        assert_eq!(names(&bounded, "heard")[0].len(), SENTENCE_BYTES_MAX);
    }

    #[test]
    fn what_was_just_noticed_is_not_recalled_as_well() {
        let dog = noticed("dog", "A dog");
        let situation = Situation { heard: vec![dog.clone()], recalled: vec![dog], ..Situation::default() };

        let value = assemble(&situation, NOW, &TimeZone::UTC, 500, false);

        assert_eq!((names(&value, "heard").len(), value.get("recalls")), (1, None));
    }

    #[test]
    fn of_nothing_the_time_is_left() {
        assert_eq!(
            assemble(&Situation::default(), NOW, &TimeZone::UTC, 0, false),
            json!({"now": "2026-11-30T00:53+00:00"})
        );
    }

    proptest! {
        #[test]
        fn the_budget_is_never_exceeded(
            tokens in 0_usize..2_000,
            texts in proptest::collection::vec("\\PC{0,300}", 0..12),
            is_asked: bool,
        ) {
            let list = |kind: &str| -> Vec<Noticed> {
                texts.iter().enumerate().map(|(rank, text)| noticed(&format!("{kind}{rank}"), text)).collect()
            };
            let people = texts.iter().map(|name| person(name, Presence::Met)).collect();
            let situation = Situation {
                place: texts.first().map(|text| Whereabouts { place: None, what: text.clone(), since: NOW }),
                people,
                heard: list("heard"),
                seen: list("seen"),
                recalled: list("recalled"),
            };

            let json = assemble(&situation, NOW, &TimeZone::UTC, tokens, is_asked).to_string();

            let estimated = tokens::estimate(&json);
            prop_assert!(estimated <= tokens.max(TOKENS_MIN), "{} tokens: {}", estimated, json);
        }
    }
}

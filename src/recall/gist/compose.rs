//! From counts to sentences.
//!
//! In: what a [`GistBuilder`] gathered. Out: the [`Gist`].
//!
//! Few of each kind are told, the rest is counted: who wants them all asks for the timeline.

use crate::domain::episode::Metadata;
use crate::domain::id::EpisodeId;
use crate::recall::gist::Gist;
use crate::recall::gist::GistBuilder;
use crate::recall::gist::SOURCES_MAX;
use crate::recall::gist::Stay;
use crate::recall::gist::Subject;
use crate::recall::gist::sentences::Sentence;
use crate::recall::gist::tally::Entry;
use crate::recall::gist::tally::Tally;
use crate::recall::gist::words;
use jiff::civil::Date;
use serde_json::Value;
use serde_json::json;
use std::collections::BTreeMap;

/// Stays told one by one; of more only the places with the longest are named.
const STAYS_TOLD: usize = 4;

/// Two stays at one place this close together are told as one, in milliseconds.
const STAY_GAP_MS: i64 = 15 * 60_000;

/// People, places, sounds and things told.
const PEOPLE_TOLD: usize = 4;
const PLACES_TOLD: usize = 3;
const SOUNDS_TOLD: usize = 4;
const OBJECTS_TOLD: usize = 4;
const TOOLS_TOLD: usize = 3;

/// Sentences repeated.
const SENTENCES_TOLD: usize = 3;

/// Sounds below this share of the one heard most are not told, unless they are [`NOTABLE`].
const SOUND_SHARE_MIN: f64 = 0.05;

/// Notable sounds told beside those heard longest.
const NOTABLE_TOLD: usize = 2;

/// Lengths below this are left out of meetings, in milliseconds.
const LENGTH_TOLD_MS: i64 = 60_000;

/// Stays longer than this on average belong to no part of the day, in milliseconds.
const PART_OF_DAY_MS_MAX: i64 = 3 * 3_600_000;

/// Names kept in the metadata, of each kind.
const NAMES_KEPT: usize = 16;

/// `YAMNet`'s classes that matter however short they were, and how they are told.
const NOTABLE: [(&str, &str); 24] = [
    ("Alarm", "an alarm"),
    ("Alarm clock", "an alarm clock"),
    ("Ambulance (siren)", "an ambulance"),
    ("Baby cry, infant crying", "a baby crying"),
    ("Buzzer", "a buzzer"),
    ("Car alarm", "a car alarm"),
    ("Civil defense siren", "a civil defence siren"),
    ("Crying, sobbing", "somebody crying"),
    ("Doorbell", "a doorbell"),
    ("Explosion", "an explosion"),
    ("Fire alarm", "a fire alarm"),
    ("Fire engine, fire truck (siren)", "a fire engine"),
    ("Gunshot, gunfire", "a shot"),
    ("Knock", "a knock"),
    ("Police car (siren)", "a police siren"),
    ("Screaming", "a scream"),
    ("Shatter", "something shattering"),
    ("Siren", "a siren"),
    ("Smash, crash", "a crash"),
    ("Smoke detector, smoke alarm", "a smoke alarm"),
    ("Telephone", "a telephone"),
    ("Telephone bell ringing", "a telephone"),
    ("Thunder", "thunder"),
    ("Vehicle horn, car horn, honking", "a horn"),
];

/// The gist of what was gathered; `None` when it says nothing.
pub(super) fn gist(builder: &GistBuilder) -> Option<Gist> {
    let (from, to) = (builder.from?, builder.to?);
    let chosen = builder.sentences.choose(SENTENCES_TOLD);
    let parts: Vec<String> = match &builder.frame.subject {
        Subject::Day => day(builder),
        Subject::Place(_) => place(builder),
        Subject::Person(name) => person(builder, name),
    }
    .into_iter()
    .chain(builder.facts.iter().map(|fact| format!("known: {}", without_end(&words::cut(fact, 160)))))
    .chain(chosen.iter().map(|sentence| told(builder, sentence)))
    .filter(|part| !part.is_empty())
    .collect();
    let (first, rest) = parts.split_first()?;
    let mut content = format!("{}: {first}.", lead(builder));
    rest.iter().for_each(|part| content.push_str(&format!(" {}.", capital(part))));
    let sources = sources(builder, &chosen);
    Some(Gist {
        content,
        metadata: metadata(builder, &sources),
        from,
        to,
        sources,
        people: top(&builder.people, NAMES_KEPT),
        places: top(&builder.stay_total, NAMES_KEPT),
    })
}

fn day(builder: &GistBuilder) -> Vec<String> {
    vec![whereabouts(builder), travelled(builder), met(builder), heard(builder), saw(builder), tools(builder)]
}

fn place(builder: &GistBuilder) -> Vec<String> {
    let mut stays = String::new();
    let entries = builder.stay_total.ranked();
    let count: u64 = entries.iter().map(|(_, entry)| entry.times).sum();
    if count > 0 {
        let total: i64 = entries.iter().map(|(_, entry)| entry.total_ms).sum();
        stays = format!("stayed {}{}, {}", words::times(count), on_days(builder), words::length(total));
        stays.push_str(if count > 1 { " in all" } else { "" });
        // A working day begins in the morning, but it is not in the morning.
        if total / i64::try_from(count).unwrap_or(i64::MAX) <= PART_OF_DAY_MS_MAX {
            stays.push_str(&usual_part_of_day(builder));
        }
    }
    vec![stays, met_often(builder), heard(builder), saw(builder), tools(builder)]
}

fn person(builder: &GistBuilder, name: &str) -> Vec<String> {
    let Some(entry) = builder.people.entry(name) else {
        let episodes = words::counted(builder.episodes, "episode");
        return vec![format!("told of in {episodes}"), tools(builder)];
    };
    let mut meetings = format!("met {}{}", words::times(entry.times), on_days(builder));
    if entry.total_ms >= LENGTH_TOLD_MS {
        let all = if entry.times > 1 { " in all" } else { "" };
        meetings.push_str(&format!(", {}{all}", words::length(entry.total_ms)));
    }
    meetings.push_str(&usual_part_of_day(builder));
    let places = places_of(builder, name);
    let total: u64 = places.iter().map(|(_, count)| count).sum();
    match places.as_slice() {
        [] => {}
        [(place, count)] if *count == entry.times => meetings.push_str(&format!(", at {place}")),
        many if total > 0 => {
            let parts = many.iter().map(|(place, count)| format!("{} at {place}", words::times(*count))).collect();
            meetings.push_str(&format!("; {}", words::list_of_many(parts, PLACES_TOLD, 0)));
        }
        _ => {}
    }
    let last = format!("last met on {}", words::day_and_clock(entry.last, &builder.frame.zone));
    let with = top(&builder.sounds, SOUNDS_TOLD).iter().map(|class| words::sound(class)).collect::<Vec<_>>();
    let around = if with.is_empty() { String::new() } else { format!("heard then: {}", words::list(&with)) };
    vec![meetings, last, around, saw(builder), tools(builder)]
}

/// `Monday 30 November 2026`, `Kitchen in November 2026`, `Alice from 24 to 30 November 2026`.
fn lead(builder: &GistBuilder) -> String {
    let (first, last) = builder.frame.local_dates();
    match &builder.frame.subject {
        Subject::Day => words::day(first),
        Subject::Place(name) | Subject::Person(name) => format!("{} {}", words::name(name), span(first, last)),
    }
}

fn span(first: Date, last: Date) -> String {
    if first == last {
        return format!("on {}", words::day(first));
    }
    if first == first.first_of_month() && last == first.last_of_month() {
        return format!("in {}", first.strftime("%B %Y"));
    }
    let pattern = match (first.year() == last.year(), first.month() == last.month()) {
        (true, true) => "%-d",
        (true, false) => "%-d %B",
        (false, _) => "%-d %B %Y",
    };
    format!("from {} to {}", first.strftime(pattern), last.strftime("%-d %B %Y"))
}

// --- where -------------------------------------------------------------------------------------------

fn whereabouts(builder: &GistBuilder) -> String {
    let told = joined_stays(&builder.stays);
    if told.is_empty() {
        return String::new();
    }
    if told.len() <= STAYS_TOLD {
        return words::list(&told.iter().map(|stay| stay_words(builder, stay)).collect::<Vec<_>>());
    }
    let ranked = builder.stay_total.ranked();
    let named: Vec<String> = ranked
        .iter()
        .take(PLACES_TOLD)
        .map(|(place, entry)| format!("{} ({})", words::name(place), words::length(entry.total_ms)))
        .collect();
    let others = ranked.len() - named.len();
    let more = if others > 0 {
        format!(", and at {} other place{}", others, if others == 1 { "" } else { "s" })
    } else {
        String::new()
    };
    format!("{}at {}{more}", if others > 0 { "mostly " } else { "" }, words::list(&named))
}

/// Stays at one place with a short gap between are one: a receiver lost its fix, or the way led around the house.
fn joined_stays(stays: &[Stay]) -> Vec<Stay> {
    let mut joined: Vec<Stay> = Vec::new();
    for stay in stays {
        match joined.last_mut() {
            Some(last) if last.place == stay.place && stay.from.millis_since(last.to) <= STAY_GAP_MS => {
                last.to = last.to.max(stay.to);
            }
            _ => joined.push(stay.clone()),
        }
    }
    joined
}

fn stay_words(builder: &GistBuilder, stay: &Stay) -> String {
    let (zone, place) = (&builder.frame.zone, words::name(&stay.place));
    let (from, to) = (words::clock(stay.from, zone), words::clock(stay.to, zone));
    match (stay.from <= builder.frame.since, stay.to >= builder.frame.until) {
        (true, true) => format!("at {place} all day"),
        (true, false) => format!("at {place} until {to}"),
        (false, true) => format!("at {place} from {from} on"),
        (false, false) => format!("at {place} from {from} to {to}"),
    }
}

fn travelled(builder: &GistBuilder) -> String {
    let length = words::distance(builder.distance_m);
    match builder.trips {
        0 => String::new(),
        1 => format!("travelled {length}"),
        trips => format!("travelled {length} in {trips} trips"),
    }
}

fn on_days(builder: &GistBuilder) -> String {
    let days = builder.days.len() as u64;
    if days > 1 { format!(" on {}", words::counted(days, "day")) } else { String::new() }
}

/// Told when it is most of at least three times.
fn usual_part_of_day(builder: &GistBuilder) -> String {
    let total: u64 = builder.parts_of_day.iter().sum();
    let usual = builder.parts_of_day.iter().zip(words::PARTS_OF_DAY).find(|(count, _)| **count * 2 > total);
    match usual {
        Some((count, words)) if total >= 3 && *count == total => format!(", always {words}"),
        Some((_, words)) if total >= 3 => format!(", mostly {words}"),
        _ => String::new(),
    }
}

// --- who ---------------------------------------------------------------------------------------------

fn met(builder: &GistBuilder) -> String {
    if builder.people.is_empty() {
        return String::new();
    }
    let parts = builder.people.ranked().into_iter().map(|(name, entry)| meeting(builder, name, entry)).collect();
    format!("met {}", words::list_of_many(parts, PEOPLE_TOLD, builder.people.others()))
}

/// `Alice at 09:12 (15 min, at Kitchen)`, `Bob twice (1 h 5 min in all, at Office and Kitchen)`.
fn meeting(builder: &GistBuilder, name: &str, entry: &Entry) -> String {
    let mut details = Vec::new();
    if entry.total_ms >= LENGTH_TOLD_MS {
        let all = if entry.times > 1 { " in all" } else { "" };
        details.push(format!("{}{all}", words::length(entry.total_ms)));
    }
    let places: Vec<String> = places_of(builder, name).into_iter().map(|(place, _)| place).collect();
    if !places.is_empty() {
        details.push(format!("at {}", words::list_of_many(places, PLACES_TOLD, 0)));
    }
    let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
    let name = words::name(name);
    if entry.times == 1 {
        return format!("{name} at {}{details}", words::clock(entry.first, &builder.frame.zone));
    }
    format!("{name} {}{details}", words::times(entry.times))
}

fn met_often(builder: &GistBuilder) -> String {
    if builder.people.is_empty() {
        return String::new();
    }
    let often = |(name, entry): (&str, &Entry)| format!("{} {}", words::name(name), words::times(entry.times));
    let parts = builder.people.ranked().into_iter().map(often).collect();
    format!("met here: {}", words::list_of_many(parts, PEOPLE_TOLD, builder.people.others()))
}

/// Where a person was met, the most frequent place first.
fn places_of(builder: &GistBuilder, person: &str) -> Vec<(String, u64)> {
    let met = builder.met_at.iter().filter(|((name, place), _)| name == person && !place.is_empty());
    let mut places: Vec<(String, u64)> = met.map(|((_, place), count)| (words::name(place), *count)).collect();
    places.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    places
}

// --- what --------------------------------------------------------------------------------------------

fn heard(builder: &GistBuilder) -> String {
    let ranked = builder.sounds.ranked();
    let best = ranked.first().map_or(0.0, |(_, entry)| entry.weight);
    let is_main = |index: usize, entry: &Entry| index < SOUNDS_TOLD && entry.weight >= SOUND_SHARE_MIN * best;
    let (mut main, mut notable, mut rest) = (Vec::new(), Vec::new(), 0_u64);
    for (index, (class, entry)) in ranked.into_iter().enumerate() {
        if is_main(index, entry) {
            main.push(if entry.total_ms < 1_000 {
                words::sound(class)
            } else {
                format!("{} ({})", words::sound(class), words::length(entry.total_ms))
            });
        } else if let Some((_, told)) = NOTABLE.iter().find(|(name, _)| *name == class)
            && notable.len() < NOTABLE_TOLD
        {
            notable.push(format!("{} {told}", words::times(entry.times)));
        } else {
            rest += 1;
        }
    }
    if main.is_empty() {
        let unnamed = words::length(builder.unnamed_sound_ms);
        let is_told = builder.unnamed_sound_ms >= 1_000;
        return if is_told { format!("heard sounds for {unnamed}") } else { String::new() };
    }
    let mostly = if rest > 0 { "mostly " } else { "" };
    let notable = if notable.is_empty() { String::new() } else { format!(", and {}", words::list(&notable)) };
    format!("heard {mostly}{}{notable}", words::list(&main))
}

fn saw(builder: &GistBuilder) -> String {
    if builder.objects.is_empty() {
        let scenes = words::counted(builder.scenes, "scene");
        return if builder.scenes > 0 { format!("saw {scenes}") } else { String::new() };
    }
    let mostly = if builder.objects.ranked().len() > OBJECTS_TOLD { "mostly " } else { "" };
    let names: Vec<String> = top(&builder.objects, OBJECTS_TOLD).iter().map(|name| words::name(name)).collect();
    format!("saw {mostly}{}", words::list(&names))
}

fn tools(builder: &GistBuilder) -> String {
    let ranked = builder.tools.ranked();
    let total: u64 = ranked.iter().map(|(_, entry)| entry.times).sum::<u64>() + builder.tools.others();
    if total == 0 {
        return String::new();
    }
    let names = ranked.into_iter().map(|(name, _)| words::name(name)).collect();
    let names = words::list_of_many(names, TOOLS_TOLD, builder.tools.others());
    format!("tools handed in {} ({names})", words::counted(total, "result"))
}

fn told(builder: &GistBuilder, sentence: &Sentence) -> String {
    let at = match builder.frame.subject {
        Subject::Day => format!("at {}", words::clock(sentence.at, &builder.frame.zone)),
        Subject::Place(_) | Subject::Person(_) => {
            format!("on {}", words::day_and_clock(sentence.at, &builder.frame.zone))
        }
    };
    let text = without_end(&sentence.text);
    if sentence.is_quotation { format!("said {at}: “{text}”") } else { format!("{at}: {text}") }
}

/// What a moment says was said: `Met Alice. Said: "hello". Sound: Speech` says `hello`.
pub(super) fn said(content: &str) -> Option<&str> {
    let (_, rest) = content.split_once("Said: \"")?;
    let end = ["\". Sound: ", "\". Faces: ", "\". Objects: ", "\". Location: "];
    let end = end.into_iter().filter_map(|mark| rest.find(mark)).min().or_else(|| rest.rfind('"'))?;
    Some(&rest[..end])
}

fn without_end(text: &str) -> String {
    text.trim_end_matches(['.', ' ']).to_owned()
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

// --- what it is made of ------------------------------------------------------------------------------

fn top(tally: &Tally, count: usize) -> Vec<String> {
    tally.ranked().into_iter().take(count).map(|(name, _)| name.to_owned()).collect()
}

/// The episodes that carry the sentences: what was said and who was met before what was heard and seen.
fn sources(builder: &GistBuilder, chosen: &[Sentence]) -> Vec<(EpisodeId, f64)> {
    let best = |tally: &Tally, count: usize| {
        tally.ranked().into_iter().take(count).map(|(_, entry)| entry.best).collect::<Vec<_>>()
    };
    let kinds: [(f64, Vec<EpisodeId>); 6] = [
        (1.0, chosen.iter().map(|sentence| sentence.id).collect()),
        (1.0, best(&builder.people, PEOPLE_TOLD * 2)),
        (0.9, best(&builder.stay_total, STAYS_TOLD * 2)),
        (0.7, best(&builder.sounds, SOUNDS_TOLD + NOTABLE_TOLD)),
        (0.7, best(&builder.objects, OBJECTS_TOLD)),
        (0.5, best(&builder.tools, TOOLS_TOLD)),
    ];
    let mut sources: BTreeMap<EpisodeId, f64> = BTreeMap::new();
    for (score, ids) in kinds {
        for id in ids {
            if sources.len() < SOURCES_MAX {
                sources.entry(id).or_insert(score);
            }
        }
    }
    sources.into_iter().collect()
}

fn metadata(builder: &GistBuilder, sources: &[(EpisodeId, f64)]) -> Metadata {
    let counted = |tally: &Tally, key: &str| -> Value {
        let row = |(name, entry): (&str, &Entry)| json!({key: name, "times": entry.times, "duration_s": entry.total_ms / 1_000});
        tally.ranked().into_iter().take(NAMES_KEPT).map(row).collect()
    };
    let (kind, name) = builder.frame.subject.kind_and_name();
    let subject = if kind == "day" { builder.frame.local_dates().0.to_string() } else { name.to_owned() };
    let mut metadata = Metadata::new();
    metadata.insert("gist".to_owned(), kind.into());
    metadata.insert("subject".to_owned(), subject.clone().into());
    if kind != "day" {
        // The name by which the filters find it.
        metadata.insert(kind.to_owned(), subject.into());
    }
    metadata.insert("since".to_owned(), builder.frame.since.as_millis().into());
    metadata.insert("until".to_owned(), builder.frame.until.as_millis().into());
    metadata.insert("episodes".to_owned(), builder.episodes.into());
    metadata.insert("by_modality".to_owned(), json!(builder.by_modality));
    metadata.insert("people".to_owned(), counted(&builder.people, "person"));
    metadata.insert("places".to_owned(), counted(&builder.stay_total, "place"));
    metadata.insert("sounds".to_owned(), counted(&builder.sounds, "class"));
    metadata.insert("objects".to_owned(), counted(&builder.objects, "label"));
    metadata.insert("sources".to_owned(), sources.iter().map(|(id, _)| Value::from(id.to_string())).collect());
    metadata
}

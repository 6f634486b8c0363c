//! Looks up what is worth knowing now: `percept context` and the `context` of MCP.
//!
//! In: the store, the present moment, how far back each part looks, and who recalls. Out: the [`Situation`] that
//! [`crate::recall::context`] words. Never: raises strength; a look at the present is no search.

use crate::domain::modality::Modality;
use crate::domain::time::Timestamp;
use crate::memory::error::StoreError;
use crate::memory::query::EpisodeFilter;
use crate::memory::query::Order;
use crate::memory::query::StoredEpisode;
use crate::memory::reader::Reader;
use crate::recall::context::Noticed;
use crate::recall::context::Person;
use crate::recall::context::Presence;
use crate::recall::context::Situation;
use crate::recall::context::Whereabouts;
use serde_json::Value;
use std::collections::BTreeSet;

/// Episodes looked at for each part.
const LOOKED_AT_MAX: usize = 200;

/// Sounds, scenes and memories handed on; the budget decides how many are told.
const LIST_MAX: usize = 20;

/// How far back each part looks, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Sounds, scenes, meetings without an end, and people who left.
    pub recent_ms: i64,
    /// People who came and have not left.
    pub people_ms: i64,
    /// Stays and trips.
    pub place_ms: i64,
}

impl Default for Windows {
    /// A quarter of an hour, half a day, a day.
    fn default() -> Self {
        Self { recent_ms: 15 * 60_000, people_ms: 12 * 3_600_000, place_ms: 24 * 3_600_000 }
    }
}

/// Brings back episodes for a cue: the words asked about, or who and where; best first.
pub type Recall<'a> = dyn FnMut(&Reader, &str, usize) -> anyhow::Result<Vec<StoredEpisode>> + 'a;

/// Looks around at `now`. `about` replaces the situation as the cue of what is recalled.
///
/// # Errors
/// When the store cannot be read.
pub fn look(
    reader: &Reader,
    now: Timestamp,
    windows: &Windows,
    about: Option<&str>,
    recall: &mut Recall<'_>,
) -> anyhow::Result<Situation> {
    let recent = |modality: Modality, window_ms: i64| episodes(reader, modality, now, window_ms);
    let place = whereabouts(&recent(Modality::Spatial, windows.place_ms)?);
    let people = people(&recent(Modality::Social, windows.people_ms.max(windows.recent_ms))?, now, windows);
    let heard = noticed(&recent(Modality::Audio, windows.recent_ms)?);
    let seen = noticed(&recent(Modality::Visual, windows.recent_ms)?);
    let cue = about.map_or_else(|| cue(&people, place.as_ref()), str::to_owned);
    let recalled = if cue.trim().is_empty() { Vec::new() } else { recall(reader, &cue, LIST_MAX)? };
    Ok(Situation { place, people, heard, seen, recalled: noticed(&recalled) })
}

/// The newest first.
fn episodes(
    reader: &Reader,
    modality: Modality,
    now: Timestamp,
    window_ms: i64,
) -> Result<Vec<StoredEpisode>, StoreError> {
    reader.episodes(&EpisodeFilter {
        modalities: vec![modality],
        since: Some(now.plus_millis(-window_ms)),
        until: Some(now.plus_millis(1)),
        order: Order::NewestFirst,
        limit: Some(LOOKED_AT_MAX),
        ..EpisodeFilter::default()
    })
}

/// The stay or trip that began last; who has left a place is not there. Counts of devices and networks are spatial too, and
/// say nothing of the place.
fn whereabouts(episodes: &[StoredEpisode]) -> Option<Whereabouts> {
    let tells =
        |row: &&StoredEpisode| row.episode.tool_name == "gps_location" || row.episode.metadata.contains_key("place");
    let episode = &episodes.iter().find(tells)?.episode;
    let has_left = episode.metadata.get("is_over") == Some(&Value::Bool(true));
    let place = text(episode.metadata.get("place")).filter(|_| !has_left);
    Some(Whereabouts { place, what: episode.content.clone(), since: episode.timestamp })
}

/// Each person once, by their latest meeting; those who are here first.
fn people(episodes: &[StoredEpisode], now: Timestamp, windows: &Windows) -> Vec<Person> {
    let mut known = BTreeSet::new();
    let mut found = Vec::new();
    for row in episodes {
        let metadata = &row.episode.metadata;
        let Some(name) = text(metadata.get("person")).filter(|name| known.insert(name.clone())) else { continue };
        let (presence, at) = match (metadata.contains_key("arrival"), metadata.contains_key("departure")) {
            (true, false) => (Presence::Here, row.episode.timestamp),
            (true, true) => (Presence::Left, row.episode.ended_at),
            (false, _) => (Presence::Met, row.episode.timestamp),
        };
        if presence == Presence::Here || now.millis_since(at) <= windows.recent_ms {
            found.push(Person { name, presence, at });
        }
    }
    found.sort_by_key(|person| match person.presence {
        Presence::Here => 0,
        Presence::Met => 1,
        Presence::Left => 2,
    });
    found.truncate(LIST_MAX);
    found
}

fn noticed(episodes: &[StoredEpisode]) -> Vec<Noticed> {
    let noticed = |row: &StoredEpisode| Noticed {
        id: row.episode.id,
        at: row.episode.timestamp,
        what: row.episode.content.clone(),
    };
    episodes.iter().take(LIST_MAX).map(noticed).collect()
}

/// Who and where, as words.
fn cue(people: &[Person], place: Option<&Whereabouts>) -> String {
    let names = people.iter().map(|person| person.name.clone());
    names.chain(place.and_then(|place| place.place.clone())).collect::<Vec<_>>().join(", ")
}

fn text(value: Option<&Value>) -> Option<String> {
    value?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

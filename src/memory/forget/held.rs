//! What reprocessing a session must not bring back under other ids.
//!
//! In: a session of which something was forgotten. Out: the kinds of rows of it that stay as they are.
//!
//! Other settings or models may end a meeting a second later or begin a sound earlier, and so give it another id, which no
//! tombstone knows. Therefore the session remembers which modalities lost rows (and nothing of which rows, when or of whom):
//! reprocessing replaces the other modalities only. Of a session that lost a span of time nothing is replaced.
//! The list stands in `sessions.counts` under [`KEY`].

use crate::domain::episode::EpisodeRecord;
use crate::memory::rows;
use rusqlite::Connection;
use rusqlite::OptionalExtension;
use serde_json::Map;
use serde_json::Value;

/// The key of the list in `sessions.counts`.
pub(crate) const KEY: &str = "forgotten";

/// Stands for every modality.
pub(crate) const ALL: &str = "all";

/// Remembers that a session (device, session) lost a row of that modality.
pub(crate) fn note(connection: &Connection, session: (&str, &str), modality: &str) -> rusqlite::Result<()> {
    let Some(mut counts) = counts_of(connection, session)? else { return Ok(()) };
    let mut list = list_of(&counts);
    if list.iter().any(|name| name == modality) {
        return Ok(());
    }
    list.push(modality.to_owned());
    counts.insert(KEY.to_owned(), list.into());
    connection
        .prepare_cached("UPDATE sessions SET counts = ?3 WHERE device_id = ?1 AND session_id = ?2")?
        .execute((session.0, session.1, rows::json(&counts)))?;
    Ok(())
}

/// The modalities of a session (device, session) that lost rows.
pub(crate) fn modalities(connection: &Connection, session: (&str, &str)) -> rusqlite::Result<Vec<String>> {
    Ok(counts_of(connection, session)?.as_ref().map(list_of).unwrap_or_default())
}

/// The counts a reader hands over when it is done, with what the session remembers of forgetting.
pub(crate) fn carried_over(
    connection: &Connection,
    session: (&str, &str),
    counts: &Map<String, Value>,
) -> rusqlite::Result<Map<String, Value>> {
    let list = modalities(connection, session)?;
    let mut counts = counts.clone();
    if !list.is_empty() {
        counts.insert(KEY.to_owned(), list.into());
    }
    Ok(counts)
}

/// Whether a list of modalities names that one.
pub(crate) fn names(list: &[String], modality: &str) -> bool {
    list.iter().any(|name| name == ALL || name == modality)
}

/// Whether a record of a session that is being replaced must not be stored.
pub(crate) fn holds_back(connection: &Connection, record: &EpisodeRecord) -> rusqlite::Result<bool> {
    let episode = &record.episode;
    let list = modalities(connection, (episode.device_id.as_str(), episode.session_id.as_str()))?;
    Ok(names(&list, episode.modality.as_str()))
}

fn counts_of(connection: &Connection, session: (&str, &str)) -> rusqlite::Result<Option<Map<String, Value>>> {
    let text: Option<String> = connection
        .prepare_cached("SELECT counts FROM sessions WHERE device_id = ?1 AND session_id = ?2")?
        .query_row(session, |row| row.get(0))
        .optional()?;
    Ok(text.map(|text| serde_json::from_str(&text).unwrap_or_default()))
}

fn list_of(counts: &Map<String, Value>) -> Vec<String> {
    let list = counts.get(KEY).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

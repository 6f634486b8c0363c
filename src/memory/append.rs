//! Stores one episode with everything that belongs to it: row, full text, strength, vectors, edges, media, links.
//!
//! In: a checked record whose files are on the disk. Out: what became of it.
//! The caller wraps each call in a savepoint: all of it is stored, or nothing.
//! Never: stores an id twice, brings back what was forgotten, or changes the class of a stored row.

use crate::domain::episode::Embedding;
use crate::domain::episode::Episode;
use crate::domain::episode::EpisodeRecord;
use crate::domain::id::EpisodeId;
use crate::memory::clock;
use crate::memory::clock::ClockPlace;
use crate::memory::embedding;
use crate::memory::graph;
use crate::memory::links;
use crate::memory::media;
use crate::memory::media::MediaRow;
use crate::memory::record;
use crate::memory::revision;
use crate::memory::revision::Context;
use crate::memory::rows;
use crate::memory::tombstones;
use rusqlite::Connection;
use rusqlite::OptionalExtension;

/// What became of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is new.
    Inserted,
    /// It was known and is different; files that nothing names any more are listed.
    Updated(Vec<String>),
    /// It was known and is the same, or the same capture is stored under another id.
    Duplicate,
    /// It was forgotten or has expired, and stays so.
    Blocked,
}

/// Stores the record.
pub(crate) fn append(
    connection: &Connection,
    context: &Context<'_>,
    record: &EpisodeRecord,
    files: &[MediaRow],
) -> rusqlite::Result<Outcome> {
    let id = record.episode.id.to_string();
    if tombstones::blocks(connection, "episode", &id)? {
        return Ok(Outcome::Blocked);
    }
    let digest = record::digest(record, files);
    let stored = stored_digest(connection, &id)?;
    if stored.as_deref() == Some(digest.as_bytes()) || (stored.is_none() && is_stored_elsewhere(connection, record)?) {
        return Ok(Outcome::Duplicate);
    }
    let (episode, shift_ms) = corrected(connection, &record.episode)?;
    let revision = revision::next(connection)?;
    let unused = if stored.is_some() {
        rows::update(connection, context, &episode, digest.as_bytes(), revision)?;
        embedding::remove(connection, &id)?;
        Some(media::remove(connection, &id)?)
    } else {
        rows::insert(connection, context, &episode, digest.as_bytes(), revision)?;
        connection.prepare_cached("INSERT INTO strength (episode_id) VALUES (?1)")?.execute([&id])?;
        None
    };
    embedding::put(connection, &id, &record.embeddings)?;
    media::put(connection, context, &id, files)?;
    graph::put(connection, context, &episode, &record.facts, shift_ms)?;
    links::relink(connection, &episode)?;
    Ok(unused.map_or(Outcome::Inserted, Outcome::Updated))
}

/// Adds vectors to a stored episode, which syncs again with them. `Duplicate` when the episode is not there (any more)
/// or has them already.
pub(crate) fn add_vectors(
    connection: &Connection,
    id: &EpisodeId,
    embeddings: &[Embedding],
) -> rusqlite::Result<Outcome> {
    let id = id.to_string();
    if stored_digest(connection, &id)?.is_none() || has_all(connection, &id, embeddings)? {
        return Ok(Outcome::Duplicate);
    }
    embedding::put(connection, &id, embeddings)?;
    connection
        .prepare_cached("UPDATE episodes SET revision = ?2 WHERE id = ?1")?
        .execute((&id, revision::next(connection)?))?;
    Ok(Outcome::Updated(Vec::new()))
}

fn has_all(connection: &Connection, id: &str, embeddings: &[Embedding]) -> rusqlite::Result<bool> {
    for vector in embeddings {
        if embedding::load(connection, id, &vector.model_id, vector.kind)?.as_deref() != Some(&vector.vector) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn stored_digest(connection: &Connection, id: &str) -> rusqlite::Result<Option<Vec<u8>>> {
    connection.prepare_cached("SELECT digest FROM episodes WHERE id = ?1")?.query_row([id], |row| row.get(0)).optional()
}

/// Whether the same moment is there under another id: one capture that reached the store on two ways.
fn is_stored_elsewhere(connection: &Connection, record: &EpisodeRecord) -> rusqlite::Result<bool> {
    let moment = record.episode.metadata.get("multimodal_episode_id").and_then(|value| value.as_str());
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM episodes WHERE multimodal_episode_id = ?1)")?
        .query_row([moment], |row| row.get(0))
}

/// The episode with its times moved by the clock corrections of its run that came before it.
fn corrected(connection: &Connection, episode: &Episode) -> rusqlite::Result<(Episode, i64)> {
    let place = ClockPlace {
        device_id: &episode.device_id,
        session_id: &episode.session_id,
        boot_id: &episode.boot_id,
        monotonic_ms: episode.monotonic_ms,
        quality: episode.clock_quality,
    };
    let (shift_ms, clock_quality) = clock::shift_of(connection, place)?;
    let episode = Episode {
        timestamp: episode.timestamp.plus_millis(shift_ms),
        ended_at: episode.ended_at.plus_millis(shift_ms),
        clock_quality,
        ..episode.clone()
    };
    Ok((episode, shift_ms))
}

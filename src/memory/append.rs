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
use crate::memory::forget;
use crate::memory::graph;
use crate::memory::links;
use crate::memory::media;
use crate::memory::media::MediaRow;
use crate::memory::mentions;
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
    /// It was forgotten or has expired, and stays so; or it was redacted, and stays as it is.
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
    let moment = moment_of(record).filter(|moment| *moment != id);
    if tombstones::blocks(connection, "episode", &id)?
        || moment.map_or(Ok(false), |moment| tombstones::blocks(connection, "episode", moment))?
    {
        return Ok(Outcome::Blocked);
    }
    let digest = record::digest(record, files);
    let stored = stored_digest(connection, &id)?;
    if stored.as_deref().is_some_and(forget::is_redacted) {
        return Ok(Outcome::Blocked);
    }
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
    mentions::put(connection, &episode)?;
    links::relink(connection, context, &episode)?;
    Ok(unused.map_or(Outcome::Inserted, Outcome::Updated))
}

/// Adds vectors to a stored episode, which syncs again with them. `Duplicate` when the episode is not there (any more),
/// was redacted, or has them already.
pub(crate) fn add_vectors(
    connection: &Connection,
    context: &Context<'_>,
    id: &EpisodeId,
    embeddings: &[Embedding],
) -> rusqlite::Result<Outcome> {
    let id = id.to_string();
    let stored = stored_digest(connection, &id)?;
    // The vector of a sentence that was redacted since would say what it said.
    if stored.is_none_or(|digest| forget::is_redacted(&digest)) || has_all(connection, &id, embeddings)? {
        return Ok(Outcome::Duplicate);
    }
    embedding::put(connection, &id, embeddings)?;
    connection
        .prepare_cached("UPDATE episodes SET revision = ?2 WHERE id = ?1")?
        .execute((&id, revision::next(connection)?))?;
    links::similar::relink(connection, context, &id)?;
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
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM episodes WHERE multimodal_episode_id = ?1)")?
        .query_row([moment_of(record)], |row| row.get(0))
}

fn moment_of(record: &EpisodeRecord) -> Option<&str> {
    record.episode.metadata.get("multimodal_episode_id")?.as_str()
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
    let mut corrected = Episode {
        timestamp: episode.timestamp.plus_millis(shift_ms),
        ended_at: episode.ended_at.plus_millis(shift_ms),
        clock_quality,
        ..episode.clone()
    };
    if shift_ms != 0 {
        clock::retell_meeting(&mut corrected);
    }
    Ok((corrected, shift_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::episode::Metadata;
    use crate::domain::fact::Fact;
    use crate::domain::fact::Node;
    use crate::domain::fact::NodeKind;
    use crate::domain::id::BootId;
    use crate::domain::id::DeviceId;
    use crate::domain::id::ExternalId;
    use crate::domain::id::SessionId;
    use crate::domain::id::SourceId;
    use crate::domain::modality::Modality;
    use crate::domain::time::ClockQuality;
    use crate::domain::time::Timestamp;
    use crate::memory::schema;
    use crate::memory::similarity::companion::Companion;
    use crate::recall::links::Cuts;
    use std::cell::RefCell;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering;

    /// Steps of SQLite's machine, not time.
    #[test]
    fn one_append_takes_as_many_steps_in_a_store_ten_times_as_large() {
        let mut connection = fresh();
        let steps = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&steps);
        let count = move || counter.fetch_add(1, Ordering::Relaxed) == u64::MAX;
        connection.progress_handler(1, Some(count)).unwrap();
        let mut of_last_hundred = Vec::new();
        for number in 0..3_000 {
            if matches!(number, 200 | 300 | 2_900) {
                steps.store(0, Ordering::Relaxed);
            }
            put(&connection, &record(number));
            if matches!(number, 299 | 2_999) {
                of_last_hundred.push(steps.load(Ordering::Relaxed));
            }
        }

        let [small, large] = of_last_hundred[..] else { panic!("two measurements") };
        assert!(small > 10_000, "{small} steps were counted");
        assert!(large < small * 3 / 2, "100 appends took {small} steps at first and {large} later");
    }

    #[test]
    fn every_change_takes_the_next_revision_and_a_repeat_takes_none() {
        let connection = fresh();
        let revision = |sql: &str| -> i64 { connection.query_row(sql, [], |row| row.get(0)).unwrap() };
        let mut changed = record(0);
        changed.episode.content = "Something else".to_owned();

        let mut seen = Vec::new();
        for record in [&record(0), &record(0), &changed] {
            put(&connection, record);
            seen.push(revision("SELECT revision FROM episodes"));
        }

        assert_eq!(seen[0], seen[1]);
        assert!(seen[2] > seen[1]);
        assert!(revision("SELECT next_revision FROM store") > seen[2]);
        let edge = revision("SELECT revision FROM kg_edges");
        assert!(edge > 0 && edge < seen[2], "an edge that did not change keeps its revision");
    }

    fn put(connection: &Connection, record: &EpisodeRecord) -> Outcome {
        let relations = ["located_at".to_owned()];
        let companion = RefCell::new(Companion::new(Path::new("/nowhere"), "s", Cuts::default()));
        let stored_at = Timestamp::from_millis(0);
        let context = Context { store_id: "s", stored_at, single_valued: &relations, companion: &companion };
        append(connection, &context, record, &[]).unwrap()
    }

    fn fresh() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::stamp(&connection).unwrap();
        schema::migrate(&mut connection).unwrap();
        connection.execute("INSERT INTO store VALUES (1, 'd', 's', 1)", []).unwrap();
        connection
    }

    /// A day of overlapping sounds, scenes and stays, one start every half second.
    fn record(number: i64) -> EpisodeRecord {
        let (device_id, external_id) = (DeviceId::new("d"), ExternalId::new(number.to_string()));
        let start = Timestamp::from_millis(number * 500);
        let (modality, length_ms) = match number % 8 {
            0 => (Modality::Spatial, 3_000_000),
            1 | 2 => (Modality::Visual, 0),
            _ => (Modality::Audio, 10_000),
        };
        let (person, place) = (Node::new(NodeKind::Person, "Alice"), Node::new(NodeKind::Location, "Kitchen"));
        let episode = Episode {
            id: EpisodeId::of_external(&device_id, &external_id),
            external_id: Some(external_id),
            device_id,
            session_id: SessionId::new("s"),
            source: SourceId::new("microphone:m"),
            timestamp: start,
            ended_at: start.plus_millis(length_ms),
            boot_id: BootId::new("b"),
            monotonic_ms: start.as_millis(),
            clock_quality: ClockQuality::Gps,
            modality,
            tool_name: "t".to_owned(),
            content: format!("Episode {number}"),
            importance: 6,
            decay_class: modality.default_decay(),
            metadata: Metadata::new(),
        };
        let facts = vec![Fact::triple(person, "located_at", place, "Alice is in the kitchen".to_owned(), start)];
        EpisodeRecord { episode, embeddings: Vec::new(), facts, media: Vec::new() }
    }
}

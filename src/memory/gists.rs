//! Reading what a gist is made of, and keeping the gists themselves.
//!
//! In: a [`Frame`]. Out: a [`Gist`], from one consistent state of the store. Rows are read one by one and not kept.
//!
//! | subject | its episodes |
//! |---|---|
//! | day | all that overlap it; a stay or meeting that began earlier is found by its class of lengths, not by reading back |
//! | place | what names it as its place, and what facts about it were learnt from |
//! | person | what names them, and what facts about them were learnt from |
//!
//! Written: the row as any other, and links of reason [`GIST`] to its sources. A gist that has no sources any more goes.
//! Never: words of its own.

use crate::domain::episode::Episode;
use crate::domain::episode::EpisodeRecord;
use crate::domain::fact::NodeKind;
use crate::domain::id::EpisodeId;
use crate::domain::modality::Modality;
use crate::domain::time::Timestamp;
use crate::memory::append;
use crate::memory::append::Outcome;
use crate::memory::links;
use crate::memory::removal;
use crate::memory::revision::Context;
use crate::memory::rows;
use crate::memory::tombstones;
use crate::memory::tombstones::Grave;
use crate::recall::entity::Finder;
use crate::recall::gist;
use crate::recall::gist::Frame;
use crate::recall::gist::Gist;
use crate::recall::gist::GistBuilder;
use crate::recall::gist::Subject;
use rusqlite::Connection;
use rusqlite::OptionalExtension;
use std::collections::BTreeSet;

/// The reason of links from a gist to its sources.
pub const GIST: &str = "gist";

/// Episodes of a place or a person that are read; of more, the latest.
pub const EPISODES_READ_MAX: usize = 100_000;

/// Episodes that began before a day and reach into it; more than sensors and people can make in parallel.
const REACHING_IN_MAX: i64 = 2_000;

/// How long an episode that goes on may have begun before the frame, in milliseconds: three days, as the longest class
/// of lengths but one.
const OPEN_MS_MAX: i64 = 3 * 86_400_000;

/// Relations that percept's own builders state: a gist tells them by counts.
const SENSED: &str = "('discovered_during', 'appears_in', 'heard_at', 'seen_at', 'located_at')";

/// Facts offered to a gist.
const FACTS_MAX: usize = 8;

/// The gist of the frame; `None` when there is nothing to tell.
pub(crate) fn make(connection: &Connection, frame: &Frame) -> rusqlite::Result<Option<Gist>> {
    let mut builder = GistBuilder::new(frame.clone());
    match &frame.subject {
        Subject::Day => fill_day(connection, frame, &mut builder)?,
        Subject::Place(name) => fill_named(connection, frame, ("place", NodeKind::Location), name, &mut builder)?,
        Subject::Person(name) => fill_named(connection, frame, ("person", NodeKind::Person), name, &mut builder)?,
    }
    Ok(builder.finish())
}

fn fill_day(connection: &Connection, frame: &Frame, builder: &mut GistBuilder) -> rusqlite::Result<()> {
    let mut earlier = reaching_in(connection, frame.since)?;
    earlier.extend(still_staying(connection, frame.since)?);
    earlier.sort_by_key(|episode| (episode.timestamp, episode.id));
    earlier.dedup_by_key(|episode| episode.id);
    earlier.iter().for_each(|episode| builder.add(episode));
    let sql = format!(
        "SELECT {} FROM episodes AS e WHERE e.timestamp >= ?1 AND e.timestamp < ?2 ORDER BY e.timestamp, e.id",
        rows::COLUMNS
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query((frame.since.as_millis(), frame.until.as_millis()))?;
    while let Some(row) = rows.next()? {
        builder.add(&rows::read(row)?);
    }
    Ok(())
}

/// Episodes that began before `since` and end after it.
fn reaching_in(connection: &Connection, since: Timestamp) -> rusqlite::Result<Vec<Episode>> {
    let sql = format!(
        "SELECT {} FROM episodes AS e WHERE e.device_id = ?1 AND e.span_class = ?2 AND e.timestamp > ?3 AND e.timestamp < ?4
           AND e.ended_at > ?4 ORDER BY e.timestamp DESC LIMIT {REACHING_IN_MAX}",
        rows::COLUMNS
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = Vec::new();
    for device in devices(connection)? {
        let longest = links::co_occurrence::SPAN_CLASS_MS_MAX.map(|longest| since.plus_millis(-longest).as_millis());
        for (class, earliest) in (0_i64..).zip(longest.into_iter().chain([i64::MIN])) {
            let parameters = (&device, class, earliest, since.as_millis());
            for episode in statement.query_map(parameters, rows::read)? {
                found.push(episode?);
            }
        }
    }
    Ok(found)
}

/// The devices that have rows, each found with one step of the index.
fn devices(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut devices: Vec<String> = Vec::new();
    let mut statement = connection.prepare_cached("SELECT min(device_id) FROM episodes WHERE device_id > ?1")?;
    loop {
        let last = devices.last().map_or("", String::as_str);
        let Some(next) = statement.query_row([last], |row| row.get::<_, Option<String>>(0))? else {
            return Ok(devices);
        };
        devices.push(next);
    }
}

/// The stay the device was last known to be at, when nothing says that it ended.
fn still_staying(connection: &Connection, since: Timestamp) -> rusqlite::Result<Option<Episode>> {
    let sql = format!(
        "SELECT {} FROM episodes AS e WHERE e.modality = 'spatial' AND e.timestamp >= ?1 AND e.timestamp < ?2
           AND e.tool_name = 'gps_location' ORDER BY e.timestamp DESC, e.id DESC LIMIT 1",
        rows::COLUMNS
    );
    let span = (since.plus_millis(-OPEN_MS_MAX).as_millis(), since.as_millis());
    let last = connection.prepare_cached(&sql)?.query_row(span, rows::read).optional()?;
    let is_open =
        |episode: &Episode| episode.metadata.get("is_over").and_then(serde_json::Value::as_bool) == Some(false);
    Ok(last.filter(is_open))
}

fn fill_named(
    connection: &Connection,
    frame: &Frame,
    (column, kind): (&str, NodeKind),
    name: &str,
    builder: &mut GistBuilder,
) -> rusqlite::Result<()> {
    let mut found = BTreeSet::new();
    let sql = format!(
        "SELECT timestamp, row_id FROM episodes WHERE {column} = ?1 AND timestamp >= ?2 AND timestamp < ?3 AND ended_at >= ?4
         ORDER BY timestamp DESC"
    );
    let since = frame.since.as_millis();
    let span = (name, frame.since.plus_millis(-OPEN_MS_MAX).as_millis(), frame.until.as_millis(), since);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(span)?;
    while let Some(row) = rows.next()? {
        keep_latest(&mut found, (row.get(0)?, row.get(1)?));
    }
    if let Some(node) = node(connection, name, &kind)? {
        learnt_about(connection, frame, node, &mut found)?;
        facts_told(connection, frame, node)?.iter().for_each(|fact| builder.add_fact(fact));
    }
    let sql = format!("SELECT {} FROM episodes AS e WHERE e.row_id = ?1", rows::COLUMNS);
    let mut statement = connection.prepare_cached(&sql)?;
    for (_, row_id) in found {
        builder.add(&statement.query_row([row_id], rows::read)?);
    }
    Ok(())
}

fn keep_latest(found: &mut BTreeSet<(i64, i64)>, row: (i64, i64)) {
    found.insert(row);
    if found.len() > EPISODES_READ_MAX {
        found.pop_first();
    }
}

fn node(connection: &Connection, name: &str, kind: &NodeKind) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT id FROM kg_nodes WHERE text = ?1 AND node_type = ?2")?
        .query_row((name, kind.as_str()), |row| row.get(0))
        .optional()
}

/// The episodes that facts about the node were learnt from, by the index of each side and relation.
fn learnt_about(
    connection: &Connection,
    frame: &Frame,
    node: i64,
    found: &mut BTreeSet<(i64, i64)>,
) -> rusqlite::Result<()> {
    for side in ["src_id", "dst_id"] {
        let next = format!("SELECT min(relation) FROM kg_edges WHERE {side} = ?1 AND relation > ?2");
        let of_one = format!(
            "SELECT e.timestamp, e.row_id FROM kg_edges AS k JOIN episodes AS e ON e.id = k.source_episode_id
             WHERE k.{side} = ?1 AND k.relation = ?2 AND k.valid_from >= ?3 AND k.valid_from < ?4
             ORDER BY k.valid_from DESC LIMIT {EPISODES_READ_MAX}"
        );
        let mut relation = String::new();
        while let Some(following) =
            connection.prepare_cached(&next)?.query_row((node, &relation), |row| row.get::<_, Option<String>>(0))?
        {
            relation = following;
            let mut statement = connection.prepare_cached(&of_one)?;
            let span = (node, &relation, frame.since.as_millis(), frame.until.as_millis());
            let mut rows = statement.query(span)?;
            while let Some(row) = rows.next()? {
                keep_latest(found, (row.get(0)?, row.get(1)?));
            }
        }
    }
    Ok(())
}

/// What was told about the node, not sensed, and held at the end of the frame; the latest first, each sentence once.
fn facts_told(connection: &Connection, frame: &Frame, node: i64) -> rusqlite::Result<Vec<String>> {
    let sql = format!(
        "SELECT fact, max(valid_from) AS last FROM kg_edges WHERE (src_id = ?1 OR dst_id = ?1) AND relation NOT IN {SENSED}
           AND valid_from < ?2 AND (valid_to IS NULL OR valid_to >= ?2) GROUP BY fact ORDER BY last DESC, fact LIMIT {FACTS_MAX}"
    );
    connection.prepare_cached(&sql)?.query_map((node, frame.until.as_millis()), |row| row.get(0))?.collect()
}

/// When the latest row of the frame was stored, and when the gist was; `None` for what is not there.
pub(crate) fn written(
    connection: &Connection,
    frame: &Frame,
    gist: EpisodeId,
) -> rusqlite::Result<(Option<Timestamp>, Option<Timestamp>)> {
    let of_gist: Option<i64> = connection
        .prepare_cached("SELECT stored_at FROM episodes WHERE id = ?1")?
        .query_row([gist.to_string()], |row| row.get(0))
        .optional()?;
    let of_sources: Option<i64> = connection
        .prepare_cached(
            "SELECT max(stored_at) FROM episodes WHERE timestamp >= ?1 AND timestamp < ?2 AND modality <> 'gist'",
        )?
        .query_row((frame.since.as_millis(), frame.until.as_millis()), |row| row.get(0))?;
    Ok((of_sources.map(Timestamp::from_millis), of_gist.map(Timestamp::from_millis)))
}

/// The gists whose frame overlaps the span, as (subject, since, until) of their metadata; broken ones are left out.
pub(crate) fn overlapping(
    connection: &Connection,
    since: Timestamp,
    until: Timestamp,
) -> rusqlite::Result<Vec<(EpisodeId, Subject, Timestamp, Timestamp)>> {
    let sql = format!(
        "SELECT {} FROM episodes AS e WHERE e.modality = 'gist' AND e.tool_name = '{}' ORDER BY e.timestamp, e.id",
        rows::COLUMNS,
        gist::TOOL_NAME
    );
    let mut found = Vec::new();
    for episode in connection.prepare_cached(&sql)?.query_map([], rows::read)? {
        let episode = episode?;
        if let Some((subject, from, to)) = gist::frame_of(&episode.metadata)
            && from < until
            && to > since
        {
            found.push((episode.id, subject, from, to));
        }
    }
    Ok(found)
}

/// The names of nodes of a kind that a word fits, or those it may have meant.
pub(crate) fn names(connection: &Connection, kind: &NodeKind, wanted: &str) -> rusqlite::Result<Finder<String>> {
    let mut finder = Finder::new(wanted);
    let mut statement = connection.prepare_cached("SELECT text FROM kg_nodes WHERE node_type = ?1 ORDER BY text")?;
    let mut rows = statement.query([kind.as_str()])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        finder.look_at(&name.clone(), name);
    }
    Ok(finder)
}

/// Stores a gist and links it to its sources, as far as they are there.
pub(crate) fn put(
    connection: &Connection,
    context: &Context<'_>,
    record: &EpisodeRecord,
    sources: &[(EpisodeId, f64)],
) -> rusqlite::Result<Outcome> {
    let outcome = append::append(connection, context, record, &[])?;
    if outcome == Outcome::Blocked {
        return Ok(outcome);
    }
    let id = record.episode.id.to_string();
    connection.prepare_cached("DELETE FROM links WHERE reason = ?2 AND (a = ?1 OR b = ?1)")?.execute((&id, GIST))?;
    let mut insert = connection.prepare_cached(
        "INSERT OR IGNORE INTO links (a, b, reason, score)
         SELECT min(?1, ?2), max(?1, ?2), ?3, ?4 WHERE EXISTS (SELECT 1 FROM episodes WHERE id = ?2)",
    )?;
    for (source, score) in sources.iter().filter(|(source, _)| *source != record.episode.id).take(gist::SOURCES_MAX) {
        insert.execute((&id, source.to_string(), GIST, score.clamp(0.0, 1.0)))?;
    }
    Ok(outcome)
}

/// Removes a gist that has nothing to tell any more. Central, if it has it, is told; it may be written again.
pub(crate) fn remove(connection: &Connection, context: &Context<'_>, id: EpisodeId) -> rusqlite::Result<()> {
    let id = id.to_string();
    let known: Option<(String, i64)> = connection
        .prepare_cached("SELECT device_id, acked_revision FROM episodes WHERE id = ?1 AND modality = ?2")?
        .query_row((&id, Modality::Gist.as_str()), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((device_id, acked)) = known else { return Ok(()) };
    removal::remove(connection, context, &id)?;
    if acked > 0 {
        let grave = Grave { id: &id, kind: "episode", reason: "replaced", device_id: &device_id };
        tombstones::put(connection, context, grave)?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "tests/gists.rs"]
mod tests;

//! Facts as graph rows: nodes unique by (text, type), edges that know their episode and when they hold.
//!
//! In: the facts of one episode. Out: rows of `kg_nodes` and `kg_edges`.
//!
//! When an edge ends is the rule of [`crate::recall::facts`]: it depends on its own statement and its successor alone, so
//! that facts may come in any order and each costs a few index steps, however long its chain is.
//! Never: deletes a fact because a newer one came.

use crate::domain::episode::Episode;
use crate::domain::fact::Fact;
use crate::domain::fact::Node;
use crate::domain::id::derive_uuid;
use crate::domain::time::Timestamp;
use crate::memory::mentions;
use crate::memory::revision;
use crate::memory::revision::Context;
use crate::recall::facts;
use rusqlite::Connection;
use rusqlite::OptionalExtension;
use std::collections::BTreeMap;

/// The place of an edge in the chain of its subject and relation.
#[derive(Debug, Clone)]
struct Position {
    id: String,
    src_id: i64,
    dst_id: i64,
    relation: String,
    valid_from: i64,
}

/// Makes `facts` (their times moved by `shift_ms`) the edges of the episode: new ones are added, changed ones updated,
/// those it no longer states removed.
pub(crate) fn put(
    connection: &Connection,
    context: &Context<'_>,
    episode: &Episode,
    facts: &[Fact],
    shift_ms: i64,
) -> rusqlite::Result<()> {
    let episode_id = episode.id.to_string();
    let mut old: BTreeMap<String, Position> =
        edges_of(connection, &episode_id)?.into_iter().map(|edge| (edge.id.clone(), edge)).collect();
    for (id, fact) in with_ids(&episode_id, facts) {
        let before = match old.remove(&id) {
            Some(edge) => predecessor(connection, context, &edge)?,
            None => None,
        };
        let edge = upsert(connection, context, episode, &id, fact, shift_ms)?;
        attach(connection, context, &edge)?;
        if let Some(id) = before {
            settle(connection, context, &id)?;
        }
    }
    old.values().try_for_each(|edge| remove_edge(connection, context, edge))
}

/// Removes the edges of an episode, and nodes that have none left.
pub(crate) fn remove(connection: &Connection, context: &Context<'_>, episode_id: &str) -> rusqlite::Result<()> {
    edges_of(connection, episode_id)?.iter().try_for_each(|edge| remove_edge(connection, context, edge))
}

/// Removes these edges of an episode. Returns how many there were.
pub(crate) fn remove_some(
    connection: &Connection,
    context: &Context<'_>,
    episode_id: &str,
    ids: &[String],
) -> rusqlite::Result<u64> {
    let mut removed = 0;
    for edge in edges_of(connection, episode_id)?.iter().filter(|edge| ids.contains(&edge.id)) {
        remove_edge(connection, context, edge)?;
        removed += 1;
    }
    Ok(removed)
}

/// Moves the times of an episode's edges by `shift_ms` after a clock correction.
pub(crate) fn shift(
    connection: &Connection,
    context: &Context<'_>,
    episode_id: &str,
    shift_ms: i64,
) -> rusqlite::Result<()> {
    for edge in edges_of(connection, episode_id)? {
        let before = predecessor(connection, context, &edge)?;
        connection
            .prepare_cached(
                "UPDATE kg_edges SET valid_from = valid_from + ?2, stated_to = stated_to + ?2, valid_to = stated_to + ?2,
                   revision = ?3 WHERE id = ?1",
            )?
            .execute((&edge.id, shift_ms, revision::next(connection)?))?;
        if let Some(id) = before {
            settle(connection, context, &id)?;
        }
        let valid_from = edge.valid_from.saturating_add(shift_ms);
        attach(connection, context, &Position { valid_from, ..edge })?;
    }
    Ok(())
}

/// Ids that do not depend on times (which a clock correction changes), told apart by how often the same triple came.
fn with_ids<'a>(episode_id: &str, facts: &'a [Fact]) -> Vec<(String, &'a Fact)> {
    let mut counts: BTreeMap<(&Node, &str, &Node), u32> = BTreeMap::new();
    let mut named = Vec::with_capacity(facts.len());
    for fact in facts {
        let count = counts.entry((&fact.subject, &fact.relation, &fact.object)).or_default();
        let id = derive_uuid(&[
            "edge",
            episode_id,
            fact.subject.kind.as_str(),
            &fact.subject.text,
            &fact.relation,
            fact.object.kind.as_str(),
            &fact.object.text,
            &count.to_string(),
        ]);
        *count += 1;
        named.push((id.to_string(), fact));
    }
    named
}

fn edges_of(connection: &Connection, episode_id: &str) -> rusqlite::Result<Vec<Position>> {
    connection
        .prepare_cached(
            "SELECT id, src_id, dst_id, relation, valid_from FROM kg_edges WHERE source_episode_id = ?1 ORDER BY id",
        )?
        .query_map([episode_id], |row| {
            Ok(Position {
                id: row.get(0)?,
                src_id: row.get(1)?,
                dst_id: row.get(2)?,
                relation: row.get(3)?,
                valid_from: row.get(4)?,
            })
        })?
        .collect()
}

fn node_id(connection: &Connection, node: &Node) -> rusqlite::Result<i64> {
    let (text, kind) = (node.text.as_str(), node.kind.as_str());
    let added = connection
        .prepare_cached(
            "INSERT INTO kg_nodes (text, node_type) VALUES (?1, ?2) ON CONFLICT (text, node_type) DO NOTHING",
        )?
        .execute((text, kind))?;
    if added > 0 {
        let id = connection.last_insert_rowid();
        mentions::register(connection, id, text, kind)?;
        return Ok(id);
    }
    connection
        .prepare_cached("SELECT id FROM kg_nodes WHERE text = ?1 AND node_type = ?2")?
        .query_row((text, kind), |row| row.get(0))
}

fn upsert(
    connection: &Connection,
    context: &Context<'_>,
    episode: &Episode,
    id: &str,
    fact: &Fact,
    shift_ms: i64,
) -> rusqlite::Result<Position> {
    let (src_id, dst_id) = (node_id(connection, &fact.subject)?, node_id(connection, &fact.object)?);
    let valid_from = fact.valid_from.plus_millis(shift_ms).as_millis();
    let stated_to = fact.valid_to.map(|end| end.plus_millis(shift_ms).as_millis());
    let revision = revision::next(connection)?;
    connection
        .prepare_cached(
            "INSERT INTO kg_edges (id, src_id, dst_id, relation, fact, edge_type, source_episode_id, modality, valid_from,
               valid_to, stated_to, store_id, revision) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?11, ?12)
             ON CONFLICT (id) DO UPDATE SET fact = excluded.fact, edge_type = excluded.edge_type,
               modality = excluded.modality, valid_from = excluded.valid_from, valid_to = excluded.valid_to,
               stated_to = excluded.stated_to, revision = excluded.revision
             WHERE fact <> excluded.fact OR edge_type <> excluded.edge_type OR modality <> excluded.modality
               OR valid_from <> excluded.valid_from OR stated_to IS NOT excluded.stated_to",
        )?
        .execute((
            id,
            src_id,
            dst_id,
            &fact.relation,
            &fact.fact,
            &fact.edge_type,
            episode.id.to_string(),
            episode.modality.as_str(),
            valid_from,
            stated_to,
            context.store_id,
            revision,
        ))?;
    Ok(Position { id: id.to_owned(), src_id, dst_id, relation: fact.relation.clone(), valid_from })
}

/// Ends the edge and its predecessor where they are to end.
fn attach(connection: &Connection, context: &Context<'_>, edge: &Position) -> rusqlite::Result<()> {
    settle(connection, context, &edge.id)?;
    match predecessor(connection, context, edge)? {
        Some(id) => settle(connection, context, &id),
        None => Ok(()),
    }
}

/// Takes the edge out of its chain, lets its predecessor run on to the next one, and drops nodes it was the last edge of.
fn remove_edge(connection: &Connection, context: &Context<'_>, edge: &Position) -> rusqlite::Result<()> {
    let before = predecessor(connection, context, edge)?;
    connection.prepare_cached("DELETE FROM kg_edges WHERE id = ?1")?.execute([&edge.id])?;
    if let Some(id) = before {
        settle(connection, context, &id)?;
    }
    let mut statement = connection.prepare_cached(
        "DELETE FROM kg_nodes WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM kg_edges WHERE src_id = ?1)
           AND NOT EXISTS (SELECT 1 FROM kg_edges WHERE dst_id = ?1)",
    )?;
    statement.execute([edge.src_id])?;
    statement.execute([edge.dst_id])?;
    Ok(())
}

fn predecessor(connection: &Connection, context: &Context<'_>, edge: &Position) -> rusqlite::Result<Option<String>> {
    if !context.is_single_valued(&edge.relation) {
        return Ok(None);
    }
    connection
        .prepare_cached(
            "SELECT id FROM kg_edges WHERE src_id = ?1 AND relation = ?2 AND (valid_from, id) < (?3, ?4)
             ORDER BY valid_from DESC, id DESC LIMIT 1",
        )?
        .query_row((edge.src_id, &edge.relation, edge.valid_from, &edge.id), |row| row.get(0))
        .optional()
}

/// Sets the end of an edge by what its producer stated and where its successor begins.
fn settle(connection: &Connection, context: &Context<'_>, id: &str) -> rusqlite::Result<()> {
    let (relation, stated_to, valid_to, next): (String, Option<i64>, Option<i64>, Option<i64>) = connection
        .prepare_cached(
            "SELECT relation, stated_to, valid_to, (SELECT n.valid_from FROM kg_edges AS n WHERE n.src_id = e.src_id
               AND n.relation = e.relation AND (n.valid_from, n.id) > (e.valid_from, e.id)
               ORDER BY n.valid_from, n.id LIMIT 1)
             FROM kg_edges AS e WHERE id = ?1",
        )?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let next = next.filter(|_| context.is_single_valued(&relation));
    let right = facts::end(stated_to.map(Timestamp::from_millis), next.map(Timestamp::from_millis));
    let right = right.map(Timestamp::as_millis);
    if right != valid_to {
        connection.prepare_cached("UPDATE kg_edges SET valid_to = ?2, revision = ?3 WHERE id = ?1")?.execute((
            id,
            right,
            revision::next(connection)?,
        ))?;
    }
    Ok(())
}

//! Which names are in which episodes: what recall walks between episodes.
//!
//! In: new nodes of the graph, new and changed episodes. Out: rows of `names` and `mentions`.
//!
//! ```text
//! node "Alice" (person) ─┐
//! node "alice" (contact) ─┴─ name "alice" ──< mentions >── episodes that state a fact with it, or whose text has the name
//! ```
//!
//! What follows from edges (mentions by fact, ties between names) is kept by triggers, so that nothing can forget it; names
//! are made here, because SQL cannot read words. An episode looks for the names known when it comes; a name that is new looks
//! for itself in the newest [`OLD_TEXTS_MAX`] texts that have it, so that for all but very common names the order in which
//! facts and texts come makes no difference. A name that was once sought in texts stays so until its last node goes. Never: decides how much a mention weighs.

use crate::domain::episode::Episode;
use crate::domain::id::EpisodeId;
use crate::recall::name_sort::NameSort;
use crate::recall::names;
use crate::recall::naming::KnownName;
use crate::recall::naming::Text;
use crate::recall::phrases;
use rusqlite::Connection;
use rusqlite::OptionalExtension;
use rusqlite::Row;
use std::collections::BTreeSet;

/// Texts that a new name is written into, newest first.
const OLD_TEXTS_MAX: usize = 1_000;

/// Names noted for one text.
const NAMES_MAX: usize = 64;

/// Kinds of node that percept makes itself (`NodeKind`): what they are called is a name, however it is written.
const KNOWN_KINDS: [&str; 5] = ["person", "location", "sound", "object", "device"];

/// Names looked at that begin with the same two words.
const ALIKE_MAX: usize = 64;

/// Gives a new node its name, and the name its mentions in older texts.
pub(crate) fn register(connection: &Connection, node_id: i64, text: &str, kind: &str) -> rusqlite::Result<()> {
    let key = names::key(text);
    if key.is_empty() {
        return Ok(());
    }
    let is_sought = names::is_sought(text);
    let sort = NameSort::of(text, KNOWN_KINDS.contains(&kind));
    let known: Option<(i64, bool, NameSort)> = connection
        .prepare_cached("SELECT name_id, is_sought, sort FROM names WHERE key = ?1")?
        .query_row([&key], |row| Ok((row.get(0)?, row.get(1)?, sort_in(row, 2)?)))
        .optional()?;
    let name_id = match known {
        Some((name_id, ..)) => name_id,
        None => {
            connection
                .prepare_cached("INSERT INTO names (key, is_sought, sort) VALUES (?1, 0, ?2)")?
                .execute((&key, sort.as_number()))?;
            connection.last_insert_rowid()
        }
    };
    if known.is_some_and(|(_, _, before)| before < sort) {
        connection
            .prepare_cached("UPDATE names SET sort = ?2 WHERE name_id = ?1")?
            .execute((name_id, sort.as_number()))?;
    }
    connection.prepare_cached("UPDATE kg_nodes SET name_id = ?2 WHERE id = ?1")?.execute((node_id, name_id))?;
    let (was_sought, sort_before) = known.map_or((false, sort), |(_, was_sought, sort)| (was_sought, sort));
    // What is a known thing from here on stands in texts however they write it.
    let is_new = !was_sought || (sort == NameSort::Known && sort_before < sort);
    if (is_sought || was_sought) && is_new {
        connection.prepare_cached("UPDATE names SET is_sought = 1 WHERE name_id = ?1")?.execute([name_id])?;
        seek(connection, &KnownName { name_id, key, sort: sort.max(sort_before) }, text)?;
    }
    Ok(())
}

/// Looks for a name in older texts.
fn seek(connection: &Connection, name: &KnownName, text: &str) -> rusqlite::Result<()> {
    // The full text splits words as the key does; a quoted phrase is plain text to it.
    let phrase = names::without_article(text).replace('"', " ");
    let found: Vec<(String, i64, String)> = connection
        .prepare_cached(&format!(
            "SELECT e.id, e.timestamp, e.content FROM
               (SELECT rowid FROM episodes_fts WHERE episodes_fts MATCH ?1 ORDER BY rowid DESC LIMIT {OLD_TEXTS_MAX}) AS f
             JOIN episodes AS e ON e.row_id = f.rowid"
        ))?
        .query_map([format!("\"{phrase}\"")], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    for (episode_id, timestamp, content) in found {
        if Text::of(&phrases::words(&content)).names(name) {
            note(connection, &episode_id, name.name_id, timestamp)?;
        }
    }
    Ok(())
}

/// Notes the names in the text of an episode that was just stored, in place of those noted before.
pub(crate) fn put(connection: &Connection, episode: &Episode) -> rusqlite::Result<()> {
    let id = episode.id.to_string();
    connection.prepare_cached("DELETE FROM mentions WHERE episode_id = ?1 AND is_fact = 0")?.execute([&id])?;
    let words = phrases::words(&episode.content);
    let text = Text::of(&words);
    let sought = names_in(connection, &episode.content)?.into_iter().filter(|known| known.is_sought);
    for known in sought.filter(|known| text.names(&known.name)).take(NAMES_MAX) {
        note(connection, &id, known.name.name_id, episode.timestamp.as_millis())?;
    }
    Ok(())
}

fn note(connection: &Connection, episode_id: &str, name_id: i64, timestamp: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO mentions (episode_id, name_id, timestamp, is_fact) VALUES (?1, ?2, ?3, 0) ON CONFLICT DO NOTHING",
        )?
        .execute((episode_id, name_id, timestamp))?;
    Ok(())
}

/// A known name in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) name: KnownName,
    /// Whether texts are searched for it.
    pub(crate) is_sought: bool,
}

/// The known names in a text, in the order in which they stand there, each once; common nouns too.
pub(crate) fn names_in(connection: &Connection, text: &str) -> rusqlite::Result<Vec<Known>> {
    let tokens = names::tokens(text);
    let mut one_word = connection.prepare_cached("SELECT name_id, key, sort, is_sought FROM names WHERE key = ?1")?;
    // '!' is the character after the space.
    let mut more_words = connection.prepare_cached(&format!(
        "SELECT name_id, key, sort, is_sought FROM names WHERE key = ?1 OR (key >= ?1 || ' ' AND key < ?1 || '!')
         ORDER BY key LIMIT {ALIKE_MAX}"
    ))?;
    let read = |row: &Row<'_>| Ok(Known { name: known_name(row)?, is_sought: row.get(3)? });
    let mut asked = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (place, token) in tokens.iter().enumerate() {
        if asked.insert(token) {
            found.extend(one_word.query_row([token], read).optional()?.filter(|known| seen.insert(known.name.name_id)));
        }
        let Some(next) = tokens.get(place + 1) else { break };
        let mut rows = more_words.query([format!("{token} {next}")])?;
        while let Some(row) = rows.next()? {
            let known = read(row)?;
            if names::begins_with(&tokens[place..], &known.name.key) && seen.insert(known.name.name_id) {
                found.push(known);
            }
        }
    }
    Ok(found)
}

/// The names of an episode, by fact or by text, at most `limit`.
pub(crate) fn names_of(connection: &Connection, id: EpisodeId, limit: usize) -> rusqlite::Result<Vec<KnownName>> {
    connection
        .prepare_cached(
            "SELECT n.name_id, n.key, n.sort FROM mentions AS m JOIN names AS n ON n.name_id = m.name_id
             WHERE m.episode_id = ?1 LIMIT ?2",
        )?
        .query_map((id.to_string(), i64::try_from(limit).unwrap_or(i64::MAX)), known_name)?
        .collect()
}

/// A name from the columns `name_id`, `key`, `sort`.
fn known_name(row: &Row<'_>) -> rusqlite::Result<KnownName> {
    Ok(KnownName { name_id: row.get(0)?, key: row.get(1)?, sort: sort_in(row, 2)? })
}

/// What a name stands for, from that column.
pub(crate) fn sort_in(row: &Row<'_>, column: usize) -> rusqlite::Result<NameSort> {
    Ok(NameSort::from_number(row.get(column)?))
}

/// Makes names, mentions and ties anew from nodes, edges and texts: for a store of an older version, and a salvaged one.
pub(crate) fn rebuild(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "UPDATE kg_nodes SET name_id = NULL; DELETE FROM mentions; DELETE FROM ties; DELETE FROM names;",
    )?;
    let mut statement =
        connection.prepare("SELECT id, text, node_type FROM kg_nodes WHERE id > ?1 ORDER BY id LIMIT 1")?;
    let mut last = i64::MIN;
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?));
    while let Some((id, text, kind)) = statement.query_row([last], read).optional()? {
        register(connection, id, &text, &kind)?;
        last = id;
    }
    connection.execute_batch(
        "INSERT INTO mentions (episode_id, name_id, timestamp, is_fact)
             SELECT DISTINCT e.id, n.name_id, e.timestamp, 1
             FROM kg_edges AS k JOIN episodes AS e ON e.id = k.source_episode_id
               JOIN kg_nodes AS n ON n.id IN (k.src_id, k.dst_id)
             WHERE n.name_id IS NOT NULL
             ON CONFLICT DO UPDATE SET is_fact = 1;
         INSERT INTO ties (a, b, facts)
             SELECT min(s.name_id, d.name_id), max(s.name_id, d.name_id), count(*)
             FROM kg_edges AS k JOIN kg_nodes AS s ON s.id = k.src_id JOIN kg_nodes AS d ON d.id = k.dst_id
             WHERE s.name_id <> d.name_id GROUP BY 1, 2;",
    )
}

#[cfg(test)]
mod tests;

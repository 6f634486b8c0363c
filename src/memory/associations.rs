//! The graph of recall, as it stands in the store.
//!
//! In: a place of the graph, the words of a query. Out: what the place is tied to; the names the query is about.
//!
//! | edge | from |
//! |---|---|
//! | episode – name | `mentions`: a fact of the episode names it, or its text does |
//! | name – name | `ties`: how many facts name both |
//! | episode – episode | `links`: happened together, alike, a summary and its sources |
//!
//! Each look is an index scan that is as long as what it returns. Never: writes.

use crate::domain::id::EpisodeId;
use crate::memory::mentions;
use crate::memory::rows;
use crate::recall::expansion::Place;
use crate::recall::expansion::Surroundings;
use crate::recall::names;
use crate::recall::phrases;
use crate::recall::seeds;
use crate::recall::seeds::NameFound;
use crate::recall::weights;
use crate::recall::weights::Bond;
use rusqlite::CachedStatement;
use rusqlite::Connection;
use rusqlite::Row;
use std::collections::BTreeMap;

/// Episodes with a name or a word are counted up to so many; what more have is common either way.
const COUNTED_MAX: i64 = 2_000;

/// The store's graph, with its statements at hand.
pub(crate) struct Associations<'a> {
    links_up: CachedStatement<'a>,
    links_down: CachedStatement<'a>,
    names: CachedStatement<'a>,
    episodes: CachedStatement<'a>,
    ties_up: CachedStatement<'a>,
    ties_down: CachedStatement<'a>,
}

impl<'a> Associations<'a> {
    pub(crate) fn new(connection: &'a Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            links_up: connection.prepare_cached("SELECT b, reason, score FROM links WHERE a = ?1 LIMIT ?2")?,
            links_down: connection.prepare_cached("SELECT a, reason, score FROM links WHERE b = ?1 LIMIT ?2")?,
            names: connection.prepare_cached("SELECT name_id, is_fact FROM mentions WHERE episode_id = ?1 LIMIT ?2")?,
            episodes: connection.prepare_cached(
                "SELECT episode_id, is_fact FROM mentions WHERE name_id = ?1 ORDER BY timestamp DESC LIMIT ?2",
            )?,
            ties_up: connection.prepare_cached("SELECT b, facts FROM ties WHERE a = ?1 LIMIT ?2")?,
            ties_down: connection.prepare_cached("SELECT a, facts FROM ties WHERE b = ?1 LIMIT ?2")?,
        })
    }

    fn of_episode(&mut self, id: EpisodeId, limit: i64, into: &mut Vec<(Place, f64)>) -> rusqlite::Result<()> {
        let id = id.to_string();
        for statement in [&mut self.links_up, &mut self.links_down] {
            let mut rows = statement.query((&id, limit))?;
            while let Some(row) = rows.next()? {
                let bond = Bond::Link { reason: row.get_ref(1)?.as_str()?, score: row.get(2)? };
                into.push((Place::Episode(rows::id(row, 0)?), weights::weight(bond)));
            }
        }
        let mut rows = self.names.query((&id, limit))?;
        while let Some(row) = rows.next()? {
            into.push((Place::Name(row.get(0)?), weights::weight(mention(row.get(1)?))));
        }
        Ok(())
    }

    fn of_name(&mut self, name_id: i64, limit: i64, into: &mut Vec<(Place, f64)>) -> rusqlite::Result<()> {
        for statement in [&mut self.ties_up, &mut self.ties_down] {
            let mut rows = statement.query((name_id, limit))?;
            while let Some(row) = rows.next()? {
                into.push((Place::Name(row.get(0)?), weights::weight(Bond::Facts(row.get(1)?))));
            }
        }
        let mut rows = self.episodes.query((name_id, limit))?;
        while let Some(row) = rows.next()? {
            into.push((Place::Episode(rows::id(row, 0)?), weights::weight(mention(row.get(1)?))));
        }
        Ok(())
    }
}

const fn mention(is_fact: bool) -> Bond<'static> {
    if is_fact { Bond::States } else { Bond::Mentions }
}

impl Surroundings for Associations<'_> {
    type Error = rusqlite::Error;

    fn ties_of(&mut self, place: Place, limit: usize, into: &mut Vec<(Place, f64)>) -> rusqlite::Result<()> {
        let rows_max = i64::try_from(limit).unwrap_or(i64::MAX);
        match place {
            Place::Episode(id) => self.of_episode(id, rows_max, into)?,
            Place::Name(name_id) => self.of_name(name_id, rows_max, into)?,
        }
        into.truncate(limit);
        Ok(())
    }
}

/// The known names in the words of a query, with what decides how much each counts.
pub(crate) fn names_in_query(connection: &Connection, text: &str) -> rusqlite::Result<Vec<NameFound>> {
    let words: BTreeMap<String, String> =
        phrases::words(text).into_iter().map(|word| (names::token(&word), word.text)).collect();
    let says_nothing = |token: &str| words.get(token).is_none_or(|word| phrases::is_stop_word(word));
    let episodes = episodes_about(connection)?;
    let mut rarities: BTreeMap<&str, f64> = BTreeMap::new();
    let mut found = Vec::new();
    for known in mentions::names_in(connection, text)? {
        if known.key.split(' ').all(says_nothing) {
            continue;
        }
        let mut rarity = 0.0;
        for (token, word) in known.key.split(' ').filter_map(|token| words.get_key_value(token)) {
            rarity += match rarities.get(token.as_str()) {
                Some(rarity) => *rarity,
                None => {
                    let of_word = seeds::rarity(episodes_with(connection, word)?, episodes);
                    rarities.insert(token, of_word);
                    of_word
                }
            };
        }
        let with_it = connection
            .prepare_cached("SELECT count(*) FROM (SELECT 1 FROM mentions WHERE name_id = ?1 LIMIT ?2)")?
            .query_row((known.name_id, COUNTED_MAX), count)?;
        found.push(NameFound {
            name_id: known.name_id,
            key: known.key,
            is_name: known.is_sought,
            episodes: with_it,
            rarity,
        });
    }
    Ok(found)
}

/// How many episodes there are, roughly: counting them would take as long as there are many.
fn episodes_about(connection: &Connection) -> rusqlite::Result<usize> {
    let span: i64 = connection
        .prepare_cached(
            "SELECT coalesce((SELECT max(row_id) FROM episodes) - (SELECT min(row_id) FROM episodes) + 1, 0)",
        )?
        .query_row([], |row| row.get(0))?;
    Ok(usize::try_from(span).unwrap_or(0))
}

fn episodes_with(connection: &Connection, word: &str) -> rusqlite::Result<usize> {
    connection
        .prepare_cached("SELECT count(*) FROM (SELECT 1 FROM episodes_fts WHERE episodes_fts MATCH ?1 LIMIT ?2)")?
        .query_row((format!("\"{word}\""), COUNTED_MAX), count)
}

fn count(row: &Row<'_>) -> rusqlite::Result<usize> {
    Ok(usize::try_from(row.get::<_, i64>(0)?).unwrap_or(0))
}

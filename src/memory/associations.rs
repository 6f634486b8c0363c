//! The graph of recall, as it stands in the store.
//!
//! In: a place of the graph, how well the question fits episodes. Out: what the place is tied to.
//!
//! | edge | from |
//! |---|---|
//! | episode – name | `mentions`: a fact of the episode names it, or its text does |
//! | name – name | `ties`: how many facts name both |
//! | episode – episode | `links`: happened together, alike, a summary and its sources |
//!
//! Each look is an index scan that is as long as what it returns. Never: writes.

use crate::domain::id::EpisodeId;
use crate::memory::mentions::sort_in;
use crate::memory::rows;
use crate::recall::expansion::Place;
use crate::recall::expansion::Surroundings;
use crate::recall::name_sort::NameSort;
use crate::recall::weights;
use crate::recall::weights::Bond;
use rusqlite::CachedStatement;
use rusqlite::Connection;
use rusqlite::OptionalExtension;
use std::collections::HashMap;

/// The store's graph, with its statements at hand.
pub(crate) struct Associations<'a> {
    /// The factors of the episodes that the question fits; 1 of all others.
    factors: HashMap<EpisodeId, f64>,
    links_up: CachedStatement<'a>,
    links_down: CachedStatement<'a>,
    names: CachedStatement<'a>,
    sort: CachedStatement<'a>,
    episodes: CachedStatement<'a>,
    ties_up: CachedStatement<'a>,
    ties_down: CachedStatement<'a>,
}

impl<'a> Associations<'a> {
    /// The graph for a question that fits these episodes so well.
    pub(crate) fn new(
        connection: &'a Connection,
        fits: impl Iterator<Item = (EpisodeId, f64)>,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            factors: fits.map(|(id, fit)| (id, weights::of_episode(fit))).collect(),
            links_up: connection.prepare_cached("SELECT b, reason, score FROM links WHERE a = ?1 LIMIT ?2")?,
            links_down: connection.prepare_cached("SELECT a, reason, score FROM links WHERE b = ?1 LIMIT ?2")?,
            names: connection.prepare_cached(
                "SELECT m.name_id, m.is_fact, n.sort FROM mentions AS m JOIN names AS n ON n.name_id = m.name_id
                 WHERE m.episode_id = ?1 LIMIT ?2",
            )?,
            sort: connection.prepare_cached("SELECT sort FROM names WHERE name_id = ?1")?,
            episodes: connection.prepare_cached(
                "SELECT episode_id, is_fact FROM mentions WHERE name_id = ?1 ORDER BY timestamp DESC LIMIT ?2",
            )?,
            ties_up: connection.prepare_cached(
                "SELECT t.b, t.facts, n.sort FROM ties AS t JOIN names AS n ON n.name_id = t.b WHERE t.a = ?1 LIMIT ?2",
            )?,
            ties_down: connection.prepare_cached(
                "SELECT t.a, t.facts, n.sort FROM ties AS t JOIN names AS n ON n.name_id = t.a WHERE t.b = ?1 LIMIT ?2",
            )?,
        })
    }

    fn factor(&self, id: EpisodeId) -> f64 {
        self.factors.get(&id).copied().unwrap_or(1.0)
    }

    fn of_episode(&mut self, id: EpisodeId, limit: i64, into: &mut Vec<(Place, f64)>) -> rusqlite::Result<()> {
        let factor = self.factor(id);
        let id = id.to_string();
        for statement in [&mut self.links_up, &mut self.links_down] {
            let mut rows = statement.query((&id, limit))?;
            while let Some(row) = rows.next()? {
                let bond = Bond::Link { reason: row.get_ref(1)?.as_str()?, score: row.get(2)? };
                let other = rows::id(row, 0)?;
                let both = weights::of_link(factor, self.factors.get(&other).copied().unwrap_or(1.0));
                into.push((Place::Episode(other), weights::weight(bond) * both));
            }
        }
        let mut rows = self.names.query((&id, limit))?;
        while let Some(row) = rows.next()? {
            let both = factor * weights::of_name(sort_in(row, 2)?);
            into.push((Place::Name(row.get(0)?), weights::weight(mention(row.get(1)?)) * both));
        }
        Ok(())
    }

    fn of_name(&mut self, name_id: i64, limit: i64, into: &mut Vec<(Place, f64)>) -> rusqlite::Result<()> {
        let sort = self.sort.query_row([name_id], |row| sort_in(row, 0)).optional()?.unwrap_or(NameSort::Common);
        let factor = weights::of_name(sort);
        for statement in [&mut self.ties_up, &mut self.ties_down] {
            let mut rows = statement.query((name_id, limit))?;
            while let Some(row) = rows.next()? {
                let both = factor * weights::of_name(sort_in(row, 2)?);
                into.push((Place::Name(row.get(0)?), weights::weight(Bond::Facts(row.get(1)?)) * both));
            }
        }
        let mut rows = self.episodes.query((name_id, limit))?;
        while let Some(row) = rows.next()? {
            let id = rows::id(row, 0)?;
            let both = factor * self.factors.get(&id).copied().unwrap_or(1.0);
            into.push((Place::Episode(id), weights::weight(mention(row.get(1)?)) * both));
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

//! Vectors in a search: as few of them are looked at as say for certain which hits are the best.
//!
//! ```text
//! the likest `count` of each space ──► hits so far, the last place worth `last`; what was not looked at is less like than `rest`
//! whoever could still get in is worth at least `last − 2 · rest` by itself:
//!   few ──► look at their vectors, done          many ──► again with more of each space
//! ```
//!
//! Exact up to [`LIKEST_MAX`] of a space; with so many looked at, what is less like than all of them counts as unlike.

use crate::domain::episode::EmbeddingKind;
use crate::memory::embedding::KINDS;
use crate::memory::error::StoreError;
use crate::memory::search::SearchQuery;
use crate::memory::search::best;
use crate::memory::search::best::Best;
use crate::memory::search::best::Fit;
use crate::memory::search::rows::Allowed;
use crate::memory::search::rows::RowSet;
use crate::memory::search::standing::Enough;
use crate::memory::search::standing::Standings;
use crate::memory::similarity::Similarity;
use crate::memory::similarity::Space;
use crate::recall::score::Marks;
use crate::recall::score::RELEVANCE_WEIGHT;
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;

/// Rows of each space that are looked at first (few in tests, so that it is not enough there).
const LIKEST_FIRST: usize = if cfg!(test) { 4 } else { 128 };

/// Rows of each space that are looked at at most.
const LIKEST_MAX: usize = 4_096;

/// How many more are looked at each time.
const GROWTH: usize = 8;

/// Rows that could still get in and are looked at by themselves.
const UNCERTAIN_MAX: usize = if cfg!(test) { 4 } else { 1_024 };

/// What the vectors of a query are compared with.
pub(super) struct Likest<'a> {
    pub(super) connection: &'a Connection,
    pub(super) path: &'a Path,
    pub(super) similarity: &'a mut Similarity,
    pub(super) query: &'a SearchQuery,
    pub(super) allowed: &'a Allowed,
}

/// Rows with their likeness, 0–1, in the order of their numbers, and how like any other may be.
struct Seen {
    rows: Vec<(i64, f64)>,
    rest: f64,
}

impl Likest<'_> {
    /// The best of the rows in which a word is (in the order of their numbers) and of those that are alike.
    pub(super) fn best(
        &mut self,
        standings: &Standings<'_>,
        by_words: &[(i64, f64)],
        limit: usize,
    ) -> Result<Best, StoreError> {
        let path = self.path;
        let at_store = |error| StoreError::from_sqlite(path, error);
        let mut count = LIKEST_FIRST.max(limit);
        loop {
            let mut seen = self.likest(count, None)?;
            let found = best::of_fits(standings, &merged(by_words, &seen.rows), limit).map_err(at_store)?;
            if seen.rest <= 0.0 {
                return Ok(found);
            }
            if let Some(last) = found.last() {
                let floor = last - RELEVANCE_WEIGHT * seen.rest;
                if let Some(uncertain) = self.worth_at_least(standings, floor).map_err(at_store)? {
                    let among = RowSet::new(uncertain);
                    seen.rows.extend(self.likest(among.len(), Some(&among))?.rows);
                    by_row(&mut seen.rows);
                    return best::of_fits(standings, &merged(by_words, &seen.rows), limit).map_err(at_store);
                }
            }
            if count >= LIKEST_MAX {
                return Ok(found);
            }
            count = count.saturating_mul(GROWTH).min(LIKEST_MAX);
        }
    }

    /// The likest `count` rows of each space, of those `among` if given.
    fn likest(&mut self, count: usize, among: Option<&RowSet>) -> Result<Seen, StoreError> {
        let mut seen = Seen { rows: Vec::new(), rest: 0.0 };
        if count == 0 {
            return Ok(seen);
        }
        let allowed = self.allowed;
        let filter = |row_id: i64| match among {
            Some(among) => among.contains(row_id),
            None => allowed.contains(row_id),
        };
        let filter: Option<&dyn Fn(i64) -> bool> =
            if among.is_none() && allowed.is_all() { None } else { Some(&filter) };
        for (space, marks, vector) in self.comparisons() {
            let near = self.similarity.nearest(self.connection, &space, &vector, count, filter)?;
            if near.len() >= count {
                let rest = near.last().map_or(0.0, |last| marks.likeness(f64::from(last.cosine)));
                seen.rest = seen.rest.max(rest);
            }
            let alike = near.into_iter().map(|near| (near.row_id, marks.likeness(f64::from(near.cosine))));
            seen.rows.extend(alike.take_while(|(_, likeness)| *likeness > 0.0));
        }
        by_row(&mut seen.rows);
        Ok(seen)
    }

    /// Each vector of the query with each space it can be compared with.
    fn comparisons(&self) -> Vec<(Space, Marks, Arc<[f32]>)> {
        let config = &self.query.marks;
        let of = |vector: &super::QueryVector, kind: EmbeddingKind| {
            let marks = config.marks(vector.model_id.as_str(), vector.kind, kind)?;
            Some((Space { model_id: vector.model_id.clone(), kind }, marks, Arc::clone(&vector.vector)))
        };
        self.query
            .vectors
            .iter()
            .flat_map(|vector| KINDS.into_iter().filter_map(move |kind| of(vector, kind)))
            .collect()
    }

    /// The rows worth at least so much without relevance, in the order of their numbers; `None` when they are too many.
    fn worth_at_least(&self, standings: &Standings<'_>, floor: f64) -> rusqlite::Result<Option<Vec<i64>>> {
        let mut rows = Vec::new();
        for row_id in standings.raised().filter(|row_id| self.allowed.contains(*row_id)) {
            if standings.of(row_id)?.is_some_and(|known| known.standing.worth() >= floor) {
                rows.push(row_id);
            }
        }
        standings.unraised_from(floor, |_, known| {
            if rows.len() > UNCERTAIN_MAX {
                return Enough::OfAll;
            }
            if self.allowed.contains(known.row_id) {
                rows.push(known.row_id);
            }
            Enough::NotYet
        })?;
        rows.sort_unstable();
        Ok((rows.len() <= UNCERTAIN_MAX).then_some(rows))
    }
}

/// Rows in the order of their numbers, each once with its greatest likeness.
fn by_row(rows: &mut Vec<(i64, f64)>) {
    rows.sort_unstable_by(|one, other| one.0.cmp(&other.0).then(other.1.total_cmp(&one.1)));
    rows.dedup_by_key(|(row_id, _)| *row_id);
}

/// Two lists of rows in the order of their numbers, as one.
fn merged(by_words: &[(i64, f64)], alike: &[(i64, f64)]) -> Vec<(i64, Fit)> {
    let mut fits = Vec::with_capacity(by_words.len() + alike.len());
    let (mut words, mut likeness) = (by_words.iter().peekable(), alike.iter().peekable());
    loop {
        let next = match (words.peek(), likeness.peek()) {
            (None, None) => return fits,
            (Some((row_id, _)), None) | (None, Some((row_id, _))) => *row_id,
            (Some((one, _)), Some((other, _))) => *one.min(other),
        };
        let of_next = |row: &&(i64, f64)| row.0 == next;
        let fit = Fit {
            words: words.next_if(of_next).map_or(0.0, |row| row.1),
            likeness: likeness.next_if(of_next).map_or(0.0, |row| row.1),
        };
        fits.push((next, fit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_lists_become_one_with_both_parts_of_each_row() {
        let fits = merged(&[(1, 0.5), (3, 0.25)], &[(2, 1.0), (3, 0.75), (9, 0.1)]);

        let told: Vec<(i64, f64, f64)> =
            fits.into_iter().map(|(row_id, fit)| (row_id, fit.words, fit.likeness)).collect();
        assert_eq!(told, [(1, 0.5, 0.0), (2, 0.0, 1.0), (3, 0.25, 0.75), (9, 0.0, 0.1)]);
    }
}

//! The best rows of a search, without looking at more of them than can be among the best.
//!
//! An episode that no search has raised is worth at most [`UNRAISED_MAX`] by itself, so once the last place of the best is
//! above that and twice a candidate's relevance, neither it nor any less relevant one can be among them.

use crate::memory::search::rows::Allowed;
use crate::memory::search::standing::Enough;
use crate::memory::search::standing::Known;
use crate::memory::search::standing::Standings;
use crate::recall::score::RELEVANCE_WEIGHT;
use crate::recall::score::Score;
use std::cmp::Ordering;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Recency and importance together, at most.
const UNRAISED_MAX: f64 = 2.0;

/// Up to so many candidates are looked up one by one; beyond, one pass over an index that holds all that is needed is cheaper.
const LOOKUPS_MAX: usize = if cfg!(test) { 16 } else { 8_192 };

/// How well a row fits, each 0–1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Fit {
    pub(super) words: f64,
    pub(super) likeness: f64,
}

impl Fit {
    pub(super) fn relevance(self) -> f64 {
        self.words.max(self.likeness)
    }
}

/// A row with its score, ordered by it; ties go to the newer one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ranked {
    pub(super) score: Score,
    pub(super) timestamp: i64,
    pub(super) row_id: i64,
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self.score.total.total_cmp(&other.score.total);
        by_score.then(self.timestamp.cmp(&other.timestamp)).then(self.row_id.cmp(&other.row_id))
    }
}

/// The best so far, at most `limit`.
#[derive(Debug)]
pub(super) struct Best {
    limit: usize,
    heap: BinaryHeap<Reverse<Ranked>>,
}

impl Best {
    fn new(limit: usize) -> Self {
        Self { limit, heap: BinaryHeap::new() }
    }

    fn put(&mut self, known: Known, fit: Fit) {
        let score = known.standing.score(fit.words, fit.likeness);
        self.heap.push(Reverse(Ranked { score, timestamp: known.timestamp, row_id: known.row_id }));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
    }

    /// The score of the last place, once all places are taken.
    pub(super) fn last(&self) -> Option<f64> {
        self.heap.peek().filter(|_| self.heap.len() >= self.limit).map(|Reverse(ranked)| ranked.score.total)
    }

    /// The best first.
    pub(super) fn into_sorted(self) -> Vec<Ranked> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(ranked)| ranked).collect()
    }
}

/// The best of all rows that are allowed, for a search without words and vectors.
pub(super) fn of_allowed(standings: &Standings<'_>, allowed: &Allowed, limit: usize) -> rusqlite::Result<Best> {
    let mut best = Best::new(limit);
    if let Some(rows) = allowed.rows().filter(|rows| rows.len() <= LOOKUPS_MAX) {
        for row_id in rows {
            standings.of(*row_id)?.into_iter().for_each(|known| best.put(known, Fit::default()));
        }
        return Ok(best);
    }
    for row_id in standings.raised().filter(|row_id| allowed.contains(*row_id)) {
        standings.of(row_id)?.into_iter().for_each(|known| best.put(known, Fit::default()));
    }
    // Of each group the newest that pass: an older one of the same group cannot be better.
    let (mut group_before, mut taken) = (0, 0);
    standings.unraised_from(0.0, |group, known| {
        if group != group_before {
            (group_before, taken) = (group, 0);
        }
        if !allowed.contains(known.row_id) {
            return Enough::NotYet;
        }
        taken += 1;
        best.put(known, Fit::default());
        if taken < limit { Enough::NotYet } else { Enough::OfThisGroup }
    })?;
    Ok(best)
}

/// The best of rows that fit; they come in the order of their numbers.
pub(super) fn of_fits(standings: &Standings<'_>, fits: &[(i64, Fit)], limit: usize) -> rusqlite::Result<Best> {
    let mut best = Best::new(limit);
    let mut by_relevance: BinaryHeap<Waiting> = BinaryHeap::with_capacity(fits.len());
    for (row_id, fit) in fits {
        if standings.is_raised(*row_id) {
            standings.of(*row_id)?.into_iter().for_each(|known| best.put(known, *fit));
        } else {
            by_relevance.push(Waiting { row_id: *row_id, fit: *fit });
        }
    }
    for _ in 0..LOOKUPS_MAX {
        let Some(next) = by_relevance.pop() else { return Ok(best) };
        if is_hopeless(&best, next.fit) {
            return Ok(best);
        }
        standings.of(next.row_id)?.into_iter().for_each(|known| best.put(known, next.fit));
    }
    let rest = by_relevance.into_iter().filter(|waiting| !is_hopeless(&best, waiting.fit));
    let mut rest: Vec<(i64, Fit)> = rest.map(|waiting| (waiting.row_id, waiting.fit)).collect();
    rest.sort_unstable_by_key(|(row_id, _)| *row_id);
    if !rest.is_empty() {
        standings.all(|known| {
            if let Ok(place) = rest.binary_search_by_key(&known.row_id, |(row_id, _)| *row_id) {
                best.put(known, rest[place].1);
            }
        })?;
    }
    Ok(best)
}

fn is_hopeless(best: &Best, fit: Fit) -> bool {
    best.last().is_some_and(|last| UNRAISED_MAX + RELEVANCE_WEIGHT * fit.relevance() < last)
}

/// A candidate whose standing is not known yet, ordered by its relevance.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Waiting {
    row_id: i64,
    fit: Fit,
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        self.fit.relevance().total_cmp(&other.fit.relevance()).then(self.row_id.cmp(&other.row_id))
    }
}

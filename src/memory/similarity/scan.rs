//! The exact nearest rows: bounds from the sidecar decide which rows are read from the store and compared in full.
//!
//! ```text
//! rows the sidecar lacks ──────────────── exact ──┐
//! sidecar ── coarse bound ── fine bound ── candidates, best bound first ── exact ── the best `limit`
//!               drop a row whose bound is below the `limit`th best of what is certain
//! ```
//!
//! A row of the sidecar that was removed from the store must not push a living one out, so the threshold is that of
//! [`SPARE`] more rows than wanted; if that was not enough, the scan is done again knowing which rows live.
//! Never: a row whose filter says no, or one more than `limit`.

use crate::memory::similarity::quantise::Estimate;
use crate::memory::similarity::quantise::Query;
use crate::memory::similarity::rows::Block;
use crate::memory::similarity::rows::Meta;
use crate::memory::similarity::rows::Rows;
use crate::memory::similarity::storage::Key;
use rusqlite::Connection;
use rusqlite::OptionalExtension;
use rusqlite::types::ValueRef;
use std::cmp::Ordering;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::BinaryHeap;

/// So many removed rows among the best are borne without a second scan.
const SPARE: usize = 16;

/// Candidates held before those that have become hopeless are let go (few in tests, so that it happens there).
const CANDIDATES_MAX: usize = if cfg!(test) { 64 } else { 65_536 };

/// What is looked for.
pub(crate) struct Search<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) key: &'a Key,
    pub(crate) query: Query<'a>,
    pub(crate) limit: usize,
    pub(crate) allowed: Option<&'a dyn Fn(i64) -> bool>,
}

impl Search<'_> {
    fn allows(&self, episode: i64) -> bool {
        self.allowed.is_none_or(|allowed| allowed(episode))
    }
}

/// A row compared in full.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ranked {
    pub(crate) cosine: f32,
    /// `episodes.row_id`.
    pub(crate) episode: i64,
}

impl Eq for Ranked {}

impl Ord for Ranked {
    /// Best first; ties by the episode's row number.
    fn cmp(&self, other: &Self) -> Ordering {
        other.cosine.total_cmp(&self.cosine).then(self.episode.cmp(&other.episode))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The best rows so far.
#[derive(Debug, Clone)]
pub(crate) struct Best {
    limit: usize,
    set: BTreeSet<Ranked>,
}

impl Best {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, set: BTreeSet::new() }
    }

    /// Whether this row would be among them.
    pub(crate) fn wants(&self, row: Ranked) -> bool {
        self.set.len() < self.limit || self.set.last().is_some_and(|worst| row < *worst)
    }

    pub(crate) fn put(&mut self, row: Ranked) {
        self.set.insert(row);
        if self.set.len() > self.limit {
            self.set.pop_last();
        }
    }

    /// The cosine that must be reached; `None` while there is room.
    fn least(&self) -> Option<f32> {
        (self.set.len() >= self.limit).then(|| self.set.last().map_or(f32::INFINITY, |worst| worst.cosine))
    }

    pub(crate) fn into_sorted(self) -> Vec<Ranked> {
        self.set.into_iter().collect()
    }
}

/// Compares all rows with numbers above `above` that the sidecar does not hold, and adds the best.
pub(crate) fn tail(search: &Search<'_>, above: i64, best: &mut Best) -> rusqlite::Result<()> {
    let mut statement = search.connection.prepare_cached(
        "SELECT episode_id, vector FROM embeddings WHERE model_id = ?1 AND kind = ?2 AND row_id > ?3 AND dims = ?4",
    )?;
    let key = search.key;
    let dims = i64::try_from(key.dims).unwrap_or(i64::MAX);
    let mut rows = statement.query((key.model_id.as_str(), key.kind.as_str(), above, dims))?;
    let mut vector = Vec::with_capacity(key.dims);
    while let Some(row) = rows.next()? {
        decode(row.get_ref(1)?, &mut vector);
        let cosine = search.query.exact(&vector);
        // The episode is looked up only for what may be wanted; with a filter that is most of the work.
        if cosine.is_nan() || !best.wants(Ranked { cosine, episode: i64::MIN }) {
            continue;
        }
        let episode: i64 = search
            .connection
            .prepare_cached("SELECT row_id FROM episodes WHERE id = ?1")?
            .query_row([row.get_ref(0)?.as_str()?], |row| row.get(0))?;
        let ranked = Ranked { cosine, episode };
        if best.wants(ranked) && search.allows(episode) {
            best.put(ranked);
        }
    }
    Ok(())
}

/// The product with the row of that number; `None` when it is no longer there.
pub(crate) fn exact(search: &Search<'_>, row_id: i64, buffer: &mut Vec<f32>) -> rusqlite::Result<Option<f32>> {
    search
        .connection
        .prepare_cached("SELECT vector FROM embeddings WHERE row_id = ?1 AND model_id = ?2 AND kind = ?3")?
        .query_row((row_id, search.key.model_id.as_str(), search.key.kind.as_str()), |row| {
            decode(row.get_ref(0)?, buffer);
            Ok(search.query.exact(buffer))
        })
        .optional()
        .map(|cosine| cosine.filter(|cosine| !cosine.is_nan()))
}

fn is_there(search: &Search<'_>, row_id: i64) -> rusqlite::Result<bool> {
    search
        .connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM embeddings WHERE row_id = ?1 AND model_id = ?2 AND kind = ?3)")?
        .query_row((row_id, search.key.model_id.as_str(), search.key.kind.as_str()), |row| row.get(0))
}

pub(crate) fn decode(stored: ValueRef<'_>, into: &mut Vec<f32>) {
    let bytes = if let ValueRef::Blob(bytes) = stored { bytes } else { &[] };
    into.clear();
    into.extend(bytes.as_chunks::<4>().0.iter().map(|value| f32::from_le_bytes(*value)));
}

/// What became of a scan of the sidecar.
#[derive(Debug, PartialEq)]
pub(crate) enum Scan {
    /// `best` holds what it should.
    Done,
    /// A block is damaged: the sidecar cannot be used.
    Damaged,
}

/// Adds the best rows of the sidecar with numbers above `above`.
pub(crate) fn sidecar(search: &Search<'_>, parts: &mut [Rows], above: i64, best: &mut Best) -> rusqlite::Result<Scan> {
    let covered = parts.last().map_or(0, Rows::covered);
    let before = best.clone();
    for is_second in [false, true] {
        best.clone_from(&before);
        let alive = is_second.then(|| living(search, covered)).transpose()?;
        let Some(candidates) = Candidates::collect(search, parts, above, best, alive) else { return Ok(Scan::Damaged) };
        let dropped_max = candidates.dropped_max;
        rank(search, candidates, best)?;
        if best.least().map_or(dropped_max == f32::NEG_INFINITY, |least| least > dropped_max) {
            break;
        }
    }
    Ok(Scan::Done)
}

/// The numbers of the space's rows up to `covered`, in order.
fn living(search: &Search<'_>, covered: i64) -> rusqlite::Result<Vec<i64>> {
    search
        .connection
        .prepare_cached(
            "SELECT row_id FROM embeddings WHERE model_id = ?1 AND kind = ?2 AND row_id <= ?3 ORDER BY row_id",
        )?
        .query_map((search.key.model_id.as_str(), search.key.kind.as_str(), covered), |row| row.get(0))?
        .collect()
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    upper: f32,
    row_id: i64,
    episode: i64,
    hash: u64,
}

/// An f32 in its total order.
#[derive(Debug, Clone, Copy)]
struct Ordered(f32);

impl PartialEq for Ordered {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ordered {}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The rows of the sidecar that may be among the best.
struct Candidates {
    wanted: usize,
    found: Vec<Candidate>,
    /// The best lower bounds, the least of them on top; as many as are wanted.
    certain: BinaryHeap<Reverse<Ordered>>,
    /// The greatest upper bound of a row that was dropped although it may be alive and allowed.
    dropped_max: f32,
    /// Numbers of the rows that live, when that is known.
    alive: Option<Vec<i64>>,
}

impl Candidates {
    fn collect(
        search: &Search<'_>,
        parts: &mut [Rows],
        above: i64,
        best: &Best,
        alive: Option<Vec<i64>>,
    ) -> Option<Self> {
        let wanted = if alive.is_some() { search.limit } else { search.limit.saturating_add(SPARE) };
        let certain = best.set.iter().map(|row| Reverse(Ordered(row.cosine))).collect();
        let mut this = Self { wanted, found: Vec::new(), certain, dropped_max: f32::NEG_INFINITY, alive };
        for rows in parts {
            let length_max = rows.length_max();
            for number in rows.first_block_above(above)?..rows.blocks() {
                this.look_through(search, &rows.block(number)?, above, length_max);
            }
        }
        Some(this)
    }

    fn look_through(&mut self, search: &Search<'_>, block: &Block, above: i64, length_max: f32) {
        for (codes, meta) in block.rows() {
            let coarse = search.query.coarse(codes, meta.scale, length_max);
            if coarse.upper() < self.threshold() {
                self.dropped_max = self.dropped_max.max(coarse.upper());
            } else if meta.row_id > above && self.lives(meta.row_id) {
                let fine = search.query.refine(coarse, codes, meta.scale, length_max);
                self.consider(search, meta, fine);
            }
        }
    }

    fn threshold(&self) -> f32 {
        match self.certain.peek() {
            Some(Reverse(least)) if self.certain.len() >= self.wanted => least.0,
            _ => f32::NEG_INFINITY,
        }
    }

    fn lives(&self, row_id: i64) -> bool {
        self.alive.as_ref().is_none_or(|alive| alive.binary_search(&row_id).is_ok())
    }

    fn consider(&mut self, search: &Search<'_>, meta: Meta, estimate: Estimate) {
        if estimate.upper() < self.threshold() {
            self.dropped_max = self.dropped_max.max(estimate.upper());
            return;
        }
        if !search.allows(meta.episode) {
            return;
        }
        self.certain.push(Reverse(Ordered(estimate.lower())));
        if self.certain.len() > self.wanted {
            self.certain.pop();
        }
        let Meta { row_id, episode, hash, .. } = meta;
        self.found.push(Candidate { upper: estimate.upper(), row_id, episode, hash });
        if self.found.len() >= CANDIDATES_MAX && self.found.len().is_power_of_two() {
            self.compact();
        }
    }

    /// Lets go of what has become hopeless, and of all but the first episodes with the very same vector: thousands of
    /// episodes may say the same sentence.
    fn compact(&mut self) {
        let threshold = self.threshold();
        self.sort();
        let mut same: BTreeMap<u64, usize> = BTreeMap::new();
        let (wanted, is_known) = (self.wanted, self.alive.is_some());
        let mut dropped_max = self.dropped_max;
        self.found.retain(|candidate| {
            let count = same.entry(candidate.hash).or_default();
            *count += 1;
            let is_hopeless = candidate.upper < threshold;
            let is_surplus = *count > wanted;
            if is_hopeless || (is_surplus && !is_known) {
                dropped_max = dropped_max.max(candidate.upper);
            }
            !is_hopeless && !is_surplus
        });
        self.dropped_max = dropped_max;
    }

    /// Best bound first, then in the order of episodes.
    fn sort(&mut self) {
        self.found
            .sort_unstable_by(|one, other| other.upper.total_cmp(&one.upper).then(one.episode.cmp(&other.episode)));
    }
}

/// Compares candidates in full until no other can be among the best.
fn rank(search: &Search<'_>, mut candidates: Candidates, best: &mut Best) -> rusqlite::Result<()> {
    candidates.sort();
    let mut known: BTreeMap<u64, f32> = BTreeMap::new();
    let mut buffer = Vec::with_capacity(search.key.dims);
    for candidate in candidates.found {
        if best.least().is_some_and(|least| candidate.upper < least) {
            break;
        }
        let seen = known.get(&candidate.hash).copied();
        let Some(cosine) = seen.map_or_else(|| exact(search, candidate.row_id, &mut buffer), |seen| Ok(Some(seen)))?
        else {
            continue;
        };
        known.insert(candidate.hash, cosine);
        let ranked = Ranked { cosine, episode: candidate.episode };
        if best.wants(ranked) && (seen.is_none() || is_there(search, candidate.row_id)?) {
            best.put(ranked);
        }
    }
    Ok(())
}

//! The nearest vectors: exact up to about a hundred thousand of a kind, by graphs beyond.
//!
//! In: a query vector of unit length, a space, a filter. Out: the nearest episodes with their exact cosines.
//!
//! ```text
//! query ─┬─ rows beyond EXACT_ROWS_MAX? ── graphs ([`segments`]) ── keys ──┐
//!        └─ sidecar ([`rows`], mapped a window at a time) ── bounds ───────┴── vectors in the store ── exact ── best
//!           rows the sidecar lacks, from the store ────────────────────────────────────────────────── exact ──┘
//! ```
//!
//! The files under `vectors/` are the writer's (see [`companion`]) and can be removed at any time. A reader uses them when they
//! fit the store it reads and does without when they do not: without the right to write, with a file that is stale, cut off,
//! damaged, replaced meanwhile or another store's, the answer is the same, only later.
//! Never: compares vectors of different models or lengths, or writes.

pub(crate) mod companion;
mod graph;
mod neighbours;
mod quantise;
mod rows;
mod scan;
mod segments;
pub(crate) mod storage;
mod window;

use crate::domain::episode::EmbeddingKind;
use crate::domain::id::ModelId;
use crate::memory::embedding::KINDS;
use crate::memory::error::StoreError;
use crate::memory::similarity::graph::Graph;
use crate::memory::similarity::graph::Near;
use crate::memory::similarity::quantise::Query;
use crate::memory::similarity::rows::Rows;
use crate::memory::similarity::scan::Best;
use crate::memory::similarity::scan::Ranked;
use crate::memory::similarity::scan::Scan;
use crate::memory::similarity::scan::Search;
use crate::memory::similarity::segments::Checked;
use crate::memory::similarity::segments::Manifest;
use crate::memory::similarity::storage::Key;
use crate::memory::similarity::storage::Mark;
use crate::memory::store::STORE_FILE;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;

pub(crate) use crate::memory::similarity::quantise::product;
pub(crate) use crate::memory::similarity::quantise::quantise;
pub(crate) use crate::memory::similarity::scan::decode;

/// Up to so many rows a space is scanned whole; beyond, graphs are asked. "About 100,000", and some more, because a scan
/// costs 60 ns a row and is exact.
pub const EXACT_ROWS_MAX: usize = 131_072;

/// Nodes each graph looks at. Measured at 1,000,000 × 512 in clusters (docs/benchmarks.md).
const EFFORT: usize = 64;

/// Beyond the wanted rows so many are compared in full, because codes alone may swap close ones.
const SPARE: usize = 22;

/// Who wants more than this many rows gets them by a scan: a graph would have to look at as many nodes in each segment.
const GRAPH_LIMIT_MAX: usize = 1_024;

/// Rows asked to learn how much a filter lets through, and from how many blocks of the sidecar they are.
const SAMPLE: usize = 256;
const SAMPLE_BLOCKS: usize = 8;

/// A filter that lets through less than one row in this many is answered by a scan: a graph would wander for long between
/// the few it may return.
const SELECTIVE_PART: usize = 16;

/// One model and one kind of stored vector.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Space {
    /// The model; vectors of different models are never compared.
    pub model_id: ModelId,
    /// What the vectors were made from.
    pub kind: EmbeddingKind,
}

/// An episode near the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// `episodes.row_id`.
    pub row_id: i64,
    /// Its exact cosine, -1 to 1 (two vectors of unit length may give 1 and a rounding error more).
    pub cosine: f32,
}

/// What a reader holds of the files under `vectors/`. Keep one for the life of a process: a file is checked when it is first
/// read, and again when another has taken its place.
#[derive(Debug)]
pub struct Similarity {
    dir: PathBuf,
    exact_rows_max: usize,
    spaces: BTreeMap<Key, Opened>,
}

/// Spaces held open at once; more are opened anew each time.
const OPENED_MAX: usize = 32;

/// The files of one space.
#[derive(Debug, Default)]
struct Opened {
    /// The files of the sidecar that are in use: none, the main one, or that and the late one.
    rows: Vec<Rows>,
    /// The marks of both files when they were looked at last.
    seen: [Option<Mark>; 2],
    segments: Vec<Segment>,
    /// When the folder's list of segments was read.
    listed: Option<Mark>,
}

/// A mapped graph.
#[derive(Debug)]
struct Segment {
    manifest: Manifest,
    graph: Graph,
}

impl Similarity {
    /// `dir` is the data directory. Nothing is read yet.
    #[must_use]
    pub fn open(dir: &Path) -> Self {
        Self { dir: dir.to_path_buf(), exact_rows_max: EXACT_ROWS_MAX, spaces: BTreeMap::new() }
    }

    /// The nearest episodes of one space, best first, ties by `episodes.row_id`; `allowed` is asked before any limit.
    ///
    /// Exact up to [`EXACT_ROWS_MAX`] rows and for a filter that lets little through. A query of another length than the
    /// stored vectors meets none.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for a query that is empty or not finite, and any [`StoreError`] of the read.
    pub(crate) fn nearest(
        &mut self,
        connection: &Connection,
        space: &Space,
        query: &[f32],
        limit: usize,
        allowed: Option<&dyn Fn(i64) -> bool>,
    ) -> Result<Vec<Neighbour>, StoreError> {
        if query.is_empty() || !query.iter().all(|value| value.is_finite()) {
            let reason = "it must have at least one value and no NaN or infinite one".to_owned();
            return Err(StoreError::Refused { id: "of the query vector".to_owned(), reason });
        }
        if limit == 0 {
            return Ok(Vec::new());
        }
        let key = Key { model_id: space.model_id.clone(), kind: space.kind, dims: query.len() };
        let path = self.dir.join(STORE_FILE);
        let found = one_state(connection, || {
            let search = Search { connection, key: &key, query: Query::new(query), limit, allowed };
            self.search(&search)
        });
        let found = found.map_err(|error| StoreError::from_sqlite(&path, error))?;
        Ok(found.into_iter().map(|Ranked { cosine, episode }| Neighbour { row_id: episode, cosine }).collect())
    }

    fn search(&mut self, search: &Search<'_>) -> rusqlite::Result<Vec<Ranked>> {
        let store_id: String = search.connection.query_row("SELECT store_id FROM store", [], |row| row.get(0))?;
        let folder = search.key.folder(&self.dir);
        if self.spaces.len() >= OPENED_MAX && !self.spaces.contains_key(search.key) {
            self.spaces.pop_first();
        }
        let opened = self.spaces.entry(search.key.clone()).or_default();
        opened.look(search, &folder, &store_id)?;
        let covered = opened.rows.last().map_or(0, Rows::covered);
        let mut best = Best::new(search.limit);
        scan::tail(search, covered, &mut best)?;
        let mut above = 0;
        if opened.len() > self.exact_rows_max && search.limit <= GRAPH_LIMIT_MAX && !opened.is_selective(search) {
            opened.list(search.key, &folder, &store_id);
            above = opened.graphs(search, &mut best)?;
        }
        if scan::sidecar(search, &mut opened.rows, above, &mut best)? == Scan::Damaged {
            // They stay marked as seen, so that they are not looked at again until others take their place.
            opened.rows.clear();
            best = Best::new(search.limit);
            scan::tail(search, 0, &mut best)?;
        }
        Ok(best.into_sorted())
    }

    /// Removes everything under `vectors/` in this data directory: after it no vector is anywhere but in the store.
    /// Beside a running writer use the writer, which also holds vectors in memory.
    ///
    /// # Errors
    /// [`StoreError::Io`] when a file cannot be removed.
    pub fn forget_everything(dir: &Path) -> Result<(), StoreError> {
        storage::remove_all(dir)
    }
}

impl Opened {
    /// Opens the sidecar that stands there, unless it is the one that was looked at last.
    fn look(&mut self, search: &Search<'_>, folder: &Path, store_id: &str) -> rusqlite::Result<()> {
        let marks = [rows::MAIN, rows::LATE].map(|name| Mark::at(&folder.join(name)));
        if marks == self.seen {
            return Ok(());
        }
        let before = std::mem::take(&mut self.rows);
        self.rows = open_rows(search.connection, search.key, folder, store_id, before)?;
        // What does not fit may do so once this reader sees a newer state of the store.
        let is_all = self.rows.len() == marks.iter().flatten().count();
        self.seen = if is_all { marks } else { [None; 2] };
        Ok(())
    }

    /// Rows of the sidecar.
    fn len(&self) -> usize {
        self.rows.iter().map(Rows::len).sum()
    }

    /// Whether the filter lets so little through that a scan is better.
    fn is_selective(&mut self, search: &Search<'_>) -> bool {
        let (Some(allowed), Some(rows)) = (search.allowed, self.rows.first_mut()) else { return false };
        let (mut asked, mut passed) = (0, 0);
        for number in (0..rows.blocks()).step_by((rows.blocks() / SAMPLE_BLOCKS).max(1)) {
            // A damaged block is found out by the scan.
            let Some(block) = rows.block(number) else { return true };
            for place in (0..block.len()).step_by((block.len() * SAMPLE_BLOCKS / SAMPLE).max(1)) {
                asked += 1;
                passed += usize::from(block.meta(place).is_some_and(|meta| allowed(meta.episode)));
            }
        }
        passed * SELECTIVE_PART < asked
    }

    /// Opens the segments that stand there and lets go of those that do not.
    fn list(&mut self, key: &Key, folder: &Path, store_id: &str) {
        let mark = Mark::at(folder);
        if mark.is_some() && mark == self.listed {
            return;
        }
        self.listed = mark;
        let mut before = std::mem::take(&mut self.segments);
        let done = segments::manifests(folder, key, store_id).into_iter().filter(|manifest| !manifest.is_growing);
        for manifest in done {
            let known = before.iter().position(|segment| segment.manifest == manifest);
            let mut checked: Option<Checked> = None;
            let segment = known.map(|place| before.swap_remove(place)).or_else(|| {
                let graph = segments::open(folder, key, &manifest, &mut checked, Graph::view)?;
                Some(Segment { manifest, graph })
            });
            // What cannot be used ends the row: all above it is scanned.
            let Some(segment) = segment else { break };
            self.segments.push(segment);
        }
    }

    /// Adds the best rows the graphs find. Returns the row number up to which they know all.
    fn graphs(&self, search: &Search<'_>, best: &mut Best) -> rusqlite::Result<i64> {
        let wanted = search.limit.saturating_add(SPARE);
        let mut buffer = Vec::new();
        // Graphs also know rows that are no longer in the store: while those take the place of living ones, more are asked for.
        for factor in [1, 2, 4, 8, 16] {
            let count = wanted.saturating_mul(factor);
            let found = self.ask_graphs(search, count);
            let (mut asked, mut alive) = (0, 0);
            for near in found.into_iter().take(count) {
                let (row_id, episode) = graph::rows_of(near.key);
                asked += 1;
                if let Some(cosine) = scan::exact(search, row_id, &mut buffer)? {
                    alive += 1;
                    best.put(Ranked { cosine, episode });
                }
            }
            if alive >= wanted || asked < count {
                break;
            }
        }
        Ok(self.segments.last().map_or(0, |segment| segment.manifest.upto))
    }

    /// About the nearest `count` of each graph, nearest first.
    fn ask_graphs(&self, search: &Search<'_>, count: usize) -> Vec<Near> {
        let codes = search.query.codes();
        let mut found = Vec::new();
        for Segment { graph, .. } in &self.segments {
            found.extend(match search.allowed {
                None => graph.nearest(codes, count, EFFORT),
                Some(allowed) => graph.nearest_allowed(codes, count, EFFORT, &|key| allowed(graph::rows_of(key).1)),
            });
        }
        neighbours::nearest_first(&mut found);
        found
    }
}

/// The files of a sidecar that can be used: none, the main one, or that and the late one. Those of `before` that still stand
/// there are taken from it, because they were checked.
fn open_rows(
    connection: &Connection,
    key: &Key,
    folder: &Path,
    store_id: &str,
    before: Vec<Rows>,
) -> rusqlite::Result<Vec<Rows>> {
    let mut found: Vec<Rows> = Vec::new();
    let mut before = before.into_iter();
    for name in [rows::MAIN, rows::LATE] {
        let mark = Mark::at(&folder.join(name));
        let known = before.next().filter(|rows| Some(rows.mark()) == mark);
        let Some(mut rows) = known.or_else(|| Rows::open(folder, name, key, store_id)) else { break };
        let is_next = rows.above() == found.last().map_or(0, Rows::covered);
        if !is_next || !fits(connection, key, &mut rows)? {
            break;
        }
        found.push(rows);
    }
    Ok(found)
}

/// Whether a sidecar belongs to this very store. A store that was put back from a copy and has gone on since gives the same
/// numbers to other rows, and its newest row below the sidecar's end shows it.
fn fits(connection: &Connection, key: &Key, rows: &mut Rows) -> rusqlite::Result<bool> {
    let next: i64 = connection.query_row("SELECT next_revision FROM store", [], |row| row.get(0))?;
    if rows.covered() >= next {
        return Ok(false);
    }
    let dims = i64::try_from(key.dims).unwrap_or(i64::MAX);
    let newest: Vec<(i64, u64)> = connection
        .prepare_cached(
            "SELECT row_id, vector FROM embeddings
             WHERE model_id = ?1 AND kind = ?2 AND row_id > ?3 AND row_id <= ?4 AND dims = ?5 ORDER BY row_id DESC LIMIT 2",
        )?
        .query_map((key.model_id.as_str(), key.kind.as_str(), rows.above(), rows.covered(), dims), |row| {
            Ok((row.get(0)?, rows::hash_of(row.get_ref(1)?.as_blob().unwrap_or(&[]))))
        })?
        .collect::<Result<_, _>>()?;
    let is_in = |(row_id, hash)| rows.find(row_id).flatten().is_some_and(|meta| meta.hash == hash);
    Ok(newest.into_iter().all(is_in))
}

/// All reads of `work` see one state of the store.
fn one_state<T>(connection: &Connection, work: impl FnOnce() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    if !connection.is_autocommit() {
        return work();
    }
    let transaction = connection.unchecked_transaction()?;
    let value = work()?;
    transaction.finish()?;
    Ok(value)
}

/// Every space of the store.
pub(crate) fn spaces(connection: &Connection) -> rusqlite::Result<Vec<Space>> {
    // One step of the index for each space, however many rows it has.
    let mut statement = connection.prepare_cached(
        "WITH RECURSIVE model(id) AS (
           SELECT min(model_id) FROM embeddings
           UNION ALL SELECT (SELECT min(model_id) FROM embeddings WHERE model_id > model.id) FROM model WHERE id IS NOT NULL)
         SELECT id FROM model WHERE id IS NOT NULL",
    )?;
    let models: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut found = Vec::new();
    for model in models {
        for kind in KINDS {
            let is_there: bool = connection
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM embeddings WHERE model_id = ?1 AND kind = ?2)")?
                .query_row((&model, kind.as_str()), |row| row.get(0))?;
            if is_there {
                found.push(Space { model_id: ModelId::new(model.clone()), kind });
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;

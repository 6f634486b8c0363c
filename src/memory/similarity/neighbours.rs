//! The graphs the writer keeps: about the nearest vectors of a space at a cost that hardly grows with the store.
//!
//! In: the rows of the store, in the order of their numbers. Out: row numbers near a vector, to be compared in full.
//! Each space has segments that are done, on the disk and mapped, and one that grows in memory (see
//! [`crate::memory::similarity::segments`]). A new row is added within the transaction that stores it; one that is rolled
//! back is taken out again, because its number will be given to another.
//!
//! Rows nobody has indexed (a store of an older version, files that were removed) are caught up with a few at a time, so
//! until then an old neighbour may be missed; the episode then looks again later.
//! Never: waits for long, or fails a row because an index cannot be had.

use crate::memory::error::StoreError;
use crate::memory::similarity::graph;
use crate::memory::similarity::graph::Graph;
use crate::memory::similarity::graph::Near;
use crate::memory::similarity::quantise;
use crate::memory::similarity::scan;
use crate::memory::similarity::segments;
use crate::memory::similarity::segments::Checked;
use crate::memory::similarity::segments::Manifest;
use crate::memory::similarity::segments::Span;
use crate::memory::similarity::storage::Key;
use rusqlite::Connection;
use rusqlite::OptionalExtension;
use std::path::Path;
use std::path::PathBuf;

/// Rows caught up with at once when a vector is added: all that a process can have left behind (see [`UNSAVED_MAX`]).
const CATCH_UP_ROWS: usize = 2 * UNSAVED_MAX;

/// The same while more than that is missing.
const BEHIND_ROWS: usize = 16;

/// So many rows of a growing segment may be unsaved when a program ends: they are added again by the next.
const UNSAVED_MAX: usize = 256;

/// After so many new rows a growing segment is saved although the program goes on.
const SAVED_EVERY: usize = 8_192;

/// Up to this many rows a growing segment is looked through whole: exact, and as fast as the graph.
const WHOLE_ROWS_MAX: usize = 2_048;

/// Segments asked for neighbours, the newest ones: each costs a tenth of a millisecond, and a link must cost the same however
/// old the store is. With 512 values it is the newest 260,000 vectors of a space that a new one is linked among.
const SEGMENTS_ASKED_MAX: usize = 8;

/// The graphs of one space.
#[derive(Debug)]
pub(crate) struct SpaceIndex {
    key: Key,
    folder: PathBuf,
    store_id: String,
    done: Vec<Segment>,
    growing: Graph,
    /// The growing segment begins above this row …
    above: i64,
    /// … and holds the rows up to this one.
    upto: i64,
    /// Keys added since the last commit.
    pending: Vec<u64>,
    /// Keys that were found to be no longer in the store since the last commit.
    gone: Vec<u64>,
    unsaved: usize,
    is_behind: bool,
    /// Rows at which the growing segment is ended.
    pub(super) rows_max: usize,
}

/// A segment that is done.
#[derive(Debug)]
struct Segment {
    manifest: Manifest,
    checked: Option<Checked>,
    /// Mapped while it is in use.
    graph: Option<Graph>,
    /// Its file has gone or is damaged.
    is_lost: bool,
}

impl Segment {
    const fn new(manifest: Manifest) -> Self {
        Self { manifest, checked: None, graph: None, is_lost: false }
    }
}

/// A row that is near what was asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NearRow {
    /// `embeddings.row_id`.
    pub(crate) row_id: i64,
    /// `episodes.row_id`.
    pub(crate) episode: i64,
    /// The cosine of both rows of codes.
    pub(crate) cosine: f32,
}

impl From<Near> for NearRow {
    fn from(near: Near) -> Self {
        let (row_id, episode) = graph::rows_of(near.key);
        Self { row_id, episode, cosine: 1.0 - near.distance }
    }
}

/// A row to be added.
struct NewRow {
    row_id: i64,
    episode: i64,
    codes: Vec<i8>,
}

impl SpaceIndex {
    /// What is on the disk of that space, as far as it fits the store. `None` when there is no memory for a graph.
    pub(crate) fn open(
        connection: &Connection,
        dir: &Path,
        store_id: &str,
        key: Key,
    ) -> rusqlite::Result<Option<Self>> {
        let folder = key.folder(dir);
        let mut manifests = segments::manifests(&folder, &key, store_id);
        let Some(empty) = Graph::new(key.dims) else { return Ok(None) };
        let mut this = Self {
            folder,
            store_id: store_id.to_owned(),
            done: Vec::new(),
            growing: empty,
            above: 0,
            upto: 0,
            pending: Vec::new(),
            gone: Vec::new(),
            unsaved: 0,
            is_behind: false,
            rows_max: segments::rows_max(key.dims),
            key,
        };
        while let Some(last) = manifests.last()
            && !this.fits(connection, last)?
        {
            segments::discard(&this.folder, last.above);
            manifests.pop();
        }
        for manifest in manifests {
            (this.above, this.upto) = (manifest.upto, manifest.upto);
            if manifest.is_growing {
                this.above = manifest.above;
                match segments::open(&this.folder, &this.key, &manifest, &mut None, Graph::load) {
                    Some(graph) => this.growing = graph,
                    None => this.upto = manifest.above,
                }
                break;
            }
            this.done.push(Segment::new(manifest));
        }
        Ok(Some(this))
    }

    /// Whether a segment belongs to this very store: a store that was put back from a copy and has gone on since gives the
    /// same numbers to other rows, and its newest row below the segment's end shows it.
    fn fits(&self, connection: &Connection, manifest: &Manifest) -> rusqlite::Result<bool> {
        let next: i64 = connection.query_row("SELECT next_revision FROM store", [], |row| row.get(0))?;
        if manifest.upto >= next {
            return Ok(false);
        }
        let newest: Option<(i64, i64)> = connection
            .prepare_cached(
                "SELECT m.row_id, e.row_id FROM embeddings AS m JOIN episodes AS e ON e.id = m.episode_id
                 WHERE m.model_id = ?1 AND m.kind = ?2 AND m.dims = ?3 AND m.row_id <= ?4 ORDER BY m.row_id DESC LIMIT 1",
            )?
            .query_row((self.key.model_id.as_str(), self.key.kind.as_str(), self.dims(), manifest.upto), |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        let Some((row_id, episode)) = newest.filter(|(row_id, _)| *row_id > manifest.above) else { return Ok(true) };
        let graph = segments::open(&self.folder, &self.key, manifest, &mut None, Graph::view);
        let key = graph::key_of(row_id, episode);
        Ok(key.is_none_or(|key| graph.is_some_and(|graph| graph.holds(key))))
    }

    fn dims(&self) -> i64 {
        i64::try_from(self.key.dims).unwrap_or(i64::MAX)
    }

    /// Adds rows the index lacks. `true` when more are missing.
    pub(crate) fn catch_up(&mut self, connection: &Connection) -> rusqlite::Result<bool> {
        let rows = if self.is_behind { BEHIND_ROWS } else { CATCH_UP_ROWS };
        self.add_rows(connection, rows)
    }

    /// Adds up to so many rows the index lacks. `true` when more are missing.
    pub(crate) fn add_rows(&mut self, connection: &Connection, rows_max: usize) -> rusqlite::Result<bool> {
        // Within a long transaction a full segment cannot be ended; it may grow to twice its size, then rows wait.
        let room = (2 * self.rows_max).saturating_sub(self.growing.len()).min(rows_max);
        let rows = rows_between(connection, &self.key, self.upto, i64::MAX, room)?;
        self.is_behind = rows.len() == room;
        for row in rows {
            if let Some(key) = graph::key_of(row.row_id, row.episode) {
                if !self.growing.put(key, &row.codes) {
                    return Ok(false);
                }
                self.pending.push(key);
                self.unsaved += 1;
            }
            self.upto = row.row_id;
        }
        Ok(self.is_behind && room > 0)
    }

    /// About the nearest `count` rows, nearest first.
    pub(crate) fn near(&mut self, codes: &[i8], count: usize) -> Vec<NearRow> {
        let mut found = if self.growing.len() <= WHOLE_ROWS_MAX {
            self.growing.nearest_of_all(codes, count)
        } else {
            self.growing.nearest(codes, count, graph::EFFORT_TO_FIND)
        };
        for segment in self.done.iter_mut().rev().take(SEGMENTS_ASKED_MAX) {
            if segment.graph.is_none() && !segment.is_lost {
                let Segment { manifest, checked, .. } = segment;
                segment.graph = segments::open(&self.folder, &self.key, manifest, checked, Graph::view);
                segment.is_lost = segment.graph.is_none();
            }
            if let Some(graph) = &segment.graph {
                found.extend(graph.nearest(codes, count, graph::EFFORT_TO_FIND));
            }
        }
        nearest_first(&mut found);
        found.truncate(count);
        found.into_iter().map(NearRow::from).collect()
    }

    /// These rows are no longer in the store. Once that is committed their numbers never come back.
    pub(crate) fn gone(&mut self, rows: &[NearRow]) {
        self.gone.extend(rows.iter().filter_map(|row| graph::key_of(row.row_id, row.episode)));
    }

    /// What was added is in the store for good. A segment that is full is ended.
    pub(crate) fn committed(&mut self) -> Result<(), StoreError> {
        self.pending.clear();
        for key in std::mem::take(&mut self.gone) {
            self.growing.remove(key);
        }
        if self.growing.len() < self.rows_max {
            return Ok(());
        }
        let manifest = self.save(false)?;
        if let Some(empty) = Graph::new(self.key.dims) {
            self.growing = empty;
            self.done.push(Segment::new(manifest));
            self.above = self.upto;
        }
        Ok(())
    }

    /// Numbers from `next` on were taken back: they will name other rows.
    pub(crate) fn rolled_back(&mut self, next: i64) {
        // What was gone may be there again.
        self.gone.clear();
        while let Some(key) = self.pending.last().copied().filter(|key| graph::rows_of(*key).0 >= next) {
            self.pending.pop();
            self.growing.remove(key);
            self.unsaved = self.unsaved.saturating_sub(1);
        }
        self.upto = self.upto.min(next - 1).max(self.above);
    }

    /// Lets go of what is mapped, and saves what grew when it has grown by enough. Only while nothing is uncommitted.
    pub(crate) fn rest(&mut self) -> Result<(), StoreError> {
        self.done.iter_mut().for_each(|segment| segment.graph = None);
        if self.unsaved >= SAVED_EVERY { self.save(true).map(|_| ()) } else { Ok(()) }
    }

    /// Removes what cannot be used any more. `true` when there was such a thing: the space is then to be opened again, and what
    /// it lacks is caught up with.
    pub(crate) fn discard_lost(&self) -> bool {
        let lost = self.done.iter().find(|segment| segment.is_lost);
        if let Some(segment) = lost {
            segments::discard(&self.folder, segment.manifest.above);
        }
        lost.is_some()
    }

    /// Saves what grew, because the program ends.
    pub(crate) fn close(&mut self) -> Result<(), StoreError> {
        if self.unsaved > UNSAVED_MAX && self.pending.is_empty() { self.save(true).map(|_| ()) } else { Ok(()) }
    }

    fn save(&mut self, is_growing: bool) -> Result<Manifest, StoreError> {
        let span = Span { above: self.above, upto: self.upto, is_growing };
        let manifest = segments::save(&self.folder, &self.key, &self.store_id, &self.growing, span)?;
        self.unsaved = 0;
        Ok(manifest)
    }

    /// A segment of which a quarter or more has been removed from the store.
    pub(crate) fn stale(&self, connection: &Connection) -> rusqlite::Result<Option<(i64, i64)>> {
        for Segment { manifest, .. } in &self.done {
            let alive: i64 = connection
                .prepare_cached(
                    "SELECT count(*) FROM embeddings WHERE model_id = ?1 AND kind = ?2 AND row_id > ?3 AND row_id <= ?4",
                )?
                .query_row(
                    (self.key.model_id.as_str(), self.key.kind.as_str(), manifest.above, manifest.upto),
                    |row| row.get(0),
                )?;
            let rows = i64::try_from(manifest.rows).unwrap_or(i64::MAX);
            if alive < rows - rows / 4 {
                return Ok(Some((manifest.above, manifest.upto)));
            }
        }
        Ok(None)
    }

    /// Begins to make a segment anew.
    pub(crate) fn begin_rebuild(&self, (above, upto): (i64, i64)) -> Option<Rebuild> {
        Some(Rebuild { graph: Graph::new(self.key.dims)?, above, upto, at: above })
    }

    /// Goes on with it. `true` until it is in its place.
    pub(crate) fn rebuild(
        &mut self,
        connection: &Connection,
        rebuild: &mut Rebuild,
        rows_max: usize,
    ) -> Result<bool, StoreError> {
        let at_store = |error| StoreError::from_sqlite(&self.folder, error);
        let rows = rows_between(connection, &self.key, rebuild.at, rebuild.upto, rows_max).map_err(at_store)?;
        for row in &rows {
            if let Some(key) = graph::key_of(row.row_id, row.episode) {
                rebuild.graph.put(key, &row.codes);
            }
            rebuild.at = row.row_id;
        }
        if rows.len() == rows_max {
            return Ok(true);
        }
        let span = Span { above: rebuild.above, upto: rebuild.upto, is_growing: false };
        let manifest = segments::save(&self.folder, &self.key, &self.store_id, &rebuild.graph, span)?;
        if let Some(segment) = self.done.iter_mut().find(|segment| segment.manifest.above == rebuild.above) {
            *segment = Segment::new(manifest);
        }
        Ok(false)
    }
}

/// A segment that is made anew.
#[derive(Debug)]
pub(crate) struct Rebuild {
    graph: Graph,
    above: i64,
    upto: i64,
    at: i64,
}

/// Nearest first; ties by number.
pub(crate) fn nearest_first(found: &mut [Near]) {
    found.sort_by(|one, other| one.distance.total_cmp(&other.distance).then(one.key.cmp(&other.key)));
}

/// Rows of a space with numbers above `above` up to `upto`, quantised, in order.
fn rows_between(
    connection: &Connection,
    key: &Key,
    above: i64,
    upto: i64,
    rows_max: usize,
) -> rusqlite::Result<Vec<NewRow>> {
    let mut statement = connection.prepare_cached(
        "SELECT m.row_id, e.row_id, m.vector FROM embeddings AS m CROSS JOIN episodes AS e ON e.id = m.episode_id
         WHERE m.model_id = ?1 AND m.kind = ?2 AND m.dims = ?3 AND m.row_id > ?4 AND m.row_id <= ?5
         ORDER BY m.row_id LIMIT ?6",
    )?;
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let mut vector = Vec::with_capacity(key.dims);
    let (model, kind) = (key.model_id.as_str(), key.kind.as_str());
    statement
        .query_map((model, kind, number(key.dims), above, upto, number(rows_max)), |row| {
            scan::decode(row.get_ref(2)?, &mut vector);
            let mut codes = vec![0; vector.len()];
            quantise::quantise(&vector, &mut codes);
            Ok(NewRow { row_id: row.get(0)?, episode: row.get(1)?, codes })
        })?
        .collect()
}

//! What the writer keeps beside the store: the graphs of every space, and the sidecars it makes in idle moments.
//!
//! In: the rows that were added, commits and roll-backs, idle moments. Out: neighbours of a new vector, files under
//! `vectors/`. Nothing of it is needed to read or write the store: what fails here is said once in the log, and the store
//! goes on.
//! Never: a file that holds what is not committed; more than a slice of work a call.

use crate::domain::episode::EmbeddingKind;
use crate::domain::id::ModelId;
use crate::memory::error::StoreError;
use crate::memory::similarity;
use crate::memory::similarity::Space;
use crate::memory::similarity::neighbours::NearRow;
use crate::memory::similarity::neighbours::Rebuild;
use crate::memory::similarity::neighbours::SpaceIndex;
use crate::memory::similarity::rows;
use crate::memory::similarity::rows::Rows;
use crate::memory::similarity::rows::RowsWriter;
use crate::memory::similarity::scan;
use crate::memory::similarity::storage;
use crate::memory::similarity::storage::Key;
use crate::memory::store::STORE_FILE;
use crate::recall::links::Cuts;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;

/// A sidecar is worth making from so many rows on; fewer are scanned as fast in the store.
const SIDECAR_ROWS_MIN: usize = 1_024;

/// So many new rows are put into its late file: until then they are read from the store, 3 µs each.
const LATE_ROWS_MIN: usize = 512;

/// The main file is made anew when so much of what it holds is new or gone: one part in this many.
const STALE_PART: usize = 8;

/// Rows of a sidecar made in one slice: some milliseconds.
const SIDECAR_SLICE: usize = 1_024;

/// Rows indexed in one slice: some tens of milliseconds.
const INDEX_SLICE: usize = 64;

/// Removed rows after which it is looked at what has become stale.
const REMOVED_MIN: usize = 1_024;

/// New vectors of a space, or nearly so, after which its sidecar is looked at.
const TOUCHED_MIN: usize = 256;

/// Episodes that wait for another link; beyond it they go without.
const LOOSENED_MAX: usize = 4_096;

/// What the writer keeps beside the store.
#[derive(Debug)]
pub(crate) struct Companion {
    dir: PathBuf,
    store_id: String,
    /// Which cosines make a link.
    pub(crate) cuts: Cuts,
    indexes: BTreeMap<Key, SpaceIndex>,
    /// Spaces whose graphs may lack rows.
    due: BTreeSet<Key>,
    /// Spaces whose sidecar is to be looked at.
    sidecars_due: BTreeSet<Key>,
    /// Searches in each space since its sidecar was looked at.
    touched: BTreeMap<Key, usize>,
    has_looked: bool,
    removed: usize,
    sidecar: Option<(Key, RowsWriter, i64)>,
    rebuild: Option<(Key, Rebuild)>,
    /// Episodes that have lost a link, or were linked while rows were missing in a graph.
    loosened: BTreeSet<String>,
    /// Whether a graph lacked rows when it was last asked.
    is_behind: bool,
    has_complained: bool,
    needs_rest: bool,
    /// Another size of segments than the built-in one, in tests.
    segment_rows: Option<usize>,
}

impl Companion {
    /// Looks at nothing yet.
    pub(crate) fn new(dir: &Path, store_id: &str, cuts: Cuts) -> Self {
        Self {
            dir: dir.to_path_buf(),
            store_id: store_id.to_owned(),
            cuts,
            indexes: BTreeMap::new(),
            due: BTreeSet::new(),
            sidecars_due: BTreeSet::new(),
            touched: BTreeMap::new(),
            has_looked: false,
            removed: 0,
            sidecar: None,
            rebuild: None,
            loosened: BTreeSet::new(),
            is_behind: false,
            has_complained: false,
            needs_rest: false,
            segment_rows: None,
        }
    }

    /// Brings the graphs of a space up to date, as far as that can be done at once.
    pub(crate) fn catch_up(&mut self, connection: &Connection, key: &Key) -> rusqlite::Result<()> {
        let is_behind = match self.index(connection, key)? {
            Some(index) => index.catch_up(connection)?,
            None => false,
        };
        self.is_behind |= is_behind;
        Ok(())
    }

    /// About the nearest `count` rows of a space, which is brought up to date before.
    pub(crate) fn near(
        &mut self,
        connection: &Connection,
        key: &Key,
        codes: &[i8],
        count: usize,
    ) -> rusqlite::Result<Vec<NearRow>> {
        self.catch_up(connection, key)?;
        self.needs_rest = true;
        Ok(self.indexes.get_mut(key).map_or_else(Vec::new, |index| index.near(codes, count)))
    }

    /// These rows of a space are no longer in the store.
    pub(crate) fn gone(&mut self, key: &Key, rows: &[NearRow]) {
        if let Some(index) = self.indexes.get_mut(key) {
            index.gone(rows);
        }
    }

    fn index(&mut self, connection: &Connection, key: &Key) -> rusqlite::Result<Option<&mut SpaceIndex>> {
        if !self.indexes.contains_key(key) {
            match SpaceIndex::open(connection, &self.dir, &self.store_id, key.clone())? {
                Some(mut index) => {
                    index.rows_max = self.segment_rows.unwrap_or(index.rows_max);
                    self.indexes.insert(key.clone(), index)
                }
                None => return Ok(None),
            };
        }
        self.due.insert(key.clone());
        let touched = self.touched.entry(key.clone()).or_default();
        *touched += 1;
        if *touched >= TOUCHED_MIN {
            *touched = 0;
            self.sidecars_due.insert(key.clone());
        }
        Ok(self.indexes.get_mut(key))
    }

    /// The transaction is on the disk.
    pub(crate) fn committed(&mut self) {
        for index in self.indexes.values_mut() {
            if let Err(error) = index.committed() {
                complain(&mut self.has_complained, &error);
            }
        }
    }

    /// The transaction, or a part of it, was taken back.
    pub(crate) fn rolled_back(&mut self, connection: &Connection) {
        let next = connection.query_row("SELECT next_revision FROM store", [], |row| row.get(0));
        match next {
            Ok(next) => self.indexes.values_mut().for_each(|index| index.rolled_back(next)),
            // What is on the disk is committed.
            Err(_) => self.indexes.clear(),
        }
    }

    /// An episode was removed; these were linked to it.
    pub(crate) fn removed(&mut self, neighbours: Vec<String>) {
        self.removed += 1;
        neighbours.into_iter().for_each(|id| self.loosen(id));
    }

    /// An episode was linked. If rows were missing in a graph, it will look for more once they are in it.
    pub(crate) fn linked(&mut self, id: &str) {
        if std::mem::take(&mut self.is_behind) {
            self.loosen(id.to_owned());
        }
    }

    fn loosen(&mut self, id: String) {
        self.loosened.insert(id);
        if self.loosened.len() > LOOSENED_MAX {
            self.loosened.pop_first();
        }
    }

    /// Whether an episode should look for links, and every graph is complete, so that it finds them.
    pub(crate) fn has_loosened(&self) -> bool {
        !self.loosened.is_empty() && self.due.is_empty()
    }

    /// Up to so many episodes that have lost a link.
    pub(crate) fn take_loosened(&mut self, count: usize) -> Vec<String> {
        (0..count).map_while(|_| self.loosened.pop_first()).collect()
    }

    /// Removes every file and everything held in memory, because a vector must not outlive its episode.
    pub(crate) fn forget(&mut self) -> Result<(), StoreError> {
        *self = Self { has_complained: self.has_complained, ..Self::new(&self.dir, &self.store_id, self.cuts.clone()) };
        storage::remove_all(&self.dir)
    }

    /// Whether there is something to do in an idle moment.
    pub(crate) fn has_work(&self) -> bool {
        !self.has_looked
            || !self.due.is_empty()
            || !self.sidecars_due.is_empty()
            || !self.loosened.is_empty()
            || self.sidecar.is_some()
            || self.rebuild.is_some()
            || self.removed >= REMOVED_MIN
            || self.needs_rest
    }

    /// Does a slice of what there is to do, outside any transaction. `true` while there is more.
    pub(crate) fn tend(&mut self, connection: &Connection) -> bool {
        match self.slice(connection) {
            Ok(is_more) => is_more,
            Err(error) => {
                complain(&mut self.has_complained, &error);
                // It is tried again with the next vector.
                self.due.clear();
                self.sidecars_due.clear();
                (self.sidecar, self.rebuild, self.removed, self.needs_rest) = (None, None, 0, false);
                false
            }
        }
    }

    fn slice(&mut self, connection: &Connection) -> Result<bool, StoreError> {
        let path = self.dir.join(STORE_FILE);
        let at_store = |error| StoreError::from_sqlite(&path, error);
        if !self.has_looked {
            self.has_looked = true;
            self.look_at_all(connection).map_err(at_store)?;
            return Ok(true);
        }
        if let Some((key, writer, at)) = self.sidecar.take() {
            self.sidecar = go_on(connection, key, writer, at).map_err(|error| error.at(&path))?;
            return Ok(true);
        }
        if let Some((key, mut rebuild)) = self.rebuild.take() {
            if let Some(index) = self.indexes.get_mut(&key)
                && index.rebuild(connection, &mut rebuild, INDEX_SLICE)?
            {
                self.rebuild = Some((key, rebuild));
            }
            return Ok(true);
        }
        if self.removed >= REMOVED_MIN {
            self.removed = 0;
            self.look_at_all(connection).map_err(at_store)?;
            self.rebuild = self.stale(connection).map_err(at_store)?;
            return Ok(true);
        }
        if let Some(key) = self.sidecars_due.pop_first() {
            if let Some(part) = self.sidecar_due(connection, &key).map_err(at_store)? {
                self.sidecar = Some(begin(&self.dir, &self.store_id, key, part)?);
            }
            return Ok(true);
        }
        if let Some(key) = self.due.pop_first() {
            if let Some(index) = self.index(connection, &key).map_err(at_store)? {
                let is_behind = index.add_rows(connection, INDEX_SLICE).map_err(at_store)?;
                // What is read outside a transaction is committed.
                index.committed()?;
                if !is_behind {
                    self.due.remove(&key);
                }
            }
            return Ok(true);
        }
        if self.needs_rest {
            self.needs_rest = false;
            let lost: Vec<Key> =
                self.indexes.iter().filter(|(_, index)| index.discard_lost()).map(|(key, _)| key.clone()).collect();
            for key in lost {
                self.indexes.remove(&key);
                self.due.insert(key);
            }
            self.indexes.values_mut().try_for_each(SpaceIndex::rest)?;
        }
        Ok(!self.due.is_empty())
    }

    fn look_at_all(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let keys = keys(connection)?;
        self.due.extend(keys.iter().cloned());
        self.sidecars_due.extend(keys);
        Ok(())
    }

    fn stale(&self, connection: &Connection) -> rusqlite::Result<Option<(Key, Rebuild)>> {
        for (key, index) in &self.indexes {
            if let Some(span) = index.stale(connection)? {
                return Ok(index.begin_rebuild(span).map(|rebuild| (key.clone(), rebuild)));
            }
        }
        Ok(None)
    }

    /// What of a sidecar should be made: the main file when it is missing, holds much that is gone or has a late one that is no
    /// longer small; the late one when rows came.
    fn sidecar_due(&self, connection: &Connection, key: &Key) -> rusqlite::Result<Option<Part>> {
        let newest: i64 =
            connection.query_row("SELECT coalesce(max(row_id), 0) FROM embeddings", [], |row| row.get(0))?;
        let all = Some(Part { name: rows::MAIN, above: 0, covered: newest });
        let parts = similarity::open_rows(connection, key, &key.folder(&self.dir), &self.store_id, Vec::new())?;
        let Some(main) = parts.first() else {
            let is_worth_it = count(connection, key, (0, newest), SIDECAR_ROWS_MIN)? >= SIDECAR_ROWS_MIN;
            return Ok(all.filter(|_| is_worth_it));
        };
        let part = (main.len() / STALE_PART).max(SIDECAR_ROWS_MIN);
        if main.len() - count(connection, key, (0, main.covered()), main.len())? >= part {
            return Ok(all);
        }
        let covered = parts.last().map_or(0, Rows::covered);
        if count(connection, key, (covered, newest), LATE_ROWS_MIN)? < LATE_ROWS_MIN {
            return Ok(None);
        }
        let late = Part { name: rows::LATE, above: main.covered(), covered: newest };
        let is_small = count(connection, key, (late.above, newest), part)? < part;
        Ok(if is_small { Some(late) } else { all })
    }

    /// Makes the main file of a sidecar now, however small it is, or its late one.
    #[cfg(test)]
    pub(crate) fn make_sidecar(&mut self, connection: &Connection, key: &Key, is_late: bool) {
        let path = self.dir.join(STORE_FILE);
        let covered: i64 =
            connection.query_row("SELECT coalesce(max(row_id), 0) FROM embeddings", [], |row| row.get(0)).unwrap();
        let main = similarity::open_rows(connection, key, &key.folder(&self.dir), &self.store_id, Vec::new()).unwrap();
        let above = main.first().map_or(0, Rows::covered);
        let part = if is_late {
            Part { name: rows::LATE, above, covered }
        } else {
            Part { name: rows::MAIN, above: 0, covered }
        };
        let mut sidecar = begin(&self.dir, &self.store_id, key.clone(), part).ok();
        while let Some((key, writer, at)) = sidecar {
            sidecar = go_on(connection, key, writer, at).map_err(|error| error.at(&path)).unwrap();
        }
    }

    /// Segments of so many rows, so that a test need not make thousands.
    #[cfg(test)]
    pub(crate) fn with_segments_of(self, rows: usize) -> Self {
        Self { segment_rows: Some(rows), ..self }
    }

    /// Saves what would take long to make again, because the program ends.
    pub(crate) fn close(&mut self) {
        for index in self.indexes.values_mut() {
            if let Err(error) = index.close() {
                complain(&mut self.has_complained, &error);
            }
        }
    }
}

/// Says once that vectors are searched the slow way.
fn complain(has_complained: &mut bool, error: &StoreError) {
    if !std::mem::replace(has_complained, true) {
        tracing::warn!(%error, "the index of vectors cannot be kept: searches are slower and may link less until it can");
    }
}

/// The spaces of the store, each with the length of its newest vector.
fn keys(connection: &Connection) -> rusqlite::Result<Vec<Key>> {
    let mut keys = Vec::new();
    for Space { model_id, kind } in similarity::spaces(connection)? {
        let dims: i64 = connection
            .prepare_cached(
                "SELECT dims FROM embeddings WHERE model_id = ?1 AND kind = ?2 ORDER BY row_id DESC LIMIT 1",
            )?
            .query_row((model_id.as_str(), kind.as_str()), |row| row.get(0))?;
        keys.extend(usize::try_from(dims).ok().map(|dims| Key { model_id, kind, dims }));
    }
    Ok(keys)
}

/// Rows of the space with numbers above the first and up to the second one; counted no further than `count_max`.
fn count(connection: &Connection, key: &Key, (above, upto): (i64, i64), count_max: usize) -> rusqlite::Result<usize> {
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let (model, kind): (&ModelId, EmbeddingKind) = (&key.model_id, key.kind);
    connection
        .prepare_cached(
            "SELECT count(*) FROM (SELECT 1 FROM embeddings
             WHERE model_id = ?1 AND kind = ?2 AND row_id > ?3 AND row_id <= ?4 LIMIT ?5)",
        )?
        .query_row((model.as_str(), kind.as_str(), above, upto, number(count_max)), |row| row.get::<_, i64>(0))
        .map(|count| usize::try_from(count).unwrap_or(usize::MAX))
}

/// A file of a sidecar that is to be made, with the rows above and up to these numbers.
struct Part {
    name: &'static str,
    above: i64,
    covered: i64,
}

fn begin(dir: &Path, store_id: &str, key: Key, part: Part) -> Result<(Key, RowsWriter, i64), StoreError> {
    let span = (part.above, part.covered);
    let writer = RowsWriter::begin(&key.folder(dir), part.name, &key, store_id, span)?;
    Ok((key, writer, part.above))
}

/// A failure while a sidecar is made.
enum Failure {
    Read(rusqlite::Error),
    Write(StoreError),
}

impl Failure {
    fn at(self, path: &Path) -> StoreError {
        match self {
            Self::Read(error) => StoreError::from_sqlite(path, error),
            Self::Write(error) => error,
        }
    }
}

/// Puts the next slice of rows into a sidecar. Rows that are removed meanwhile do no harm, and rows that are added have
/// greater numbers than it covers, so the slices need no common transaction.
fn go_on(
    connection: &Connection,
    key: Key,
    mut writer: RowsWriter,
    at: i64,
) -> Result<Option<(Key, RowsWriter, i64)>, Failure> {
    let mut last = at;
    let mut rows = 0;
    {
        let mut statement = connection
            .prepare_cached(
                "SELECT m.row_id, e.row_id, m.vector FROM embeddings AS m CROSS JOIN episodes AS e ON e.id = m.episode_id
                 WHERE m.model_id = ?1 AND m.kind = ?2 AND m.dims = ?3 AND m.row_id > ?4 AND m.row_id <= ?5
                 ORDER BY m.row_id LIMIT ?6",
            )
            .map_err(Failure::Read)?;
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let (model, kind, dims) = (key.model_id.as_str(), key.kind.as_str(), number(key.dims));
        let mut found =
            statement.query((model, kind, dims, at, writer.covered(), number(SIDECAR_SLICE))).map_err(Failure::Read)?;
        let mut vector = Vec::with_capacity(key.dims);
        while let Some(row) = found.next().map_err(Failure::Read)? {
            let (row_id, episode) = (row.get(0).map_err(Failure::Read)?, row.get(1).map_err(Failure::Read)?);
            let stored = row.get_ref(2).map_err(Failure::Read)?;
            scan::decode(stored, &mut vector);
            writer.push(row_id, episode, stored.as_blob().unwrap_or(&[]), &vector).map_err(Failure::Write)?;
            (last, rows) = (row_id, rows + 1);
        }
    }
    if rows < SIDECAR_SLICE {
        return writer.finish().map(|()| None).map_err(Failure::Write);
    }
    Ok(Some((key, writer, last)))
}

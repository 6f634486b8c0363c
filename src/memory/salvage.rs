//! A damaged store is set aside and what can be read of it goes on in a new one.
//!
//! In: a data directory whose `memory.db` is damaged. Out: a new `memory.db` with every row that could still be read and
//! that would be accepted today, and a [`Salvage`] that says in words what was kept; the damaged file stands beside it as
//! `memory.db.damaged-2026-11-30T12-00-00Z`, with its WAL.
//!
//! ```text
//! memory.db (damaged) --[scan, tables]--> memory.db.salvage --whole, on the disk--> memory.db.salvaged-DATE --[swap]--> memory.db
//! ```
//!
//! The new store has the same device id and another store id; every row has a new revision, so all of it is pending.
//! A crash at any point leaves the damaged file in its place, to be salvaged again, or a swap that the next start ends.
//! Never: changes or overwrites the damaged file; holds more than one row in memory; keeps a row that breaks a rule.

mod scan;
pub(crate) mod swap;
mod tables;

use crate::domain::id::StoreId;
use crate::domain::time::Timestamp;
use crate::memory::error::StoreError;
use crate::memory::health;
use crate::memory::mentions;
use crate::memory::revision;
use crate::memory::salvage::tables::RowView;
use crate::memory::salvage::tables::TABLES;
use crate::memory::salvage::tables::Table;
use crate::memory::schema;
use crate::memory::store;
use crate::memory::store::Identity;
use crate::memory::store::OpenOptions;
use crate::memory::store::STORE_FILE;
use rusqlite::Connection;
use rusqlite::ErrorCode;
use rusqlite::types::Value;
use std::fs::File;
use std::io::Read;
use std::io::Seek;
use std::path::Path;
use std::path::PathBuf;

/// Where the new store is made.
const UNFINISHED_FILE: &str = "memory.db.salvage";

/// Rows committed together while the new store is made.
const ROWS_PER_COMMIT: usize = 500;

/// What a salvage kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvage {
    /// Where the damaged file stands now; its WAL has the same name with `-wal`.
    pub set_aside: PathBuf,
    /// What was wrong with it.
    pub cause: String,
    /// The damaged store's id, if it could be read.
    pub old_store_id: Option<StoreId>,
    /// What became of each table.
    pub tables: Vec<TableSalvage>,
}

/// What became of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSalvage {
    /// Its name.
    pub table: &'static str,
    /// Rows that were kept.
    pub kept: u64,
    /// Rows that were read and break a rule: their content is damaged, or what they belong to is lost.
    pub refused: u64,
    /// Places that could not be read: at most so many rows, or stretches of rows, are lost there.
    pub unreadable: u64,
}

impl TableSalvage {
    const fn has_losses(&self) -> bool {
        self.refused + self.unreadable > 0
    }
}

impl Salvage {
    /// Rows kept in all tables.
    #[must_use]
    pub fn rows_kept(&self) -> u64 {
        self.tables.iter().map(|table| table.kept).sum()
    }

    /// Whether some row was refused or some place could not be read.
    #[must_use]
    pub fn has_losses(&self) -> bool {
        self.old_store_id.is_none() || self.tables.iter().any(TableSalvage::has_losses)
    }

    /// What happened, for the log and for `status`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let listed = |parts: Vec<String>, none: &str, some: &str| {
            if parts.is_empty() { none.to_owned() } else { format!("{some} {}", parts.join(", ")) }
        };
        let kept = self.tables.iter().filter(|table| table.kept > 0);
        let kept = kept.map(|table| format!("{} {}", table.kept, table.table)).collect();
        let lost = self.tables.iter().filter(|table| table.has_losses());
        let lost = lost.map(|table| {
            format!("{} ({} unreadable places, {} unusable rows)", table.table, table.unreadable, table.refused)
        });
        format!(
            "the store was damaged ({}) and stands now at {}; {}; {}",
            self.cause,
            self.set_aside.display(),
            listed(kept, "nothing of it could be read", "kept"),
            listed(lost.collect(), "no loss was seen", "something was lost in")
        )
    }
}

/// Makes a new store of what can be read and puts it in the place of the damaged one.
pub(crate) fn salvage(
    dir: &Path,
    options: &OpenOptions,
    cause: &StoreError,
    now: Timestamp,
    on_rows: &mut dyn FnMut(u64),
) -> Result<Salvage, StoreError> {
    let unfinished = dir.join(UNFINISHED_FILE);
    discard(&unfinished)?;
    let (old, tables) = copy(&dir.join(STORE_FILE), &unfinished, options, on_rows).inspect_err(|_| {
        // Whatever was written would only take the room that is missing.
        let _ = discard(&unfinished);
    })?;
    store::seal(&unfinished)?;
    let set_aside = swap::begin(dir, &unfinished, now)?;
    swap::finish(dir)?;
    let cause = if let StoreError::Damaged { detail, .. } = cause { detail.clone() } else { cause.to_string() };
    Ok(Salvage { set_aside, cause, old_store_id: old.map(|identity| identity.store_id), tables })
}

fn discard(unfinished: &Path) -> Result<(), StoreError> {
    store::remove_if_there(unfinished)?;
    discard_source(unfinished)?;
    store::remove_if_there(&unfinished.with_file_name(format!("{UNFINISHED_FILE}-journal")))
}

fn discard_source(unfinished: &Path) -> Result<(), StoreError> {
    ["", "-wal", "-shm"].iter().try_for_each(|suffix| store::remove_if_there(&source_copy(unfinished, suffix)))
}

fn copy(
    damaged: &Path,
    unfinished: &Path,
    options: &OpenOptions,
    on_rows: &mut dyn FnMut(u64),
) -> Result<(Option<Identity>, Vec<TableSalvage>), StoreError> {
    let whole_pages = whole_pages(damaged, unfinished)?;
    let source = open_source(whole_pages.as_deref().unwrap_or(damaged)).ok();
    let old = source.as_ref().and_then(|source| store::identity(source).ok());
    let device_id = old.as_ref().map(|old| old.device_id.clone()).or_else(|| options.device_id.clone());
    // Revisions start anew, so the store must not pass for the old one.
    let is_other = |id: &StoreId| old.as_ref().is_none_or(|old| old.store_id != *id);
    let store_id = options.store_id.clone().filter(is_other);
    let at_new = |error| StoreError::from_sqlite(unfinished, error);
    store::fill(unfinished, &OpenOptions { device_id, store_id, ..options.clone() }).map_err(at_new)?;
    let mut target = Target::open(unfinished, on_rows).map_err(at_new)?;
    let mut results = Vec::new();
    for table in &TABLES {
        results.push(match &source {
            Some(source) => copy_table(source, &mut target, table).map_err(at_new)?,
            None => TableSalvage { table: table.name, kept: 0, refused: 0, unreadable: 1 },
        });
    }
    target.finish().map_err(at_new)?;
    drop(source);
    discard_source(unfinished)?;
    Ok((old, results))
}

/// A copy of a file whose last page is not whole, without that page: SQLite would take its missing end for zeros, and the
/// row that ends there for what it is not. `None` for a file of whole pages.
fn whole_pages(damaged: &Path, unfinished: &Path) -> Result<Option<PathBuf>, StoreError> {
    let copied = source_copy(unfinished, "");
    let copy = || -> std::io::Result<bool> {
        let mut file = File::open(damaged)?;
        let length = file.metadata()?.len();
        let mut header = Vec::new();
        file.by_ref().take(100).read_to_end(&mut header)?;
        let rest = if header.starts_with(schema::MAGIC) { length % schema::page_size(&header) } else { 0 };
        if rest == 0 {
            return Ok(false);
        }
        file.rewind()?;
        std::io::copy(&mut file.take(length - rest), &mut File::create(&copied)?)?;
        let wal = damaged.with_file_name(format!("{STORE_FILE}-wal"));
        if wal.exists() {
            std::fs::copy(wal, source_copy(unfinished, "-wal"))?;
        }
        Ok(true)
    };
    let is_copied = copy().map_err(|error| StoreError::from_io("copy", damaged, error))?;
    Ok(is_copied.then_some(copied))
}

fn source_copy(unfinished: &Path, suffix: &str) -> PathBuf {
    unfinished.with_file_name(format!("{UNFINISHED_FILE}-source{suffix}"))
}

/// Tolerates what can be tolerated: with `writable_schema` SQLite also opens a file that is shorter than its header says.
fn open_source(damaged: &Path) -> rusqlite::Result<Connection> {
    let source = health::open_untouched(damaged)?;
    source.pragma_update(None, "writable_schema", true)?;
    Ok(source)
}

fn copy_table(source: &Connection, target: &mut Target<'_>, table: &Table) -> rusqlite::Result<TableSalvage> {
    let mut result = TableSalvage { table: table.name, kept: 0, refused: 0, unreadable: 0 };
    let Some(columns) = columns_in(source, table) else {
        return Ok(TableSalvage { unreadable: 1, ..result });
    };
    let insert = table.insert_sql(&columns);
    result.unreadable = scan::each_row(source, table, &columns, &mut |values| {
        let is_kept = match values {
            Some(values) => target.put(table, &columns, &insert, values)?,
            None => false,
        };
        *(if is_kept { &mut result.kept } else { &mut result.refused }) += 1;
        Ok(())
    })?;
    Ok(result)
}

/// The table's columns that the damaged file has: an older schema lacks some, and the new store has defaults for them.
fn columns_in(source: &Connection, table: &Table) -> Option<Vec<&'static str>> {
    let mut statement = source.prepare("SELECT name FROM pragma_table_info(?1)").ok()?;
    let found: Vec<String> =
        statement.query_map([table.name], |row| row.get(0)).ok()?.collect::<Result<_, _>>().ok()?;
    let columns: Vec<_> =
        table.columns.iter().copied().filter(|column| found.iter().any(|name| name == column)).collect();
    (!columns.is_empty()).then_some(columns)
}

/// The new store while it is filled.
struct Target<'a> {
    connection: Connection,
    store_id: String,
    rows_open: usize,
    rows_kept: u64,
    on_rows: &'a mut dyn FnMut(u64),
}

impl<'a> Target<'a> {
    fn open(path: &Path, on_rows: &'a mut dyn FnMut(u64)) -> rusqlite::Result<Self> {
        let connection = Connection::open(path)?;
        // Nobody knows this file until it is whole and was put on the disk as a whole.
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        let store_id = store::identity(&connection)?.store_id.as_str().to_owned();
        connection.execute_batch("BEGIN")?;
        Ok(Self { connection, store_id, rows_open: 0, rows_kept: 0, on_rows })
    }

    /// Stores the row if it keeps every rule. `false` if not.
    fn put(&mut self, table: &Table, columns: &[&str], insert: &str, mut values: Vec<Value>) -> rusqlite::Result<bool> {
        let row = RowView { columns, values: &values };
        if !(table.is_sound)(&row) || tables::is_blocked(&self.connection, table, &row)? {
            return Ok(false);
        }
        for (column, value) in columns.iter().zip(&mut values) {
            match *column {
                "store_id" => *value = Value::from(self.store_id.clone()),
                "acked_revision" => *value = Value::from(0),
                // 0 says that there never was anything to sync.
                "revision" if *value != Value::Integer(0) => *value = Value::from(revision::next(&self.connection)?),
                _ => {}
            }
        }
        let inserted = self.connection.prepare_cached(insert)?.execute(rusqlite::params_from_iter(values));
        match inserted {
            Ok(_) => self.count(),
            Err(error) if is_a_broken_rule(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn count(&mut self) -> rusqlite::Result<bool> {
        self.rows_kept += 1;
        self.rows_open += 1;
        if self.rows_open >= ROWS_PER_COMMIT {
            self.rows_open = 0;
            self.connection.execute_batch("COMMIT; BEGIN")?;
            (self.on_rows)(self.rows_kept);
        }
        Ok(true)
    }

    fn finish(self) -> rusqlite::Result<()> {
        self.connection.execute_batch(tables::MEND)?;
        mentions::rebuild(&self.connection)?;
        self.connection.execute_batch("COMMIT")?;
        self.connection.close().map_err(|(_, error)| error)
    }
}

fn is_a_broken_rule(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
    )
}

#[cfg(test)]
mod tests;

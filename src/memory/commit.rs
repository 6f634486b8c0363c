//! Rows into the store: one transaction per group, one savepoint per row.
//!
//! In: the rows of a group. Out: what became of them, to be counted, and the files nothing names, to be removed: both only
//! after the commit.
//! A row that SQLite refuses is set aside with its id; any other failure takes the whole transaction back.

use crate::domain::time::Timestamp;
use crate::memory::append;
use crate::memory::append::Outcome;
use crate::memory::clock;
use crate::memory::command::Counters;
use crate::memory::command::RowCommand;
use crate::memory::coverage;
use crate::memory::error::StoreError;
use crate::memory::gists;
use crate::memory::health;
use crate::memory::media;
use crate::memory::revision::Context;
use crate::memory::store::Store;
use rusqlite::Connection;

/// What a change by this store needs to know.
pub(crate) fn context(store: &Store, stored_at: Timestamp) -> Context<'_> {
    let (store_id, single_valued) = (store.identity.store_id.as_str(), store.single_valued.as_slice());
    Context { store_id, stored_at, single_valued, companion: &store.companion }
}

/// One transaction: all of `work` is committed, or nothing.
pub(crate) fn transaction<T>(
    store: &Store,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let connection = &store.connection;
    let run = |sql: &str| connection.execute_batch(sql).map_err(|error| StoreError::from_sqlite(&store.path, error));
    let result = run("BEGIN IMMEDIATE").and_then(|()| work(connection)).and_then(|value| run("COMMIT").map(|()| value));
    match &result {
        Ok(_) => store.companion.borrow_mut().committed(),
        Err(error) => {
            roll_back(store);
            health::note(&store.dir, error);
        }
    }
    result
}

/// Ends a failed transaction, unless SQLite has done so itself (as it does when the disk is full).
pub(crate) fn roll_back(store: &Store) {
    let connection = &store.connection;
    if !connection.is_autocommit() {
        // If even this fails, the next BEGIN fails and is reported.
        let _ = connection.execute_batch("ROLLBACK");
    }
    store.companion.borrow_mut().rolled_back(connection);
}

/// Moves the record's media to the disk.
pub(crate) fn write_files(store: &Store, row: &mut RowCommand) -> Result<(), StoreError> {
    if let RowCommand::Episode { record, files } = row {
        while let Some(media) = record.media.first() {
            files.push(media::write(&store.dir, media)?);
            record.media.remove(0);
        }
    }
    Ok(())
}

/// Applies rows inside the open transaction, each in a savepoint. Returns what to count and which files to remove,
/// both only after the commit.
pub(crate) fn apply(
    store: &Store,
    connection: &Connection,
    context: Context<'_>,
    rows: &[RowCommand],
) -> Result<(Counters, Vec<String>), StoreError> {
    let at_store = |error| StoreError::from_sqlite(&store.path, error);
    let (mut counters, mut unused) = (Counters::default(), Vec::new());
    for row in rows {
        connection.execute_batch("SAVEPOINT one_row").map_err(at_store)?;
        match apply_row(connection, &context, row, &mut counters, &mut unused).map_err(at_store) {
            Ok(()) => connection.execute_batch("RELEASE one_row").map_err(at_store)?,
            Err(StoreError::Sql { source, .. }) => {
                connection.execute_batch("ROLLBACK TO one_row; RELEASE one_row").map_err(at_store)?;
                store.companion.borrow_mut().rolled_back(connection);
                let refused = StoreError::Refused { id: row.id(), reason: source.to_string() };
                counters.refuse(refused.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    Ok((counters, unused))
}

fn apply_row(
    connection: &Connection,
    context: &Context<'_>,
    row: &RowCommand,
    counters: &mut Counters,
    unused: &mut Vec<String>,
) -> rusqlite::Result<()> {
    let (outcome, is_coverage) = match row {
        RowCommand::Episode { record, files } => (append::append(connection, context, record, files)?, false),
        RowCommand::Gist { record, sources } => (gists::put(connection, context, record, sources)?, false),
        RowCommand::NoGist(id) => return gists::remove(connection, context, *id),
        RowCommand::Vectors { id, embeddings } => (append::add_vectors(connection, context, id, embeddings)?, false),
        RowCommand::Coverage(record) => (coverage::put(connection, context, record)?, true),
        RowCommand::Clock(correction) => {
            counters.rows_moved += clock::correct(connection, context, correction)?;
            return Ok(());
        }
    };
    let counter = match (&outcome, is_coverage) {
        (Outcome::Blocked, _) => &mut counters.rows_blocked,
        (Outcome::Duplicate, true) => &mut counters.coverage_known,
        (_, true) => &mut counters.coverage_stored,
        (Outcome::Inserted, false) => &mut counters.episodes_inserted,
        (Outcome::Updated(_), false) => &mut counters.episodes_updated,
        (Outcome::Duplicate, false) => &mut counters.episodes_known,
    };
    *counter += 1;
    match (outcome, row) {
        (Outcome::Updated(files), _) => unused.extend(files),
        // Its files were written before anybody knew that the row is not wanted: those no row names go again.
        (Outcome::Duplicate | Outcome::Blocked, RowCommand::Episode { files, .. }) => {
            unused.extend(files.iter().map(|file| file.path.clone()));
        }
        _ => {}
    }
    Ok(())
}

//! The store's revisions: every change of a synced row takes the next one, in the same transaction.
//!
//! Revisions only grow; a rolled-back transaction gives its own back, so holes come from deleted rows alone.

use crate::domain::time::Timestamp;
use crate::memory::similarity::companion::Companion;
use rusqlite::Connection;
use std::cell::RefCell;

/// What a change of rows needs to know besides the rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The store that writes.
    pub(crate) store_id: &'a str,
    /// When it writes.
    pub(crate) stored_at: Timestamp,
    /// Relations of which a subject has one at a time.
    pub(crate) single_valued: &'a [String],
    /// What is kept beside the store: who is near whom.
    pub(crate) companion: &'a RefCell<Companion>,
}

impl Context<'_> {
    /// Whether a newer fact of this relation ends the older one.
    pub(crate) fn is_single_valued(&self, relation: &str) -> bool {
        self.single_valued.iter().any(|name| name == relation)
    }
}

/// Takes the next revision.
pub(crate) fn next(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("UPDATE store SET next_revision = next_revision + 1 RETURNING next_revision - 1")?
        .query_row([], |row| row.get(0))
}

/// Takes the next revision as the row number of a vector.
///
/// Nothing else may number vectors: what is kept beside the store (see [`crate::memory::similarity`]) knows a vector by its
/// number alone, so one that was ever used must not come back with other values, not even after its row has gone.
pub(crate) fn next_vector(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached(
            "UPDATE store SET next_revision =
               max(next_revision, (SELECT coalesce(max(row_id), 0) + 1 FROM embeddings)) + 1
             RETURNING next_revision - 1",
        )?
        .query_row([], |row| row.get(0))
}

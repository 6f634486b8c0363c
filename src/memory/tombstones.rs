//! Ids of removed rows: they hold nothing else, keep a replay from bringing the row back, and tell central.
//!
//! | reason | written when | blocks a replay |
//! |---|---|---|
//! | `expired` | a `session` row was pruned | yes |
//! | `forgotten` | the user had it forgotten | yes |
//! | `replaced` | reprocessing a session no longer yields a row that central has | no: the row may come back with a higher revision |

use crate::memory::revision;
use crate::memory::revision::Context;
use rusqlite::Connection;
use rusqlite::OptionalExtension;

/// A removed row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grave<'a> {
    pub(crate) id: &'a str,
    /// `episode` or `coverage`.
    pub(crate) kind: &'a str,
    /// `expired`, `replaced` or `forgotten`.
    pub(crate) reason: &'a str,
    pub(crate) device_id: &'a str,
}

/// Writes the tombstone.
pub(crate) fn put(connection: &Connection, context: &Context<'_>, grave: Grave<'_>) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO tombstones (id, kind, reason, device_id, store_id, stored_at, revision)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (id, kind) DO UPDATE SET reason = excluded.reason, revision = excluded.revision",
        )?
        .execute((
            grave.id,
            grave.kind,
            grave.reason,
            grave.device_id,
            context.store_id,
            context.stored_at.as_millis(),
            revision::next(connection)?,
        ))?;
    Ok(())
}

/// Whether a row of that kind and id must not be stored. One that was only replaced may be: its tombstone is taken away.
pub(crate) fn blocks(connection: &Connection, kind: &str, id: &str) -> rusqlite::Result<bool> {
    let reason: Option<String> = connection
        .prepare_cached("SELECT reason FROM tombstones WHERE id = ?1 AND kind = ?2")?
        .query_row((id, kind), |row| row.get(0))
        .optional()?;
    match reason.as_deref() {
        None => Ok(false),
        Some("replaced") => {
            connection.prepare_cached("DELETE FROM tombstones WHERE id = ?1 AND kind = ?2")?.execute((id, kind))?;
            Ok(false)
        }
        Some(_) => Ok(true),
    }
}

//! Removes episodes with everything that belongs to them.
//!
//! In: ids. Out: the paths of media files nothing names any more, to be removed after the commit.
//! Never: writes tombstones (its callers know the reason), removes a file itself.

use crate::domain::time::ClockQuality;
use crate::domain::time::Timestamp;
use crate::memory::forget;
use crate::memory::graph;
use crate::memory::links;
use crate::memory::media;
use crate::memory::revision::Context;
use crate::memory::tombstones;
use crate::memory::tombstones::Grave;
use rusqlite::Connection;
use rusqlite::OptionalExtension;

/// `session` rows are removed this long after their capture.
pub const SESSION_KEPT_MS: i64 = 3 * 3_600_000;

/// Most rows one pruning removes, so that it never holds up the writer for long; call again while it returns this many.
pub const PRUNE_ROWS_MAX: usize = 500;

/// Removes one episode. Vectors, strength, links and full text go with the row; who was linked to it looks for another in
/// the writer's next idle moment. Of a redacted one a tombstone stays: a replay would bring it back as it was before.
pub(crate) fn remove(connection: &Connection, context: &Context<'_>, id: &str) -> rusqlite::Result<Vec<String>> {
    let redacted: Option<String> = connection
        .prepare_cached("SELECT device_id FROM episodes WHERE id = ?1 AND digest = ?2")?
        .query_row((id, forget::REDACTED), |row| row.get(0))
        .optional()?;
    if let Some(device_id) = redacted {
        let grave = Grave { id, kind: "episode", reason: "forgotten", device_id: &device_id };
        tombstones::put(connection, context, grave)?;
    }
    graph::remove(connection, context, id)?;
    links::similar::before_removal(connection, context, id)?;
    let unused = media::remove(connection, id)?;
    connection.prepare_cached("DELETE FROM episodes WHERE id = ?1")?.execute([id])?;
    Ok(unused)
}

/// Removes `session` rows captured more than [`SESSION_KEPT_MS`] before `now`, leaving tombstones.
///
/// Rows whose clock was unset are left alone: a clock that jumps forward must not make a fresh row look old. They expire
/// once their time has been corrected.
pub(crate) fn prune_expired(
    connection: &Connection,
    context: &Context<'_>,
    now: Timestamp,
) -> rusqlite::Result<(usize, Vec<String>)> {
    let expired: Vec<(String, String)> = connection
        .prepare_cached(&format!(
            "SELECT id, device_id FROM episodes WHERE decay_class = 'session' AND timestamp < ?1 AND clock_quality <> ?2
             ORDER BY timestamp, id LIMIT {PRUNE_ROWS_MAX}"
        ))?
        .query_map((now.plus_millis(-SESSION_KEPT_MS).as_millis(), ClockQuality::Unset.as_str()), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .collect::<Result<_, _>>()?;
    let mut unused = Vec::new();
    for (id, device_id) in &expired {
        unused.extend(remove(connection, context, id)?);
        tombstones::put(connection, context, Grave { id, kind: "episode", reason: "expired", device_id })?;
    }
    Ok((expired.len(), unused))
}

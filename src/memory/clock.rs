//! Times that were captured before the clock was right, moved once it is.
//!
//! In: a [`ClockCorrection`]. Out: moved rows, with their ids unchanged, and the correction itself, which is kept so that a
//! row captured before it and written after it is moved as it arrives.
//!
//! ```text
//! monotonic  0 -------- A ------- B -|correction: before = |, +14 d|-------- C
//! stored        A + 14 d   B + 14 d                                        C as it is
//! ```
//!
//! Never: moves a row whose clock was at least as good as what corrects it, or the same row twice.

use crate::domain::episode::Episode;
use crate::domain::id::BootId;
use crate::domain::id::DeviceId;
use crate::domain::id::SessionId;
use crate::domain::modality::Modality;
use crate::domain::time::ClockQuality;
use crate::memory::graph;
use crate::memory::links;
use crate::memory::revision;
use crate::memory::revision::Context;
use crate::memory::rows;
use rusqlite::Connection;

/// Which rows share the monotonic clock of a correction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClockScope {
    /// One run or recorded session: `monotonic_ms` counts from its start.
    Session(SessionId),
    /// One boot: `monotonic_ms` counts from the boot in all its sessions.
    Boot(BootId),
}

/// The clock was found to be wrong, and by how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockCorrection {
    /// The device whose clock it is.
    pub device_id: DeviceId,
    /// The rows concerned.
    pub scope: ClockScope,
    /// Only rows captured before this monotonic time are moved.
    pub before_monotonic_ms: i64,
    /// Right time minus what the clock said.
    pub delta_ms: i64,
    /// What the right time came from; only rows of lesser quality are moved.
    pub quality: ClockQuality,
}

impl ClockScope {
    const fn column(&self) -> &'static str {
        match self {
            Self::Session(_) => "session_id",
            Self::Boot(_) => "boot_id",
        }
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Session(_) => "session",
            Self::Boot(_) => "boot",
        }
    }

    fn id(&self) -> &str {
        match self {
            Self::Session(id) => id.as_str(),
            Self::Boot(id) => id.as_str(),
        }
    }
}

/// Rank of a stored quality, as SQL.
const RANK: &str = "CASE clock_quality WHEN 'unset' THEN 0 WHEN 'rtc' THEN 1 WHEN 'network' THEN 2 ELSE 3 END";

/// Keeps the correction and moves what is already stored. Returns the number of rows moved; a repeat moves none.
pub(crate) fn correct(
    connection: &Connection,
    context: &Context<'_>,
    correction: &ClockCorrection,
) -> rusqlite::Result<u64> {
    let kept = connection
        .prepare_cached(
            "INSERT INTO clock_corrections (device_id, scope, scope_id, before_monotonic_ms, delta_ms, clock_quality, stored_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
        )?
        .execute((
            correction.device_id.as_str(),
            correction.scope.name(),
            correction.scope.id(),
            correction.before_monotonic_ms,
            correction.delta_ms,
            correction.quality.as_str(),
            context.stored_at.as_millis(),
        ))?;
    if kept == 0 {
        return Ok(0);
    }
    move_session_start(connection, correction)?;
    Ok(move_episodes(connection, context, correction)? + move_coverage(connection, correction)?)
}

fn move_episodes(
    connection: &Connection,
    context: &Context<'_>,
    correction: &ClockCorrection,
) -> rusqlite::Result<u64> {
    let ids = earlier_rows(connection, correction, "episodes", "monotonic_ms")?;
    for id in &ids {
        connection
            .prepare_cached(
                "UPDATE episodes SET timestamp = timestamp + ?2, ended_at = ended_at + ?2, clock_quality = ?3, revision = ?4
                 WHERE id = ?1",
            )?
            .execute((id, correction.delta_ms, correction.quality.as_str(), revision::next(connection)?))?;
        graph::shift(connection, context, id, correction.delta_ms)?;
    }
    for id in &ids {
        if let Some(mut episode) = rows::load(connection, id)? {
            if retell_meeting(&mut episode) {
                connection
                    .prepare_cached("UPDATE episodes SET metadata = ?2 WHERE id = ?1")?
                    .execute((id, rows::json(&episode.metadata)))?;
            }
            links::co_occurrence::relink(connection, &episode)?;
        }
    }
    Ok(ids.len() as u64)
}

/// A meeting tells in its metadata, too, when it began and ended: by the row's own times, whichever clock stamped which.
/// Returns whether it is one.
pub(crate) fn retell_meeting(episode: &mut Episode) -> bool {
    if episode.external_id.is_some() || episode.modality != Modality::Social {
        return false;
    }
    let mut is_told = false;
    for (key, at) in [("arrival", episode.timestamp), ("departure", episode.ended_at)] {
        if let Some(told) = episode.metadata.get_mut(key) {
            *told = at.to_string().into();
            is_told = true;
        }
    }
    is_told
}

fn move_coverage(connection: &Connection, correction: &ClockCorrection) -> rusqlite::Result<u64> {
    let ids = earlier_rows(connection, correction, "coverage", "from_monotonic_ms")?;
    for id in &ids {
        connection
            .prepare_cached(
                r#"UPDATE coverage SET "from" = "from" + ?2, "to" = "to" + ?2, clock_quality = ?3, revision = ?4 WHERE id = ?1"#,
            )?
            .execute((id, correction.delta_ms, correction.quality.as_str(), revision::next(connection)?))?;
    }
    Ok(ids.len() as u64)
}

fn move_session_start(connection: &Connection, correction: &ClockCorrection) -> rusqlite::Result<()> {
    let column = correction.scope.column();
    let sql = format!(
        "UPDATE sessions SET started_at = started_at + ?3, clock_quality = ?4
         WHERE device_id = ?1 AND {column} = ?2 AND {RANK} < ?5"
    );
    connection.prepare_cached(&sql)?.execute((
        correction.device_id.as_str(),
        correction.scope.id(),
        correction.delta_ms,
        correction.quality.as_str(),
        correction.quality as u8,
    ))?;
    Ok(())
}

fn earlier_rows(
    connection: &Connection,
    correction: &ClockCorrection,
    table: &str,
    monotonic: &str,
) -> rusqlite::Result<Vec<String>> {
    let column = correction.scope.column();
    let sql = format!(
        "SELECT id FROM {table} WHERE device_id = ?1 AND {column} = ?2 AND {monotonic} < ?3 AND {RANK} < ?4
         ORDER BY {monotonic}, id"
    );
    connection
        .prepare_cached(&sql)?
        .query_map(
            (
                correction.device_id.as_str(),
                correction.scope.id(),
                correction.before_monotonic_ms,
                correction.quality as u8,
            ),
            |row| row.get(0),
        )?
        .collect()
}

/// Where a row stands on the clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockPlace<'a> {
    pub(crate) device_id: &'a DeviceId,
    pub(crate) session_id: &'a SessionId,
    pub(crate) boot_id: &'a BootId,
    pub(crate) monotonic_ms: i64,
    pub(crate) quality: ClockQuality,
}

/// By how much the kept corrections move a row that arrives after them, and the quality it then has.
pub(crate) fn shift_of(connection: &Connection, place: ClockPlace<'_>) -> rusqlite::Result<(i64, ClockQuality)> {
    let mut statement = connection.prepare_cached(
        "SELECT delta_ms, clock_quality FROM clock_corrections
         WHERE device_id = ?1 AND ((scope = 'session' AND scope_id = ?2) OR (scope = 'boot' AND scope_id = ?3))
           AND before_monotonic_ms > ?4 ORDER BY before_monotonic_ms, scope",
    )?;
    let parameters = (place.device_id.as_str(), place.session_id.as_str(), place.boot_id.as_str(), place.monotonic_ms);
    let corrections = statement.query_map(parameters, |row| Ok((row.get::<_, i64>(0)?, rows::quality(row, 1)?)))?;
    let (mut shift_ms, mut reached) = (0_i64, place.quality);
    for correction in corrections {
        let (delta_ms, quality) = correction?;
        if quality > reached {
            shift_ms = shift_ms.saturating_add(delta_ms);
            reached = quality;
        }
    }
    Ok((shift_ms, reached))
}

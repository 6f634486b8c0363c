//! Rows that say when a sensor was blind.
//!
//! In: a [`CoverageRecord`]. Out: a row whose id is derived from run, sensor, reason and start, so that a repeat adds
//! nothing and a longer one extends the row.
//! Never: merges rows of different starts.

use crate::domain::coverage::Coverage;
use crate::domain::id::BootId;
use crate::domain::id::DeviceId;
use crate::domain::id::SessionId;
use crate::domain::id::derive_uuid;
use crate::memory::append::Outcome;
use crate::memory::clock;
use crate::memory::clock::ClockPlace;
use crate::memory::revision;
use crate::memory::revision::Context;
use crate::memory::tombstones;
use rusqlite::Connection;
use rusqlite::OptionalExtension;

/// A blind interval and the run it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct CoverageRecord {
    /// Which device.
    pub device_id: DeviceId,
    /// Which run or recorded session.
    pub session_id: SessionId,
    /// Which boot.
    pub boot_id: BootId,
    /// The interval.
    pub coverage: Coverage,
}

impl CoverageRecord {
    /// The id of its row.
    #[must_use]
    pub fn id(&self) -> String {
        let coverage = &self.coverage;
        derive_uuid(&[
            "coverage",
            self.device_id.as_str(),
            self.session_id.as_str(),
            coverage.source.as_str(),
            coverage.reason.as_str(),
            &coverage.from.monotonic_ms.to_string(),
        ])
        .to_string()
    }
}

/// Stores the interval. Its length is the monotonic one, whatever the wall clock did in between.
pub(crate) fn put(
    connection: &Connection,
    context: &Context<'_>,
    record: &CoverageRecord,
) -> rusqlite::Result<Outcome> {
    let (id, coverage) = (record.id(), &record.coverage);
    if tombstones::blocks(connection, "coverage", &id)? {
        return Ok(Outcome::Blocked);
    }
    let place = ClockPlace {
        device_id: &record.device_id,
        session_id: &record.session_id,
        boot_id: &record.boot_id,
        monotonic_ms: coverage.from.monotonic_ms,
        quality: coverage.from.quality,
    };
    let (shift_ms, quality) = clock::shift_of(connection, place)?;
    let from = coverage.from.utc.plus_millis(shift_ms);
    let to = from.plus_millis(coverage.to.millis_since(coverage.from).max(0)).as_millis();
    let stored: Option<(i64, String, Option<String>)> = connection
        .prepare_cached(r#"SELECT "to", state, detail FROM coverage WHERE id = ?1"#)?
        .query_row([&id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let is_new = stored.is_none();
    if stored == Some((to, coverage.state.as_str().to_owned(), coverage.detail.clone())) {
        return Ok(Outcome::Duplicate);
    }
    connection
        .prepare_cached(
            r#"INSERT INTO coverage (id, device_id, store_id, session_id, sensor, "from", "to", state, reason, detail, boot_id,
                 from_monotonic_ms, clock_quality, stored_at, revision)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
               ON CONFLICT (id) DO UPDATE SET "to" = excluded."to", state = excluded.state, detail = excluded.detail,
                 stored_at = excluded.stored_at, revision = excluded.revision"#,
        )?
        .execute(rusqlite::params![
            id,
            record.device_id.as_str(),
            context.store_id,
            record.session_id.as_str(),
            coverage.source.as_str(),
            from.as_millis(),
            to,
            coverage.state.as_str(),
            coverage.reason.as_str(),
            coverage.detail,
            record.boot_id.as_str(),
            coverage.from.monotonic_ms,
            quality.as_str(),
            context.stored_at.as_millis(),
            revision::next(connection)?,
        ])?;
    Ok(if is_new { Outcome::Inserted } else { Outcome::Updated(Vec::new()) })
}

//! Keeps database and media within their budget, a bounded piece at a time.

use super::segment::Segment;
use crate::agent::machine;
use crate::agent::sensor_thread::SensorThread;
use crate::domain::coverage::Coverage;
use crate::domain::coverage::CoverageReason;
use crate::domain::coverage::CoverageState;
use crate::domain::time::ClockQuality;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;
use crate::memory::eviction::Eviction;
use crate::memory::eviction::FILES_MAX;
use crate::memory::retention::Budget;
use crate::memory::retention::Usage;
use crate::memory::retention::UsageAlarm;

/// Between two looks at the room on the disk, in milliseconds.
const ROOM_MS: i64 = 60_000;

const HOUR_MS: i64 = 3_600_000;

/// The first look comes this long after the start, in milliseconds.
const FIRST_MS: i64 = 5_000;

/// What is known of the room.
pub(super) struct Room {
    due_ms: i64,
    alarm: UsageAlarm,
    used_bytes: u64,
    /// Since when the store takes nothing, and what had been given up by then.
    trouble: Option<(Stamp, u64)>,
}

impl Room {
    pub(super) fn new(now: Stamp) -> Self {
        Self { due_ms: now.monotonic_ms + FIRST_MS, alarm: UsageAlarm::default(), used_bytes: 0, trouble: None }
    }

    /// Used bytes of database and media at the last look.
    pub(super) fn used_bytes(&self) -> u64 {
        self.used_bytes
    }
}

impl Segment<'_> {
    /// Looks, if it is due, and lets the least valuable go where that is needed.
    pub(super) fn keep_room(&mut self, now: Stamp) {
        if now.monotonic_ms < self.housekeeping.room.due_ms || self.resident.writer.trouble().is_some() {
            return;
        }
        self.housekeeping.room.due_ms = now.monotonic_ms + ROOM_MS;
        let budget = self.budget().unwrap_or(Budget { bytes: u64::MAX });
        // An age by a clock that nobody has set would let the wrong rows go.
        let stamp = self.pipeline.stamp(now);
        let utc = (stamp.quality > ClockQuality::Unset).then_some(stamp.utc);
        if let Some(utc) = utc
            && let Err(error) = self.resident.writer.prune_expired(utc)
        {
            tracing::warn!(%error, "expired rows stay for now");
        }
        if let Some(utc) = utc {
            self.expire_media(utc, now);
        }
        match self.resident.writer.keep_within(budget, utc) {
            Ok(eviction) => self.note_eviction(&eviction, now),
            Err(error) => tracing::warn!(%error, "no room could be made"),
        }
    }

    /// Lets go of pictures and recordings that are older than the config allows, some at a time.
    fn expire_media(&mut self, utc: Timestamp, now: Stamp) {
        let hours = i64::from(self.config.store.media_keep_h);
        if hours == 0 {
            return;
        }
        match self.resident.writer.expire_media(utc.plus_millis(-hours * HOUR_MS)) {
            Ok(count) if count >= FILES_MAX => self.housekeeping.room.due_ms = now.monotonic_ms,
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "old pictures and recordings stay for now"),
        }
    }

    /// A stretch in which the store could take nothing is coverage, when something was given up for it.
    pub(super) fn note_trouble(&mut self, now: Stamp) {
        let given_up = self.backlog.dropped() + self.resident.writer.counters().rows_shed;
        let is_stuck = self.resident.writer.trouble().is_some();
        match self.housekeeping.room.trouble {
            None if is_stuck => self.housekeeping.room.trouble = Some((now, given_up)),
            Some((from, before)) if !is_stuck => {
                self.housekeeping.room.trouble = None;
                if given_up > before {
                    self.note_given_up(from, now, given_up - before);
                }
            }
            None | Some(_) => {}
        }
    }

    fn note_given_up(&mut self, from: Stamp, to: Stamp, rows: u64) {
        let sources: Vec<_> = self.sensors.iter().map(SensorThread::source).collect();
        for source in sources {
            let detail = Some(format!("the store could take nothing: {rows} rows were given up"));
            let (state, reason) = (CoverageState::Degraded, CoverageReason::DiskFull);
            self.pipeline.note_coverage(Coverage { source, from, to, state, reason, detail });
        }
    }

    /// The configured budget, and less when the file system itself is nearly full.
    fn budget(&self) -> Option<Budget> {
        let disk = &self.config.disk;
        let configured = (disk.budget_mib > 0).then_some(disk.budget_mib << 20);
        let free = machine::free_bytes(self.resident.data_dir)?;
        let missing = (disk.keep_free_mib << 20).saturating_sub(free);
        let used = self.housekeeping.room.used_bytes;
        let by_free = (missing > 0 && used > 0).then(|| used.saturating_sub(missing).max(1));
        configured.into_iter().chain(by_free).min().map(|bytes| Budget { bytes })
    }

    fn note_eviction(&mut self, eviction: &Eviction, now: Stamp) {
        let room = &mut self.housekeeping.room;
        room.used_bytes = eviction.used_bytes;
        if eviction.is_more {
            room.due_ms = now.monotonic_ms;
        }
        let usage = Usage { used_bytes: eviction.used_bytes, budget_bytes: eviction.budget_bytes };
        if let Some(percent) = room.alarm.observe(usage) {
            tracing::warn!("{percent} % of the disk budget is used; the least valuable goes first");
        }
        for moment in &eviction.moments {
            self.recorder.remove_document(moment);
        }
        let lost = eviction.files_pending + eviction.rows_pending;
        if lost > 0 {
            tracing::warn!(lost, "made room: files and episodes that no central store has are gone");
        }
    }
}

//! When percept was last alive, so that the time it was not becomes coverage.
//!
//! In: a small file in the data directory, rewritten about once a minute. Out: a blind interval for each sensor between
//! then and this start: after a crash, a power cut, the watchdog or an orderly stop.
//! Losing the file loses one interval; it is never waited for.

use crate::domain::coverage::Coverage;
use crate::domain::coverage::CoverageReason;
use crate::domain::coverage::CoverageState;
use crate::domain::id::SourceId;
use crate::domain::time::ClockQuality;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;
use std::path::Path;
use std::path::PathBuf;

const FILE: &str = "last-run.json";

/// How often the file is written, in milliseconds: how exact the interval is after a crash.
pub const EVERY_MS: i64 = 60_000;

/// The last sign of life.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LastRun {
    /// The boot it was in.
    pub boot_id: String,
    /// Milliseconds of that boot.
    pub monotonic_ms: i64,
    /// The wall clock.
    pub utc: Timestamp,
    /// How far it could be trusted.
    pub quality: ClockQuality,
    /// The sensors that captured.
    pub sources: Vec<SourceId>,
    /// Whether it ended in order.
    pub ended: bool,
}

impl LastRun {
    /// Reads the last sign of life, if there is one that can be read.
    #[must_use]
    pub fn read(data_dir: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(path(data_dir)).ok()?).ok()
    }

    /// Writes this sign of life; a failure costs an interval of coverage and is told.
    pub fn write(&self, data_dir: &Path) {
        let text = serde_json::to_vec(self).unwrap_or_default();
        let (file, temporary) = (path(data_dir), data_dir.join(format!(".{FILE}")));
        let written = std::fs::write(&temporary, text).and_then(|()| std::fs::rename(&temporary, &file));
        if let Err(error) = written {
            tracing::debug!(%error, "the sign of life could not be written");
        }
    }

    /// What was missed between then and `now`. In another boot only wall clocks that somebody had set can tell.
    #[must_use]
    pub fn missed(&self, boot_id: &str, now: Stamp) -> Vec<Coverage> {
        let gap_ms = if self.boot_id == boot_id {
            now.monotonic_ms - self.monotonic_ms
        } else if self.quality > ClockQuality::Unset && now.quality > ClockQuality::Unset {
            now.utc.millis_since(self.utc)
        } else {
            0
        };
        if gap_ms <= 0 {
            return Vec::new();
        }
        let detail = if self.ended { "percept was stopped" } else { "percept ended without being told to" };
        let blind = |source: &SourceId| Coverage {
            source: source.clone(),
            from: now.plus_millis(-gap_ms),
            to: now,
            state: CoverageState::Blind,
            reason: CoverageReason::NotRunning,
            detail: Some(detail.to_owned()),
        };
        self.sources.iter().map(blind).collect()
    }
}

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::SensorKind;

    #[test]
    fn the_time_between_two_runs_of_one_boot_is_told_whatever_the_wall_clock_did() {
        let dir = tempfile::tempdir().unwrap();
        last("boot", ClockQuality::Unset).write(dir.path());

        let missed = LastRun::read(dir.path()).unwrap().missed("boot", at(301_000, 99_000_000, ClockQuality::Network));

        assert_eq!(missed.len(), 1);
        assert_eq!(missed[0].to.millis_since(missed[0].from), 300_000);
        assert_eq!(missed[0].reason, CoverageReason::NotRunning);
    }

    #[test]
    fn across_boots_only_clocks_that_are_set_can_tell() {
        let now = at(5_000, 1_000_000, ClockQuality::Rtc);

        assert_eq!(last("other", ClockQuality::Unset).missed("boot", now), []);
        let missed = last("other", ClockQuality::Network).missed("boot", now);
        assert_eq!(missed[0].from.utc, Timestamp::from_millis(500));
        assert_eq!(last("other", ClockQuality::Network).missed("boot", at(5_000, 0, ClockQuality::Rtc)), []);
    }

    fn last(boot_id: &str, quality: ClockQuality) -> LastRun {
        LastRun {
            boot_id: boot_id.to_owned(),
            monotonic_ms: 1_000,
            utc: Timestamp::from_millis(500),
            quality,
            sources: vec![SourceId::of(SensorKind::Gps, "gpsd")],
            ended: false,
        }
    }

    fn at(monotonic_ms: i64, utc_ms: i64, quality: ClockQuality) -> Stamp {
        Stamp { monotonic_ms, utc: Timestamp::from_millis(utc_ms), quality }
    }
}

//! The virtual clock of a session: from an offset in the recording to a [`Stamp`].
//!
//! In: the start and the clock steps. Out: what both of the recorder's clocks said at an offset.
//! Nothing waits, and the machine's own clock is never asked.

use super::header::ClockStep;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;
use std::sync::Arc;

/// Maps milliseconds since the start of a session to instants.
///
/// ```text
///  offset   0 ──────────── 600000 ─────────────▶
///  utc      started+offset │ started+offset+step
///  quality  unset          │ gps
/// ```
#[derive(Debug, Clone)]
pub struct SessionClock {
    started: Stamp,
    steps: Arc<[ClockStep]>,
}

impl SessionClock {
    pub(super) fn new(started: Stamp, steps: &[ClockStep]) -> Self {
        Self { started: Stamp { monotonic_ms: 0, ..started }, steps: steps.into() }
    }

    /// What the recorder's clocks said `offset_ms` after the start, wrong or right.
    #[must_use]
    pub fn stamp(&self, offset_ms: i64) -> Stamp {
        let mut stamp = self.started.plus_millis(offset_ms);
        for step in self.steps.iter().take_while(|step| step.at_ms <= offset_ms) {
            stamp.utc = stamp.utc.plus_millis(step.step_ms);
            stamp.quality = step.quality;
        }
        stamp
    }

    /// What the wall clock should have said at `offset_ms`, by the last step of the session.
    #[must_use]
    pub fn corrected(&self, offset_ms: i64) -> Timestamp {
        let steps = self.steps.iter().fold(0_i64, |sum, step| sum.saturating_add(step.step_ms));
        self.started.utc.plus_millis(offset_ms).plus_millis(steps)
    }

    /// The steps, in order.
    #[must_use]
    pub fn steps(&self) -> &[ClockStep] {
        &self.steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::ClockQuality;

    #[test]
    fn a_clock_that_was_wrong_at_boot_is_unset_until_its_step() {
        let started = Stamp { monotonic_ms: 0, utc: Timestamp::from_millis(1_000), quality: ClockQuality::Unset };
        let step = ClockStep { at_ms: 500, step_ms: 1_000_000, quality: ClockQuality::Gps };

        let clock = SessionClock::new(started, &[step]);

        assert_eq!(clock.stamp(499).utc, Timestamp::from_millis(1_499));
        assert_eq!(clock.stamp(499).quality, ClockQuality::Unset);
        assert_eq!(clock.stamp(500).utc, Timestamp::from_millis(1_001_500));
        assert_eq!(clock.stamp(500).quality, ClockQuality::Gps);
        assert_eq!(clock.stamp(500).monotonic_ms, 500);
        assert_eq!(clock.corrected(499), Timestamp::from_millis(1_001_499));
    }
}

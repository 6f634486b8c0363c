//! Refuses positions that cannot follow from the last one, without losing a real relocation.
//!
//! In: fixes that are new and valid. Out: whether to believe each. Never: I/O, the clock.

use crate::domain::observation::place::Fix;

/// Metres of jump that no speed has to explain: multipath, and a receiver that settles.
const SLACK_M: f64 = 50.0;
/// The reported speed may be this much too low.
const SPEED_MARGIN: f64 = 1.5;
/// Fixes that must agree before a relocation is believed.
const AGREEING_FIXES_MIN: u32 = 3;

/// Remembers the refused positions that may yet prove true.
#[derive(Debug)]
pub(super) struct JumpGuard {
    speed_mps_max: f64,
    relocate_ms: i64,
    elsewhere: Option<Elsewhere>,
}

#[derive(Debug)]
struct Elsewhere {
    since_ms: i64,
    latest: Fix,
    count: u32,
}

impl JumpGuard {
    pub(super) const fn new(speed_mps_max: f64, relocate_ms: i64) -> Self {
        Self { speed_mps_max, relocate_ms, elsewhere: None }
    }

    /// Whether `fix` can follow `last`, or the positions since the jump have agreed for long enough.
    pub(super) fn admits(&mut self, fix: &Fix, last: Option<&Fix>) -> bool {
        if last.is_none_or(|last| self.can_follow(fix, last)) || self.has_relocated(fix) {
            self.elsewhere = None;
            return true;
        }
        false
    }

    fn can_follow(&self, fix: &Fix, last: &Fix) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "intervals stay far below 2^53 ms")]
        let elapsed_s = fix.at.millis_since(last.at).max(0) as f64 / 1000.0;
        let reported_mps = fix.speed_mps.unwrap_or(0.0).max(last.speed_mps.unwrap_or(0.0));
        let speed_mps = self.speed_mps_max.max(SPEED_MARGIN * reported_mps);
        let errors_m = fix.accuracy_m.unwrap_or(0.0) + last.accuracy_m.unwrap_or(0.0);
        last.position.distance_m(fix.position) <= SLACK_M + errors_m + speed_mps * elapsed_s
    }

    fn has_relocated(&mut self, fix: &Fix) -> bool {
        let (since_ms, count) = match &self.elsewhere {
            Some(elsewhere) if self.can_follow(fix, &elsewhere.latest) => (elsewhere.since_ms, elsewhere.count + 1),
            _ => (fix.at.monotonic_ms, 1),
        };
        self.elsewhere = Some(Elsewhere { since_ms, latest: fix.clone(), count });
        count >= AGREEING_FIXES_MIN && fix.at.monotonic_ms - since_ms >= self.relocate_ms
    }
}

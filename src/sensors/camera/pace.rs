//! One picture an interval: which frames of a faster device are taken, before anything is copied or decoded.

use std::time::Duration;

/// Slowest rate: one picture a day.
const INTERVAL_MAX_MS: i64 = 86_400_000;

/// The pace at which frames are taken.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    interval_ms: i64,
    due_ms: Option<i64>,
}

impl Pace {
    /// `frames_per_s` above 0; anything else counts as the slowest rate.
    pub(super) fn new(frames_per_s: f64) -> Self {
        Self { interval_ms: interval_ms(frames_per_s), due_ms: None }
    }

    /// Whether the frame that came at `now_ms` (monotonic) is taken. A frame may come a quarter of an interval early: a
    /// device that runs at exactly the wanted rate is never on time, and half of its frames must not be lost for that.
    pub(super) fn takes(&mut self, now_ms: i64) -> bool {
        let due_ms = self.due_ms.unwrap_or(now_ms);
        if now_ms < due_ms - self.interval_ms / 4 {
            return false;
        }
        let is_late = now_ms - due_ms >= self.interval_ms;
        self.due_ms = Some(if is_late { now_ms } else { due_ms } + self.interval_ms);
        true
    }
}

/// Milliseconds between two pictures.
pub(super) fn interval_ms(frames_per_s: f64) -> i64 {
    if frames_per_s.is_nan() || frames_per_s <= 0.0 {
        return INTERVAL_MAX_MS;
    }
    let interval = Duration::try_from_secs_f64(1.0 / frames_per_s).unwrap_or(Duration::MAX);
    i64::try_from(interval.as_millis()).unwrap_or(INTERVAL_MAX_MS).clamp(1, INTERVAL_MAX_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_frame_a_second_is_taken_of_thirty() {
        let mut pace = Pace::new(1.0);

        let taken = (0..900).filter(|frame| pace.takes(frame * 1_000 / 30) && *frame >= 300).count();

        assert_eq!(taken, 20, "in the last 20 s of 30");
    }

    #[test]
    fn a_device_at_the_wanted_rate_loses_no_frame_to_its_jitter() {
        let mut pace = Pace::new(1.0);
        let jitter_ms = [0, 40, -40, 15, -60].into_iter().cycle();

        let taken = (0..100).zip(jitter_ms).filter(|(frame, jitter_ms)| pace.takes(frame * 1_000 + jitter_ms)).count();

        assert_eq!(taken, 100);
    }

    #[test]
    fn after_a_stall_the_missed_pictures_are_not_made_up_for() {
        let mut pace = Pace::new(1.0);
        assert!(pace.takes(0));

        let taken = (0..30).filter(|frame| pace.takes(60_000 + frame * 33)).count();

        assert_eq!(taken, 2, "at once, and one interval (less a quarter) later");
    }

    #[test]
    fn a_rate_that_is_none_counts_as_the_slowest() {
        for rate in [0.0, -1.0, f64::NAN, 1e-300] {
            assert_eq!(interval_ms(rate), INTERVAL_MAX_MS, "{rate}");
        }
        assert_eq!(interval_ms(0.2), 5_000);
        assert_eq!(interval_ms(f64::INFINITY), 1);
    }
}

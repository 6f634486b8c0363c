//! When each buffer was captured, freed of the jitter of callbacks.
//!
//! In: the time a buffer seems to have, and its length. Out: the time it gets, and how long nothing was delivered before
//! it. The device's own sample clock is steady while callbacks are not; so buffers follow each other without a break
//! as long as they can, and the difference is made up slowly. No I/O.

use crate::domain::time::Stamp;

/// A buffer that seems this far off follows all the same.
const JITTER_MS_MAX: i64 = 200;

/// A buffer that comes this much too late had something missing before it.
const HOLE_MS_MIN: i64 = 500;

/// What part of the difference each buffer makes up.
const SLEW: i64 = 16;

/// Where the sound so far ends.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    end_us: Option<i64>,
}

impl Timeline {
    /// Whether anything was delivered yet, and how many milliseconds lie between it and `at`.
    pub(super) fn millis_until(&self, at: Stamp) -> Option<i64> {
        self.end_us.map(|end_us| at.monotonic_ms - end_us / 1_000)
    }

    /// How long nothing was delivered before a buffer that seems to begin at `at`, when that is too long for jitter.
    pub(super) fn hole_ms(&self, at: Stamp) -> Option<i64> {
        self.millis_until(at).filter(|millis| *millis >= HOLE_MS_MIN)
    }

    /// The time of a buffer that seems to begin at `at` and is `length_us` long.
    pub(super) fn follow(&mut self, at: Stamp, length_us: u64) -> Stamp {
        let seen_us = at.monotonic_ms * 1_000;
        let begin_us = match self.end_us {
            Some(end_us) if (seen_us - end_us).abs() <= JITTER_MS_MAX * 1_000 => end_us + (seen_us - end_us) / SLEW,
            _ => seen_us,
        };
        self.end_us = Some(begin_us.saturating_add_unsigned(length_us));
        // The wall time of now, so that a corrected clock counts from the next buffer on.
        at.plus_millis(begin_us / 1_000 - at.monotonic_ms)
    }

    /// What comes next does not follow what was before.
    pub(super) fn restart_at(&mut self, at: Stamp) {
        self.end_us = Some(at.monotonic_ms * 1_000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::ClockQuality;
    use crate::domain::time::Timestamp;

    fn at(ms: i64) -> Stamp {
        Stamp { monotonic_ms: ms, utc: Timestamp::from_millis(1_000_000 + ms), quality: ClockQuality::Network }
    }

    #[test]
    fn buffers_that_jitter_by_sixty_milliseconds_follow_each_other_to_within_eight() {
        let mut timeline = Timeline::default();
        let mut end_ms: Option<i64> = None;
        for index in 0..1_000_i64 {
            let jitter_ms = [0, 60, -20, 35, -60, 10][usize::try_from(index % 6).unwrap()];
            let begin = timeline.follow(at(1_000 + index * 100 + jitter_ms), 100_000);
            if let Some(end_ms) = end_ms {
                assert!((begin.monotonic_ms - end_ms).abs() <= 8, "{index}: {begin:?} {end_ms}");
            }
            end_ms = Some(begin.monotonic_ms + 100);
        }
    }

    #[test]
    fn a_device_clock_that_runs_fast_by_200_ppm_is_followed() {
        let mut timeline = Timeline::default();
        let mut last = at(0);
        for index in 0..36_000_i64 {
            last = timeline.follow(at(index * 99_980 / 1_000), 100_000);
        }

        assert!((last.monotonic_ms - 35_999 * 99_980 / 1_000).abs() <= 2, "{last:?}");
        assert_eq!(last.utc.as_millis() - last.monotonic_ms, 1_000_000);
    }

    #[test]
    fn a_hole_is_no_jitter() {
        let mut timeline = Timeline::default();
        assert_eq!(timeline.hole_ms(at(5_000)), None);
        timeline.follow(at(0), 100_000);

        assert_eq!(timeline.hole_ms(at(250)), None);
        assert_eq!(timeline.hole_ms(at(1_100)), Some(1_000));
        assert_eq!(timeline.follow(at(1_100), 100_000), at(1_100));
    }
}

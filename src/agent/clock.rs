//! Keeps the times of one boot right when the wall clock was wrong at first.
//!
//! ```text
//!  monotonic  0 ──────── 600 s ─────────────►
//!  wall clock 2012-…     2026-… (GPS, NTP)      rows before the correction move by the difference,
//!  quality    unset      gps                    their ids stay
//! ```
//!
//! In: stamps as captured, trusted times as they arrive. Out: corrected stamps, and the corrections that
//! rows already stored need. Never: the clock, the store.

use crate::domain::time::ClockQuality;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;

/// A trusted time that differs by less than this changes nothing: a receiver's report arrives late by up to a
/// second, and its whole seconds add another.
const TOLERANCE_MS: i64 = 2_000;

/// Rows of this boot captured before that moment are wrong by that much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Correction {
    /// Rows with a monotonic time below this are meant.
    pub before_monotonic_ms: i64,
    /// What to add to their times.
    pub delta_ms: i64,
    /// How far the corrected times can be trusted.
    pub quality: ClockQuality,
}

/// The clock of one boot.
#[derive(Debug, Clone)]
pub struct BootClock {
    earliest: Timestamp,
    offset_ms: i64,
    gps_since_ms: Option<i64>,
    corrections: Vec<Correction>,
    last: Option<Stamp>,
}

impl BootClock {
    /// A clock that believes no receiver's time before `earliest`.
    #[must_use]
    pub fn new(earliest: Timestamp) -> Self {
        Self { earliest, offset_ms: 0, gps_since_ms: None, corrections: Vec::new(), last: None }
    }

    /// The stamp of a reading, as it will be used from here on. When its own wall clock was set to something better
    /// since the last reading, the correction for what came before is given too.
    pub fn handle_stamp(&mut self, captured: Stamp) -> (Stamp, Option<Correction>) {
        let correction = self.last.and_then(|last| self.step_between(last, captured));
        self.last = Some(captured);
        if let Some(correction) = correction {
            // The wall clock itself is right from here on: what GPS had to add is in it.
            self.offset_ms = 0;
            self.corrections.push(correction);
        }
        (self.stamp(captured), correction)
    }

    fn step_between(&self, last: Stamp, captured: Stamp) -> Option<Correction> {
        let step_ms = captured.utc.millis_since(last.utc) - captured.millis_since(last);
        let delta_ms = step_ms - self.offset_ms;
        let is_better = captured.quality > last.quality;
        (is_better && step_ms.abs() > TOLERANCE_MS).then_some(Correction {
            before_monotonic_ms: captured.monotonic_ms,
            delta_ms,
            quality: captured.quality,
        })
    }

    /// What a captured stamp is worth by what is known so far.
    #[must_use]
    pub fn stamp(&self, captured: Stamp) -> Stamp {
        if self.gps_since_ms.is_none() || captured.quality > ClockQuality::Unset {
            return captured;
        }
        Stamp { utc: captured.utc.plus_millis(self.offset_ms), quality: ClockQuality::Gps, ..captured }
    }

    /// Takes the time a receiver with a fix reported at `captured` (the stamp as captured). Only a clock nobody has
    /// set is set by it, and only by a time that can be true.
    pub fn handle_gps_time(&mut self, captured: Stamp, time: Timestamp) -> Option<Correction> {
        if captured.quality > ClockQuality::Unset || time < self.earliest || self.gps_since_ms.is_some() {
            return None;
        }
        let delta_ms = time.millis_since(captured.utc);
        self.gps_since_ms = Some(captured.monotonic_ms);
        self.offset_ms = delta_ms;
        let correction =
            Correction { before_monotonic_ms: captured.monotonic_ms, delta_ms, quality: ClockQuality::Gps };
        self.corrections.push(correction);
        Some(correction)
    }

    /// The right time of something stamped earlier, now that more is known.
    #[must_use]
    pub fn corrected(&self, stamp: Stamp) -> Stamp {
        self.corrections
            .iter()
            .filter(|correction| stamp.monotonic_ms < correction.before_monotonic_ms)
            .filter(|correction| stamp.quality < correction.quality)
            .fold(stamp, |stamp, correction| Stamp {
                utc: stamp.utc.plus_millis(correction.delta_ms),
                quality: correction.quality,
                ..stamp
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 86_400_000;
    const BUILT: Timestamp = Timestamp::from_millis(1_790_000_000_000);

    #[test]
    fn a_clock_fourteen_days_behind_is_corrected_when_it_jumps() {
        let mut clock = BootClock::new(BUILT);
        let behind = BUILT.plus_millis(-4 * DAY_MS);
        let early = stamp(0, behind, ClockQuality::Unset);
        clock.handle_stamp(early);

        let (_, correction) =
            clock.handle_stamp(stamp(600_000, behind.plus_millis(14 * DAY_MS + 600_000), ClockQuality::Network));

        let expected =
            Correction { before_monotonic_ms: 600_000, delta_ms: 14 * DAY_MS, quality: ClockQuality::Network };
        assert_eq!(correction, Some(expected));
        let corrected = clock.corrected(early);
        assert_eq!(corrected.utc, behind.plus_millis(14 * DAY_MS));
        assert_eq!(corrected.monotonic_ms, 0);
    }

    #[test]
    fn gps_time_sets_a_clock_that_started_in_1970_and_what_follows_needs_no_correction() {
        let mut clock = BootClock::new(BUILT);
        let boot = Timestamp::from_millis(0);
        let early = clock.handle_stamp(stamp(1_000, boot.plus_millis(1_000), ClockQuality::Unset)).0;
        let fix_at = stamp(5_000, boot.plus_millis(5_000), ClockQuality::Unset);

        let correction = clock.handle_gps_time(fix_at, BUILT.plus_millis(DAY_MS)).unwrap();

        assert_eq!(correction.before_monotonic_ms, 5_000);
        let later = clock.handle_stamp(stamp(6_000, boot.plus_millis(6_000), ClockQuality::Unset)).0;
        assert_eq!((later.utc, later.quality), (BUILT.plus_millis(DAY_MS + 1_000), ClockQuality::Gps));
        assert_eq!(clock.corrected(later), later);
        assert_eq!(clock.corrected(early).utc, BUILT.plus_millis(DAY_MS - 4_000));
    }

    #[test]
    fn a_date_1024_weeks_in_the_past_never_sets_the_clock() {
        let mut clock = BootClock::new(BUILT);
        let unset = stamp(0, Timestamp::from_millis(0), ClockQuality::Unset);

        assert_eq!(clock.handle_gps_time(unset, BUILT.plus_millis(-1_024 * 7 * DAY_MS)), None);
        assert_eq!(clock.stamp(unset).quality, ClockQuality::Unset);
    }

    #[test]
    fn gps_time_leaves_a_clock_alone_that_somebody_has_set() {
        let mut clock = BootClock::new(BUILT);
        let set = stamp(0, BUILT, ClockQuality::Network);
        clock.handle_stamp(set);

        assert_eq!(clock.handle_gps_time(set, BUILT.plus_millis(DAY_MS)), None);
        assert_eq!(clock.stamp(set), set);
    }

    #[test]
    fn network_time_after_gps_time_does_not_move_rows_twice() {
        let mut clock = BootClock::new(BUILT);
        let boot = Timestamp::from_millis(0);
        let early = clock.handle_stamp(stamp(0, boot, ClockQuality::Unset)).0;
        clock.handle_gps_time(stamp(5_000, boot.plus_millis(5_000), ClockQuality::Unset), BUILT.plus_millis(5_000));

        let (now, _) = clock.handle_stamp(stamp(9_000, BUILT.plus_millis(9_000), ClockQuality::Network));

        assert_eq!(now.utc, BUILT.plus_millis(9_000));
        assert_eq!(clock.corrected(early).utc, BUILT);
    }

    fn stamp(monotonic_ms: i64, utc: Timestamp, quality: ClockQuality) -> Stamp {
        Stamp { monotonic_ms, utc, quality }
    }
}

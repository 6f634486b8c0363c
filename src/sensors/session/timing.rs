//! When the reports of a bare log were captured: offsets from the times inside them.
//!
//! In: reports in the order of the file. Out: an offset for each, which never goes back, and the instant
//! of offset 0 by the first believable time of a fix.
//!
//! A report with a time stands as far behind the last one with a time as the two times say. A report
//! without stands `nominal_ms` behind the one before it: a second, as receivers report, or nothing when it
//! is another part of the same moment. A time that runs backward or leaps more than an
//! hour is believed only when the next one goes on from it: forward, between dates that can both be
//! true, it is a pause of the logger; everything else is a receiver that found its time, and the
//! offsets go on from where they were.

use super::manifest::OFFSET_MS_MAX;
use super::nmea_log::ReportTime;
use crate::domain::time::Timestamp;

/// Where nothing else is known, receivers report once a second.
pub(super) const NOMINAL_MS: i64 = 1_000;
/// Two times further apart than this leap.
const STEP_MS_MAX: i64 = 3_600 * 1_000;
/// GPS week numbers of old receivers wrap after 1,024 weeks.
const ROLLOVER_MS: i64 = 1_024 * 7 * 24 * 3_600 * 1_000;
/// 1980-01-06T00:00:00Z, when GPS time began.
const GPS_EPOCH: Timestamp = Timestamp::from_millis(315_964_800_000);

/// What bounds the times that can be true.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plausible {
    /// No recording is from later than this.
    pub(super) now: Timestamp,
    /// When the file was last written.
    pub(super) written: Timestamp,
}

impl Plausible {
    /// Whether `time` is neither before GPS nor in the future.
    pub(super) fn is_past(self, time: Timestamp) -> bool {
        time >= GPS_EPOCH && time <= self.now
    }

    /// Whether a receiver that says `time` can be believed: it is neither before GPS nor after `now`,
    /// and it would not be possible 1,024 weeks later too, for then the receiver may have lost those weeks.
    pub(super) fn believes(self, time: Timestamp) -> bool {
        self.is_past(time) && time.plus_millis(ROLLOVER_MS) > self.now.max(self.written)
    }
}

/// Hands out offsets.
#[derive(Debug)]
pub(super) struct LogPace {
    plausible: Plausible,
    offset_ms: Option<i64>,
    last: Option<(ReportTime, i64)>,
    candidate: Option<ReportTime>,
    /// The first believable time of a fix, and its offset.
    anchor: Option<(Timestamp, i64)>,
    /// How often the times leapt without a pause behind it.
    pub(super) leaps: u64,
}

impl LogPace {
    pub(super) fn new(plausible: Plausible) -> Self {
        Self { plausible, offset_ms: None, last: None, candidate: None, anchor: None, leaps: 0 }
    }

    /// The offset at hand, for a report that is about no moment of its own.
    pub(super) fn current_ms(&self) -> i64 {
        self.offset_ms.unwrap_or(0)
    }

    /// The offset of the next report of a moment; `nominal_ms` behind the last one if its time does not say.
    pub(super) fn place(&mut self, time: Option<ReportTime>, nominal_ms: i64) -> i64 {
        let nominal = self.offset_ms.map_or(0, |offset| offset.saturating_add(nominal_ms));
        let (offset, is_settled) = match (time, self.last) {
            (None, _) => (nominal, false),
            (Some(_), None) => (nominal, true),
            (Some(time), Some((last, at))) => self.behind(time, last, at, nominal),
        };
        let offset = offset.max(self.current_ms()).min(OFFSET_MS_MAX);
        self.offset_ms = Some(offset);
        if let Some(time) = time.filter(|_| is_settled) {
            self.last = Some((time, offset));
            self.candidate = None;
            let instant = Timestamp::from_millis(time.millis);
            if self.anchor.is_none() && time.has_fix && time.is_dated && self.plausible.believes(instant) {
                self.anchor = Some((instant, offset));
            }
        }
        offset
    }

    /// The offset of a time behind another one, and whether the time is to be believed.
    fn behind(&mut self, time: ReportTime, last: ReportTime, at: i64, nominal: i64) -> (i64, bool) {
        let step = time.millis.saturating_sub(last.millis);
        if time.is_dated == last.is_dated && (0..=STEP_MS_MAX).contains(&step) {
            return (at + step, true);
        }
        let goes_on = self.candidate.is_some_and(|candidate| {
            candidate.is_dated == time.is_dated
                && (0..=STEP_MS_MAX).contains(&time.millis.saturating_sub(candidate.millis))
        });
        if !goes_on {
            self.candidate = Some(time);
            return (nominal, false);
        }
        let can_be_true = |time: ReportTime| {
            time.is_dated && time.has_fix && self.plausible.believes(Timestamp::from_millis(time.millis))
        };
        if step > 0 && step <= OFFSET_MS_MAX && can_be_true(time) && can_be_true(last) {
            return (at + step, true);
        }
        self.leaps += 1;
        (nominal, true)
    }

    /// The instant of offset 0, by the first believable time of a fix.
    pub(super) fn start(&self) -> Option<Timestamp> {
        self.anchor.map(|(time, offset)| time.plus_millis(-offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: i64 = 1_600_000_000_000;

    fn pace() -> LogPace {
        let now = Timestamp::from_millis(1_800_000_000_000);
        LogPace::new(Plausible { now, written: now })
    }

    fn fix(millis: i64) -> Option<ReportTime> {
        Some(ReportTime { millis, is_dated: true, has_fix: true })
    }

    fn offsets(pace: &mut LogPace, times: &[Option<ReportTime>]) -> Vec<i64> {
        times.iter().map(|&time| pace.place(time, NOMINAL_MS)).collect()
    }

    #[test]
    fn untimed_reports_stand_a_second_apart_until_a_time_comes() {
        let mut pace = pace();

        let found = offsets(&mut pace, &[None, None, fix(T0), fix(T0 + 100), None, fix(T0 + 2_000)]);

        assert_eq!(found, [0, 1_000, 2_000, 2_100, 3_100, 4_000]);
        assert_eq!(pace.start(), Some(Timestamp::from_millis(T0 - 2_000)));
    }

    #[test]
    fn a_pause_is_believed_when_the_next_time_goes_on_from_it() {
        let mut pace = pace();
        let day = 24 * 3_600_000;

        let found = offsets(&mut pace, &[fix(T0), fix(T0 + day), fix(T0 + day + 1_000)]);

        assert_eq!(found, [0, 1_000, day + 1_000]);
    }

    #[test]
    fn one_wrong_time_moves_nothing() {
        let mut pace = pace();

        let found = offsets(&mut pace, &[fix(T0), fix(T0 + 1_000), fix(17), fix(T0 + 3_000)]);

        assert_eq!(found, [0, 1_000, 2_000, 3_000]);
    }

    #[test]
    fn a_receiver_that_loses_1024_weeks_goes_on_where_it_was() {
        let mut pace = pace();
        let lost = T0 - ROLLOVER_MS;

        let found = offsets(&mut pace, &[fix(T0), fix(lost + 1_000), fix(lost + 2_000), fix(lost + 3_000)]);

        assert_eq!(found, [0, 1_000, 2_000, 3_000]);
        assert_eq!(pace.leaps, 1);
        assert_eq!(pace.start(), Some(Timestamp::from_millis(T0)));
    }

    #[test]
    fn dates_that_may_be_1024_weeks_late_start_nothing() {
        let mut pace = pace();

        offsets(&mut pace, &[fix(T0 - ROLLOVER_MS), fix(T0 - ROLLOVER_MS + 1_000)]);

        assert_eq!(pace.start(), None);
    }

    #[test]
    fn times_without_a_fix_start_nothing() {
        let mut pace = pace();

        pace.place(Some(ReportTime { millis: T0, is_dated: true, has_fix: false }), NOMINAL_MS);

        assert_eq!(pace.start(), None);
    }
}

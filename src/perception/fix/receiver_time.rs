//! Judges the receiver's time: a GPS week counts only to 1,023, and cold receivers invent dates.
//!
//! In: accepted fixes. Out: [`ClockObservation`]s, at most one per interval and verdict. Never: I/O, the clock.

use crate::domain::id::SourceId;
use crate::domain::observation::place::ClockObservation;
use crate::domain::observation::place::Fix;
use crate::domain::observation::place::ReceiverTime;
use crate::domain::time::ClockQuality;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;
use std::collections::VecDeque;

/// The span of the week number in a GPS navigation message, 1,024 weeks, in milliseconds (IS-GPS-200, 20.3.3.3.1.1).
const WEEK_SPAN_MS: i64 = 1024 * 7 * 86_400_000;
/// 1980-01-06T00:00:00Z, before which no receiver can have counted.
const GPS_EPOCH_MS: i64 = 315_964_800_000;
/// How close to the device's clock a shifted time must be to be called a rollover: a day.
const NEAR_MS: i64 = 86_400_000;
/// How old a running program is at most taken to be where no clock tells: five years.
const BUILD_AGE_MS_MAX: i64 = 5 * 365 * 86_400_000;

#[derive(Debug)]
pub(super) struct TimeJudge {
    source: SourceId,
    earliest: Timestamp,
    interval_ms: i64,
    told: Option<(Stamp, ReceiverTime)>,
    observations: VecDeque<ClockObservation>,
}

impl TimeJudge {
    pub(super) const fn new(source: SourceId, earliest: Timestamp, interval_ms: i64) -> Self {
        Self { source, earliest, interval_ms, told: None, observations: VecDeque::new() }
    }

    pub(super) fn handle_fix(&mut self, fix: &Fix) {
        let Some(receiver_time) = fix.receiver_time else { return };
        let verdict = judge(receiver_time, self.earliest, fix.at);
        let is_told = self.told.is_some_and(|(at, told)| told == verdict && fix.at.millis_since(at) < self.interval_ms);
        if !is_told {
            self.told = Some((fix.at, verdict));
            self.observations.push_back(ClockObservation {
                source: self.source.clone(),
                at: fix.at,
                receiver_time,
                verdict,
            });
        }
    }

    pub(super) fn poll(&mut self) -> Option<ClockObservation> {
        self.observations.pop_front()
    }
}

/// A time is plausible within 1,024 weeks after the build. An earlier one is a rollover when a whole
/// number of 1,024 weeks brings it near the device's own clock or, where that was never set, near the build.
fn judge(time: Timestamp, earliest: Timestamp, at: Stamp) -> ReceiverTime {
    let early_ms = earliest.millis_since(time);
    if early_ms <= -WEEK_SPAN_MS {
        return ReceiverTime::TooLate;
    }
    if early_ms <= 0 {
        return ReceiverTime::Plausible;
    }
    let mended = time.plus_millis((early_ms + WEEK_SPAN_MS - 1) / WEEK_SPAN_MS * WEEK_SPAN_MS);
    let is_near = match at.quality {
        ClockQuality::Unset => mended.millis_since(earliest) <= BUILD_AGE_MS_MAX,
        ClockQuality::Rtc | ClockQuality::Network | ClockQuality::Gps => mended.millis_since(at.utc).abs() <= NEAR_MS,
    };
    if is_near && time.as_millis() >= GPS_EPOCH_MS { ReceiverTime::Rollover } else { ReceiverTime::TooEarly }
}

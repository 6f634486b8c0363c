//! Decides which of a receiver's reports are fixes, and what its time is worth.
//!
//! In: the [`Reading`]s of one GPS receiver, in order, and the passing of time.
//! Out: [`Fix`]es, [`ClockObservation`]s, and one [`Coverage`] for each stretch without a fix.
//!
//! The mode alone decides whether there is a fix. A report that repeats the last receiver time is
//! no new fix; a fix is stale after `stale_s`. A jump faster than `speed_mps_max` is refused until
//! the new positions have agreed with each other for `relocate_s`.
//! Never: a name for a place, I/O, the clock. [`Payload::Loss`] ends a stretch of ours; the row for
//! the loss itself is written where all sensors' losses are.

mod blind;
mod jump;
mod receiver_time;

use crate::domain::coverage::Coverage;
use crate::domain::id::SourceId;
use crate::domain::observation::place::ClockObservation;
use crate::domain::observation::place::Fix;
use crate::domain::observation::place::Position;
use crate::domain::reading::GpsReport;
use crate::domain::reading::Payload;
use crate::domain::reading::PositionReport;
use crate::domain::reading::Reading;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;
use std::collections::VecDeque;

/// When a fix is believed.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Config {
    /// A fix is stale, and the receiver blind, after this many seconds without a new one.
    pub stale_s: f64,
    /// Fastest believable travel in metres per second, unless the receiver itself reports more.
    pub speed_mps_max: f64,
    /// After a jump, positions that agree with each other for this many seconds are believed.
    pub relocate_s: f64,
    /// Seconds between two observations of the receiver's time, at least.
    pub clock_interval_s: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { stale_s: 10.0, speed_mps_max: 100.0, relocate_s: 60.0, clock_interval_s: 60.0 }
    }
}

impl Config {
    /// What is wrong with the values, one sentence each.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        let keys = [
            ("stale_s", self.stale_s),
            ("speed_mps_max", self.speed_mps_max),
            ("relocate_s", self.relocate_s),
            ("clock_interval_s", self.clock_interval_s),
        ];
        let is_wrong = |value: f64| !(value.is_finite() && value > 0.0);
        let wrong = keys.into_iter().filter(|(_, value)| is_wrong(*value));
        wrong.map(|(key, value)| format!("{key} = {value} must be a number above 0")).collect()
    }
}

/// What became of the reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FixCounts {
    /// New fixes.
    pub fixes: u64,
    /// Reports whose mode says that there is no fix, whatever position they carry.
    pub without_fix: u64,
    /// Reports that repeat the last receiver time.
    pub repeated: u64,
    /// Reports with a position that cannot be, or a mode that does not exist.
    pub invalid: u64,
    /// Reports refused as a jump.
    pub jumps: u64,
    /// Reports of a class that says nothing of position.
    pub other: u64,
    /// Lines that are no report.
    pub malformed: u64,
}

/// Sorts the reports of one receiver.
#[derive(Debug)]
pub struct FixTracker {
    config: Config,
    source: SourceId,
    last: Option<Fix>,
    last_receiver_time: Option<Timestamp>,
    jumps: jump::JumpGuard,
    blind: blind::BlindStretch,
    clock: receiver_time::TimeJudge,
    fixes: VecDeque<Fix>,
    counts: FixCounts,
}

impl FixTracker {
    /// A tracker for one receiver. No receiver time before `earliest` (the program's build date) is believed.
    #[must_use]
    pub fn new(config: Config, source: SourceId, earliest: Timestamp) -> Self {
        Self {
            jumps: jump::JumpGuard::new(config.speed_mps_max, millis(config.relocate_s)),
            blind: blind::BlindStretch::new(source.clone(), millis(config.stale_s)),
            clock: receiver_time::TimeJudge::new(source.clone(), earliest, millis(config.clock_interval_s)),
            config,
            source,
            last: None,
            last_receiver_time: None,
            fixes: VecDeque::new(),
            counts: FixCounts::default(),
        }
    }

    /// Takes the next reading. Readings of other sensors are ignored.
    pub fn handle_reading(&mut self, reading: &Reading) {
        let now = reading.captured_at;
        self.handle_timeout(now);
        match &reading.payload {
            Payload::Position(report) => self.handle_report(report, now),
            Payload::Loss(_) => self.blind.handle_loss(now),
            Payload::Sound(_) | Payload::Picture(_) | Payload::Advertisement(_) => {}
        }
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Stamp) {
        self.blind.handle_timeout(now);
    }

    /// When [`Self::handle_timeout`] has something to do next, in monotonic milliseconds.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        self.blind.poll_timeout()
    }

    /// The next new fix.
    pub fn poll_fix(&mut self) -> Option<Fix> {
        self.fixes.pop_front()
    }

    /// The next word of the receiver on the time.
    pub fn poll_clock(&mut self) -> Option<ClockObservation> {
        self.clock.poll()
    }

    /// The next finished stretch without a fix.
    pub fn poll_coverage(&mut self) -> Option<Coverage> {
        self.blind.poll()
    }

    /// Ends an open stretch at `now`: there will be no more readings.
    pub fn finish(&mut self, now: Stamp) {
        self.handle_timeout(now);
        self.blind.finish(now);
    }

    /// The latest fix, unless it is stale at `now`.
    #[must_use]
    pub fn current_fix(&self, now: Stamp) -> Option<&Fix> {
        self.last.as_ref().filter(|fix| now.millis_since(fix.at) <= millis(self.config.stale_s))
    }

    /// What became of the reports so far.
    #[must_use]
    pub const fn counts(&self) -> FixCounts {
        self.counts
    }

    fn handle_report(&mut self, report: &GpsReport, now: Stamp) {
        match report {
            GpsReport::Position(report) => self.handle_position(report, now),
            GpsReport::Satellites { .. } => self.blind.handle_report(now, false),
            GpsReport::Other(_) => self.counts.other += 1,
            GpsReport::Malformed(_) => self.counts.malformed += 1,
        }
    }

    fn handle_position(&mut self, report: &PositionReport, now: Stamp) {
        let position = match judge(report) {
            Judgement::Position(position) => position,
            Judgement::NoFix => {
                self.counts.without_fix += 1;
                return self.blind.handle_report(now, false);
            }
            Judgement::Invalid => {
                self.counts.invalid += 1;
                return self.blind.handle_report(now, true);
            }
        };
        if report.time.is_some() && report.time == self.last_receiver_time {
            self.counts.repeated += 1;
            return self.blind.handle_report(now, false);
        }
        self.last_receiver_time = report.time;
        let fix = self.fix(report, position, now);
        if !self.jumps.admits(&fix, self.last.as_ref()) {
            self.counts.jumps += 1;
            return self.blind.handle_report(now, true);
        }
        self.accept(fix);
    }

    fn accept(&mut self, fix: Fix) {
        self.counts.fixes += 1;
        self.blind.handle_fix(fix.at);
        self.clock.handle_fix(&fix);
        self.last = Some(fix.clone());
        self.fixes.push_back(fix);
    }

    fn fix(&self, report: &PositionReport, position: Position, at: Stamp) -> Fix {
        let measure = |value: Option<f64>| value.filter(|value| value.is_finite());
        Fix {
            source: self.source.clone(),
            at,
            position,
            altitude_m: measure(report.altitude_m),
            accuracy_m: measure(report.accuracy_m).filter(|accuracy_m| *accuracy_m >= 0.0),
            speed_mps: measure(report.speed_mps).filter(|speed_mps| *speed_mps >= 0.0),
            course_deg: measure(report.course_deg),
            receiver_time: report.time,
        }
    }
}

enum Judgement {
    Position(Position),
    NoFix,
    Invalid,
}

/// gpsd's modes are 0 to 3; only 2 and 3 are fixes. `status` says how a fix was made, never whether there is one.
fn judge(report: &PositionReport) -> Judgement {
    match (report.mode, report.latitude_deg, report.longitude_deg) {
        (4.., _, _) => Judgement::Invalid,
        (2 | 3, Some(latitude_deg), Some(longitude_deg)) => match Position::new(latitude_deg, longitude_deg) {
            // Zero degrees to the last digit in both is what receivers print before they know better.
            Some(position) if latitude_deg != 0.0 || longitude_deg != 0.0 => Judgement::Position(position),
            _ => Judgement::Invalid,
        },
        _ => Judgement::NoFix,
    }
}

/// Seconds of the config as whole milliseconds; NaN and less than zero become 0.
fn millis(seconds: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "float casts saturate and send NaN to 0")]
    let millis = (seconds * 1000.0).round() as i64;
    millis.max(0)
}

#[cfg(test)]
mod tests;

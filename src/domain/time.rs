//! Instants, spans and the clock: the one file that may read the time.
//!
//! A stored instant is UTC milliseconds ([`Timestamp`]). Inside a run, durations and deadlines use
//! the monotonic milliseconds of a [`Stamp`], which never jump when the wall clock is corrected.

use std::fmt;
use std::ops::Add;
use std::ops::Sub;
use std::time::Duration;

/// A UTC instant in whole milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

/// 2026-11-30T00:00:00Z, the day of percept's first build. A recording may be older than the program that plays it, but
/// no percept recorded before this day: an earlier time from a receiver is a rollover, and never sets a clock.
pub const FIRST_BUILD: Timestamp = Timestamp(1_795_996_800_000);

/// A text that is no RFC 3339 time with an offset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a time with an offset (RFC 3339, for example 2026-05-01T09:30:00+02:00)")]
pub struct TimeError {
    /// What was given.
    pub text: String,
}

impl Timestamp {
    /// The instant `millis` milliseconds after the Unix epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Parses an RFC 3339 time with `Z` or an offset.
    ///
    /// # Errors
    /// [`TimeError`] when the text is anything else, a local time without offset included.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        text.parse::<jiff::Timestamp>()
            .map(|instant| Self(instant.as_millisecond()))
            .map_err(|_| TimeError { text: text.to_owned() })
    }

    /// Milliseconds from `earlier` to `self`; negative when `earlier` is later.
    #[must_use]
    pub const fn millis_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This instant moved by `millis` (saturating).
    #[must_use]
    pub const fn plus_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC with milliseconds, e.g. `2026-05-01T07:30:00.000Z`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(instant) => write!(formatter, "{instant:.3}"),
            Err(_) => write!(formatter, "{} ms", self.0),
        }
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        self.plus_millis(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
    }
}

impl Sub for Timestamp {
    type Output = i64;
    fn sub(self, earlier: Self) -> i64 {
        self.millis_since(earlier)
    }
}

/// How far a wall-clock time can be trusted, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockQuality {
    /// Nobody has set the clock since boot, or it shows a date before this program was built.
    #[default]
    Unset,
    /// From a battery-backed clock.
    Rtc,
    /// From NTP or the user.
    Network,
    /// From a GPS fix.
    Gps,
}

impl ClockQuality {
    /// The name stored in the database and used in session files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unset => "unset",
            Self::Rtc => "rtc",
            Self::Network => "network",
            Self::Gps => "gps",
        }
    }
}

/// When something was captured, on both clocks at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// Milliseconds since this boot (live) or since the start of the session (recorded). Never jumps.
    pub monotonic_ms: i64,
    /// What the wall clock said at that moment.
    pub utc: Timestamp,
    /// How far `utc` can be trusted.
    pub quality: ClockQuality,
}

impl Stamp {
    /// The moment `millis` after (or, negative, before) this one by both clocks.
    #[must_use]
    pub const fn plus_millis(self, millis: i64) -> Self {
        Self {
            monotonic_ms: self.monotonic_ms.saturating_add(millis),
            utc: self.utc.plus_millis(millis),
            quality: self.quality,
        }
    }

    /// Milliseconds of monotonic time from `earlier` to this one.
    #[must_use]
    pub const fn millis_since(self, earlier: Self) -> i64 {
        self.monotonic_ms.saturating_sub(earlier.monotonic_ms)
    }
}

/// Where the shell gets its time from; cores take the value as an argument.
pub trait Clock: Send {
    /// The wall clock.
    fn utc(&self) -> Timestamp;
    /// Milliseconds that only ever grow, from an arbitrary start.
    fn monotonic_ms(&self) -> i64;
    /// How far the wall clock can be trusted.
    fn quality(&self) -> ClockQuality {
        ClockQuality::Unset
    }
    /// This moment, on both clocks.
    fn stamp(&self) -> Stamp {
        Stamp { monotonic_ms: self.monotonic_ms(), utc: self.utc(), quality: self.quality() }
    }
}

/// The clock of a live run: monotonic time counts from this boot, suspended time included, so that rows of several
/// runs of one boot can be compared.
///
/// A stamp's two times keep step with each other: the wall time is derived from the monotonic one until the wall clock
/// has gone its own way by more than [`DRIFT_MAX_MS`]. So a recording of the stamps says all about them.
#[derive(Debug, Default)]
pub struct LiveClock {
    quality: std::sync::atomic::AtomicU8,
    anchor: std::sync::Mutex<Option<(i64, Timestamp)>>,
}

/// How far a stamp's wall time may be from the wall clock, in milliseconds.
const DRIFT_MAX_MS: i64 = 100;

impl LiveClock {
    /// A clock whose wall time nobody vouches for yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says how far the wall clock can be trusted from here on.
    pub fn set_quality(&self, quality: ClockQuality) {
        self.quality.store(quality as u8, std::sync::atomic::Ordering::Relaxed);
    }

    /// What the wall clock itself shows.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    pub fn wall(&self) -> Timestamp {
        from_system_time(std::time::SystemTime::now())
    }

    fn anchored(&self, monotonic_ms: i64) -> Timestamp {
        let wall = self.wall();
        let mut anchor = self.anchor.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let derived = anchor.map(|(at_ms, utc)| utc.plus_millis(monotonic_ms - at_ms));
        match derived.filter(|derived| derived.millis_since(wall).abs() <= DRIFT_MAX_MS) {
            Some(derived) => derived,
            None => {
                *anchor = Some((monotonic_ms, wall));
                wall
            }
        }
    }
}

impl Clock for LiveClock {
    fn utc(&self) -> Timestamp {
        self.anchored(self.monotonic_ms())
    }

    fn monotonic_ms(&self) -> i64 {
        let since_boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        since_boot.tv_sec.saturating_mul(1_000).saturating_add(since_boot.tv_nsec / 1_000_000)
    }

    fn quality(&self) -> ClockQuality {
        match self.quality.load(std::sync::atomic::Ordering::Relaxed) {
            1 => ClockQuality::Rtc,
            2 => ClockQuality::Network,
            3 => ClockQuality::Gps,
            _ => ClockQuality::Unset,
        }
    }

    fn stamp(&self) -> Stamp {
        let monotonic_ms = self.monotonic_ms();
        Stamp { monotonic_ms, utc: self.anchored(monotonic_ms), quality: self.quality() }
    }
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    started: std::time::Instant,
}

impl SystemClock {
    /// A clock whose monotonic time starts here.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    pub fn new() -> Self {
        Self { started: std::time::Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    fn utc(&self) -> Timestamp {
        from_system_time(std::time::SystemTime::now())
    }

    fn monotonic_ms(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}

/// A clock that stands still until it is moved: for recorded sessions and tests.
#[derive(Debug, Clone, Copy)]
pub struct ManualClock {
    /// What both clocks show.
    pub now: Stamp,
}

impl Clock for ManualClock {
    fn utc(&self) -> Timestamp {
        self.now.utc
    }

    fn monotonic_ms(&self) -> i64 {
        self.now.monotonic_ms
    }

    fn quality(&self) -> ClockQuality {
        self.now.quality
    }
}

/// A file's or system's time as a [`Timestamp`]; times before 1970 become negative.
#[must_use]
pub fn from_system_time(time: std::time::SystemTime) -> Timestamp {
    let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    match time.duration_since(std::time::UNIX_EPOCH) {
        Ok(after) => Timestamp(millis(after)),
        Err(before) => Timestamp(-millis(before.duration())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_prints_and_parses_back() {
        let time = Timestamp::parse("2026-05-01T09:30:00.250+02:00").unwrap();

        assert_eq!(time.to_string(), "2026-05-01T07:30:00.250Z");
        assert_eq!(Timestamp::parse(&time.to_string()), Ok(time));
    }

    #[test]
    fn a_local_time_without_offset_is_refused_by_name() {
        let error = Timestamp::parse("2026-05-01T09:30:00").unwrap_err();

        assert!(error.to_string().contains("2026-05-01T09:30:00"));
    }
}

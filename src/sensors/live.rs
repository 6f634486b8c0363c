//! Live hardware as sensors: what all of it has in common.
//!
//! ```text
//!  Driver::open ─► Feed::next ─► LiveSensor ─► Reading | Loss
//!       ▲                            │
//!       └──── backoff, stall, mute ──┘        (supervision: a value, `now` in, verdict out)
//! ```
//!
//! In: a [`Driver`] for one device. Out: a [`Sensor`] that never ends: a lost, silent or broken device is a
//! [`Loss`] reading and is opened again with backoff, for as long as it takes.
//! A driver stays thin: it finds, opens and translates. When to give up, wait and try again is decided here.

use crate::domain::coverage::CoverageReason;
use crate::domain::id::SourceId;
use crate::domain::reading::Loss;
use crate::domain::reading::Payload;
use crate::domain::reading::Reading;
use crate::domain::time::Clock;
use crate::domain::time::Stamp;
use crate::sensors::Poll;
use crate::sensors::Sensor;
use std::sync::Arc;
use std::time::Duration;

mod burst;
#[cfg(test)]
pub(crate) mod hand_clock;
mod health;
mod supervision;

pub use burst::Burst;
pub use health::Health;
pub use health::HealthCell;
pub use health::State;
pub use supervision::Limits;
pub use supervision::Supervision;
pub use supervision::Verdict;

/// The clock of live readings: shared by every driver of a run.
pub type SharedClock = Arc<dyn Clock + Sync>;

/// Finds and opens one device: the thin edge to the hardware. Faults are injected here in tests.
pub trait Driver: Send {
    /// The device's stable identity; before it was ever found, that of the configuration.
    fn source(&self) -> &SourceId;

    /// Finds the device by its stable identity and opens it. Returns within a few seconds whatever the hardware does.
    ///
    /// # Errors
    /// [`Failure`]: why not, in words for the operator. It is tried again later.
    fn open(&mut self) -> Result<Box<dyn Feed>, Failure>;
}

/// An open device. Dropping it closes the device, and never hangs.
pub trait Feed: Send {
    /// What the device delivers next, waiting at most `timeout`.
    fn next(&mut self, timeout: Duration) -> Fed;
}

/// What an open device answered.
#[derive(Debug)]
pub enum Fed {
    /// Raw capture, and when its first frame was captured. A stretch the device lost while it went on (an overrun, a
    /// frame that could not be decoded) is a [`Payload::Loss`] with a length.
    Captured(Stamp, Payload),
    /// A sign of life without data (gpsd's VERSION, a repeated discovery state): the device is there and answers, but
    /// this is no capture and does not end a stall.
    Idle,
    /// An error the device survives by itself. Counted, and told once per burst; too many in a row close the device.
    Hiccup(String),
    /// Nothing within the time allowed.
    Nothing,
    /// The device is open and answers, and says why it has nothing to deliver (gpsd without a receiver). It is lost to the
    /// reader and stays open; repeat this more often than the stall time to keep it so.
    Blind(Failure),
    /// The device is gone or useless: it has to be opened again.
    Broken(Failure),
}

/// Why a device cannot be opened, or went away.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Failure {
    /// What the coverage row says.
    pub reason: CoverageReason,
    /// One sentence that says what is wrong and, where somebody can act, what to do. No position, no address.
    pub detail: String,
}

impl Failure {
    /// The device is not there.
    pub fn unplugged(detail: impl Into<String>) -> Self {
        Self { reason: CoverageReason::Unplugged, detail: detail.into() }
    }

    /// The device is there and delivers nothing.
    pub fn stalled(detail: impl Into<String>) -> Self {
        Self { reason: CoverageReason::Stalled, detail: detail.into() }
    }

    /// The device cannot be used as it is set up (permission, format, a camera without a plain video node).
    pub fn unusable(detail: impl Into<String>) -> Self {
        Self { reason: CoverageReason::Unusable, detail: detail.into() }
    }
}

/// A device that `percept devices` lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What to write into the config.
    pub source: SourceId,
    /// What people call it.
    pub name: String,
    /// What it offers: formats, rates, the node's path.
    pub detail: String,
    /// Why percept does not open it, when it does not.
    pub refused: Option<String>,
}

/// A live device under supervision.
pub struct LiveSensor {
    driver: Box<dyn Driver>,
    clock: SharedClock,
    feed: Option<Box<dyn Feed>>,
    supervision: Supervision,
    health: HealthCell,
    burst: Burst,
    pending: Option<Reading>,
    source: SourceId,
}

impl LiveSensor {
    /// A closed device; it is opened by the first poll.
    #[must_use]
    pub fn new(driver: Box<dyn Driver>, clock: SharedClock, limits: Limits) -> Self {
        let source = driver.source().clone();
        let now = clock.stamp();
        let health = HealthCell::new(source.clone(), now);
        Self {
            supervision: Supervision::new(limits, now.monotonic_ms),
            driver,
            clock,
            feed: None,
            health,
            burst: Burst::default(),
            pending: None,
            source,
        }
    }

    /// Its state for `percept status`, updated as it goes.
    #[must_use]
    pub fn health(&self) -> HealthCell {
        self.health.clone()
    }

    /// Closes the device for as long as it is muted; it is opened at once afterwards.
    pub fn set_muted(&mut self, is_muted: bool) {
        let now = self.clock.stamp();
        if !self.supervision.set_muted(is_muted, now.monotonic_ms) {
            return;
        }
        self.feed = None;
        if is_muted {
            self.lose(now, &Failure { reason: CoverageReason::Muted, detail: String::new() }, State::Muted);
        }
    }

    fn open(&mut self, now: Stamp) {
        match self.driver.open() {
            Ok(feed) => {
                let now = self.clock.stamp();
                self.supervision.opened(now.monotonic_ms);
                self.health.set_state(State::Opening, now);
                self.feed = Some(feed);
                self.source = self.driver.source().clone();
                self.health.set_source(&self.source);
            }
            Err(failure) => self.close(now, failure),
        }
    }

    /// The device is given up for a while.
    fn close(&mut self, now: Stamp, failure: Failure) {
        self.feed = None;
        self.supervision.closed(now.monotonic_ms);
        self.tell(&failure, now);
        self.lose(now, &failure, State::Lost);
    }

    fn tell(&mut self, failure: &Failure, now: Stamp) {
        if self.burst.admits(&failure.detail, now.monotonic_ms) {
            tracing::warn!(source = %self.source, reason = failure.reason.as_str(), "{}", failure.detail);
        }
    }

    fn lose(&mut self, now: Stamp, failure: &Failure, state: State) {
        // Blind since the last capture, not since somebody noticed; a further failure begins where it is noticed.
        let is_first = state == State::Lost && self.health.get().state != State::Lost;
        let at = self.health.blind_since().filter(|_| is_first).unwrap_or(now);
        self.health.failed(state, failure, now);
        let loss = Loss { length_ms: None, reason: failure.reason, detail: failure.detail.clone() };
        self.pending = Some(self.reading(at, Payload::Loss(loss)));
    }

    fn reading(&self, captured_at: Stamp, payload: Payload) -> Reading {
        Reading { source: self.source.clone(), captured_at, payload }
    }

    fn take(&mut self, fed: Fed) -> Option<Reading> {
        let now = self.clock.stamp();
        match fed {
            Fed::Captured(at, payload) => {
                let is_data = !matches!(payload, Payload::Loss(_));
                if is_data {
                    self.supervision.captured(now.monotonic_ms);
                    self.health.captured(now);
                }
                Some(self.reading(at, payload))
            }
            Fed::Idle => {
                self.supervision.answered(now.monotonic_ms);
                None
            }
            Fed::Hiccup(detail) => {
                self.health.hiccup(&detail);
                if self.burst.admits(&detail, now.monotonic_ms) {
                    tracing::warn!(source = %self.source, "{detail}");
                }
                self.supervision.hiccup();
                None
            }
            Fed::Nothing => None,
            Fed::Blind(failure) => {
                self.supervision.explained(now.monotonic_ms);
                self.tell(&failure, now);
                self.lose(now, &failure, State::Lost);
                self.pending.take()
            }
            Fed::Broken(failure) => {
                self.close(now, failure);
                self.pending.take()
            }
        }
    }
}

impl Sensor for LiveSensor {
    fn source(&self) -> &SourceId {
        &self.source
    }

    /// Returns early with [`Poll::Pending`] while the device is closed: the caller waits.
    fn poll(&mut self, timeout: Duration) -> Poll {
        if let Some(reading) = self.pending.take() {
            return Poll::Reading(reading);
        }
        let now = self.clock.stamp();
        match self.supervision.verdict(now.monotonic_ms) {
            Verdict::Open => self.open(now),
            Verdict::Wait => {}
            Verdict::GiveUp(failure) => {
                // What waits was captured in time; it was the caller who came late.
                let is_silent = self.supervision.silent_ms(now.monotonic_ms).is_some();
                let waiting = self.feed.as_mut().filter(|_| is_silent).map(|feed| feed.next(Duration::ZERO));
                if let Some(captured @ Fed::Captured(..)) = waiting {
                    return self.take(captured).map_or(Poll::Pending, Poll::Reading);
                }
                self.close(now, failure);
            }
            Verdict::StillLost => {
                let failure = self.health.failure();
                let loss = Loss { length_ms: None, reason: failure.reason, detail: failure.detail };
                return Poll::Reading(self.reading(now, Payload::Loss(loss)));
            }
        }
        let fed = self.feed.as_mut().map(|feed| feed.next(timeout));
        let reading = fed.and_then(|fed| self.take(fed)).or_else(|| self.pending.take());
        reading.map_or(Poll::Pending, Poll::Reading)
    }
}

#[cfg(test)]
mod tests;

//! The queue between the sensors' threads and the pipeline: bounded, and in order of capture.
//!
//! ```text
//!  microphone ─┐
//!  camera     ─┤  sorted by captured_at, held for HOLD_MS,  ─► pipeline
//!  gps        ─┤  bounded for each kind of sensor
//!  bluetooth  ─┘
//! ```
//!
//! In: readings from any thread. Out: the same to one thread, sorted by when they were captured: a sound chunk arrives
//! later than a fix of the same moment, and a replay of the recording has to see the same order.
//! Full: the oldest reading of that kind goes and is counted, so that one sensor never starves another, and a
//! microphone's or receiver's next reading stands behind a loss. Nothing waits.

use crate::domain::coverage::CoverageReason;
use crate::domain::id::SensorKind;
use crate::domain::reading::Loss;
use crate::domain::reading::Payload;
use crate::domain::reading::Reading;
use std::collections::BTreeMap;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

/// How long a reading waits for others that were captured earlier and arrive later, in milliseconds.
pub const HOLD_MS: i64 = 1_000;

/// Most readings of each kind that wait: about 25 s of sound in chunks of 100 ms, the pictures that a camera at
/// its fastest takes while they are held, a minute of a fast
/// receiver, two seconds of a crowd of advertisements.
#[must_use]
pub const fn bound(kind: SensorKind) -> usize {
    match kind {
        SensorKind::Microphone => 256,
        SensorKind::Camera => 16,
        SensorKind::Gps => 600,
        SensorKind::Bluetooth => 4_096,
    }
}

/// How full the queue is, by kind in the order of [`SensorKind::ALL`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Depth {
    /// Readings waiting.
    pub waiting: [usize; 4],
    /// Readings that had to go since the start.
    pub dropped: [u64; 4],
}

impl Depth {
    /// The greatest share of its bound that any kind takes, 0 to 1.
    #[must_use]
    pub fn fullness(&self) -> f64 {
        let share = |(index, kind): (usize, SensorKind)| self.waiting[index] as f64 / bound(kind) as f64;
        SensorKind::ALL.into_iter().enumerate().map(share).fold(0.0, f64::max)
    }
}

/// The queue.
#[derive(Debug, Default)]
pub struct ReadingQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    readings: BTreeMap<(i64, u64), Reading>,
    arrivals: u64,
    depth: Depth,
    is_closed: bool,
}

impl ReadingQueue {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a reading. When its kind is full, the oldest of that kind goes.
    pub fn push(&self, reading: Reading) {
        let Some(index) = kind_index(&reading) else { return };
        let mut state = self.lock();
        state.arrivals += 1;
        let key = (reading.captured_at.monotonic_ms, state.arrivals);
        if state.depth.waiting[index] >= bound(SensorKind::ALL[index]) {
            state.drop_oldest(index);
        }
        state.depth.waiting[index] += 1;
        state.readings.insert(key, reading);
        drop(state);
        self.changed.notify_one();
    }

    /// The next reading captured at or before `until_ms` (monotonic), if there is one.
    pub fn pop(&self, until_ms: i64) -> Option<Reading> {
        let mut state = self.lock();
        let entry = state.readings.first_entry()?;
        if entry.key().0 > until_ms {
            return None;
        }
        let reading = entry.remove();
        if let Some(index) = kind_index(&reading) {
            state.depth.waiting[index] -= 1;
        }
        Some(reading)
    }

    /// Waits until something arrives, the queue is closed, or `timeout` has passed.
    pub fn wait(&self, timeout: Duration) {
        let state = self.lock();
        if !state.is_closed {
            drop(self.changed.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Wakes whoever waits, for good.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// How full it is.
    #[must_use]
    pub fn depth(&self) -> Depth {
        self.lock().depth
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What is dropped leaves a loss in its place, unless one stands there already.
    fn drop_oldest(&mut self, index: usize) {
        let oldest = self.readings.iter().find(|(_, reading)| kind_index(reading) == Some(index));
        let Some(key) = oldest.map(|(key, _)| *key) else { return };
        let Some(dropped) = self.readings.remove(&key) else { return };
        self.depth.dropped[index] += 1;
        self.depth.waiting[index] -= 1;
        let next = self.readings.iter_mut().find(|(_, reading)| kind_index(reading) == Some(index));
        if let Some((_, next)) = next
            && !matches!(next.payload, Payload::Loss(_))
        {
            let length_ms = next.captured_at.millis_since(dropped.captured_at).max(0);
            let detail = "the device could not keep up: readings were dropped".to_owned();
            next.captured_at = dropped.captured_at;
            next.payload = Payload::Loss(Loss { length_ms: Some(length_ms), reason: CoverageReason::Overrun, detail });
        }
    }
}

fn kind_index(reading: &Reading) -> Option<usize> {
    let kind = reading.source.kind()?;
    SensorKind::ALL.iter().position(|known| *known == kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::SourceId;
    use crate::domain::reading::GpsReport;
    use crate::domain::time::ClockQuality;
    use crate::domain::time::Stamp;
    use crate::domain::time::Timestamp;

    #[test]
    fn readings_come_out_in_the_order_of_their_capture() {
        let queue = ReadingQueue::new();
        for (kind, ms) in [(SensorKind::Gps, 300), (SensorKind::Microphone, 100), (SensorKind::Camera, 200)] {
            queue.push(reading(kind, ms));
        }

        let order: Vec<i64> =
            std::iter::from_fn(|| queue.pop(250)).map(|reading| reading.captured_at.monotonic_ms).collect();

        assert_eq!(order, [100, 200]);
        assert_eq!(queue.depth().waiting, [0, 0, 1, 0]);
    }

    #[test]
    fn a_full_kind_loses_its_oldest_says_so_once_and_starves_nobody() {
        let queue = ReadingQueue::new();
        queue.push(reading(SensorKind::Gps, 0));
        for ms in 0..19 {
            queue.push(reading(SensorKind::Camera, ms * 10));
        }

        let depth = queue.depth();
        assert_eq!((depth.waiting, depth.dropped), ([0, 16, 1, 0], [0, 3, 0, 0]));
        let popped: Vec<Reading> = std::iter::from_fn(|| queue.pop(i64::MAX)).collect();
        let losses = popped.iter().filter(|reading| matches!(reading.payload, Payload::Loss(_))).count();
        assert_eq!((popped.len(), losses), (17, 1));
        assert!((depth.fullness() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_closed_queue_lets_nobody_wait() {
        let queue = ReadingQueue::new();
        queue.close();

        queue.wait(Duration::from_secs(3_600));
    }

    fn reading(kind: SensorKind, ms: i64) -> Reading {
        let captured_at = Stamp { monotonic_ms: ms, utc: Timestamp::from_millis(ms), quality: ClockQuality::Network };
        let payload = Payload::Position(GpsReport::Other("PPS".to_owned()));
        Reading { source: SourceId::of(kind, "x"), captured_at, payload }
    }
}

//! A running scan: BlueZ's events become readings, and the scan is kept alive.
//!
//! In: events of one adapter. Out: at most one advertisement for each device and second; a loss when the scan had gone
//! silent and was started anew; the end when the adapter, BlueZ or the bus is gone.

use super::adapter::switched_off;
use super::bus::Bus;
use super::bus::BusError;
use super::bus::Event;
use super::devices::Devices;
use super::scan::Due;
use super::scan::Scan;
use super::window::Window;
use crate::domain::coverage::CoverageReason;
use crate::domain::reading::Loss;
use crate::domain::reading::Payload;
use crate::domain::time::Stamp;
use crate::sensors::live::Failure;
use crate::sensors::live::Fed;
use crate::sensors::live::Feed;
use crate::sensors::live::SharedClock;
use std::collections::VecDeque;
use std::time::Duration;

/// Events that one call takes at most, so that it ends in a flood.
const EVENTS_PER_CALL_MAX: usize = 4_096;

/// A scan with one adapter.
pub(super) struct BluetoothFeed {
    bus: Box<dyn Bus>,
    /// The adapter's D-Bus object.
    adapter: String,
    clock: SharedClock,
    scan: Scan,
    devices: Devices,
    window: Window,
    /// Readings of closed windows: at most the devices of one window.
    ready: VecDeque<Fed>,
    /// When something was last heard; before, when the scan began.
    heard: Stamp,
}

impl BluetoothFeed {
    /// Starts a scan. An adapter that is not ready yet is asked again by and by.
    pub(super) fn open(bus: Box<dyn Bus>, adapter: String, clock: SharedClock) -> Result<Self, Failure> {
        let now = clock.stamp();
        let mut feed = Self {
            bus,
            adapter,
            clock,
            scan: Scan::new(now.monotonic_ms),
            devices: Devices::default(),
            window: Window::default(),
            ready: VecDeque::new(),
            heard: now,
        };
        feed.start(now.monotonic_ms)?;
        Ok(feed)
    }

    fn start(&mut self, now_ms: i64) -> Result<(), Failure> {
        match self.bus.start(&self.adapter) {
            Ok(()) | Err(BusError::InProgress) => {
                self.scan.started(now_ms);
                Ok(())
            }
            Err(BusError::NotReady) if self.scan.refused(now_ms) => Ok(()),
            Err(error) => Err(error.failure()),
        }
    }

    /// Stops and starts. What the adapter says to the stop does not matter, as long as BlueZ is there.
    fn restart(&mut self, now_ms: i64) -> Result<(), Failure> {
        match self.bus.stop(&self.adapter) {
            Err(error @ (BusError::NoBus | BusError::NoService | BusError::NoAdapter | BusError::Timeout)) => {
                Err(error.failure())
            }
            Ok(()) | Err(BusError::NotReady | BusError::InProgress | BusError::Denied | BusError::Other(_)) => {
                self.scan.stopped(now_ms);
                self.start(now_ms)
            }
        }
    }

    /// Does what is due to keep the scan alive.
    fn tend(&mut self, now_ms: i64) -> Option<Fed> {
        let (done, told) = match self.scan.due(now_ms)? {
            Due::Start => (self.start(now_ms), None),
            Due::Renew => (self.restart(now_ms), None),
            Due::Silent(silent_ms) => {
                let detail = format!("no advertisement for {} s: the scan was started anew", silent_ms / 1_000);
                let loss = Loss { length_ms: None, reason: CoverageReason::Stalled, detail };
                (self.restart(now_ms), Some(Fed::Captured(self.heard, Payload::Loss(loss))))
            }
        };
        done.err().map(Fed::Broken).or(told)
    }

    /// Closes the window when its second is over.
    fn close_window(&mut self, now_ms: i64) {
        if self.window.poll_timeout().is_none_or(|due_ms| now_ms < due_ms) {
            return;
        }
        let (readings, dropped) = self.window.close();
        let lost = self.bus.lost() + dropped;
        if lost > 0 {
            self.ready.push_back(Fed::Hiccup(format!("{lost} advertisements came faster than they were taken")));
        }
        let readings = readings.into_iter();
        self.ready.extend(readings.map(|(at, advertisement)| Fed::Captured(at, Payload::Advertisement(advertisement))));
    }

    fn take(&mut self, event: Event) -> Option<Fed> {
        let is_ours = |adapter: &str| adapter == self.adapter;
        let failure = match event {
            Event::Device { adapter, device, facts } if is_ours(&adapter) => {
                let is_heard = facts.is_heard();
                match self.devices.handle(device, facts) {
                    Some(advertisement) => {
                        let now = self.clock.stamp();
                        self.heard = now;
                        self.scan.heard(now.monotonic_ms);
                        self.window.handle(device, now, advertisement);
                    }
                    None if is_heard => self.bus.describe(&adapter, device),
                    None => {}
                }
                return None;
            }
            Event::Power { adapter, is_powered: false } if is_ours(&adapter) => switched_off(),
            Event::AdapterGone { adapter } if is_ours(&adapter) => BusError::NoAdapter.failure(),
            Event::ServiceGone => BusError::NoService.failure(),
            Event::Closed => BusError::NoBus.failure(),
            Event::Device { .. } | Event::Power { .. } | Event::AdapterGone { .. } => return None,
        };
        Some(Fed::Broken(failure))
    }

    /// How long to wait for an event: until something else is due.
    fn wait(&self, now_ms: i64, deadline_ms: i64) -> Duration {
        let due_ms = self.window.poll_timeout().unwrap_or(i64::MAX).min(self.scan.poll_timeout()).min(deadline_ms);
        Duration::from_millis(u64::try_from(due_ms - now_ms).unwrap_or(0))
    }
}

impl Feed for BluetoothFeed {
    fn next(&mut self, timeout: Duration) -> Fed {
        let timeout_ms = i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
        let deadline_ms = self.clock.monotonic_ms().saturating_add(timeout_ms);
        for _ in 0..EVENTS_PER_CALL_MAX {
            let now_ms = self.clock.monotonic_ms();
            self.close_window(now_ms);
            if let Some(fed) = self.ready.pop_front().or_else(|| self.tend(now_ms)) {
                return fed;
            }
            let Some(event) = self.bus.next(self.wait(now_ms, deadline_ms)) else { return Fed::Nothing };
            if let Some(fed) = self.take(event) {
                return fed;
            }
            if now_ms > deadline_ms {
                return Fed::Nothing;
            }
        }
        Fed::Nothing
    }
}

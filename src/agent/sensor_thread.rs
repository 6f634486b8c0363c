//! One thread for each live sensor: it polls, the queue takes.
//!
//! In: a [`LiveSensor`], and orders from the agent (mute, stop). Out: readings in the queue, a heartbeat for the
//! watchdog. Never: a decision about the device; that is the sensor's own.

use crate::agent::heartbeat::Heartbeat;
use crate::agent::queue::ReadingQueue;
use crate::domain::id::SensorKind;
use crate::domain::id::SourceId;
use crate::sensors::Poll;
use crate::sensors::Sensor as _;
use crate::sensors::live::HealthCell;
use crate::sensors::live::LiveSensor;
use crate::sensors::live::State;
use std::sync::Arc;
use std::sync::mpsc;
use std::sync::mpsc::RecvTimeoutError;
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest wait for a reading before orders are looked at.
const POLL_FOR: Duration = Duration::from_millis(200);

/// Pause between two looks at a closed device.
const CLOSED_PAUSE: Duration = Duration::from_millis(100);

/// Orders waiting at most; the agent gives one when something changes.
const ORDERS_MAX: usize = 8;

enum Order {
    Mute(bool),
    Stop,
}

/// A sensor that captures.
pub struct SensorThread {
    /// What it is.
    pub kind: SensorKind,
    /// Its state, live.
    pub health: HealthCell,
    /// Beats while the thread works.
    pub heartbeat: Heartbeat,
    is_muted: bool,
    orders: mpsc::SyncSender<Order>,
    thread: JoinHandle<()>,
}

impl SensorThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(kind: SensorKind, sensor: LiveSensor, queue: Arc<ReadingQueue>) -> std::io::Result<Self> {
        let (orders, inbox) = mpsc::sync_channel(ORDERS_MAX);
        let (health, heartbeat) = (sensor.health(), Heartbeat::new());
        let beat = heartbeat.clone();
        let thread = std::thread::Builder::new()
            .name(kind.as_str().to_owned())
            .spawn(move || work(sensor, &queue, &inbox, &beat))?;
        Ok(Self { kind, health, heartbeat, is_muted: false, orders, thread })
    }

    /// Its identity, as far as it was found.
    #[must_use]
    pub fn source(&self) -> SourceId {
        self.health.get().source
    }

    /// Mutes or unmutes.
    pub fn set_muted(&mut self, is_muted: bool) {
        if self.is_muted != is_muted && self.orders.try_send(Order::Mute(is_muted)).is_ok() {
            self.is_muted = is_muted;
        }
    }

    /// Whether it is muted, or about to be.
    #[must_use]
    pub fn is_muted(&self) -> bool {
        self.is_muted
    }

    /// Whether it captures.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.health.get().state == State::Running
    }

    /// Tells the thread to end. It does so within a poll, unless its device hangs.
    pub fn stop(&self) {
        let _ = self.orders.try_send(Order::Stop);
    }

    /// Whether the thread has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }
}

fn work(mut sensor: LiveSensor, queue: &ReadingQueue, inbox: &mpsc::Receiver<Order>, heartbeat: &Heartbeat) {
    let health = sensor.health();
    loop {
        heartbeat.beat();
        let polled = sensor.poll(POLL_FOR);
        let pause = match polled {
            Poll::Reading(reading) => {
                queue.push(reading);
                Duration::ZERO
            }
            Poll::Pending if matches!(health.get().state, State::Lost | State::Muted) => CLOSED_PAUSE,
            Poll::Pending => Duration::ZERO,
            Poll::Ended => return,
        };
        match inbox.recv_timeout(pause) {
            Ok(Order::Mute(is_muted)) => sensor.set_muted(is_muted),
            Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

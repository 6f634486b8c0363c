//! From a reader thread to the sensor: the newest picture, and why there is none.
//!
//! In: what a blocking device delivers, from its own thread. Out: [`Fed`], within the time the sensor allows.
//! One picture is kept: a newer one takes its place and is counted. Neither side ever waits for the other without a
//! time-out, so that a reader stuck in a driver hangs nobody: it is left behind, counted, and at most
//! [`LEFT_BEHIND_MAX`] of them are.

use crate::domain::reading::Payload;
use crate::domain::reading::Picture;
use crate::domain::time::Stamp;
use crate::sensors::live::Failure;
use crate::sensors::live::Fed;
use crate::sensors::live::Feed;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

/// Most reader threads that may be stuck in a driver at once; with that many no device is opened.
pub(super) const LEFT_BEHIND_MAX: usize = 3;

/// Longest wait for a reader that was told to stop, when its feed is dropped.
const STOP_WAIT: Duration = Duration::from_millis(300);

/// Longest wait for the previous reader to let go of the device before it is opened again.
const IDLE_WAIT: Duration = Duration::from_secs(2);

/// The reader threads of one driver that still run.
#[derive(Debug, Clone)]
pub(super) struct Crew {
    running: Arc<(Mutex<usize>, Condvar)>,
    idle_wait: Duration,
}

/// One place between a reader thread and its feed.
#[derive(Debug, Default)]
pub(super) struct Handover {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    opened: Option<Result<(), Failure>>,
    picture: Option<(Stamp, Picture)>,
    hiccup: Option<String>,
    broken: Option<Failure>,
    is_stopped: bool,
    has_ended: bool,
    replaced: u64,
}

/// The feed's side. Dropping it tells the reader to stop.
#[derive(Debug)]
pub(super) struct Receiver {
    handover: Arc<Handover>,
}

/// The reader's side. Dropping it, by a panic too, says that the reader has ended.
#[derive(Debug)]
pub(super) struct Sender {
    handover: Arc<Handover>,
    crew: Crew,
}

impl Default for Crew {
    fn default() -> Self {
        Self::patient(IDLE_WAIT)
    }
}

impl Crew {
    /// Nobody yet. An earlier reader has `idle_wait` to let go of the device before the next one starts.
    pub(super) fn patient(idle_wait: Duration) -> Self {
        Self { running: Arc::default(), idle_wait }
    }

    /// Runs `job` on a thread of its own.
    ///
    /// # Errors
    /// [`Failure`] when too many earlier readers are stuck, or the system has no thread left.
    pub(super) fn start(&self, name: &str, job: impl FnOnce(&Sender) + Send + 'static) -> Result<Receiver, Failure> {
        let running = self.wait_idle();
        if running >= LEFT_BEHIND_MAX {
            return Err(Failure::stalled(format!(
                "{running} earlier reads of the camera still hang in its driver: it is not opened again until one ends (unplugging the camera ends them)"
            )));
        }
        let handover = Arc::new(Handover::default());
        *self.lock() += 1;
        let sender = Sender { handover: Arc::clone(&handover), crew: self.clone() };
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || job(&sender))
            .map_err(|error| Failure::unusable(format!("no thread for the camera: {error}")))?;
        Ok(Receiver { handover })
    }

    /// Waits a little for earlier readers to end; how many still run.
    pub(super) fn wait_idle(&self) -> usize {
        let waited = self.running.1.wait_timeout_while(self.lock(), self.idle_wait, |running| *running > 0);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.running.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reader threads that run at this moment.
    #[cfg(test)]
    pub(super) fn running(&self) -> usize {
        *self.lock()
    }
}

impl Handover {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, act: impl FnOnce(&mut State)) {
        act(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits until `is_due` holds, at most `timeout`.
    fn wait(&self, timeout: Duration, is_due: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, |state| !is_due(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Sender {
    /// The device is open, or why not.
    pub(super) fn opened(&self, result: Result<(), Failure>) {
        self.handover.change(|state| state.opened = Some(result));
    }

    /// A picture; one that nobody took yet is replaced.
    pub(super) fn put(&self, at: Stamp, picture: Picture) {
        self.handover.change(|state| {
            if state.picture.replace((at, picture)).is_some() {
                state.replaced += 1;
            }
        });
    }

    /// An error the reader survives.
    pub(super) fn hiccup(&self, detail: String) {
        self.handover.change(|state| state.hiccup = Some(detail));
    }

    /// The reader gives up.
    pub(super) fn broke(&self, failure: Failure) {
        self.handover.change(|state| state.broken = Some(failure));
    }

    /// Whether the feed is gone.
    pub(super) fn is_stopped(&self) -> bool {
        self.handover.lock().is_stopped
    }

    /// Waits for `pause`, or until the feed is gone.
    pub(super) fn pause(&self, pause: Duration) {
        drop(self.handover.wait(pause, |state| state.is_stopped));
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.handover.change(|state| {
            state.has_ended = true;
            if state.broken.is_none() {
                let words = if std::thread::panicking() { "failed inside a library" } else { "ended" };
                state.broken = Some(Failure::stalled(format!("the reader of the camera {words}")));
            }
        });
        let mut running = self.crew.lock();
        *running = running.saturating_sub(1);
        drop(running);
        self.crew.running.1.notify_all();
    }
}

impl Receiver {
    /// Whether the device could be opened; [`None`] when it did not say so within `timeout`.
    pub(super) fn wait_opened(&self, timeout: Duration) -> Option<Result<(), Failure>> {
        let mut state = self.handover.wait(timeout, |state| state.opened.is_some() || state.has_ended);
        state.opened.take().or_else(|| state.broken.take().map(Err))
    }

    /// What came next: pictures before errors, and the end last.
    fn take(&self, timeout: Duration) -> Fed {
        let has_news = |state: &State| state.picture.is_some() || state.hiccup.is_some() || state.broken.is_some();
        let mut state = self.handover.wait(timeout, has_news);
        if let Some((at, picture)) = state.picture.take() {
            return Fed::Captured(at, Payload::Picture(picture));
        }
        if let Some(detail) = state.hiccup.take() {
            return Fed::Hiccup(detail);
        }
        state.broken.clone().map_or(Fed::Nothing, Fed::Broken)
    }

    /// Pictures that were replaced by newer ones before anybody took them.
    #[cfg(test)]
    pub(super) fn replaced(&self) -> u64 {
        self.handover.lock().replaced
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.handover.change(|state| state.is_stopped = true);
        let state = self.handover.wait(STOP_WAIT, |state| state.has_ended);
        if state.replaced > 0 {
            tracing::debug!(replaced = state.replaced, "pictures were replaced by newer ones before they were taken");
        }
    }
}

impl Feed for Receiver {
    fn next(&mut self, timeout: Duration) -> Fed {
        self.take(timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::reading::PixelFormat;
    use crate::domain::time::ClockQuality;
    use crate::domain::time::Timestamp;

    #[test]
    fn the_newest_picture_is_handed_over_and_the_end_comes_last() {
        let crew = Crew::default();
        let mut receiver = crew
            .start("test", |sender| {
                for number in 0..5 {
                    sender.put(at(number), picture(number));
                }
                sender.hiccup("odd".to_owned());
                sender.broke(Failure::unplugged("gone"));
            })
            .unwrap();
        assert_eq!(crew.wait_idle(), 0, "the reader has said everything");

        let fed = [0; 4].map(|_| receiver.next(Duration::ZERO));

        assert!(matches!(&fed[0], Fed::Captured(stamp, _) if *stamp == at(4)), "{fed:?}");
        assert!(matches!(&fed[1], Fed::Hiccup(words) if words == "odd"), "{fed:?}");
        assert!(matches!(&fed[2..], [Fed::Broken(_), Fed::Broken(_)]), "{fed:?}");
        assert_eq!(receiver.replaced(), 4);
    }

    fn at(ms: i64) -> Stamp {
        Stamp { monotonic_ms: ms, utc: Timestamp::from_millis(ms), quality: ClockQuality::Unset }
    }

    fn picture(number: i64) -> Picture {
        Picture { format: PixelFormat::Jpeg, size_px: None, bytes: number.to_le_bytes().into() }
    }
}

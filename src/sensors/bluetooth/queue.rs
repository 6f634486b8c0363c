//! The queue between the D-Bus thread and the sensor thread: bounded, and never blocks the one who fills it.
//! When it is full the oldest event goes, and is counted. The end of the bus is kept apart, so that it is never lost.

use super::bus::Event;
use std::collections::VecDeque;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

/// Events that wait, at most: four seconds of two thousand advertisements each.
const EVENTS_MAX: usize = 8_192;

/// The events that wait.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    lost: u64,
    is_closed: bool,
}

impl Queue {
    /// Adds an event.
    pub(super) fn push(&self, event: Event) {
        let mut state = self.lock();
        if state.events.len() >= EVENTS_MAX {
            // Those that end a scan are few and must arrive; an advertisement comes again.
            let at = state.events.iter().position(|event| matches!(event, Event::Device { .. })).unwrap_or(0);
            state.events.remove(at);
            state.lost += 1;
        }
        state.events.push_back(event);
        self.filled.notify_one();
    }

    /// There will be no more events.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_one();
    }

    /// The oldest event, waiting at most `timeout` for one; [`Event::Closed`] when there will be none.
    pub(super) fn pop(&self, timeout: Duration) -> Option<Event> {
        let state = self.lock();
        let waited =
            self.filled.wait_timeout_while(state, timeout, |state| state.events.is_empty() && !state.is_closed);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let closed = state.is_closed.then_some(Event::Closed);
        state.events.pop_front().or(closed)
    }

    /// How many events were lost since the last call.
    pub(super) fn lost(&self) -> u64 {
        std::mem::take(&mut self.lock().lost)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sensors::bluetooth::facts::Facts;

    fn device() -> Event {
        Event::Device { adapter: String::new(), device: [0; 6], facts: Facts::default() }
    }

    #[test]
    fn a_full_queue_loses_the_oldest_advertisement_and_never_the_end_of_a_scan() {
        let queue = Queue::default();
        queue.push(Event::ServiceGone);
        for _ in 0..EVENTS_MAX + 9 {
            queue.push(device());
        }

        assert_eq!((queue.lost(), queue.lost()), (10, 0));
        assert!(queue.pop(Duration::ZERO) == Some(Event::ServiceGone));
        assert!(queue.pop(Duration::ZERO) == Some(device()));
    }

    #[test]
    fn a_closed_queue_gives_what_it_has_and_then_says_so() {
        let queue = Queue::default();
        queue.push(device());
        queue.close();

        assert!(queue.pop(Duration::ZERO) == Some(device()));
        assert!(queue.pop(Duration::from_secs(600)) == Some(Event::Closed));
    }
}

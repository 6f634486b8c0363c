//! The bounded queue between the stages and the writer's thread.
//!
//! In: commands from any thread. Out: the same, in order, to one thread.
//! When it is full the sender waits, because what arrives here must not be lost; only when the writer itself is stuck
//! (a full disk) is the command refused instead, so that a sender never hangs.
//! Never: drops a command it has accepted while it is open.

use std::collections::VecDeque;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

/// Why a command was not accepted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// The writer is gone, for this reason.
    Closed(String),
    /// The queue is full and the writer cannot go on, for this reason.
    Stuck(String),
}

/// What the writer's thread got.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Popped<T> {
    /// A command.
    Item(T),
    /// Nothing came in time.
    Timeout,
    /// The queue is closed and nothing (wanted) is left.
    Closed,
}

/// The queue.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    room: Condvar,
    length_max: usize,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    closed: Option<String>,
    stuck: Option<String>,
    blocked_total: u64,
}

impl<T> Queue<T> {
    /// An empty queue that holds up to `length_max` commands.
    pub(crate) fn new(length_max: usize) -> Self {
        let state = State { items: VecDeque::new(), closed: None, stuck: None, blocked_total: 0 };
        Self { state: Mutex::new(state), changed: Condvar::new(), room: Condvar::new(), length_max }
    }

    /// Adds a command, waiting for room.
    pub(crate) fn push(&self, item: T) -> Result<(), Rejected> {
        let mut state = self.lock();
        let mut waited = false;
        loop {
            if let Some(reason) = &state.closed {
                return Err(Rejected::Closed(reason.clone()));
            }
            if state.items.len() < self.length_max {
                break;
            }
            if let Some(reason) = &state.stuck {
                return Err(Rejected::Stuck(reason.clone()));
            }
            if !waited {
                waited = true;
                state.blocked_total += 1;
            }
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.items.push_back(item);
        self.changed.notify_one();
        Ok(())
    }

    /// Adds a command whose sender waits for the answer: never more than one for each calling thread, so it needs no room.
    pub(crate) fn push_beyond_bound(&self, item: T) -> Result<(), Rejected> {
        let mut state = self.lock();
        if let Some(reason) = &state.closed {
            return Err(Rejected::Closed(reason.clone()));
        }
        state.items.push_back(item);
        self.changed.notify_one();
        Ok(())
    }

    /// The next command that is wanted, waiting up to `timeout`, without end when `None`. The others keep their places.
    pub(crate) fn pop(&self, timeout: Option<Duration>, is_wanted: impl Fn(&T) -> bool) -> Popped<T> {
        let mut state = self.lock();
        loop {
            let place = state.items.iter().position(&is_wanted);
            if let Some(item) = place.and_then(|place| state.items.remove(place)) {
                self.room.notify_all();
                return Popped::Item(item);
            }
            if state.closed.is_some() {
                return Popped::Closed;
            }
            let Some(timeout) = timeout else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (guard, waited) = self.changed.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if waited.timed_out() && !state.items.iter().any(&is_wanted) && state.closed.is_none() {
                return Popped::Timeout;
            }
        }
    }

    /// Says that the writer cannot go on for now (`Some`), or that it can again.
    pub(crate) fn set_stuck(&self, reason: Option<String>) {
        self.lock().stuck = reason;
        self.room.notify_all();
    }

    /// Why the writer cannot go on for now.
    pub(crate) fn stuck(&self) -> Option<String> {
        self.lock().stuck.clone()
    }

    /// Accepts nothing more; what was accepted is still popped. The first reason stays.
    pub(crate) fn close(&self, reason: &str) {
        self.lock().closed.get_or_insert_with(|| reason.to_owned());
        self.changed.notify_all();
        self.room.notify_all();
    }

    /// Closes and lets go of what was accepted, because the thread that would have popped it is gone. Returns how much.
    pub(crate) fn abandon(&self, reason: &str) -> usize {
        self.close(reason);
        self.lock().items.drain(..).count()
    }

    /// How many pushes had to wait.
    pub(crate) fn blocked_total(&self) -> u64 {
        self.lock().blocked_total
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_full_queue_makes_its_sender_wait_and_counts_it() {
        let queue = Arc::new(Queue::new(2));
        for item in 0..2 {
            queue.push(item).unwrap();
        }
        let sender = std::thread::spawn({
            let queue = Arc::clone(&queue);
            move || queue.push(2)
        });
        while queue.blocked_total() == 0 {
            std::thread::yield_now();
        }

        let popped = [0, 1, 2].map(|_| queue.pop(None, |_| true));

        assert_eq!(popped, [Popped::Item(0), Popped::Item(1), Popped::Item(2)]);
        assert_eq!(sender.join().unwrap(), Ok(()));
        assert_eq!(queue.blocked_total(), 1);
    }

    #[test]
    fn a_sender_never_hangs_on_a_stuck_or_closed_writer() {
        let queue = Arc::new(Queue::new(1));
        queue.push(0).unwrap();
        let sender = std::thread::spawn({
            let queue = Arc::clone(&queue);
            move || queue.push(1)
        });
        while queue.blocked_total() == 0 {
            std::thread::yield_now();
        }

        queue.set_stuck(Some("no room".to_owned()));

        assert_eq!(sender.join().unwrap(), Err(Rejected::Stuck("no room".to_owned())));
        queue.close("done");
        assert_eq!(queue.push_beyond_bound(2), Err(Rejected::Closed("done".to_owned())));
        assert_eq!(queue.pop(None, |item| *item > 0), Popped::Closed);
        assert_eq!(queue.pop(None, |_| true), Popped::Item(0));
        assert_eq!(queue.pop(None, |_| true), Popped::Closed);
    }

    #[test]
    fn an_empty_queue_times_out() {
        assert_eq!(Queue::<u8>::new(1).pop(Some(Duration::from_millis(1)), |_| true), Popped::Timeout);
    }
}

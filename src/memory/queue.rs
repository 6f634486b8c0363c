//! The bounded queue between the stages and the writer's thread.
//!
//! In: commands from any thread. Out: the same, in order, to one thread.
//! When it is full the sender waits, because what arrives here must not be lost. Only when the writer itself is stuck
//! (a full disk) does what is worth least go instead, so that no sender hangs: a waiting command, if one is worth less
//! than the new one, else the new one, which is refused. Of waiting commands worth the same the newest goes.
//! Never: drops a command it has accepted for any other reason, or one that has no worth.

use std::cmp::Reverse;
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
    worth: fn(&T) -> Option<u8>,
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
    shed_total: u64,
}

impl<T> State<T> {
    /// Makes room for a command of that worth by giving up one that is worth less, if there is one.
    fn shed_for(&mut self, worth_of_new: Option<u8>, worth: fn(&T) -> Option<u8>) -> bool {
        let least = (0..).zip(&self.items).filter_map(|(place, item)| Some((worth(item)?, Reverse(place)))).min();
        let Some((least, Reverse(place))) = least else { return false };
        if worth_of_new.is_some_and(|new| new <= least) {
            return false;
        }
        self.items.remove(place);
        self.shed_total += 1;
        true
    }
}

impl<T> Queue<T> {
    /// An empty queue that holds up to `length_max` commands. `worth` says which goes first when the writer is stuck; `None`
    /// for what must not be given up.
    pub(crate) fn new(length_max: usize, worth: fn(&T) -> Option<u8>) -> Self {
        let state = State { items: VecDeque::new(), closed: None, stuck: None, blocked_total: 0, shed_total: 0 };
        Self { worth, state: Mutex::new(state), changed: Condvar::new(), room: Condvar::new(), length_max }
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
            if let Some(reason) = state.stuck.clone() {
                if state.shed_for((self.worth)(&item), self.worth) {
                    break;
                }
                return Err(Rejected::Stuck(reason));
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

    /// How many accepted commands were given up for others.
    pub(crate) fn shed_total(&self) -> u64 {
        self.lock().shed_total
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
        let queue = Arc::new(Queue::new(2, |_| None));
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
        let queue = Arc::new(Queue::new(1, |_| Some(1)));
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
        assert_eq!(Queue::<u8>::new(1, |_| None).pop(Some(Duration::from_millis(1)), |_| true), Popped::Timeout);
    }

    #[test]
    fn a_stuck_writer_costs_what_is_worth_least() {
        let queue = Queue::new(3, |item: &u8| (*item < 100).then_some(item / 10));
        for item in [20, 10, 11] {
            queue.push(item).unwrap();
        }
        queue.set_stuck(Some("no room".to_owned()));

        let answers = [12, 30, 100, 21, 5].map(|item| queue.push(item).is_ok());
        queue.set_stuck(None);
        queue.close("done");
        let next = || if let Popped::Item(item) = queue.pop(None, |_| true) { Some(item) } else { None };
        let left: Vec<_> = std::iter::from_fn(next).collect();

        assert_eq!(answers, [false, true, true, false, false], "ties and less are refused; what has no worth gets in");
        assert_eq!(left, [20, 30, 100], "in their order; 11 went before the older 10");
        assert_eq!(queue.shed_total(), 2);
    }
}

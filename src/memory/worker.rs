//! The writer's thread: takes commands, keeps them as a group, commits the group, answers.
//!
//! A group that cannot be committed stays and is tried again as a whole, so rows keep their order and none is half stored.
//! A row that SQLite refuses is set aside with its id and the rest of the group goes on (see [`crate::memory::commit`]).
//!
//! In idle moments it does slices of what is kept beside the store (see [`crate::memory::similarity::companion`]).
//!
//! While a session is replaced there is one open transaction instead: groups go into it without a commit, and a failure
//! takes all of it back (see [`crate::memory::sessions`]).

mod answers;

use crate::domain::disposition::Disposition;
use crate::domain::id::DeviceId;
use crate::domain::id::EpisodeId;
use crate::domain::id::SessionId;
use crate::domain::time::Clock;
use crate::memory::command::Command;
use crate::memory::command::Counters;
use crate::memory::command::RowCommand;
use crate::memory::commit;
use crate::memory::error::StoreError;
use crate::memory::forget::held;
use crate::memory::links;
use crate::memory::media;
use crate::memory::queue::Popped;
use crate::memory::queue::Queue;
use crate::memory::store::Store;
use crate::memory::strength::Raised;
use crate::memory::writer::GROUP_MS;
use crate::memory::writer::GROUP_ROWS_MAX;
use crate::memory::writer::STRENGTH_MS;
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

/// The queue must have been empty for so long before the thread turns to what can wait.
const IDLE_WAIT: Duration = Duration::from_millis(50);

/// Episodes that look for another link in one slice.
const REFILLED_MAX: usize = 16;

/// What the thread and its handle share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) queue: Queue<Command>,
    counters: Mutex<Counters>,
    end_reason: Mutex<Option<String>>,
    /// What of the raised strength is not written yet, for searches that must count it.
    raised: Mutex<BTreeMap<EpisodeId, u32>>,
}

impl Shared {
    pub(crate) fn new(queue: Queue<Command>) -> Self {
        Self { queue, counters: Mutex::default(), end_reason: Mutex::default(), raised: Mutex::default() }
    }

    pub(crate) fn counters(&self) -> Counters {
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Counters { sends_blocked: self.queue.blocked_total(), rows_shed: self.queue.shed_total(), ..counters }
    }

    pub(crate) fn raised(&self) -> BTreeMap<EpisodeId, u32> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_raised(&self, raised: &Raised) {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).clone_from(raised.by());
    }

    pub(crate) fn end_reason(&self) -> String {
        let reason = self.end_reason.lock().unwrap_or_else(PoisonError::into_inner).clone();
        reason.unwrap_or_else(|| "it was closed".to_owned())
    }

    fn count(&self, group: Counters) {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner).add(group);
    }
}

/// A session that is being replaced.
#[derive(Debug)]
enum Replacement {
    /// Its transaction is open.
    Open { device_id: DeviceId, session_id: SessionId, counters: Counters, unused: Vec<String> },
    /// It was taken back; what still comes is dropped until the session is finished, which gets the cause.
    Failed(StoreError),
}

/// The thread's state.
pub(crate) struct Worker {
    store: Store,
    clock: Box<dyn Clock>,
    shared: Arc<Shared>,
    group: Vec<RowCommand>,
    /// When the group is due, in the clock's monotonic time.
    due_ms: i64,
    replacement: Option<Replacement>,
    raised: Raised,
}

/// Ends the queue however the thread ends, so that no sender waits for it.
struct QueueEnd(Arc<Shared>);

impl Drop for QueueEnd {
    fn drop(&mut self) {
        let rows_lost = self.0.queue.abandon(&self.0.end_reason()) as u64;
        self.0.count(Counters { rows_lost, ..Counters::default() });
    }
}

impl Worker {
    pub(crate) fn new(store: Store, clock: Box<dyn Clock>, shared: Arc<Shared>) -> Self {
        Self { store, clock, shared, group: Vec::new(), due_ms: 0, replacement: None, raised: Raised::default() }
    }

    /// Works until the queue is closed and empty, or until the store is damaged.
    pub(crate) fn run(mut self) -> Result<(), StoreError> {
        let end = QueueEnd(Arc::clone(&self.shared));
        let result = self.work();
        if let Err(error) = &result {
            *end.0.end_reason.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
            self.shared.count(Counters { rows_lost: self.group.len() as u64, ..Counters::default() });
        }
        result
    }

    fn work(&mut self) -> Result<(), StoreError> {
        loop {
            let is_full = self.group.len() >= GROUP_ROWS_MAX;
            let result = match self.next(is_full) {
                Popped::Item(Command::Row(row)) => self.take(row),
                Popped::Item(Command::Raise(ids)) => {
                    self.raised.take(ids, self.clock.monotonic_ms());
                    self.shared.set_raised(&self.raised);
                    Ok(())
                }
                Popped::Item(Command::Question(question)) if is_full => self.answer_ahead(question),
                Popped::Item(Command::Question(question)) => {
                    self.answer(question);
                    Ok(())
                }
                Popped::Timeout if self.group.is_empty() => {
                    let written = self.write_raised(false);
                    self.tend();
                    written
                }
                Popped::Timeout => self.commit_group(),
                Popped::Closed if self.group.is_empty() => return self.end(),
                Popped::Closed => {
                    self.commit_group()?;
                    Ok(())
                }
            };
            // What may pass is tried again when the group is next due.
            if let Err(error) = result
                && error.disposition() != Disposition::Retry
            {
                return Err(error);
            }
        }
    }

    /// A full group that cannot be committed takes no more rows, but questions still get their answer.
    fn next(&self, is_full: bool) -> Popped<Command> {
        let now_ms = self.clock.monotonic_ms();
        let until = |due_ms: i64, longest_ms: i64| {
            Duration::from_millis(due_ms.saturating_sub(now_ms).clamp(0, longest_ms).unsigned_abs())
        };
        let timeout = if self.group.is_empty() {
            let raised = self.raised.due_ms().map(|due_ms| until(due_ms, STRENGTH_MS));
            [raised, self.has_idle_work().then_some(IDLE_WAIT)].into_iter().flatten().min()
        } else {
            Some(until(self.due_ms, GROUP_MS))
        };
        self.shared.queue.pop(timeout, |command| !is_full || matches!(command, Command::Question(_)))
    }

    fn take(&mut self, mut row: RowCommand) -> Result<(), StoreError> {
        // Early, so that pictures do not pile up in memory; what fails here is tried again with the commit.
        let _ = commit::write_files(&self.store, &mut row);
        let now_ms = self.clock.monotonic_ms();
        if self.group.is_empty() {
            self.due_ms = now_ms.saturating_add(GROUP_MS);
        }
        self.group.push(row);
        let is_stuck = self.shared.queue.stuck().is_some();
        if now_ms >= self.due_ms || (self.group.len() >= GROUP_ROWS_MAX && !is_stuck) {
            return self.commit_group();
        }
        Ok(())
    }

    fn commit_group(&mut self) -> Result<(), StoreError> {
        if self.group.is_empty() {
            return Ok(());
        }
        match &self.replacement {
            None => self.commit_rows(),
            Some(Replacement::Open { .. }) => {
                self.extend_replacement();
                Ok(())
            }
            Some(Replacement::Failed(_)) => {
                self.shared.count(Counters { rows_lost: self.group.len() as u64, ..Counters::default() });
                self.group.clear();
                Ok(())
            }
        }
    }

    /// Writes raised strengths that are due, or all of them. A failure costs nothing: they are kept for the next time.
    fn write_raised(&mut self, at_once: bool) -> Result<(), StoreError> {
        let now_ms = self.clock.monotonic_ms();
        if self.replacement.is_some() || !self.raised.is_due(now_ms, at_once) {
            return Ok(());
        }
        let raised = &self.raised;
        let at_store = |error| StoreError::from_sqlite(&self.store.path, error);
        let result = commit::transaction(&self.store, |connection| raised.write(connection).map_err(at_store));
        self.raised.settle(result.is_ok(), now_ms);
        self.shared.set_raised(&self.raised);
        result
    }

    fn commit_rows(&mut self) -> Result<(), StoreError> {
        let group = &mut self.group;
        let files = group.iter_mut().try_for_each(|row| commit::write_files(&self.store, row));
        let stored_at = self.clock.utc();
        let result = files.and_then(|()| {
            commit::transaction(&self.store, |connection| {
                commit::apply(&self.store, connection, commit::context(&self.store, stored_at), group)
            })
        });
        match result {
            Ok((counters, unused)) => {
                self.group.clear();
                self.shared.count(Counters { commits: 1, ..counters });
                self.shared.queue.set_stuck(None);
                self.unlink(&unused)
            }
            Err(error) => {
                self.shared.count(Counters { commits_failed: 1, ..Counters::default() });
                self.shared.queue.set_stuck(Some(error.to_string()));
                self.due_ms = self.clock.monotonic_ms().saturating_add(GROUP_MS);
                Err(error)
            }
        }
    }

    /// Puts the group into the open transaction; a failure takes the whole replacement back.
    fn extend_replacement(&mut self) {
        let mut group = mem::take(&mut self.group);
        let stored_at = self.clock.utc();
        let held = match self.drop_held(&mut group) {
            Ok(held) => held,
            Err(error) => return self.fail_replacement(error, &group),
        };
        let files = group.iter_mut().try_for_each(|row| commit::write_files(&self.store, row));
        let result = files.and_then(|()| {
            commit::apply(&self.store, &self.store.connection, commit::context(&self.store, stored_at), &group)
        });
        let Some(Replacement::Open { counters, unused, .. }) = &mut self.replacement else { return };
        match result {
            Ok((added, more)) => {
                counters.add(added);
                unused.extend(more.into_iter().chain(held));
            }
            Err(error) => self.fail_replacement(error, &group),
        }
    }

    fn fail_replacement(&mut self, error: StoreError, group: &[RowCommand]) {
        commit::roll_back(&self.store);
        self.replacement = Some(Replacement::Failed(error));
        self.shared.count(Counters { rows_lost: group.len() as u64, ..Counters::default() });
    }

    /// Takes out the rows that would bring back, under other ids, what was forgotten of the session. Returns their files.
    fn drop_held(&self, group: &mut Vec<RowCommand>) -> Result<Vec<String>, StoreError> {
        let (mut dropped, mut paths) = (0, Vec::new());
        for index in (0..group.len()).rev() {
            let RowCommand::Episode { record, .. } = &group[index] else { continue };
            if held::holds_back(&self.store.connection, record).map_err(|error| self.at_store(error))? {
                dropped += 1;
                if let RowCommand::Episode { files, .. } = group.remove(index) {
                    paths.extend(files.into_iter().map(|file| file.path));
                }
            }
        }
        self.shared.count(Counters { rows_blocked: dropped, ..Counters::default() });
        Ok(paths)
    }

    fn has_idle_work(&self) -> bool {
        self.replacement.is_none() && self.store.companion.borrow().has_work()
    }

    /// A slice of what is kept beside the store. `true` while there is more.
    fn tend(&mut self) -> bool {
        let context = commit::context(&self.store, self.clock.utc());
        let is_loosened = self.store.companion.borrow().has_loosened();
        if is_loosened {
            // What fails here leaves an episode with a link less than it could have.
            let _ = commit::transaction(&self.store, |connection| {
                links::similar::refill(connection, &context, REFILLED_MAX).map_err(|error| self.at_store(error))
            });
            return true;
        }
        self.store.companion.borrow_mut().tend(&self.store.connection)
    }

    fn unlink(&self, unused: &[String]) -> Result<(), StoreError> {
        media::unlink(&self.store.connection, &self.store.dir, unused).map_err(|error| self.at_store(error))
    }

    fn at_store(&self, error: rusqlite::Error) -> StoreError {
        StoreError::from_sqlite(&self.store.path, error)
    }

    fn end(&mut self) -> Result<(), StoreError> {
        let replacement = self.end_replacement();
        self.store.companion.borrow_mut().close();
        replacement
    }

    fn end_replacement(&mut self) -> Result<(), StoreError> {
        match self.replacement.take() {
            None => self.write_raised(true),
            Some(Replacement::Failed(error)) => Err(error),
            Some(Replacement::Open { session_id, .. }) => {
                commit::roll_back(&self.store);
                Err(StoreError::WrongState(format!(
                    "session {session_id} was not replaced to its end; its old rows stand"
                )))
            }
        }
    }
}

#[cfg(test)]
mod tests;

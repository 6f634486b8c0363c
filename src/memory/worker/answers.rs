//! Questions: each commits what came before it, then does its own work in a transaction.
//!
//! In: a [`Question`]. Out: its answer, after the commit. Only the disk budget does not wait for the rows before it: it is
//! what makes room for them.

use crate::domain::episode::EpisodeRecord;
use crate::domain::episode::Metadata;
use crate::domain::id::DeviceId;
use crate::domain::id::SessionId;
use crate::domain::time::Timestamp;
use crate::memory::command::Command;
use crate::memory::command::Counters;
use crate::memory::command::Question;
use crate::memory::command::RowCommand;
use crate::memory::command::Stored;
use crate::memory::commit;
use crate::memory::error::StoreError;
use crate::memory::eviction;
use crate::memory::eviction::Eviction;
use crate::memory::forget;
use crate::memory::forget::Order;
use crate::memory::forget::Plan;
use crate::memory::forget::Round;
use crate::memory::forget::Step;
use crate::memory::forget::scrub;
use crate::memory::media_check;
use crate::memory::media_check::Mending;
use crate::memory::removal;
use crate::memory::retention::Budget;
use crate::memory::sessions;
use crate::memory::sessions::Registration;
use crate::memory::sessions::Session;
use crate::memory::worker::Replacement;
use crate::memory::worker::Worker;
use rusqlite::Connection;

impl Worker {
    /// A question that overtook rows waiting behind a full group: if the group can be committed, it goes back behind
    /// those rows, else it is told why not.
    pub(super) fn answer_ahead(&mut self, question: Question) -> Result<(), StoreError> {
        if let Question::Keep { .. } = question {
            self.answer(question);
            return Ok(());
        }
        match self.commit_group() {
            Ok(()) => {
                // Refused only when the handle is being closed; its asker is then told so.
                let _ = self.shared.queue.push_beyond_bound(Command::Question(question));
            }
            Err(error) => question.fail(error),
        }
        Ok(())
    }

    pub(super) fn answer(&mut self, question: Question) {
        // An asker that has gone away needs no answer.
        match question {
            Question::Flush(reply) => drop(reply.send(self.flush())),
            Question::Register(session, reply) => drop(reply.send(self.register(&session))),
            Question::Replace(session, reply) => drop(reply.send(self.replace(&session))),
            Question::Finish { device_id, session_id, counts, reply } => {
                drop(reply.send(self.finish(&device_id, &session_id, &counts)));
            }
            Question::Prune(now, reply) => drop(reply.send(self.prune(now))),
            Question::Keep { budget, now, reply } => drop(reply.send(self.keep_within(budget, now))),
            Question::ExpireMedia(before, reply) => drop(reply.send(self.expire_media(before))),
            Question::Mend(reply) => drop(reply.send(self.mend_media())),
            Question::Tend(reply) => drop(reply.send(self.tend_now())),
            Question::ForgetVectors(reply) => drop(reply.send(self.forget_vectors())),
            Question::Store(records, reply) => drop(reply.send(self.store(records))),
            Question::Forget { order, step, reply } => drop(reply.send(self.forget(&order, step))),
        }
    }

    fn flush(&mut self) -> Result<Counters, StoreError> {
        self.commit_before()?;
        self.write_raised(true)?;
        Ok(self.shared.counters())
    }

    fn register(&mut self, session: &Session) -> Result<Registration, StoreError> {
        self.commit_before()?;
        let context = commit::context(&self.store, self.clock.utc());
        self.ask_store(|connection| sessions::register(connection, &context, session))
    }

    fn prune(&mut self, now: Timestamp) -> Result<usize, StoreError> {
        self.commit_before()?;
        let context = commit::context(&self.store, self.clock.utc());
        let (count, unused) = self.ask_store(|connection| removal::prune_expired(connection, &context, now))?;
        self.unlink(&unused)?;
        Ok(count)
    }

    fn expire_media(&mut self, before: Timestamp) -> Result<usize, StoreError> {
        self.commit_before()?;
        let (count, unused) = self.ask_store(|connection| eviction::expire_media(connection, before))?;
        self.unlink(&unused)?;
        Ok(count)
    }

    fn replace(&mut self, session: &Session) -> Result<(), StoreError> {
        self.commit_before()?;
        let connection = &self.store.connection;
        let context = commit::context(&self.store, self.clock.utc());
        let begun = connection
            .execute_batch("BEGIN IMMEDIATE")
            .and_then(|()| sessions::begin_replacement(connection, &context, session));
        let unused = begun.map_err(|error| {
            commit::roll_back(&self.store);
            self.at_store(error)
        })?;
        let (device_id, session_id) = (session.device_id.clone(), session.session_id.clone());
        self.replacement = Some(Replacement::Open { device_id, session_id, counters: Counters::default(), unused });
        Ok(())
    }

    fn finish(
        &mut self,
        device_id: &DeviceId,
        session_id: &SessionId,
        counts: &Metadata,
    ) -> Result<Counters, StoreError> {
        self.commit_group()?;
        match self.replacement.take() {
            Some(Replacement::Failed(error)) => return Err(error),
            Some(Replacement::Open { device_id: device, session_id: session, counters, unused })
                if (&device, &session) == (device_id, session_id) =>
            {
                self.complete(device_id, session_id, counts)?;
                self.shared.count(Counters { commits: 1, ..counters });
                self.unlink(&unused)?;
            }
            Some(other) => {
                self.replacement = Some(other);
                return Err(StoreError::WrongState(format!("session {session_id} is not the one being replaced")));
            }
            None => {
                let known = self.ask_store(|connection| sessions::finish(connection, device_id, session_id, counts))?;
                if !known {
                    return Err(StoreError::WrongState(format!("session {session_id} was never registered")));
                }
            }
        }
        Ok(self.shared.counters())
    }

    /// Commits the open replacement.
    fn complete(&self, device_id: &DeviceId, session_id: &SessionId, counts: &Metadata) -> Result<(), StoreError> {
        let connection = &self.store.connection;
        let context = commit::context(&self.store, self.clock.utc());
        sessions::complete_replacement(connection, &context, device_id)
            .and_then(|()| sessions::finish(connection, device_id, session_id, counts))
            .and_then(|_| connection.execute_batch("COMMIT"))
            .map(|()| self.store.companion.borrow_mut().committed())
            .map_err(|error| {
                commit::roll_back(&self.store);
                self.at_store(error)
            })
    }

    /// Commits the group; while a session is replaced nothing else can be committed.
    fn commit_before(&mut self) -> Result<(), StoreError> {
        self.refuse_while_replacing()?;
        self.commit_group()
    }

    fn refuse_while_replacing(&self) -> Result<(), StoreError> {
        if let Some(Replacement::Open { session_id, .. }) = &self.replacement {
            return Err(StoreError::WrongState(format!("session {session_id} is being replaced; finish it first")));
        }
        Ok(())
    }

    /// Rows that wait are not committed first: on a full disk they could not be.
    fn keep_within(&mut self, budget: Budget, now: Option<Timestamp>) -> Result<Eviction, StoreError> {
        self.refuse_while_replacing()?;
        let (mut eviction, unused) = match self.evict(budget, now) {
            Err(StoreError::Full { .. }) => {
                // What goes has to be written down first. The WAL may hold the room that is missing, if it can be emptied.
                let _ = eviction::empty_wal(&self.store.connection);
                eviction::make_room(&self.store.connection, &self.store.dir, budget)
                    .map_err(|error| self.at_store(error))?;
                self.evict(budget, now)?
            }
            other => other?,
        };
        self.unlink(&unused)?;
        eviction.pages_returned =
            eviction::return_pages(&self.store.connection).map_err(|error| self.at_store(error))?;
        Ok(eviction)
    }

    fn evict(&self, budget: Budget, now: Option<Timestamp>) -> Result<(Eviction, Vec<String>), StoreError> {
        let context = commit::context(&self.store, self.clock.utc());
        self.ask_store(|connection| eviction::evict(connection, &context, budget, now))
    }

    fn tend_now(&mut self) -> Result<bool, StoreError> {
        self.commit_before()?;
        Ok(self.tend())
    }

    fn forget_vectors(&mut self) -> Result<(), StoreError> {
        self.commit_before()?;
        self.store.companion.borrow_mut().forget()
    }

    fn forget(&mut self, order: &Order, step: Step) -> Result<Round, StoreError> {
        self.commit_before()?;
        let context = commit::context(&self.store, self.clock.utc());
        match step {
            Step::Rows(after) => {
                let plan = Plan::new(order)?;
                let (round, unused) = self.ask_store(|connection| forget::rows(connection, &context, &plan, after))?;
                self.unlink(&unused)?;
                Ok(round)
            }
            Step::Rest => {
                let plan = Plan::new(order)?;
                self.ask_store(|connection| forget::beside_rows(connection, &context, &plan))
            }
            Step::SetAside | Step::FullText | Step::MoreFullText | Step::FreePages | Step::Gaps(_) => {
                scrub::clean(&self.store, step)
            }
        }
    }

    fn mend_media(&mut self) -> Result<Mending, StoreError> {
        self.commit_before()?;
        commit::transaction(&self.store, |connection| media_check::mend(&self.store.dir, &self.store.path, connection))
    }

    /// One transaction, and a savepoint for each episode, so that each has its own answer.
    fn store(&mut self, records: Vec<EpisodeRecord>) -> Result<Vec<Stored>, StoreError> {
        self.commit_before()?;
        let mut rows: Vec<RowCommand> = records
            .into_iter()
            .map(|record| RowCommand::Episode { record: Box::new(record), files: Vec::new() })
            .collect();
        rows.iter_mut().try_for_each(|row| commit::write_files(&self.store, row))?;
        let stored_at = self.clock.utc();
        let (mut total, mut unused, mut outcomes) = (Counters::default(), Vec::new(), Vec::with_capacity(rows.len()));
        commit::transaction(&self.store, |connection| {
            for row in &rows {
                let context = commit::context(&self.store, stored_at);
                let (counters, files) = commit::apply(&self.store, connection, context, std::slice::from_ref(row))?;
                outcomes.push(outcome(&counters));
                total.add(counters);
                unused.extend(files);
            }
            Ok(())
        })?;
        self.shared.count(Counters { commits: 1, ..total });
        self.unlink(&unused)?;
        Ok(outcomes)
    }

    fn ask_store<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        commit::transaction(&self.store, |connection| work(connection).map_err(|error| self.at_store(error)))
    }
}

/// What the counters of one row say about it.
fn outcome(counters: &Counters) -> Stored {
    match counters {
        Counters { episodes_inserted: 1, .. } => Stored::New,
        Counters { episodes_updated: 1, .. } => Stored::Updated,
        Counters { rows_blocked: 1, .. } => Stored::Blocked,
        Counters { rows_refused: 1, .. } => Stored::Refused(counters.refusals.concat()),
        _ => Stored::Known,
    }
}

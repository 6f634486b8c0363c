//! The store's one writer: a thread that owns the [`Store`], and the handle through which every stage reaches it.
//!
//! In: rows (nobody waits) and questions (the caller waits). Out: commits, grouped to at most [`GROUP_MS`].
//! "Finished means committed": the answer to [`Writer::flush`] and its like comes after the commit is on the disk.
//!
//! ```text
//! stages --append--> [ queue, QUEUE_ROWS_MAX ] --> group (GROUP_ROWS_MAX or GROUP_MS) --> one commit
//! ```
//!
//! When the queue is full the sender waits and is counted. When the disk is full or another program holds the file, the
//! group is kept and tried again every [`GROUP_MS`]. Once the queue is full too, the least important row goes, so that no
//! sender hangs: one that waits (counted as `rows_shed`), or the new one, which is refused with the cause and is the
//! sender's to keep or drop.

use crate::domain::episode::Embedding;
use crate::domain::episode::EpisodeRecord;
use crate::domain::episode::Metadata;
use crate::domain::id::DeviceId;
use crate::domain::id::EpisodeId;
use crate::domain::id::SessionId;
use crate::domain::time::Clock;
use crate::domain::time::Timestamp;
use crate::memory::clock::ClockCorrection;
use crate::memory::command::Command;
use crate::memory::command::Counters;
use crate::memory::command::Question;
use crate::memory::command::Reply;
use crate::memory::command::RowCommand;
use crate::memory::command::Stored;
use crate::memory::coverage::CoverageRecord;
use crate::memory::error::StoreError;
use crate::memory::eviction::Eviction;
use crate::memory::forget::Order;
use crate::memory::forget::Round;
use crate::memory::forget::Step;
use crate::memory::media_check::Mending;
use crate::memory::queue::Queue;
use crate::memory::queue::Rejected;
use crate::memory::record;
use crate::memory::retention::Budget;
use crate::memory::sessions::Registration;
use crate::memory::sessions::Session;
use crate::memory::store::Store;
use crate::memory::strength::Raiser;
use crate::memory::worker::Shared;
use crate::memory::worker::Worker;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

/// Rows the queue holds; a sender waits when it is full.
pub const QUEUE_ROWS_MAX: usize = 64;

/// Rows that are committed together at most.
pub const GROUP_ROWS_MAX: usize = 32;

/// Episodes that [`Writer::store`] takes at a time.
pub const STORE_ROWS_MAX: usize = 256;

/// The longest a row waits for its commit, in milliseconds: what a power cut can take.
pub const GROUP_MS: i64 = 1_000;

/// The longest a raised strength waits to be written, in milliseconds.
pub const STRENGTH_MS: i64 = 60_000;

/// The handle. Threads share it by reference or [`Arc`].
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
    path: PathBuf,
    thread: Option<JoinHandle<Result<(), StoreError>>>,
}

impl Writer {
    /// Starts the thread. `clock` says when rows were stored and when a group is due.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the system gives no thread.
    pub fn spawn(store: Store, clock: Box<dyn Clock>) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared::new(Queue::new(QUEUE_ROWS_MAX, Command::worth)));
        let path = store.path.clone();
        let worker = Worker::new(store, clock, Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || worker.run())
            .map_err(|error| StoreError::from_io("start the writer of", &path, error))?;
        Ok(Self { shared, path, thread: Some(thread) })
    }

    /// Hands over an episode. An id that is there already is left (same content) or updated (other content).
    ///
    /// # Errors
    /// [`StoreError::Refused`] for what must never be stored (NaN, a vector that is not of unit length);
    /// [`StoreError::Full`] when the disk and the queue are full; [`StoreError::Stopped`] when the writer is gone.
    pub fn append(&self, record: EpisodeRecord) -> Result<(), StoreError> {
        record::check(&record)?;
        self.send(RowCommand::Episode { record: Box::new(record), files: Vec::new() })
    }

    /// Stores episodes in one transaction and says what became of each, in their order, once it is committed. One that
    /// must never be stored is [`Stored::Refused`] and the others are stored. At most [`STORE_ROWS_MAX`] at a time: the
    /// rows of other senders wait for the commit.
    ///
    /// # Errors
    /// Any [`StoreError`] of the commit, which then stored none of them; the same call can be made again.
    /// [`StoreError::WrongState`] for more than [`STORE_ROWS_MAX`].
    pub fn store(&self, records: Vec<EpisodeRecord>) -> Result<Vec<Stored>, StoreError> {
        if records.len() > STORE_ROWS_MAX {
            return Err(StoreError::WrongState(format!(
                "{} episodes at once; the most is {STORE_ROWS_MAX}",
                records.len()
            )));
        }
        let mut refused: Vec<Option<Stored>> = Vec::with_capacity(records.len());
        let mut sound = Vec::with_capacity(records.len());
        for record in records {
            let refusal = record::check(&record).err();
            if refusal.is_none() {
                sound.push(record);
            }
            refused.push(refusal.map(|error| Stored::Refused(error.to_string())));
        }
        let mut stored = self.ask(|reply| Question::Store(sound, reply))?.into_iter();
        Ok(refused.into_iter().filter_map(|refusal| refusal.or_else(|| stored.next())).collect())
    }

    /// Hands over a summary and the episodes it is made of. The same one again changes nothing but its links.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn gist(&self, record: EpisodeRecord, sources: Vec<(EpisodeId, f64)>) -> Result<(), StoreError> {
        record::check(&record)?;
        self.send(RowCommand::Gist { record: Box::new(record), sources })
    }

    /// Removes a summary that has nothing to tell any more, if it is there.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn remove_gist(&self, id: EpisodeId) -> Result<(), StoreError> {
        self.send(RowCommand::NoGist(id))
    }

    /// Hands over vectors for an episode that is stored.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn add_vectors(&self, id: EpisodeId, embeddings: Vec<Embedding>) -> Result<(), StoreError> {
        if let Some(reason) = record::check_embeddings(&embeddings) {
            return Err(StoreError::Refused { id: id.to_string(), reason });
        }
        self.send(RowCommand::Vectors { id, embeddings })
    }

    /// Hands over a blind interval. The same one again adds nothing; the same start with a later end extends it.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn coverage(&self, record: CoverageRecord) -> Result<(), StoreError> {
        self.send(RowCommand::Coverage(Box::new(record)))
    }

    /// Moves rows captured before the clock was right, those of the scope that are still to come included.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn correct_clock(&self, correction: ClockCorrection) -> Result<(), StoreError> {
        self.send(RowCommand::Clock(correction))
    }

    /// Says that a search returned these episodes: each becomes stronger by one, within [`STRENGTH_MS`] or at the next
    /// [`Writer::flush`]. What is known of it until then a power cut takes.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn raise_strength(&self, ids: Vec<EpisodeId>) -> Result<(), StoreError> {
        self.shared.queue.push(Command::Raise(ids)).map_err(|rejected| self.rejected(rejected))
    }

    /// The same for threads that may outlive the writer.
    #[must_use]
    pub fn raiser(&self) -> Raiser {
        Raiser::new(Arc::clone(&self.shared))
    }

    /// Registers a session, or says what is known of it.
    ///
    /// # Errors
    /// Any [`StoreError`] of the commit.
    pub fn register_session(&self, session: Session) -> Result<Registration, StoreError> {
        self.ask(|reply| Question::Register(session, reply))
    }

    /// Begins to replace the rows of a session: all that is appended until [`Writer::finish_session`] commits with it,
    /// in one transaction. If it fails or the writer ends before, the old rows stand.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] while another session is being replaced, and any [`StoreError`] of the removal.
    pub fn replace_session(&self, session: Session) -> Result<(), StoreError> {
        self.ask(|reply| Question::Replace(session, reply))
    }

    /// Commits everything before it and marks the session as done with what its reader counted.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] when the session was never registered, and any [`StoreError`] of the commit.
    pub fn finish_session(
        &self,
        device_id: DeviceId,
        session_id: SessionId,
        counts: Metadata,
    ) -> Result<Counters, StoreError> {
        self.ask(|reply| Question::Finish { device_id, session_id, counts, reply })
    }

    /// Removes `session` rows older than three hours, leaving tombstones. Returns how many; call again while it is
    /// [`crate::memory::removal::PRUNE_ROWS_MAX`]. `now` must come from a clock that is set.
    ///
    /// # Errors
    /// Any [`StoreError`] of the commit.
    pub fn prune_expired(&self, now: Timestamp) -> Result<usize, StoreError> {
        self.ask(|reply| Question::Prune(now, reply))
    }

    /// Keeps used pages and media within the budget: over it, the least valuable goes until
    /// [`crate::memory::retention::TARGET_PERCENT`] of it are used, a bounded piece a call; call again while
    /// [`Eviction::is_more`]. `now` is `None` while the clock is unset: then only media go, in the order they came.
    /// Works while rows cannot be committed for want of room.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] while a session is being replaced, and any [`StoreError`] of the commit.
    pub fn keep_within(&self, budget: Budget, now: Option<Timestamp>) -> Result<Eviction, StoreError> {
        self.ask(|reply| Question::Keep { budget, now, reply })
    }

    /// Lets go of kept pictures and recordings that were captured before `before`: their rows stay and say so (`evicted`).
    /// Returns how many; call again while it is [`crate::memory::eviction::FILES_MAX`]. The clock must be set.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] while a session is being replaced, and any [`StoreError`] of the commit.
    pub fn expire_media(&self, before: Timestamp) -> Result<usize, StoreError> {
        self.ask(|reply| Question::ExpireMedia(before, reply))
    }

    /// Makes rows and files of media agree again. See [`crate::memory::media_check`].
    ///
    /// # Errors
    /// [`StoreError::WrongState`] while a session is being replaced, and any [`StoreError`] of the commit.
    pub fn mend_media(&self) -> Result<Mending, StoreError> {
        self.ask(Question::Mend)
    }

    /// Does a slice of what the writer otherwise does in idle moments: indexes of vectors, links in place of lost ones.
    /// `true` while there is more; who wants all of it done calls again.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] while a session is being replaced, and any [`StoreError`] of the commit before it.
    pub fn tend(&self) -> Result<bool, StoreError> {
        self.ask(Question::Tend)
    }

    /// Removes every vector that is kept beside the store, in files and in memory. It is made again from the rows in idle
    /// moments, so call it after the rows that must not come back have gone.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] while a session is being replaced, [`StoreError::Io`] when a file cannot be removed, and any
    /// [`StoreError`] of the commit before it.
    pub fn forget_vectors(&self) -> Result<(), StoreError> {
        self.ask(Question::ForgetVectors)
    }

    /// Carries out one step of an order to forget. Begin with [`Step::FIRST`] and go on with [`Round::next`] until it is
    /// `None`; each step is short and can be repeated. See [`crate::memory::forget`].
    ///
    /// # Errors
    /// [`StoreError::WrongState`] for an order that cannot be carried out and while a session is being replaced, and any
    /// [`StoreError`] of the commit.
    pub fn forget(&self, order: Arc<Order>, step: Step) -> Result<Round, StoreError> {
        self.ask(|reply| Question::Forget { order, step, reply })
    }

    /// Waits until everything handed over before is committed.
    ///
    /// # Errors
    /// Why it could not be committed; it is kept and tried again where that can help (see [`StoreError::disposition`]).
    pub fn flush(&self) -> Result<Counters, StoreError> {
        self.ask(Question::Flush)
    }

    /// What was done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.shared.counters()
    }

    /// Why the writer cannot commit at the moment; `None` when all is well.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.shared.queue.stuck()
    }

    /// Commits what is left and ends the thread.
    ///
    /// # Errors
    /// Why what was left could not be committed; it is lost and counted.
    pub fn close(mut self) -> Result<Counters, StoreError> {
        self.end()?;
        Ok(self.counters())
    }

    fn end(&mut self) -> Result<(), StoreError> {
        self.shared.queue.close("it was closed");
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err(StoreError::Stopped { cause: "it panicked".to_owned() }))
    }

    fn send(&self, row: RowCommand) -> Result<(), StoreError> {
        self.shared.queue.push(Command::Row(row)).map_err(|rejected| self.rejected(rejected))
    }

    fn ask<T>(&self, question: impl FnOnce(Reply<T>) -> Question) -> Result<T, StoreError> {
        let (reply, answer) = mpsc::sync_channel(1);
        let command = Command::Question(question(reply));
        self.shared.queue.push_beyond_bound(command).map_err(|rejected| self.rejected(rejected))?;
        answer.recv().unwrap_or_else(|_| Err(StoreError::Stopped { cause: self.shared.end_reason() }))
    }

    fn rejected(&self, rejected: Rejected) -> StoreError {
        match rejected {
            Rejected::Closed(cause) => StoreError::Stopped { cause },
            Rejected::Stuck(cause) => {
                let source = std::io::Error::other(cause);
                StoreError::Io { action: "store more in", path: self.path.clone(), source }
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Whoever wants to know how it ended calls `close`.
        let _ = self.end();
    }
}

//! The writer's thread: takes commands, keeps them as a group, commits the group, answers.
//!
//! A group that cannot be committed stays and is tried again as a whole, so rows keep their order and none is half stored.
//! Each row stands in a savepoint: one that SQLite refuses is set aside with its id and the rest of the group goes on.
//!
//! While a session is replaced there is one open transaction instead: groups go into it without a commit, and a failure
//! takes all of it back (see [`crate::memory::sessions`]).

use crate::domain::disposition::Disposition;
use crate::domain::episode::Metadata;
use crate::domain::id::DeviceId;
use crate::domain::id::SessionId;
use crate::domain::time::Clock;
use crate::domain::time::Timestamp;
use crate::memory::append;
use crate::memory::append::Outcome;
use crate::memory::clock;
use crate::memory::command::Command;
use crate::memory::command::Counters;
use crate::memory::command::Question;
use crate::memory::command::RowCommand;
use crate::memory::coverage;
use crate::memory::error::StoreError;
use crate::memory::media;
use crate::memory::queue::Popped;
use crate::memory::queue::Queue;
use crate::memory::removal;
use crate::memory::revision::Context;
use crate::memory::sessions;
use crate::memory::sessions::Registration;
use crate::memory::sessions::Session;
use crate::memory::store::Store;
use crate::memory::writer::GROUP_MS;
use crate::memory::writer::GROUP_ROWS_MAX;
use rusqlite::Connection;
use std::mem;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

/// What the thread and its handle share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) queue: Queue<Command>,
    counters: Mutex<Counters>,
    end_reason: Mutex<Option<String>>,
}

impl Shared {
    pub(crate) fn new(queue: Queue<Command>) -> Self {
        Self { queue, counters: Mutex::default(), end_reason: Mutex::default() }
    }

    pub(crate) fn counters(&self) -> Counters {
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Counters { sends_blocked: self.queue.blocked_total(), ..counters }
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
        Self { store, clock, shared, group: Vec::new(), due_ms: 0, replacement: None }
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
                Popped::Item(Command::Question(question)) if is_full => self.answer_ahead(question),
                Popped::Item(Command::Question(question)) => {
                    self.answer(question);
                    Ok(())
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
        let wait_ms = self.due_ms.saturating_sub(self.clock.monotonic_ms()).clamp(0, GROUP_MS);
        let timeout = (!self.group.is_empty()).then(|| Duration::from_millis(wait_ms.unsigned_abs()));
        self.shared.queue.pop(timeout, |command| !is_full || matches!(command, Command::Question(_)))
    }

    fn take(&mut self, mut row: RowCommand) -> Result<(), StoreError> {
        // Early, so that pictures do not pile up in memory; what fails here is tried again with the commit.
        let _ = write_files(&self.store, &mut row);
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

    fn commit_rows(&mut self) -> Result<(), StoreError> {
        let group = &mut self.group;
        let files = group.iter_mut().try_for_each(|row| write_files(&self.store, row));
        let stored_at = self.clock.utc();
        let result = files.and_then(|()| {
            transaction(&self.store, |connection| {
                apply(&self.store, connection, context(&self.store, stored_at), group)
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
        let files = group.iter_mut().try_for_each(|row| write_files(&self.store, row));
        let result =
            files.and_then(|()| apply(&self.store, &self.store.connection, context(&self.store, stored_at), &group));
        let Some(Replacement::Open { counters, unused, .. }) = &mut self.replacement else { return };
        match result {
            Ok((added, more)) => {
                counters.add(added);
                unused.extend(more);
            }
            Err(error) => {
                roll_back(&self.store.connection);
                self.replacement = Some(Replacement::Failed(error));
                self.shared.count(Counters { rows_lost: group.len() as u64, ..Counters::default() });
            }
        }
    }

    fn unlink(&self, unused: &[String]) -> Result<(), StoreError> {
        media::unlink(&self.store.connection, &self.store.dir, unused).map_err(|error| self.at_store(error))
    }

    fn at_store(&self, error: rusqlite::Error) -> StoreError {
        StoreError::from_sqlite(&self.store.path, error)
    }

    fn end(&mut self) -> Result<(), StoreError> {
        match self.replacement.take() {
            None => Ok(()),
            Some(Replacement::Failed(error)) => Err(error),
            Some(Replacement::Open { session_id, .. }) => {
                roll_back(&self.store.connection);
                Err(StoreError::WrongState(format!(
                    "session {session_id} was not replaced to its end; its old rows stand"
                )))
            }
        }
    }
}

/// Questions: each commits what came before it, then does its own work in a transaction.
impl Worker {
    /// A question that overtook rows waiting behind a full group: if the group can be committed, it goes back behind
    /// those rows, else it is told why not.
    fn answer_ahead(&mut self, question: Question) -> Result<(), StoreError> {
        match self.commit_group() {
            Ok(()) => {
                // Refused only when the handle is being closed; its asker is then told so.
                let _ = self.shared.queue.push_beyond_bound(Command::Question(question));
            }
            Err(error) => question.fail(error),
        }
        Ok(())
    }

    fn answer(&mut self, question: Question) {
        // An asker that has gone away needs no answer.
        match question {
            Question::Flush(reply) => drop(reply.send(self.flush())),
            Question::Register(session, reply) => drop(reply.send(self.register(&session))),
            Question::Replace(session, reply) => drop(reply.send(self.replace(&session))),
            Question::Finish { device_id, session_id, counts, reply } => {
                drop(reply.send(self.finish(&device_id, &session_id, &counts)));
            }
            Question::Prune(now, reply) => drop(reply.send(self.prune(now))),
        }
    }

    fn flush(&mut self) -> Result<Counters, StoreError> {
        self.commit_before()?;
        Ok(self.shared.counters())
    }

    fn register(&mut self, session: &Session) -> Result<Registration, StoreError> {
        self.commit_before()?;
        let context = context(&self.store, self.clock.utc());
        self.ask_store(|connection| sessions::register(connection, &context, session))
    }

    fn prune(&mut self, now: Timestamp) -> Result<usize, StoreError> {
        self.commit_before()?;
        let context = context(&self.store, self.clock.utc());
        let (count, unused) = self.ask_store(|connection| removal::prune_expired(connection, &context, now))?;
        self.unlink(&unused)?;
        Ok(count)
    }

    fn replace(&mut self, session: &Session) -> Result<(), StoreError> {
        self.commit_before()?;
        let connection = &self.store.connection;
        let context = context(&self.store, self.clock.utc());
        let begun = connection
            .execute_batch("BEGIN IMMEDIATE")
            .and_then(|()| sessions::begin_replacement(connection, &context, session));
        let unused = begun.map_err(|error| {
            roll_back(connection);
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
        let context = context(&self.store, self.clock.utc());
        sessions::complete_replacement(connection, &context, device_id)
            .and_then(|()| sessions::finish(connection, device_id, session_id, counts))
            .and_then(|_| connection.execute_batch("COMMIT"))
            .map_err(|error| {
                roll_back(connection);
                self.at_store(error)
            })
    }

    /// Commits the group; while a session is replaced nothing else can be committed.
    fn commit_before(&mut self) -> Result<(), StoreError> {
        if let Some(Replacement::Open { session_id, .. }) = &self.replacement {
            return Err(StoreError::WrongState(format!("session {session_id} is being replaced; finish it first")));
        }
        self.commit_group()
    }

    fn ask_store<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        transaction(&self.store, |connection| work(connection).map_err(|error| self.at_store(error)))
    }
}

fn context(store: &Store, stored_at: Timestamp) -> Context<'_> {
    Context { store_id: store.identity.store_id.as_str(), stored_at, single_valued: &store.single_valued }
}

/// One transaction: all of `work` is committed, or nothing.
fn transaction<T>(store: &Store, work: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
    let connection = &store.connection;
    let run = |sql: &str| connection.execute_batch(sql).map_err(|error| StoreError::from_sqlite(&store.path, error));
    let result = run("BEGIN IMMEDIATE").and_then(|()| work(connection)).and_then(|value| run("COMMIT").map(|()| value));
    if result.is_err() {
        roll_back(connection);
    }
    result
}

/// Ends a failed transaction, unless SQLite has done so itself (as it does when the disk is full).
fn roll_back(connection: &Connection) {
    if !connection.is_autocommit() {
        // If even this fails, the next BEGIN fails and is reported.
        let _ = connection.execute_batch("ROLLBACK");
    }
}

/// Moves the record's media to the disk.
fn write_files(store: &Store, row: &mut RowCommand) -> Result<(), StoreError> {
    if let RowCommand::Episode { record, files } = row {
        while let Some(media) = record.media.first() {
            files.push(media::write(&store.dir, media)?);
            record.media.remove(0);
        }
    }
    Ok(())
}

/// Applies rows inside the open transaction, each in a savepoint. Returns what to count and which files to remove,
/// both only after the commit.
fn apply(
    store: &Store,
    connection: &Connection,
    context: Context<'_>,
    rows: &[RowCommand],
) -> Result<(Counters, Vec<String>), StoreError> {
    let at_store = |error| StoreError::from_sqlite(&store.path, error);
    let (mut counters, mut unused) = (Counters::default(), Vec::new());
    for row in rows {
        connection.execute_batch("SAVEPOINT one_row").map_err(at_store)?;
        match apply_row(connection, &context, row, &mut counters, &mut unused).map_err(at_store) {
            Ok(()) => connection.execute_batch("RELEASE one_row").map_err(at_store)?,
            Err(StoreError::Sql { source, .. }) => {
                connection.execute_batch("ROLLBACK TO one_row; RELEASE one_row").map_err(at_store)?;
                let refused = StoreError::Refused { id: row.id(), reason: source.to_string() };
                counters.refuse(refused.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    Ok((counters, unused))
}

fn apply_row(
    connection: &Connection,
    context: &Context<'_>,
    row: &RowCommand,
    counters: &mut Counters,
    unused: &mut Vec<String>,
) -> rusqlite::Result<()> {
    let (outcome, is_coverage) = match row {
        RowCommand::Episode { record, files } => (append::append(connection, context, record, files)?, false),
        RowCommand::Vectors { id, embeddings } => (append::add_vectors(connection, id, embeddings)?, false),
        RowCommand::Coverage(record) => (coverage::put(connection, context, record)?, true),
        RowCommand::Clock(correction) => {
            counters.rows_moved += clock::correct(connection, context, correction)?;
            return Ok(());
        }
    };
    let counter = match (&outcome, is_coverage) {
        (Outcome::Blocked, _) => &mut counters.rows_blocked,
        (Outcome::Duplicate, true) => &mut counters.coverage_known,
        (_, true) => &mut counters.coverage_stored,
        (Outcome::Inserted, false) => &mut counters.episodes_inserted,
        (Outcome::Updated(_), false) => &mut counters.episodes_updated,
        (Outcome::Duplicate, false) => &mut counters.episodes_known,
    };
    *counter += 1;
    if let Outcome::Updated(files) = outcome {
        unused.extend(files);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::domain::disposition::Disposition;
    use crate::domain::episode::Episode;
    use crate::domain::episode::EpisodeRecord;
    use crate::domain::episode::Metadata;
    use crate::domain::id::BootId;
    use crate::domain::id::DeviceId;
    use crate::domain::id::EpisodeId;
    use crate::domain::id::ExternalId;
    use crate::domain::id::SessionId;
    use crate::domain::id::SourceId;
    use crate::domain::modality::Modality;
    use crate::domain::time::ClockQuality;
    use crate::domain::time::ManualClock;
    use crate::domain::time::Stamp;
    use crate::domain::time::Timestamp;
    use crate::memory::error::StoreError;
    use crate::memory::query::EpisodeFilter;
    use crate::memory::reader::Reader;
    use crate::memory::store::OpenOptions;
    use crate::memory::store::Store;
    use crate::memory::writer::Writer;
    use std::path::Path;

    #[test]
    fn a_store_that_may_not_grow_keeps_what_was_committed_and_takes_the_rest_later() {
        let dir = tempfile::tempdir().unwrap();
        let full = writer(dir.path(), Some(120));
        let mut refused = None;
        for number in 0..2_000 {
            let sent = full.append(record(number)).and_then(|()| full.flush().map(drop));
            if let Err(error) = sent {
                refused = Some((number, error));
                break;
            }
        }
        let (first_refused, error) = refused.unwrap();

        assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
        assert_eq!(error.disposition(), Disposition::Retry);
        assert!(full.trouble().is_some_and(|trouble| trouble.contains("no room left")));
        assert!(full.close().is_err());
        let reader = Reader::open(dir.path()).unwrap();
        assert_eq!(reader.stats().unwrap().episodes, first_refused);
        assert_eq!(reader.complaint().unwrap(), None);

        let roomy = writer(dir.path(), None);
        for number in 0..=first_refused {
            roomy.append(record(number)).unwrap();
        }
        let counters = roomy.close().unwrap();
        assert_eq!((counters.episodes_known, counters.episodes_inserted), (first_refused, 1));
    }

    #[test]
    fn a_row_that_sqlite_refuses_is_set_aside_and_the_rest_of_its_group_is_stored() {
        let dir = tempfile::tempdir().unwrap();
        let writer = writer(dir.path(), None);
        let mut clash = record(2);
        clash.episode.external_id = record(0).episode.external_id;
        for record in [record(0), clash.clone(), record(1)] {
            writer.append(record).unwrap();
        }
        let counters = writer.close().unwrap();

        assert_eq!((counters.episodes_inserted, counters.rows_refused), (2, 1));
        assert!(counters.refusals[0].contains(&clash.episode.id.to_string()), "{:?}", counters.refusals);
        assert_eq!(Reader::open(dir.path()).unwrap().episodes(&EpisodeFilter::default()).unwrap().len(), 2);
    }

    #[test]
    fn stored_at_is_the_time_of_the_writers_clock() {
        let dir = tempfile::tempdir().unwrap();
        let writer = writer(dir.path(), None);
        writer.append(record(0)).unwrap();
        writer.close().unwrap();

        let rows = Reader::open(dir.path()).unwrap().episodes(&EpisodeFilter::default()).unwrap();

        assert_eq!(rows[0].stored_at, Timestamp::from_millis(42));
    }

    fn writer(dir: &Path, pages_max: Option<u32>) -> Writer {
        let store = Store::open(dir, &OpenOptions::default()).unwrap();
        if let Some(pages) = pages_max {
            let set =
                store.connection.pragma_update_and_check(None, "max_page_count", pages, |row| row.get::<_, u32>(0));
            assert_eq!(set.unwrap(), pages);
        }
        let now = Stamp { monotonic_ms: 0, utc: Timestamp::from_millis(42), quality: ClockQuality::Gps };
        Writer::spawn(store, Box::new(ManualClock { now })).unwrap()
    }

    fn record(number: u64) -> EpisodeRecord {
        let (device_id, external_id) = (DeviceId::new("d"), ExternalId::new(number.to_string()));
        let start = Timestamp::from_millis(i64::try_from(number).unwrap() * 60_000);
        let episode = Episode {
            id: EpisodeId::of_external(&device_id, &external_id),
            external_id: Some(external_id),
            device_id,
            session_id: SessionId::new("s"),
            source: SourceId::new("microphone:m"),
            timestamp: start,
            ended_at: start,
            boot_id: BootId::new("b"),
            monotonic_ms: start.as_millis(),
            clock_quality: ClockQuality::Gps,
            modality: Modality::Audio,
            tool_name: "t".to_owned(),
            content: format!("Sound {number}"),
            importance: 6,
            decay_class: Modality::Audio.default_decay(),
            metadata: Metadata::new(),
        };
        EpisodeRecord { episode, embeddings: Vec::new(), facts: Vec::new(), media: Vec::new() }
    }
}

//! What the writer can be told to do.
//!
//! Rows are stored in groups and nobody waits for them; questions are answered once everything before them is committed.

use crate::domain::episode::Embedding;
use crate::domain::episode::EpisodeRecord;
use crate::domain::episode::Metadata;
use crate::domain::id::DeviceId;
use crate::domain::id::EpisodeId;
use crate::domain::id::SessionId;
use crate::domain::modality::DecayClass;
use crate::domain::time::Timestamp;
use crate::memory::clock::ClockCorrection;
use crate::memory::coverage::CoverageRecord;
use crate::memory::error::StoreError;
use crate::memory::eviction::Eviction;
use crate::memory::forget::Order;
use crate::memory::forget::Round;
use crate::memory::forget::Step;
use crate::memory::media::MediaRow;
use crate::memory::media_check::Mending;
use crate::memory::retention::Budget;
use crate::memory::sessions::Registration;
use crate::memory::sessions::Session;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// Where an answer goes.
pub(crate) type Reply<T> = SyncSender<Result<T, StoreError>>;

/// Something for the writer's thread.
#[derive(Debug)]
pub(crate) enum Command {
    Row(RowCommand),
    /// Episodes that a search returned.
    Raise(Vec<EpisodeId>),
    Question(Question),
}

/// A row to store with the next group.
#[derive(Debug)]
pub(crate) enum RowCommand {
    /// An episode. `files` fills as its media reach the disk, and `record.media` empties.
    Episode { record: Box<EpisodeRecord>, files: Vec<MediaRow> },
    /// A summary and the episodes it is made of, with how much each carries it (0–1).
    Gist { record: Box<EpisodeRecord>, sources: Vec<(EpisodeId, f64)> },
    /// A summary that has nothing to tell any more goes.
    NoGist(EpisodeId),
    /// Vectors for an episode that is stored.
    Vectors { id: EpisodeId, embeddings: Vec<Embedding> },
    /// A blind interval.
    Coverage(Box<CoverageRecord>),
    /// A clock correction: one in the order of rows.
    Clock(ClockCorrection),
}

/// Something whose answer the caller waits for.
#[derive(Debug)]
pub(crate) enum Question {
    Flush(Reply<Counters>),
    Register(Session, Reply<Registration>),
    Replace(Session, Reply<()>),
    Finish { device_id: DeviceId, session_id: SessionId, counts: Metadata, reply: Reply<Counters> },
    Prune(Timestamp, Reply<usize>),
    Keep { budget: Budget, now: Option<Timestamp>, reply: Reply<Eviction> },
    Mend(Reply<Mending>),
    Tend(Reply<bool>),
    ForgetVectors(Reply<()>),
    Store(Vec<EpisodeRecord>, Reply<Vec<Stored>>),
    ExpireMedia(Timestamp, Reply<usize>),
    Forget { order: Arc<Order>, step: Step, reply: Reply<Round> },
}

impl RowCommand {
    /// The id to name when the row is refused.
    pub(crate) fn id(&self) -> String {
        match self {
            Self::Episode { record, .. } | Self::Gist { record, .. } => record.episode.id.to_string(),
            Self::NoGist(id) | Self::Vectors { id, .. } => id.to_string(),
            Self::Coverage(record) => record.id(),
            Self::Clock(correction) => format!("clock correction before {} ms", correction.before_monotonic_ms),
        }
    }
}

impl Command {
    /// What it is worth when only some can be kept, lowest first; `None` for what must not be given up. Strength and coverage go before
    /// vectors, which can be made again, vectors before episodes, and `permanent` episodes stay longest.
    pub(crate) fn worth(&self) -> Option<u8> {
        match self {
            Self::Question(_) | Self::Row(RowCommand::Clock(_) | RowCommand::NoGist(_)) => None,
            Self::Raise(_) | Self::Row(RowCommand::Coverage(_)) => Some(0),
            // Both can be made again.
            Self::Row(RowCommand::Vectors { .. } | RowCommand::Gist { .. }) => Some(1),
            Self::Row(RowCommand::Episode { record, .. }) => {
                let is_permanent = record.episode.decay_class == DecayClass::Permanent;
                let importance = record.episode.importance.min(10);
                Some(2 + importance + if is_permanent { 11 } else { 0 })
            }
        }
    }
}

impl Question {
    /// Answers with a failure.
    pub(crate) fn fail(self, error: StoreError) {
        match self {
            Self::Flush(reply) | Self::Finish { reply, .. } => drop(reply.send(Err(error))),
            Self::Register(_, reply) => drop(reply.send(Err(error))),
            Self::Replace(_, reply) => drop(reply.send(Err(error))),
            Self::Prune(_, reply) | Self::ExpireMedia(_, reply) => drop(reply.send(Err(error))),
            Self::Keep { reply, .. } => drop(reply.send(Err(error))),
            Self::Mend(reply) => drop(reply.send(Err(error))),
            Self::Tend(reply) => drop(reply.send(Err(error))),
            Self::ForgetVectors(reply) => drop(reply.send(Err(error))),
            Self::Store(_, reply) => drop(reply.send(Err(error))),
            Self::Forget { reply, .. } => drop(reply.send(Err(error))),
        }
    }
}

/// What became of an episode whose caller waited for its commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// It is new.
    New,
    /// It was known and is different.
    Updated,
    /// It was known and is the same.
    Known,
    /// It was forgotten or has expired, and stays so.
    Blocked,
    /// It could not be stored as it was; the sentence says why. The others are.
    Refused(String),
}

/// What the writer has done since it started. Rows count once their commit is on the disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Episodes that are new.
    pub episodes_inserted: u64,
    /// Episodes that were known and changed.
    pub episodes_updated: u64,
    /// Episodes that were known and the same.
    pub episodes_known: u64,
    /// Rows that were not stored because they were forgotten or have expired.
    pub rows_blocked: u64,
    /// Rows that could not be stored as they were.
    pub rows_refused: u64,
    /// Coverage rows, new or extended.
    pub coverage_stored: u64,
    /// Coverage rows that were known.
    pub coverage_known: u64,
    /// Rows whose times a clock correction moved.
    pub rows_moved: u64,
    /// Commits.
    pub commits: u64,
    /// Groups that could not be committed and were tried again.
    pub commits_failed: u64,
    /// Rows that were given up because the writer had to stop before they could be committed.
    pub rows_lost: u64,
    /// Rows that were accepted and then given up for more important ones, because the disk and the queue were full.
    pub rows_shed: u64,
    /// Rows whose sender had to wait for room in the queue.
    pub sends_blocked: u64,
    /// What was wrong with the rows last refused, oldest first, at most [`REFUSALS_KEPT`].
    pub refusals: Vec<String>,
}

/// Sentences about refused rows that are kept.
pub const REFUSALS_KEPT: usize = 16;

impl Counters {
    pub(crate) fn refuse(&mut self, sentence: String) {
        self.rows_refused += 1;
        if self.refusals.len() == REFUSALS_KEPT {
            self.refusals.remove(0);
        }
        self.refusals.push(sentence);
    }

    /// Adds what a group did.
    pub(crate) fn add(&mut self, group: Self) {
        self.episodes_inserted += group.episodes_inserted;
        self.episodes_updated += group.episodes_updated;
        self.episodes_known += group.episodes_known;
        self.rows_blocked += group.rows_blocked;
        self.coverage_stored += group.coverage_stored;
        self.coverage_known += group.coverage_known;
        self.rows_moved += group.rows_moved;
        self.commits += group.commits;
        self.commits_failed += group.commits_failed;
        self.rows_lost += group.rows_lost;
        self.rows_refused += group.rows_refused - group.refusals.len() as u64;
        group.refusals.into_iter().for_each(|sentence| self.refuse(sentence));
    }
}

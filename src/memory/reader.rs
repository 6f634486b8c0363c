//! Reading the store, at any time and beside a running writer.
//!
//! In: a data directory. Out: a [`Reader`]: a read-only connection with the queries of its sibling files.
//! Never: writes, locks out the writer, or waits for it.

use crate::domain::episode::Embedding;
use crate::domain::episode::EmbeddingKind;
use crate::domain::fact::NodeKind;
use crate::domain::id::BootId;
use crate::domain::id::DeviceId;
use crate::domain::id::EpisodeId;
use crate::domain::id::ModelId;
use crate::domain::id::SessionId;
use crate::domain::time::Timestamp;
use crate::memory::detail;
use crate::memory::detail::EpisodeDetail;
use crate::memory::dump;
use crate::memory::embedding;
use crate::memory::error::StoreError;
use crate::memory::facts;
use crate::memory::facts::FactQuery;
use crate::memory::facts::StoredFact;
use crate::memory::facts::When;
use crate::memory::forget;
use crate::memory::forget::Order;
use crate::memory::forget::Plan;
use crate::memory::forget::Round;
use crate::memory::forget::Step;
use crate::memory::forget::held;
use crate::memory::gists;
use crate::memory::glance;
use crate::memory::glance::Glance;
use crate::memory::media_check;
use crate::memory::media_check::MediaReport;
use crate::memory::moments;
use crate::memory::moments::MomentRow;
use crate::memory::moments::Standing;
use crate::memory::moments::StoredMoment;
use crate::memory::places;
use crate::memory::places::LearnedStay;
use crate::memory::query;
use crate::memory::query::EpisodeFilter;
use crate::memory::query::StoredEpisode;
use crate::memory::recall;
use crate::memory::recall::RecallQuery;
use crate::memory::recall::Recalled;
use crate::memory::recall::Recollection;
use crate::memory::schema;
use crate::memory::schema::Found;
use crate::memory::search;
use crate::memory::search::Hit;
use crate::memory::search::SearchQuery;
use crate::memory::sessions;
use crate::memory::sessions::SessionRow;
use crate::memory::similarity;
use crate::memory::similarity::Neighbour;
use crate::memory::similarity::Similarity;
use crate::memory::similarity::Space;
use crate::memory::stats;
use crate::memory::stats::Stats;
use crate::memory::store;
use crate::memory::store::Identity;
use crate::memory::store::STORE_FILE;
use crate::recall::entity::Finder;
use crate::recall::gist::Frame;
use crate::recall::gist::Gist;
use crate::recall::gist::Subject;
use rusqlite::Connection;
use rusqlite::ErrorCode;
use rusqlite::OpenFlags;
use std::path::Path;
use std::path::PathBuf;

/// A read-only view of the store. Each query sees one consistent state.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
    path: PathBuf,
}

impl Reader {
    /// Opens the store in `dir` for reading.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is none; [`StoreError::Foreign`], [`StoreError::NewerSchema`],
    /// [`StoreError::OlderSchema`], [`StoreError::Damaged`] when the file cannot be read as a store.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(STORE_FILE);
        let file = schema::inspect(&path)?;
        if file == Found::Nothing {
            return Err(StoreError::Missing { path });
        }
        let connection = connect(&path).map_err(|error| StoreError::from_sqlite(&path, error))?;
        let found = schema::version(&connection).map_err(|error| StoreError::from_sqlite(&path, error))?;
        schema::refuse_newer(&path, found)?;
        if found < schema::SCHEMA_VERSION {
            return Err(StoreError::OlderSchema { path, found, known: schema::SCHEMA_VERSION });
        }
        if file == Found::Torn {
            schema::check_whole(&connection, &path)?;
        }
        Ok(Self { connection, path })
    }

    /// Who the store is.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn identity(&self) -> Result<Identity, StoreError> {
        self.read(store::identity)
    }

    /// The episodes that pass the filter, in its order.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn episodes(&self, filter: &EpisodeFilter) -> Result<Vec<StoredEpisode>, StoreError> {
        self.read(|connection| query::episodes(connection, filter))
    }

    /// The episode whose id is, or begins with, `text`.
    ///
    /// # Errors
    /// [`StoreError::NoId`] for what is no beginning of an id, [`StoreError::Ambiguous`] when several ids begin so.
    pub fn resolve(&self, text: &str) -> Result<Option<EpisodeId>, StoreError> {
        query::resolve(&self.connection, &self.path, text)
    }

    /// What fits the query best, the best first. `similarity` is kept by the caller for the life of the process.
    ///
    /// # Errors
    /// [`StoreError`] of the read; [`StoreError::Refused`] for a vector that is empty or not finite.
    pub fn search(&self, similarity: &mut Similarity, query: &SearchQuery) -> Result<Vec<Hit>, StoreError> {
        self.at_one_state(|connection| search::search(connection, &self.path, similarity, query))
    }

    /// The vectors of an episode, by model and kind.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn vectors(&self, id: EpisodeId) -> Result<Vec<Embedding>, StoreError> {
        self.read(|connection| embedding::all(connection, &id.to_string()))
    }

    /// Every model and kind of stored vector.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn spaces(&self) -> Result<Vec<Space>, StoreError> {
        self.read(similarity::spaces)
    }

    /// What comes to mind, the best first. `similarity` is kept by the caller for the life of the process.
    ///
    /// # Errors
    /// [`StoreError`] of the read; [`StoreError::Refused`] for a damping out of range and for a vector that is empty or not
    /// finite.
    pub fn recall(&self, similarity: &mut Similarity, query: &RecallQuery) -> Result<Vec<Recalled>, StoreError> {
        self.recollect(similarity, query).map(|recollection| recollection.found)
    }

    /// The same, with where the walk began and what of the question was understood.
    ///
    /// # Errors
    /// As [`Self::recall`].
    pub fn recollect(&self, similarity: &mut Similarity, query: &RecallQuery) -> Result<Recollection, StoreError> {
        self.at_one_state(|connection| recall::recall(connection, &self.path, similarity, query))
    }

    /// One episode with everything that belongs to it.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn episode(&self, id: EpisodeId) -> Result<Option<EpisodeDetail>, StoreError> {
        self.read(|connection| detail::episode(connection, id))
    }

    /// How many values the stored vectors of a model and kind have; `None` when there is none yet.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn vector_dims(&self, model_id: &ModelId, kind: EmbeddingKind) -> Result<Option<u32>, StoreError> {
        self.read(|connection| embedding::dims(connection, model_id, kind))
    }

    /// A session, if the store has seen it.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn session(&self, device_id: &DeviceId, session_id: &SessionId) -> Result<Option<SessionRow>, StoreError> {
        self.read(|connection| sessions::load(connection, device_id, session_id))
    }

    /// Every session, in the order of their start.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        self.read(sessions::all)
    }

    /// The nearest episodes of one space: see [`Similarity`]. `allowed` gets row numbers of episodes and is asked before
    /// any limit.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for a query that is empty or not finite, and [`StoreError`] of the read.
    pub fn nearest(
        &self,
        similarity: &mut Similarity,
        space: &Space,
        query: &[f32],
        limit: usize,
        allowed: Option<&dyn Fn(i64) -> bool>,
    ) -> Result<Vec<Neighbour>, StoreError> {
        similarity.nearest(&self.connection, space, query, limit, allowed)
    }

    /// The facts that fit, with what is known of the entity asked for.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn find_facts(&self, query: &FactQuery) -> Result<facts::Found, StoreError> {
        self.read(|connection| facts::find(connection, query))
    }

    /// The facts about an entity, or about anything, that hold at an instant, or that were last known to hold when none
    /// is given; the latest first.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn facts(
        &self,
        entity: Option<&str>,
        as_of: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<StoredFact>, StoreError> {
        let when = When::At(as_of.unwrap_or(Timestamp::from_millis(i64::MAX)));
        let query = FactQuery { entity: entity.map(str::to_owned), relation: None, when, limit };
        self.find_facts(&query).map(|found| found.facts)
    }

    /// What the frame was like, out of its episodes; `None` when there is nothing to tell.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn gist(&self, frame: &Frame) -> Result<Option<Gist>, StoreError> {
        self.read(|connection| gists::make(connection, frame))
    }

    /// Whether the gist of that id is missing although the frame has episodes, or older than one of them.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn gist_is_due(&self, frame: &Frame, gist: EpisodeId) -> Result<bool, StoreError> {
        let (sources, gist) = self.read(|connection| gists::written(connection, frame, gist))?;
        Ok(sources.is_some_and(|sources| gist.is_none_or(|gist| gist < sources)))
    }

    /// The gists whose frame overlaps the span: id, subject and frame. After episodes of the span were forgotten or came
    /// late, these are to be made again.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn gists_overlapping(
        &self,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<(EpisodeId, Subject, Timestamp, Timestamp)>, StoreError> {
        self.read(|connection| gists::overlapping(connection, since, until))
    }

    /// The known names of a kind that a word fits, or may have meant.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn names(&self, kind: &NodeKind, wanted: &str) -> Result<Finder<String>, StoreError> {
        self.read(|connection| gists::names(connection, kind, wanted))
    }

    /// Counts of everything.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn stats(&self) -> Result<Stats, StoreError> {
        self.read(stats::stats)
    }

    /// The last episode, what is pending and what is used, quickly.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn glance(&self) -> Result<Glance, StoreError> {
        self.read(glance::glance)
    }

    /// The moments captured in a boot, whatever session they belong to, in the order of capture.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn moments_of_boot(&self, boot_id: &BootId) -> Result<Vec<MomentRow>, StoreError> {
        self.read(|connection| moments::of_boot(connection, boot_id))
    }

    /// What an order to forget would do to the rows, some at a time: begin with [`Step::FIRST`] and go on with
    /// [`Round::next`]. Nothing is changed.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] for an order that cannot be carried out, [`StoreError`] of the read.
    pub fn survey_forgetting(&self, order: &Order, step: Step) -> Result<Round, StoreError> {
        let plan = Plan::new(order)?;
        let Step::Rows(after) = step else { return Ok(Round::default()) };
        self.read(|connection| forget::survey(connection, &plan, after))
    }

    /// The moments that percept itself made, in the order of their own ids: at most `limit` behind `after`.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn moments_after(&self, after: &str, limit: usize) -> Result<Vec<StoredMoment>, StoreError> {
        self.read(|connection| moments::stored(connection, after, limit))
    }

    /// What became of a moment, by its row's id or its own.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn standing(&self, moment: &str) -> Result<Standing, StoreError> {
        self.read(|connection| moments::standing(connection, moment))
    }

    /// Which modalities of a session stay as they are when it is reprocessed, because something of them was forgotten;
    /// `all` stands for every one.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn held_back(&self, device_id: &DeviceId, session_id: &SessionId) -> Result<Vec<String>, StoreError> {
        self.read(|connection| held::modalities(connection, (device_id.as_str(), session_id.as_str())))
    }

    /// The stays of a device at learned places, latest first.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn learned_stays(&self, device_id: &DeviceId) -> Result<Vec<LearnedStay>, StoreError> {
        self.read(|connection| places::learned_stays(connection, device_id))
    }

    /// Which rows lack their file and which files lack their row. Beside a running writer a file just written may be named
    /// although its row is on its way; [`crate::memory::writer::Writer::mend_media`] makes no such mistake.
    ///
    /// # Errors
    /// [`StoreError`] of the read, [`StoreError::Io`] of the folder.
    pub fn check_media(&self) -> Result<MediaReport, StoreError> {
        let dir = self.path.parent().unwrap_or(Path::new("."));
        media_check::check(dir, &self.path, &self.connection)
    }

    /// Everything remembered, as ordered text, for comparing two stores. See [`crate::memory::dump`].
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn dump(&self) -> Result<String, StoreError> {
        self.read(dump::dump)
    }

    /// Whether SQLite finds the file and its full-text index whole; the first complaint if not.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub fn complaint(&self) -> Result<Option<String>, StoreError> {
        let verdict: String =
            self.read(|connection| connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)))?;
        if verdict != "ok" {
            return Ok(Some(verdict));
        }
        self.read(|connection| {
            connection
                .query_row(
                    r#"SELECT "table" || ': a row refers to a missing ' || parent FROM pragma_foreign_key_check"#,
                    [],
                    |row| row.get(0),
                )
                .map(Some)
                .or_else(|error| if error == rusqlite::Error::QueryReturnedNoRows { Ok(None) } else { Err(error) })
        })
    }

    fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        self.at_one_state(|connection| work(connection).map_err(|error| StoreError::from_sqlite(&self.path, error)))
    }

    /// One transaction, so that several statements see one state while the writer goes on.
    fn at_one_state<T>(&self, work: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let at_store = |error| StoreError::from_sqlite(&self.path, error);
        let transaction = self.connection.unchecked_transaction().map_err(at_store)?;
        let value = work(&transaction)?;
        transaction.finish().map_err(at_store)?;
        Ok(value)
    }
}

/// SQLite needs the WAL's index beside the file even to read, and cannot make it in a folder that may not be written.
/// When there is no WAL either, nobody writes, and the file can be read as one that does not change.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    match open(path, OpenFlags::SQLITE_OPEN_READ_ONLY) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) && !schema::has_wal(path) => {
            open(&unchanging(path), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
        }
        result => result,
    }
}

fn open(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(store::BUSY_TIMEOUT)?;
    connection.pragma_update(None, "query_only", true)?;
    // The first read is what opens the WAL.
    schema::version(&connection)?;
    Ok(connection)
}

/// The path as an SQLite URI of a file that does not change.
fn unchanging(path: &Path) -> PathBuf {
    let path = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    PathBuf::from(format!("file:{path}?immutable=1"))
}

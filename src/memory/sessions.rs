//! Which runs and recorded sessions the store has seen, and how a reprocessed one takes the place of its rows.
//!
//! In: a [`Session`] with the digest of the configuration and models that read it. Out: whether its rows are still to come
//! ([`Registration`]).
//!
//! A replacement is one transaction: the session's rows go, the new ones come, and all of it commits with
//! [`complete_replacement`], so whoever looks (or whenever the power goes) sees the old rows or the new ones, never a mixture
//! and never none. A long session makes a long transaction; SQLite spills it to the WAL, so it costs disk, not memory.
//! Rows of other sources wait that long for their commit: reprocessing belongs to a program of its own, not to the agent's.

use crate::domain::episode::Metadata;
use crate::domain::id::BootId;
use crate::domain::id::DeviceId;
use crate::domain::id::SessionId;
use crate::domain::time::ClockQuality;
use crate::domain::time::Timestamp;
use crate::memory::forget::held;
use crate::memory::forget::rest;
use crate::memory::removal;
use crate::memory::revision::Context;
use crate::memory::rows;
use crate::memory::tombstones;
use crate::memory::tombstones::Grave;
use rusqlite::Connection;
use rusqlite::OptionalExtension;
use rusqlite::Row;

/// A run or recorded session as it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub session_id: SessionId,
    /// The device that captured it.
    pub device_id: DeviceId,
    /// The boot in which it was captured.
    pub boot_id: BootId,
    /// Digest of the configuration and models that turn it into episodes.
    pub digest: String,
    /// When its capture began.
    pub started_at: Timestamp,
    /// How far `started_at` can be trusted.
    pub clock_quality: ClockQuality,
}

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// Rows are still coming, or its program died; reading it again is harmless, because ids are the same.
    Running,
    /// All its rows are committed.
    Done,
}

impl SessionState {
    /// The name stored in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
        }
    }
}

/// A session as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRow {
    /// How it began.
    pub session: Session,
    /// How far it is.
    pub state: SessionState,
    /// What its reader counted; empty until it is done.
    pub counts: Metadata,
}

/// What the store knew of a session that wants to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registration {
    /// Nothing: it is registered as running.
    New,
    /// It began before with the same digest and was cut off: go on, what is there already will be counted as known.
    Resumed,
    /// All its rows are there, made with the same digest: there is nothing to do.
    AlreadyDone,
    /// Its rows were made with another digest: it has to be replaced (`--reprocess`) or left.
    OtherDigest {
        /// The digest its rows were made with.
        digest: String,
    },
}

/// The stored session.
pub(crate) fn load(
    connection: &Connection,
    device_id: &DeviceId,
    session_id: &SessionId,
) -> rusqlite::Result<Option<SessionRow>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE session_id = ?1 AND device_id = ?2"))?
        .query_row((session_id.as_str(), device_id.as_str()), read)
        .optional()
}

/// All sessions, in the order of their start.
pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Vec<SessionRow>> {
    connection
        .prepare(&format!("SELECT {COLUMNS} FROM sessions ORDER BY started_at, session_id, device_id"))?
        .query_map([], read)?
        .collect()
}

const COLUMNS: &str = "session_id, device_id, boot_id, digest, started_at, clock_quality, state, counts";

fn read(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    let session = Session {
        session_id: SessionId::new(row.get::<_, String>(0)?),
        device_id: DeviceId::new(row.get::<_, String>(1)?),
        boot_id: BootId::new(row.get::<_, String>(2)?),
        digest: row.get(3)?,
        started_at: Timestamp::from_millis(row.get(4)?),
        clock_quality: rows::quality(row, 5)?,
    };
    let state = rows::named(row, 6, |name| {
        [SessionState::Running, SessionState::Done].into_iter().find(|state| state.as_str() == name)
    })?;
    Ok(SessionRow { session, state, counts: serde_json::from_str(&row.get::<_, String>(7)?).unwrap_or_default() })
}

/// Registers the session as running, unless its rows are there or were made with another digest.
pub(crate) fn register(
    connection: &Connection,
    context: &Context<'_>,
    session: &Session,
) -> rusqlite::Result<Registration> {
    match load(connection, &session.device_id, &session.session_id)? {
        // It was called by a name that was forgotten. Its rows are there under a number, or forgotten with it.
        None if is_renamed(connection, session)? => Ok(Registration::AlreadyDone),
        None => insert(connection, context, session).map(|()| Registration::New),
        Some(row) if row.session.digest != session.digest => {
            Ok(Registration::OtherDigest { digest: row.session.digest })
        }
        Some(row) if row.state == SessionState::Done => Ok(Registration::AlreadyDone),
        Some(_) => Ok(Registration::Resumed),
    }
}

fn is_renamed(connection: &Connection, session: &Session) -> rusqlite::Result<bool> {
    let number = rest::renamed(session.device_id.as_str(), session.session_id.as_str());
    Ok(load(connection, &session.device_id, &SessionId::new(number))?.is_some())
}

fn insert(connection: &Connection, context: &Context<'_>, session: &Session) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO sessions (session_id, device_id, boot_id, digest, started_at, clock_quality, state, stored_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'running', ?7)",
        )?
        .execute((
            session.session_id.as_str(),
            session.device_id.as_str(),
            session.boot_id.as_str(),
            &session.digest,
            session.started_at.as_millis(),
            session.clock_quality.as_str(),
            context.stored_at.as_millis(),
        ))?;
    Ok(())
}

/// Marks the session as done. `false` when it was never registered.
pub(crate) fn finish(
    connection: &Connection,
    device_id: &DeviceId,
    session_id: &SessionId,
    counts: &Metadata,
) -> rusqlite::Result<bool> {
    let counts = held::carried_over(connection, (device_id.as_str(), session_id.as_str()), counts)?;
    let changed = connection
        .prepare_cached("UPDATE sessions SET state = 'done', counts = ?3 WHERE session_id = ?1 AND device_id = ?2")?
        .execute((session_id.as_str(), device_id.as_str(), rows::json(&counts)))?;
    Ok(changed > 0)
}

/// Removes the rows of the session and registers it anew; rows of modalities of which something was forgotten stay (see
/// [`held`]). What the user did to a row (its strength) and what central knows
/// of it is remembered until [`complete_replacement`]. Returns files to remove after the commit.
pub(crate) fn begin_replacement(
    connection: &Connection,
    context: &Context<'_>,
    session: &Session,
) -> rusqlite::Result<Vec<String>> {
    let key = (session.session_id.as_str(), session.device_id.as_str());
    let held = held::modalities(connection, (key.1, key.0))?;
    connection.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS replaced (id TEXT, kind TEXT, strength REAL, strength_revision INTEGER,
           strength_acked INTEGER, acked INTEGER, PRIMARY KEY (id, kind));
         DELETE FROM temp.replaced",
    )?;
    connection.execute(
        "INSERT INTO temp.replaced SELECT e.id, 'episode', s.strength, s.revision, s.acked_revision, e.acked_revision
         FROM episodes AS e LEFT JOIN strength AS s ON s.episode_id = e.id WHERE e.session_id = ?1 AND e.device_id = ?2
           AND NOT EXISTS (SELECT 1 FROM json_each(?3) WHERE value IN ('all', e.modality))",
        (key.0, key.1, serde_json::Value::from(held.clone()).to_string()),
    )?;
    connection.execute(
        "INSERT INTO temp.replaced SELECT id, 'coverage', NULL, 0, 0, acked_revision FROM coverage
         WHERE session_id = ?1 AND device_id = ?2",
        key,
    )?;
    let ids: Vec<String> = connection
        .prepare("SELECT id FROM temp.replaced WHERE kind = 'episode' ORDER BY id")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut unused = Vec::new();
    for id in &ids {
        unused.extend(removal::remove(connection, context, id)?);
    }
    connection.execute("DELETE FROM coverage WHERE session_id = ?1 AND device_id = ?2", key)?;
    connection
        .execute("DELETE FROM clock_corrections WHERE scope = 'session' AND scope_id = ?1 AND device_id = ?2", key)?;
    connection.execute("DELETE FROM sessions WHERE session_id = ?1 AND device_id = ?2", key)?;
    insert(connection, context, session)?;
    for modality in &held {
        held::note(connection, (key.1, key.0), modality)?;
    }
    Ok(unused)
}

/// Gives rows that came back their strength, and leaves a tombstone for each that central has and that did not.
pub(crate) fn complete_replacement(
    connection: &Connection,
    context: &Context<'_>,
    device_id: &DeviceId,
) -> rusqlite::Result<()> {
    connection.execute(
        "UPDATE strength SET (strength, revision, acked_revision) =
           (SELECT r.strength, r.strength_revision, r.strength_acked FROM temp.replaced AS r WHERE r.id = episode_id)
         WHERE episode_id IN (SELECT id FROM temp.replaced WHERE kind = 'episode' AND strength IS NOT NULL)",
        [],
    )?;
    let gone: Vec<(String, String)> = connection
        .prepare(
            "SELECT id, kind FROM temp.replaced AS r WHERE acked > 0
               AND NOT EXISTS (SELECT 1 FROM episodes AS e WHERE e.id = r.id)
               AND NOT EXISTS (SELECT 1 FROM coverage AS c WHERE c.id = r.id) ORDER BY kind, id",
        )?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (id, kind) in &gone {
        let grave = Grave { id, kind, reason: "replaced", device_id: device_id.as_str() };
        tombstones::put(connection, context, grave)?;
    }
    connection.execute_batch("DROP TABLE temp.replaced")
}

//! Makes the store fit its budget, a bounded piece at a time.
//!
//! In: a budget and the time. Out: removed media and episodes (in the order of [`crate::memory::retention`]), counted, and
//! the paths of files to be removed after the commit.
//!
//! Eviction is not forgetting. An evicted episode leaves no tombstone: central keeps what it has, revisions have a hole, and
//! a replay that the user asks for may bring the row back; as it is no younger then, it goes again with the next need. An
//! evicted file leaves its row (state `evicted`) while its episode stays, so that a repeat of the episode does not bring
//! the file back and central knows that it will not come.
//! Never: removes an episode while the clock is unset, more a call than its bounds, or (but for [`make_room`]) a file
//! before the commit.

use crate::domain::modality::DecayClass;
use crate::domain::time::Timestamp;
use crate::memory::media;
use crate::memory::media::MediaState;
use crate::memory::removal;
use crate::memory::retention;
use crate::memory::retention::Budget;
use crate::memory::retention::Candidate;
use crate::memory::retention::PHASES;
use crate::memory::retention::Phase;
use crate::memory::retention::Usage;
use crate::memory::revision::Context;
use crate::memory::stats;
use crate::memory::store;
use rusqlite::Connection;
use std::path::Path;

/// Most episodes one call removes.
pub const ROWS_MAX: usize = 500;

/// Most files one call removes.
pub const FILES_MAX: usize = 50;

/// Room that [`make_room`] makes at most, in bytes.
const ROOM_BYTES: u64 = 1 << 20;

/// After so many episodes it is measured again whether enough is free.
const ROWS_BETWEEN_MEASURES: usize = 20;

/// Most free pages one call gives back to the file system (4 MiB).
const PAGES_RETURNED_MAX: u64 = 1_024;

/// Free pages that stay in the file for the next rows (1 MiB).
const PAGES_KEPT_FREE: u64 = 256;

/// What one call did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Eviction {
    /// Files removed that central has.
    pub files_acknowledged: u64,
    /// Files removed that central lacks: they are lost.
    pub files_pending: u64,
    /// Their bytes together.
    pub file_bytes: u64,
    /// Episodes removed that central has.
    pub rows_acknowledged: u64,
    /// Episodes removed that central lacks: they are lost.
    pub rows_pending: u64,
    /// `multimodal_episode_id` of the moments among them: their JSON is the agent's to remove.
    pub moments: Vec<String>,
    /// Pages given back to the file system.
    pub pages_returned: u64,
    /// Bytes in use after it.
    pub used_bytes: u64,
    /// What was allowed.
    pub budget_bytes: u64,
    /// Whether another call would remove more.
    pub is_more: bool,
}

impl Eviction {
    /// How full the store is after it.
    #[must_use]
    pub const fn usage(&self) -> Usage {
        Usage { used_bytes: self.used_bytes, budget_bytes: self.budget_bytes }
    }

    const fn removed(&self) -> u64 {
        self.files_acknowledged + self.files_pending + self.rows_acknowledged + self.rows_pending
    }
}

/// Used pages of the database and kept media, in bytes.
pub(crate) fn used_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    Ok(stats::database_bytes(connection)?.1 + stats::media_bytes(connection)?)
}

/// Removes what has to go, inside the open transaction.
pub(crate) fn evict(
    connection: &Connection,
    context: &Context<'_>,
    budget: Budget,
    now: Option<Timestamp>,
) -> rusqlite::Result<(Eviction, Vec<String>)> {
    let target_bytes = budget.target_bytes();
    let mut round = Round { connection, context, target_bytes, done: Eviction::default(), unused: Vec::new() };
    let mut used = used_bytes(connection)?;
    if used > budget.bytes {
        let is_media_done = round.media(&mut used)?;
        if let Some(now) = now.filter(|_| is_media_done) {
            round.rows(&mut used, now)?;
        }
        used = used_bytes(connection)?;
        round.done.is_more = used > target_bytes && round.done.removed() > 0;
    }
    Ok((Eviction { used_bytes: used, budget_bytes: budget.bytes, ..round.done }, round.unused))
}

/// A kept file.
struct KeptFile {
    hash: String,
    path: String,
    bytes: u64,
    is_pending: bool,
}

/// The files that go next for so many bytes: those that central has, then the others, each oldest first.
fn oldest_files(connection: &Connection, bytes: u64) -> rusqlite::Result<Vec<KeptFile>> {
    let (mut chosen, mut sum) = (Vec::new(), 0);
    for is_pending in [false, true] {
        let mut statement = connection.prepare_cached(
            "SELECT hash, path, bytes FROM media WHERE state = 'kept' AND (acked_revision < revision) = ?1
             ORDER BY rowid LIMIT ?2",
        )?;
        let room = i64::try_from(FILES_MAX - chosen.len()).unwrap_or(0);
        let mut rows = statement.query((is_pending, room))?;
        while let Some(row) = rows.next()? {
            if sum >= bytes {
                return Ok(chosen);
            }
            let bytes = row.get::<_, i64>(2)?.unsigned_abs();
            sum += bytes;
            chosen.push(KeptFile { hash: row.get(0)?, path: row.get(1)?, bytes, is_pending });
        }
    }
    Ok(chosen)
}

/// Lets go of kept files that were captured before `before`, [`FILES_MAX`] a call. Returns how many, and their paths. A file
/// stays while an episode names it that is younger, or whose clock is unset: nobody knows how old that one is.
pub(crate) fn expire_media(connection: &Connection, before: Timestamp) -> rusqlite::Result<(usize, Vec<String>)> {
    let files: Vec<(String, String)> = connection
        .prepare_cached(&format!(
            "SELECT m.hash, m.path FROM media AS m WHERE m.state = 'kept' AND NOT EXISTS (
               SELECT 1 FROM episode_media AS n JOIN episodes AS e ON e.id = n.episode_id
               WHERE n.hash = m.hash AND (e.timestamp >= ?1 OR e.clock_quality = 'unset'))
             ORDER BY m.rowid LIMIT {FILES_MAX}"
        ))?
        .query_map([before.as_millis()], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (hash, _) in &files {
        media::set_state(connection, hash, MediaState::Evicted)?;
    }
    Ok((files.len(), files.into_iter().map(|(_, path)| path).collect()))
}

/// Removes the files that [`evict`] would let go first, before their rows say so: on a full disk the change of the rows has
/// no room otherwise. If it still fails, the rows lack their files, which the check of media finds.
pub(crate) fn make_room(connection: &Connection, dir: &Path, budget: Budget) -> rusqlite::Result<()> {
    let used = used_bytes(connection)?;
    if used > budget.bytes {
        for file in oldest_files(connection, (used - budget.target_bytes()).min(ROOM_BYTES))? {
            // A file that cannot be removed makes no room; that is all.
            let _ = store::remove_if_there(&dir.join(&file.path));
        }
    }
    Ok(())
}

struct Round<'a> {
    connection: &'a Connection,
    context: &'a Context<'a>,
    target_bytes: u64,
    done: Eviction,
    unused: Vec<String>,
}

impl Round<'_> {
    /// Lets files go. `true` when none is left to go.
    fn media(&mut self, used: &mut u64) -> rusqlite::Result<bool> {
        let files = oldest_files(self.connection, used.saturating_sub(self.target_bytes))?;
        for file in &files {
            media::set_state(self.connection, &file.hash, MediaState::Evicted)?;
            *used = used.saturating_sub(file.bytes);
            self.done.file_bytes += file.bytes;
            *(if file.is_pending { &mut self.done.files_pending } else { &mut self.done.files_acknowledged }) += 1;
        }
        let is_none_left = *used > self.target_bytes && files.len() < FILES_MAX;
        self.unused.extend(files.into_iter().map(|file| file.path));
        Ok(is_none_left)
    }

    fn rows(&mut self, used: &mut u64, now: Timestamp) -> rusqlite::Result<()> {
        let mut left = ROWS_MAX;
        for phase in PHASES {
            let mut candidates = self.candidates(phase, left)?;
            retention::order(&mut candidates, now);
            candidates.truncate(left);
            left -= candidates.len();
            for batch in candidates.chunks(ROWS_BETWEEN_MEASURES) {
                if *used <= self.target_bytes {
                    return Ok(());
                }
                batch.iter().try_for_each(|candidate| self.remove(candidate, phase))?;
                *used = used_bytes(self.connection)?;
            }
        }
        Ok(())
    }

    /// The oldest of every class and importance: one of them is the least valuable, whatever the time is.
    fn candidates(&self, phase: Phase, count: usize) -> rusqlite::Result<Vec<Candidate>> {
        let mut found = Vec::new();
        for decay_class in retention::classes_of(phase) {
            for importance in 0..=10 {
                for is_unset in [false, true] {
                    found.extend(self.oldest_rows(phase, (decay_class, importance, is_unset), count)?);
                }
            }
        }
        Ok(found)
    }

    fn oldest_rows(
        &self,
        phase: Phase,
        (decay_class, importance, is_unset): (DecayClass, u8, bool),
        count: usize,
    ) -> rusqlite::Result<Vec<Candidate>> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.connection
            .prepare_cached(OLDEST_ROWS)?
            .query_map((phase.is_pending, decay_class.as_str(), importance, is_unset, count), |row| {
                let captured_at = Timestamp::from_millis(row.get(1)?);
                let captured_at = (!is_unset).then_some(captured_at);
                Ok(Candidate { row_id: row.get(0)?, importance, decay_class, captured_at })
            })?
            .collect()
    }

    fn remove(&mut self, candidate: &Candidate, phase: Phase) -> rusqlite::Result<()> {
        let (id, moment): (String, Option<String>) = self
            .connection
            .prepare_cached("SELECT id, multimodal_episode_id FROM episodes WHERE row_id = ?1")?
            .query_row([candidate.row_id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.unused.extend(removal::remove(self.connection, self.context, &id)?);
        self.done.moments.extend(moment);
        *(if phase.is_pending { &mut self.done.rows_pending } else { &mut self.done.rows_acknowledged }) += 1;
        Ok(())
    }
}

const OLDEST_ROWS: &str = "SELECT row_id, timestamp FROM episodes
    WHERE (acked_revision < revision) = ?1 AND decay_class = ?2 AND importance = ?3 AND (clock_quality = 'unset') = ?4
    ORDER BY timestamp LIMIT ?5";

/// Gives free pages back to the file system, some a call. Returns how many.
pub(crate) fn return_pages(connection: &Connection) -> rusqlite::Result<u64> {
    return_free_pages(connection, PAGES_RETURNED_MAX, PAGES_KEPT_FREE)
}

/// The same with other bounds: how many at most, and how many stay in the file.
pub(crate) fn return_free_pages(connection: &Connection, most: u64, kept: u64) -> rusqlite::Result<u64> {
    let free = || -> rusqlite::Result<u64> {
        connection.pragma_query_value(None, "freelist_count", |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
    };
    let before = free()?;
    let pages = before.saturating_sub(kept).min(most);
    if pages == 0 {
        return Ok(0);
    }
    let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
    let mut steps = statement.query([])?;
    // Each step moves one page.
    while steps.next()?.is_some() {}
    drop(steps);
    Ok(before.saturating_sub(free()?))
}

/// Moves what the WAL holds into the database and empties it.
pub(crate) fn empty_wal(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

#[cfg(test)]
mod tests;

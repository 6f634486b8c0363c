//! Strength that searches have raised and that is still to be written.
//!
//! In: ids of episodes that a search returned. Out: one statement for each, at most once a minute.
//! Full: what is gathered is due at once. Never: brings back an episode that is gone.

use crate::domain::id::EpisodeId;
use crate::memory::command::Command;
use crate::memory::error::StoreError;
use crate::memory::queue::Rejected;
use crate::memory::revision;
use crate::memory::worker::Shared;
use crate::memory::writer::STRENGTH_MS;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Tells the writer what searches returned, without holding it: for threads that may outlive it.
#[derive(Debug, Clone)]
pub struct Raiser {
    shared: Arc<Shared>,
}

impl Raiser {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// See [`crate::memory::writer::Writer::raise_strength`].
    ///
    /// # Errors
    /// [`StoreError::Stopped`] when the writer is gone or cannot write.
    pub fn raise(&self, ids: Vec<EpisodeId>) -> Result<(), StoreError> {
        let raised = self.shared.queue.push(Command::Raise(ids));
        raised.map_err(|(Rejected::Closed(cause) | Rejected::Stuck(cause))| StoreError::Stopped { cause })
    }

    /// How often searches returned episodes since their strength was last written.
    #[must_use]
    pub fn waiting(&self) -> BTreeMap<EpisodeId, u32> {
        self.shared.raised()
    }
}

/// Episodes that may wait; more are written at once.
const WAITING_MAX: usize = 4_096;

/// What waits.
#[derive(Debug, Default)]
pub(crate) struct Raised {
    by: BTreeMap<EpisodeId, u32>,
    due_ms: Option<i64>,
}

impl Raised {
    /// Each of them was returned once more. A store that cannot be written keeps those it has room for.
    pub(crate) fn take(&mut self, ids: Vec<EpisodeId>, now_ms: i64) {
        for id in ids {
            if self.by.len() < 2 * WAITING_MAX || self.by.contains_key(&id) {
                *self.by.entry(id).or_default() += 1;
            }
        }
        if !self.by.is_empty() {
            self.due_ms.get_or_insert(now_ms.saturating_add(STRENGTH_MS));
        }
        if self.by.len() > WAITING_MAX {
            self.due_ms = Some(now_ms);
        }
    }

    /// Who waits, and by how much.
    pub(crate) fn by(&self) -> &BTreeMap<EpisodeId, u32> {
        &self.by
    }

    /// When they are to be written, in the clock's monotonic time.
    pub(crate) fn due_ms(&self) -> Option<i64> {
        self.due_ms
    }

    /// Whether there is something to write now.
    pub(crate) fn is_due(&self, now_ms: i64, at_once: bool) -> bool {
        self.due_ms.is_some_and(|due_ms| at_once || due_ms <= now_ms)
    }

    /// Writes them inside the open transaction.
    pub(crate) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let mut statement = connection
            .prepare_cached("UPDATE strength SET strength = strength + ?2, revision = ?3 WHERE episode_id = ?1")?;
        for (id, by) in &self.by {
            statement.execute((id.to_string(), by, revision::next(connection)?))?;
        }
        Ok(())
    }

    /// They were written, or are to be tried again a minute later.
    pub(crate) fn settle(&mut self, is_written: bool, now_ms: i64) {
        if is_written {
            self.by.clear();
            self.due_ms = None;
        } else {
            self.due_ms = Some(now_ms.saturating_add(STRENGTH_MS));
        }
    }
}

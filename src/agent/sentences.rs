//! Gives every new episode's sentence a vector, beside whatever vector it came with (ruling 3.3 of the design).
//!
//! In: ids and sentences of episodes as they are written. Out: text vectors, one at a time, when there is time for it.
//! The text tower is loaded for it and let go when it was idle. Full: the oldest sentence goes without and is counted.
//! Never: an episode of an earlier run; nothing is embedded again at start-up.

use crate::domain::episode::Embedding;
use crate::domain::episode::EmbeddingKind;
use crate::domain::id::EpisodeId;
use crate::domain::time::Stamp;
use crate::memory::error::StoreError;
use crate::memory::writer::Writer;
use crate::perception::text::TextTower;
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

/// The text tower, shared by the sessions of one command.
pub type SharedText = Arc<Mutex<TextTower>>;

/// Sentences that wait at most.
const WAITING_MAX: usize = 20_000;

/// Sentences on their way to a vector.
pub struct Sentences {
    tower: SharedText,
    waiting: BTreeMap<EpisodeId, String>,
    order: VecDeque<EpisodeId>,
    dropped: u64,
    was_told: bool,
}

impl Sentences {
    /// Nothing waits.
    #[must_use]
    pub fn new(tower: SharedText) -> Self {
        Self { tower, waiting: BTreeMap::new(), order: VecDeque::new(), dropped: 0, was_told: false }
    }

    /// Takes an episode that was written. One that is written again has a newer sentence.
    pub fn note(&mut self, id: EpisodeId, sentence: String) {
        if self.waiting.insert(id, sentence).is_none() {
            self.order.push_back(id);
        }
        if self.order.len() > WAITING_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.waiting.remove(&oldest);
            self.dropped += 1;
        }
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// How many went without a vector because too many waited.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Embeds the one that waits longest. Returns false when none waits. A sentence that cannot be embedded is told once
    /// and goes without.
    ///
    /// # Errors
    /// [`StoreError`] of the vector's row.
    pub fn embed_next(&mut self, writer: &Writer, now: Stamp) -> Result<bool, StoreError> {
        let Some(id) = self.order.pop_front() else {
            self.tower.lock().unwrap_or_else(PoisonError::into_inner).handle_timeout(now);
            return Ok(false);
        };
        let sentence = self.waiting.remove(&id).unwrap_or_default();
        let mut tower = self.tower.lock().unwrap_or_else(PoisonError::into_inner);
        match tower.embed(&sentence, now) {
            Ok(vector) => {
                let model_id = tower.model_id().clone();
                drop(tower);
                writer.add_vectors(id, vec![Embedding { model_id, kind: EmbeddingKind::Text, vector }])?;
            }
            Err(error) => {
                if !self.was_told {
                    tracing::warn!(%error, "sentences go without vectors");
                }
                self.was_told = true;
            }
        }
        Ok(true)
    }
}

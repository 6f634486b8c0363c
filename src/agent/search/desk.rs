//! Answers searches while the agent runs: with its text tower, beside its writer.
//!
//! In: requests of the control socket, from any thread, one at a time. Out: answers; the writer is told what was returned.
//! Never: waits for the run's loop, or reads through the writer's connection.

use super::Answer;
use super::Meaning;
use super::Request;
use super::Setting;
use crate::agent::models::Models;
use crate::agent::sentences::SharedText;
use crate::config::Config;
use crate::domain::id::ModelId;
use crate::domain::time::Clock as _;
use crate::domain::time::LiveClock;
use crate::memory::reader::Reader;
use crate::memory::similarity::Similarity;
use crate::memory::strength::Raiser;
use crate::recall::score;
use anyhow::Context as _;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

/// The desk. Threads share it by [`Arc`]; it may outlive the writer.
pub struct Desk {
    data_dir: PathBuf,
    raiser: Raiser,
    clock: Arc<LiveClock>,
    equipment: Mutex<Equipment>,
    /// Open from the first search on, and opened anew after one that failed.
    store: Mutex<Option<(Reader, Similarity)>>,
}

/// What the config of the present segment gives.
#[derive(Clone, Default)]
struct Equipment {
    model: String,
    tower: Option<SharedText>,
    marks: score::Config,
}

impl Desk {
    /// A desk that compares words only, until it is equipped.
    #[must_use]
    pub fn new(data_dir: &Path, raiser: Raiser, clock: Arc<LiveClock>) -> Self {
        let (equipment, store) = (Mutex::default(), Mutex::default());
        Self { data_dir: data_dir.to_path_buf(), raiser, clock, equipment, store }
    }

    /// Takes what a segment begins with.
    pub fn equip(&self, config: &Config, models: &Models) {
        let (model, marks) = (config.clip.model.clone(), config.search.clone());
        *lock(&self.equipment) = Equipment { model, tower: models.text(), marks };
    }

    /// Searches, and tells the writer what it returned unless the asker only peeks.
    ///
    /// # Errors
    /// As [`super::look`].
    pub fn answer(&self, request: &Request) -> anyhow::Result<Answer> {
        let mut store = lock(&self.store);
        let (reader, mut similarity) = match store.take() {
            Some(open) => open,
            None => (Reader::open(&self.data_dir)?, Similarity::open(&self.data_dir)),
        };
        let (hits, mut notes) = super::look(&reader, &mut similarity, request, self.setting())?;
        *store = Some((reader, similarity));
        drop(store);
        if !request.peek
            && !hits.is_empty()
            && let Err(error) = self.raiser.raise(super::ids(&hits))
        {
            notes.push(format!("the strength of what was found stays as it was: {error}"));
        }
        Ok(super::answer(&hits, notes))
    }

    fn setting(&self) -> Setting<'static> {
        let Equipment { model, tower, marks } = lock(&self.equipment).clone();
        let give = move || tower.context("the agent runs without the model; `percept doctor` says why");
        let meaning = Meaning { model_id: ModelId::new(model), tower: Box::new(give) };
        Setting { marks, now: self.clock.stamp(), raised: self.raiser.waiting(), meaning }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

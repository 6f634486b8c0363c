//! Lines taken in while no agent runs: this process is the writer, under the exclusive lock.

use crate::agent::ingest::Intake;
use crate::agent::ingest::LineReport;
use crate::agent::ingest::feed;
use crate::agent::moments;
use crate::agent::moments::MomentFolder;
use crate::agent::sentences::Sentences;
use crate::config::Loaded;
use crate::domain::id::EpisodeId;
use crate::domain::time::Stamp;
use crate::domain::time::SystemClock;
use crate::memory::error::StoreError;
use crate::memory::store::Store;
use crate::memory::writer::Writer;
use anyhow::Context as _;
use std::io::Read;

/// Takes in every line of `input`, into the store of the config, which is made if it is not there. `holder` is how the
/// program calls itself in the lock; with `sentences` each new episode gets its text vector before the next batch.
///
/// # Errors
/// When the lock or the store cannot be had; else as [`feed`].
pub fn alone(
    loaded: &Loaded,
    holder: &str,
    input: impl Read,
    sentences: Option<Sentences>,
    now: Stamp,
    tell: &mut dyn FnMut(&LineReport, u64),
) -> anyhow::Result<()> {
    let (data_dir, options) = (loaded.data_dir.as_path(), loaded.open_options(holder));
    let writer = Writer::spawn(Store::open(data_dir, &options)?, Box::new(SystemClock::new()))?;
    let folder = MomentFolder::new(data_dir);
    moments::reconcile(&folder, &writer)?;
    let mut sentences = sentences;
    let embed = |id: EpisodeId, sentence: String| -> Result<(), StoreError> {
        let Some(sentences) = &mut sentences else { return Ok(()) };
        sentences.note(id, sentence);
        while !sentences.is_empty() {
            sentences.embed_next(&writer, now)?;
        }
        Ok(())
    };
    let mut intake = Intake::new(&writer, &folder, data_dir, embed)?;
    let fed = feed(input, &mut intake, tell);
    drop(intake);
    writer.close().context("close the store")?;
    fed
}

//! The sink of the process that is the store's writer: the agent, or a command that holds the lock.
//!
//! In: batches of understood lines. Out: their rows, the documents of their moments (DESIGN 3.4), and the sentences that
//! wait for a vector. A vector of another length than the model's others is refused here: only the store knows those.

use crate::agent::ingest::Line;
use crate::agent::ingest::LineReport;
use crate::agent::ingest::Outcome;
use crate::agent::ingest::Sink;
use crate::agent::moments::MomentFolder;
use crate::domain::episode::Embedding;
use crate::domain::episode::EmbeddingKind;
use crate::domain::episode::EpisodeRecord;
use crate::domain::id::DeviceId;
use crate::domain::id::EpisodeId;
use crate::domain::id::ModelId;
use crate::episodes::moment::Moment;
use crate::memory::command::Stored;
use crate::memory::error::StoreError;
use crate::memory::reader::Reader;
use crate::memory::writer::Writer;
use std::collections::BTreeMap;
use std::path::Path;

/// Models and kinds whose length is remembered; another one is looked up again.
const SPACES_MAX: usize = 256;

/// Stores lines as episodes of the device.
pub struct Intake<'a> {
    writer: &'a Writer,
    folder: &'a MomentFolder,
    reader: Reader,
    device_id: DeviceId,
    dims: BTreeMap<(ModelId, EmbeddingKind), usize>,
    note: Box<dyn FnMut(EpisodeId, String) -> Result<(), StoreError> + 'a>,
}

impl<'a> Intake<'a> {
    /// Into the store in `data_dir`, which `writer` writes. `note` gets each stored episode's sentence, for its vector.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub fn new(
        writer: &'a Writer,
        folder: &'a MomentFolder,
        data_dir: &Path,
        note: impl FnMut(EpisodeId, String) -> Result<(), StoreError> + 'a,
    ) -> Result<Self, StoreError> {
        let reader = Reader::open(data_dir)?;
        let device_id = reader.identity()?.device_id;
        Ok(Self { writer, folder, reader, device_id, dims: BTreeMap::new(), note: Box::new(note) })
    }

    /// What is wrong with the length of a vector, if anything. The first vector of a model sets its length.
    fn wrong_length(&mut self, embeddings: &[Embedding]) -> Result<Option<String>, StoreError> {
        for (index, embedding) in embeddings.iter().enumerate() {
            let key = (embedding.model_id.clone(), embedding.kind);
            let (known, given) = (self.known_dims(&key)?, embedding.vector.len());
            match known {
                Some(known) if known != given => {
                    let (model, kind) = (&key.0, key.1.as_str());
                    return Ok(Some(format!(
                        "embeddings[{index}].vector: it has {given} values; the {kind} vectors of {model} have {known}"
                    )));
                }
                Some(_) => {}
                None => self.remember(key, given),
            }
        }
        Ok(None)
    }

    fn known_dims(&mut self, key: &(ModelId, EmbeddingKind)) -> Result<Option<usize>, StoreError> {
        if let Some(dims) = self.dims.get(key) {
            return Ok(Some(*dims));
        }
        let dims = self.reader.vector_dims(&key.0, key.1)?.and_then(|dims| usize::try_from(dims).ok());
        if let Some(dims) = dims {
            self.remember(key.clone(), dims);
        }
        Ok(dims)
    }

    fn remember(&mut self, key: (ModelId, EmbeddingKind), dims: usize) {
        if self.dims.len() >= SPACES_MAX {
            self.dims.pop_first();
        }
        self.dims.insert(key, dims);
    }

    /// Marker and document of a moment before its row, as for those the agent makes. A moment that another program keeps
    /// under its own id has its document there.
    fn write_document(&self, record: &EpisodeRecord, moment: &Moment) -> bool {
        let id = record.episode.id;
        let is_ours =
            record.episode.metadata.get("multimodal_episode_id").and_then(|id| id.as_str()) == Some(&id.to_string());
        if !is_ours {
            return false;
        }
        let document = moment.document(id, &record.episode.session_id, record.episode.timestamp);
        if let Err(error) = self.folder.write(record, &document) {
            tracing::warn!(%error, "a handed-in moment's document could not be written; its row is");
            return false;
        }
        true
    }

    /// The row is committed: its marker goes, and so does the document of a row that is not there.
    fn settle_document(&self, id: EpisodeId, stored: &Stored) {
        let removed = match stored {
            Stored::Blocked | Stored::Refused(_) => self.folder.remove(id),
            Stored::New | Stored::Updated | Stored::Known => Ok(()),
        };
        if let Err(error) = removed.and_then(|()| self.folder.settle(id)) {
            tracing::warn!(%error, "a marker stays behind; the next start looks at it again");
        }
    }
}

impl Sink for Intake<'_> {
    fn take(&mut self, batch: Vec<Line>) -> anyhow::Result<Vec<LineReport>> {
        let mut reports: Vec<Option<LineReport>> = Vec::with_capacity(batch.len());
        let (mut records, mut waiting) = (Vec::new(), Vec::new());
        for line in batch {
            if let Some(reason) = self.wrong_length(&line.handed_in.embeddings)? {
                reports.push(Some(LineReport::refused(line.number, reason)));
                continue;
            }
            let moment = line.handed_in.moment.clone();
            let record = line.handed_in.record(&self.device_id);
            let has_document = moment.is_some_and(|moment| self.write_document(&record, &moment));
            waiting.push((line.number, record.episode.id, record.episode.content.clone(), has_document));
            records.push(record);
            reports.push(None);
        }
        let stored = self.writer.store(records)?;
        let mut stored_reports = Vec::with_capacity(stored.len());
        for ((number, id, content, has_document), stored) in waiting.into_iter().zip(stored) {
            if has_document {
                self.settle_document(id, &stored);
            }
            if matches!(stored, Stored::New | Stored::Updated) {
                (self.note)(id, content)?;
            }
            stored_reports.push(report(number, id, stored));
        }
        let mut stored_reports = stored_reports.into_iter();
        Ok(reports.into_iter().filter_map(|refused| refused.or_else(|| stored_reports.next())).collect())
    }
}

fn report(line: u64, id: EpisodeId, stored: Stored) -> LineReport {
    let outcome = match stored {
        Stored::New => Outcome::New,
        Stored::Updated => Outcome::Updated,
        Stored::Known => Outcome::Known,
        Stored::Blocked => Outcome::Forgotten,
        Stored::Refused(reason) => return LineReport::refused(line, reason),
    };
    LineReport { line, outcome, id: Some(id), reason: None }
}

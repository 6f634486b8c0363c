//! Hands products to the store: rows through its writer, moments with their documents.
//!
//! In: products in order. Out: rows, documents, counts. A row that cannot be written is an error of the session; a
//! document that cannot be written leaves its marker or is counted, and capture goes on.

use crate::agent::clock::Correction;
use crate::agent::identity::Capture;
use crate::agent::moments::MomentFolder;
use crate::agent::pipeline::Product;
use crate::domain::episode::Draft;
use crate::domain::id::EpisodeId;
use crate::domain::modality::Modality;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;
use crate::episodes::moment::Moment;
use crate::memory::clock::ClockCorrection;
use crate::memory::clock::ClockScope;
use crate::memory::coverage::CoverageRecord;
use crate::memory::error::StoreError;
use crate::memory::writer::Writer;
use std::collections::BTreeMap;

/// Writes the products of one capture.
pub struct Recorder<'a> {
    capture: Capture,
    writer: &'a Writer,
    folder: &'a MomentFolder,
    moments: BTreeMap<EpisodeId, Stamp>,
    episodes: BTreeMap<Modality, std::collections::BTreeSet<EpisodeId>>,
    coverage_count: u64,
    document_failures: u64,
}

impl<'a> Recorder<'a> {
    /// Nothing written yet.
    #[must_use]
    pub fn new(capture: Capture, writer: &'a Writer, folder: &'a MomentFolder) -> Self {
        Self {
            capture,
            writer,
            folder,
            moments: BTreeMap::new(),
            episodes: BTreeMap::new(),
            coverage_count: 0,
            document_failures: 0,
        }
    }

    /// Writes one product. `corrected` tells the right time of something stamped earlier.
    ///
    /// # Errors
    /// [`StoreError`] of the row.
    pub fn write(&mut self, product: Product, corrected: impl Fn(Stamp) -> Stamp) -> Result<(), StoreError> {
        match product {
            Product::Episode(draft) => self.append(*draft, None, corrected),
            Product::Moment(draft, moment) => self.append(*draft, Some(*moment), corrected),
            Product::Coverage(coverage) => {
                self.coverage_count += 1;
                self.writer.coverage(CoverageRecord {
                    device_id: self.capture.device_id.clone(),
                    session_id: self.capture.session_id.clone(),
                    boot_id: self.capture.boot_id.clone(),
                    coverage,
                })
            }
            Product::Correction(correction) => self.correct(correction, corrected),
        }
    }

    fn append(
        &mut self,
        draft: Draft,
        moment: Option<Moment>,
        corrected: impl Fn(Stamp) -> Stamp,
    ) -> Result<(), StoreError> {
        let start = draft.start;
        let record = self.capture.record(draft);
        let id = record.episode.id;
        self.episodes.entry(record.episode.modality).or_default().insert(id);
        if let Some(moment) = moment {
            let document = moment.document(id, &self.capture.session_id, corrected(start).utc);
            match self.folder.write(&record, &document) {
                Ok(()) => {
                    self.moments.insert(id, start);
                }
                Err(error) => self.document_failed(&error),
            }
        }
        self.writer.append(record)
    }

    fn correct(&mut self, correction: Correction, corrected: impl Fn(Stamp) -> Stamp) -> Result<(), StoreError> {
        let earlier = self.moments.iter().filter(|(_, start)| start.monotonic_ms < correction.before_monotonic_ms);
        let times: Vec<(EpisodeId, Timestamp)> = earlier.map(|(id, start)| (*id, corrected(*start).utc)).collect();
        for (id, time) in times {
            if let Err(error) = self.folder.correct_time(id, time) {
                self.document_failed(&error);
            }
        }
        self.writer.correct_clock(ClockCorrection {
            device_id: self.capture.device_id.clone(),
            scope: ClockScope::Session(self.capture.session_id.clone()),
            before_monotonic_ms: correction.before_monotonic_ms,
            delta_ms: correction.delta_ms,
            quality: correction.quality,
        })
    }

    fn document_failed(&mut self, error: &crate::agent::moments::MomentError) {
        if self.document_failures == 0 {
            tracing::warn!(%error, "a moment's document could not be written; its row is");
        }
        self.document_failures += 1;
    }

    /// Everything written so far has committed: removes the markers.
    pub fn settle(&mut self) {
        for id in self.moments.keys() {
            if let Err(error) = self.folder.settle(*id) {
                tracing::warn!(%error, "a marker stays behind; the next start looks at it again");
            }
        }
    }

    /// The moments written.
    pub fn moments(&self) -> impl Iterator<Item = EpisodeId> {
        self.moments.keys().copied()
    }

    /// Episodes written, by modality; an updated one counts once.
    #[must_use]
    pub fn episode_counts(&self) -> BTreeMap<Modality, usize> {
        self.episodes.iter().map(|(modality, ids)| (*modality, ids.len())).collect()
    }

    /// Coverage rows written.
    #[must_use]
    pub fn coverage_count(&self) -> u64 {
        self.coverage_count
    }

    /// Documents that could not be written.
    #[must_use]
    pub fn document_failures(&self) -> u64 {
        self.document_failures
    }
}

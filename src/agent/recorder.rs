//! Hands products to the store: rows through its writer, moments with their documents.
//!
//! In: products in order. Out: rows, documents, counts. A row that cannot be written is an error of the session; a
//! document that cannot be written leaves its marker or is counted, and capture goes on.

use crate::agent::clock::Correction;
use crate::agent::gists::Made;
use crate::agent::identity::Capture;
use crate::agent::moments::MomentFolder;
use crate::agent::pipeline::Product;
use crate::agent::sentences::Sentences;
use crate::domain::episode::Draft;
use crate::domain::id::EpisodeId;
use crate::domain::modality::Modality;
use crate::domain::time::ClockQuality;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;
use crate::episodes::moment::Moment;
use crate::memory::clock::ClockCorrection;
use crate::memory::clock::ClockScope;
use crate::memory::coverage::CoverageRecord;
use crate::memory::error::StoreError;
use crate::memory::moments::Standing;
use crate::memory::reader::Reader;
use crate::memory::writer::Writer;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::VecDeque;

/// Episodes remembered so that an update is not counted again; updates come soon or, for a lasting scene, often.
const RECENT_MAX: usize = 1_024;

/// Moments of a boot whose clock is not set that are remembered for its correction.
const MOMENTS_MAX: usize = 50_000;

/// Writes the products of one capture.
pub struct Recorder<'a> {
    capture: Capture,
    writer: &'a Writer,
    folder: &'a MomentFolder,
    scope: ClockScope,
    moments: BTreeMap<EpisodeId, Stamp>,
    unsettled: BTreeSet<EpisodeId>,
    last_moment: Option<EpisodeId>,
    sentences: Option<Sentences>,
    recent: VecDeque<EpisodeId>,
    counts: BTreeMap<Modality, usize>,
    document_failures: u64,
    /// Knows what was forgotten; opened with the first moment.
    reader: Option<Reader>,
    held: Vec<String>,
}

impl<'a> Recorder<'a> {
    /// Nothing written yet.
    #[must_use]
    pub fn new(capture: Capture, writer: &'a Writer, folder: &'a MomentFolder) -> Self {
        let scope = ClockScope::Session(capture.session_id.clone());
        Self {
            capture,
            writer,
            folder,
            scope,
            moments: BTreeMap::new(),
            unsettled: BTreeSet::new(),
            last_moment: None,
            sentences: None,
            recent: VecDeque::new(),
            counts: BTreeMap::new(),
            document_failures: 0,
            reader: None,
            held: Vec::new(),
        }
    }

    /// Rows of these modalities (`all` is every one) are left out: something of them was forgotten, and they could bring it
    /// back (see [`Reader::held_back`]).
    #[must_use]
    pub fn holding(mut self, modalities: Vec<String>) -> Self {
        self.held = modalities;
        self
    }

    /// Corrections of the clock reach every row of this boot, earlier runs included: for a live run, whose monotonic time
    /// counts from the boot.
    #[must_use]
    pub fn of_boot(mut self) -> Self {
        self.scope = ClockScope::Boot(self.capture.boot_id.clone());
        self
    }

    /// New episodes get text vectors (see [`Self::embed_next`]).
    #[must_use]
    pub fn with_sentences(mut self, sentences: Option<Sentences>) -> Self {
        self.sentences = sentences;
        self
    }

    /// Gives one waiting sentence its vector. Returns false when none waits.
    ///
    /// # Errors
    /// [`StoreError`] of the vector's row.
    pub fn embed_next(&mut self, now: Stamp) -> Result<bool, StoreError> {
        self.sentences.as_mut().map_or(Ok(false), |sentences| sentences.embed_next(self.writer, now))
    }

    /// A handed-in episode's sentence waits for its vector like those of the run's own.
    pub fn note_sentence(&mut self, id: EpisodeId, sentence: String) {
        if let Some(sentences) = &mut self.sentences {
            sentences.note(id, sentence);
        }
    }

    /// Moments of earlier runs of this boot, whose documents a correction of the clock reaches too.
    pub fn adopt(&mut self, moments: impl IntoIterator<Item = (EpisodeId, Stamp)>) {
        self.moments.extend(moments);
    }

    /// Writes one product. `corrected` tells the right time of something stamped earlier.
    ///
    /// # Errors
    /// [`StoreError`] of the row.
    pub fn write(&mut self, product: Product, corrected: impl Fn(Stamp) -> Stamp) -> Result<(), StoreError> {
        match product {
            Product::Episode(draft) => self.append(*draft, None, corrected),
            Product::Moment(draft, moment) => self.append(*draft, Some(*moment), corrected),
            Product::Coverage(coverage) => self.writer.coverage(CoverageRecord {
                device_id: self.capture.device_id.clone(),
                session_id: self.capture.session_id.clone(),
                boot_id: self.capture.boot_id.clone(),
                coverage,
            }),
            Product::Correction(correction) => self.correct(correction, corrected),
        }
    }

    /// Hands a gist to the store; its sentences get a text vector as any other.
    ///
    /// # Errors
    /// [`StoreError`] of the row.
    pub fn write_gist(&mut self, made: Made) -> Result<(), StoreError> {
        if let (Made::Gist(record, _), Some(sentences)) = (&made, &mut self.sentences) {
            sentences.note(record.episode.id, record.episode.content.clone());
        }
        made.write(self.writer)
    }

    fn append(
        &mut self,
        draft: Draft,
        moment: Option<Moment>,
        corrected: impl Fn(Stamp) -> Stamp,
    ) -> Result<(), StoreError> {
        let start = draft.start;
        let record = self.capture.record(draft);
        if self.held.iter().any(|name| name == "all" || name == record.episode.modality.as_str()) {
            return Ok(());
        }
        let id = record.episode.id;
        self.count(record.episode.modality, id);
        if let Some(sentences) = &mut self.sentences {
            sentences.note(id, record.episode.content.clone());
        }
        if let Some(moment) = moment.filter(|_| !self.is_forgotten(id)) {
            let document = moment.document(id, &self.capture.session_id, corrected(start).utc);
            match self.folder.write(&record, &document) {
                Ok(()) => {
                    self.moments.insert(id, start);
                    self.unsettled.insert(id);
                    self.last_moment = Some(id);
                }
                Err(error) => self.document_failed(&error),
            }
        }
        self.writer.append(record)
    }

    /// Whether the moment was forgotten or redacted: the store will not take its row, and its document must not stand either.
    fn is_forgotten(&mut self, id: EpisodeId) -> bool {
        if self.reader.is_none() {
            self.reader = Reader::open(self.folder.data_dir()).ok();
        }
        let standing = self.reader.as_ref().and_then(|reader| reader.standing(&id.to_string()).ok());
        matches!(standing, Some(Standing::Gone | Standing::Redacted))
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
            scope: self.scope.clone(),
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

    /// An episode that is updated counts once.
    fn count(&mut self, modality: Modality, id: EpisodeId) {
        if self.recent.contains(&id) {
            return;
        }
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(id);
        *self.counts.entry(modality).or_default() += 1;
    }

    /// Everything written so far has committed: removes the markers.
    pub fn settle(&mut self) {
        for id in std::mem::take(&mut self.unsettled) {
            if let Err(error) = self.folder.settle(id) {
                tracing::warn!(%error, "a marker stays behind; the next start looks at it again");
            }
        }
    }

    /// Removes the document of a moment whose row had to make room.
    pub fn remove_document(&mut self, id: &str) {
        self.moments.retain(|known, _| known.to_string() != id);
        if let Err(error) = self.folder.remove_named(id) {
            tracing::warn!(%error, "the document of an evicted moment stays behind");
        }
    }

    /// Whether a moment's marker waits for its row to be committed.
    #[must_use]
    pub fn has_unsettled(&self) -> bool {
        !self.unsettled.is_empty()
    }

    /// The moment written last.
    #[must_use]
    pub fn last_moment(&self) -> Option<EpisodeId> {
        self.last_moment
    }

    /// Lets go of moments whose time no later correction can change, so that a run of months stays small.
    pub fn forget_certain(&mut self) {
        self.moments.retain(|_, start| start.quality < ClockQuality::Network);
        while self.moments.len() > MOMENTS_MAX {
            self.moments.pop_first();
        }
    }

    /// The moments written.
    pub fn moments(&self) -> impl Iterator<Item = EpisodeId> {
        self.moments.keys().copied()
    }

    /// Episodes written, by modality; an updated one counts once.
    #[must_use]
    pub fn episode_counts(&self) -> BTreeMap<Modality, usize> {
        self.counts.clone()
    }

    /// Documents that could not be written.
    #[must_use]
    pub fn document_failures(&self) -> u64 {
        self.document_failures
    }
}

//! Forgetting on the whole device: the store, the documents of moments beside it, their markers.
//!
//! ```text
//!  rows (store) → documents → set-aside files, full text, log, gaps (store)
//! ```
//!
//! In: an [`Order`], a [`Phase`] of it. Out: a [`Report`] of what this phase did, and the next phase. Phases are short; the
//! running agent carries out some of them for each request and captures on in between.
//! While a forgetting is under way the file [`MARKER`] stands in the data directory, and holds nothing. After a crash a start
//! removes the documents of rows that are gone ([`clean_up`]) and says that the order is to be given again: the name is kept
//! nowhere, so nobody but the user can.
//! Never: edits the config, or touches files that are not percept's; where the name stands there is told.

mod documents;
mod mentions;

use crate::agent::moments::MomentError;
use crate::agent::moments::MomentFolder;
use crate::memory::error::StoreError;
use crate::memory::forget::Order;
use crate::memory::forget::Round;
use crate::memory::forget::Step;
use crate::memory::forget::Subject;
use crate::memory::reader::Reader;
use crate::memory::writer::Writer;
pub use mentions::config_mentions;
use std::path::Path;
use std::sync::Arc;

/// Stands in the data directory while a forgetting is under way.
pub const MARKER: &str = "forgetting";

/// A forgetting that could not go on. Giving the order again goes on with it.
#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A document could not be changed or removed.
    #[error(transparent)]
    Document(#[from] MomentError),
}

/// How far an order is carried out.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A step of the store.
    Store(Step),
    /// The documents whose folders come behind this one in the order of names.
    Documents(String),
}

impl Phase {
    /// The first one.
    pub const FIRST: Self = Self::Store(Step::FIRST);
}

/// What was forgotten.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Report {
    /// In the store.
    #[serde(flatten)]
    pub store: Round,
    /// Documents of moments that are gone with everything in their folder.
    pub documents_removed: u64,
    /// Documents that stay without the name.
    pub documents_redacted: u64,
    /// What is to be done next; `None` when all is done.
    pub next_phase: Option<Phase>,
}

impl Report {
    /// Adds what a later phase did.
    pub fn add(&mut self, later: Self) {
        self.store.add(later.store);
        self.documents_removed += later.documents_removed;
        self.documents_redacted += later.documents_redacted;
        self.next_phase = later.next_phase;
    }
}

/// Carries out one phase. Every row and document handed to the store before must be committed and settled.
///
/// # Errors
/// [`ForgetError`]; the same phase again goes on.
pub fn advance(
    order: &Arc<Order>,
    phase: Phase,
    writer: &Writer,
    folder: &MomentFolder,
) -> Result<Report, ForgetError> {
    if phase == Phase::FIRST {
        mark(folder.data_dir())?;
    }
    let report = match phase {
        Phase::Store(step) => in_store(order, step, writer, folder)?,
        Phase::Documents(after) => {
            let reader = Reader::open(folder.data_dir())?;
            documents::forget(order, &after, &reader, folder)?
        }
    };
    if report.next_phase.is_none() {
        crate::agent::moments::remove_file(&folder.data_dir().join(MARKER))?;
    }
    Ok(report)
}

fn in_store(order: &Arc<Order>, step: Step, writer: &Writer, folder: &MomentFolder) -> Result<Report, ForgetError> {
    let mut round = writer.forget(Arc::clone(order), step)?;
    let mut documents_removed = 0;
    for moment in &round.moments_removed {
        folder.remove_named(moment)?;
        documents_removed += 1;
    }
    let next_phase = match step {
        // Between the rows and the cleaning up come the documents.
        Step::Rest => Some(Phase::Documents(String::new())),
        Step::Rows(_) | Step::SetAside | Step::FullText | Step::MoreFullText | Step::FreePages | Step::Gaps(_) => {
            round.next.map(Phase::Store)
        }
    };
    if next_phase.is_none() {
        round.left.extend(mentions::strangers(folder.data_dir(), order));
    }
    Ok(Report { store: round, documents_removed, next_phase, ..Report::default() })
}

/// Carries out the whole order.
///
/// # Errors
/// [`ForgetError`]; giving the order again goes on with it.
pub fn forget(order: &Arc<Order>, writer: &Writer, folder: &MomentFolder) -> Result<Report, ForgetError> {
    let (mut total, mut next) = (Report::default(), Some(Phase::FIRST));
    while let Some(phase) = next {
        let report = advance(order, phase, writer, folder)?;
        next = report.next_phase.clone();
        total.add(report);
    }
    Ok(total)
}

/// What the order would do. Nothing is changed.
///
/// # Errors
/// [`StoreError`] of the read.
pub fn survey(order: &Order, reader: &Reader) -> Result<Round, StoreError> {
    let (mut total, mut next) = (Round::default(), Some(Step::FIRST));
    while let Some(step) = next {
        let round = reader.survey_forgetting(order, step)?;
        next = round.next;
        total.add(round);
    }
    Ok(total)
}

fn mark(data_dir: &Path) -> Result<(), ForgetError> {
    let file = data_dir.join(MARKER);
    let made = std::fs::File::create(&file).and_then(|file| file.sync_all());
    let failed = |source| StoreError::Io { action: "create", path: file.clone(), source };
    made.map_err(failed)?;
    std::fs::File::open(data_dir).and_then(|dir| dir.sync_all()).map_err(failed)?;
    Ok(())
}

/// Removes what a forgetting that was cut off left of moments whose rows are gone. Returns whether there was one: the order
/// is to be given again then.
///
/// # Errors
/// [`ForgetError`] when a document cannot be removed.
pub fn clean_up(folder: &MomentFolder) -> Result<bool, ForgetError> {
    if !folder.data_dir().join(MARKER).exists() {
        return Ok(false);
    }
    let nothing = Order { subject: Subject::Ids(Vec::new()), keep: Vec::new(), known: Vec::new() };
    let reader = Reader::open(folder.data_dir())?;
    let mut after = String::new();
    while let Some(Phase::Documents(next)) = documents::forget(&nothing, &after, &reader, folder)?.next_phase {
        after = next;
    }
    tracing::warn!("a forgetting was cut off: what it had reached is gone; give `percept forget` the same order again");
    Ok(true)
}

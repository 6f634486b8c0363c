//! Moments stand in two stores, pictures and recordings in files beside their rows: finds what disagrees, and mends it.
//!
//! In: the store, the folders. Out: [`Findings`], or what was [`Mended`].
//!
//! | found | mended |
//! |---|---|
//! | a row without a document | the document is written from the row |
//! | a document without a row | the row is written from the document; if the moment was forgotten, the document goes |
//! | a document that says another time or other things than its row | the row is right: it has corrections and redactions |
//! | a marker whose row is committed, or that is cut off | removed |
//! | an unfinished folder or file | removed |
//! | rows and files of media | see [`crate::memory::media_check`] |
//!
//! Never: decides by itself to mend; reads a picture.

use crate::agent::identity::Capture;
use crate::agent::moments;
use crate::agent::moments::MomentError;
use crate::agent::moments::MomentFolder;
use crate::agent::moments::REDACTED;
use crate::domain::episode::EpisodeRecord;
use crate::domain::episode::Metadata;
use crate::domain::id::BootId;
use crate::domain::id::DeviceId;
use crate::domain::id::EpisodeId;
use crate::domain::id::SessionId;
use crate::domain::id::SourceId;
use crate::domain::time::ClockQuality;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;
use crate::episodes::moment::Moment;
use crate::memory::error::StoreError;
use crate::memory::media_check::Listed;
use crate::memory::media_check::MediaReport;
use crate::memory::media_check::Mending;
use crate::memory::moments::Standing;
use crate::memory::moments::StoredMoment;
use crate::memory::reader::Reader;
use crate::memory::writer::Writer;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Rows read at a time.
const ROWS_AT_A_TIME: usize = 500;

/// Which sensor a row is filed under that was written from its document.
const SOURCE: &str = "moment:document";

/// What disagrees.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Findings {
    /// Rows and files of media.
    pub media: MediaReport,
    /// Moments whose row has no document.
    pub rows_without_document: Listed,
    /// Documents whose moment has no row.
    pub documents_without_row: Listed,
    /// Documents that say something else than their row.
    pub documents_that_differ: Listed,
    /// Markers that should be gone.
    pub markers: Listed,
    /// Folders and files whose writing was cut off.
    pub unfinished: Listed,
}

impl Findings {
    /// Whether everything agrees.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.media.is_clean() && self.lists().iter().all(|(_, list)| list.count == 0)
    }

    /// Everything but media, by name.
    #[must_use]
    pub fn lists(&self) -> [(&'static str, &Listed); 5] {
        [
            ("rows without document", &self.rows_without_document),
            ("documents without row", &self.documents_without_row),
            ("documents that differ", &self.documents_that_differ),
            ("markers left behind", &self.markers),
            ("unfinished files", &self.unfinished),
        ]
    }
}

/// What was mended.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Mended {
    /// Media.
    pub media: Mending,
    /// Documents written from their rows.
    pub documents_written: u64,
    /// Rows written from their documents.
    pub rows_written: u64,
    /// Documents of forgotten moments, markers and unfinished files that were removed.
    pub removed: u64,
    /// What could not be mended, and why.
    pub left: Vec<String>,
    /// Whether there is more to mend.
    pub is_more: bool,
}

impl Mended {
    /// Adds what a later call did.
    pub fn add(&mut self, later: Self) {
        self.media.marked_missing += later.media.marked_missing;
        self.media.taken_back += later.media.taken_back;
        self.media.set_aside += later.media.set_aside;
        self.media.removed += later.media.removed;
        self.documents_written += later.documents_written;
        self.rows_written += later.rows_written;
        self.removed += later.removed;
        self.left = later.left;
        self.is_more = later.is_more;
    }
}

/// A check or a mending that could not go on; what was mended before stays mended.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A document or marker could not be read, written or removed.
    #[error(transparent)]
    Document(#[from] MomentError),
}

/// Compares. While an agent runs (`is_live`), what is on its way between document and row is left out.
///
/// # Errors
/// [`ReconcileError`] of what cannot be read.
pub fn check(reader: &Reader, folder: &MomentFolder, is_live: bool) -> Result<Findings, ReconcileError> {
    let mut findings = Findings { media: reader.check_media()?, ..Findings::default() };
    each_row(reader, |moment| {
        let Some(document) = folder.read(&moment.name) else {
            findings.rows_without_document.add(moment.name.clone());
            return Ok(());
        };
        if differs(&document, moment) {
            findings.documents_that_differ.add(moment.name.clone());
        }
        Ok(())
    })?;
    let markers = names_in(folder.markers())?;
    for name in names_in(folder.episodes())? {
        let is_on_its_way = is_live && markers.contains(&format!("{name}.json"));
        if name.starts_with('.') {
            if !is_live {
                findings.unfinished.add(format!("multimodal-episodes/{name}"));
            }
            continue;
        }
        if !is_live && folder.episodes().join(&name).join("episode.prog").exists() {
            findings.unfinished.add(format!("multimodal-episodes/{name}/episode.prog"));
        }
        let is_without = matches!(reader.standing(&name)?, Standing::Unknown | Standing::Gone);
        if is_without && !is_on_its_way {
            findings.documents_without_row.add(name);
        }
    }
    for name in markers.into_iter().filter(|_| !is_live) {
        let list = if name.ends_with(".json") { &mut findings.markers } else { &mut findings.unfinished };
        list.add(format!("pending/{name}"));
    }
    Ok(findings)
}

/// Mends what [`check`] finds; a list that is longer than it names takes several calls.
///
/// # Errors
/// [`ReconcileError`] of what stopped it; what was mended before stays mended.
pub fn mend(writer: &Writer, folder: &MomentFolder) -> Result<Mended, ReconcileError> {
    let media = writer.mend_media()?;
    let mut mended = Mended { media, ..Mended::default() };
    // Markers first: they hold whole rows, which documents do not.
    mended.rows_written += settle_markers(writer, folder, &mut mended.removed)?;
    let reader = Reader::open(folder.data_dir())?;
    let findings = check(&reader, folder, false)?;
    for path in findings.unfinished.paths.iter().chain(&findings.markers.paths) {
        remove(&folder.data_dir().join(path))?;
        mended.removed += 1;
    }
    for name in &findings.documents_without_row.paths {
        match reader.standing(name)? {
            Standing::Gone => {
                folder.remove_named(name)?;
                mended.removed += 1;
            }
            Standing::Unknown | Standing::Stored | Standing::Redacted => match row_of(&reader, folder, name)? {
                Ok(record) => {
                    writer.append(record)?;
                    mended.rows_written += 1;
                }
                Err(why) => mended.left.push(format!("multimodal-episodes/{name}: {why}")),
            },
        }
    }
    writer.flush()?;
    let wrong = [&findings.rows_without_document, &findings.documents_that_differ];
    let names: Vec<&String> = wrong.iter().flat_map(|list| &list.paths).collect();
    each_row(&reader, |moment| {
        if names.contains(&&moment.name) {
            rewrite(folder, moment)?;
            mended.documents_written += 1;
        }
        Ok(())
    })?;
    let is_cut_short = findings.lists().iter().any(|(_, list)| list.count > list.paths.len() as u64);
    mended.is_more = is_cut_short && mended.documents_written + mended.rows_written + mended.removed > 0;
    Ok(mended)
}

fn each_row(
    reader: &Reader,
    mut found: impl FnMut(&StoredMoment) -> Result<(), ReconcileError>,
) -> Result<(), ReconcileError> {
    let mut after = String::new();
    loop {
        let rows = reader.moments_after(&after, ROWS_AT_A_TIME)?;
        let Some(last) = rows.last() else { return Ok(()) };
        after.clone_from(&last.name);
        rows.iter().try_for_each(&mut found)?;
    }
}

/// Whether document and row tell of different moments.
fn differs(document: &Value, moment: &StoredMoment) -> bool {
    let is_redacted = moments::is_redacted(document);
    let says = |key: &str| document.get(key).and_then(Value::as_str);
    // What was taken out of a redacted document is not in its sentence.
    let tells_else = !is_redacted && Moment::of_document(document).content() != moment.episode.content;
    says("id") != Some(moment.name.as_str())
        || document.get("timestamp").and_then(Value::as_i64) != Some(moment.episode.timestamp.as_millis())
        || (moment.is_redacted && !is_redacted)
        || tells_else
}

/// Writes the document as the row says. What only the document knows stays, unless something of the row was forgotten.
fn rewrite(folder: &MomentFolder, moment: &StoredMoment) -> Result<(), ReconcileError> {
    let episode = &moment.episode;
    let kept = folder.read(&moment.name).filter(|document| {
        !moment.is_redacted && Moment::of_document(document).content() == episode.content
            || moments::is_redacted(document)
    });
    let mut document = kept.unwrap_or_else(|| {
        let told = Moment::of_content(&episode.content);
        told.document(episode.id, &episode.session_id, episode.timestamp)
    });
    document["id"] = moment.name.clone().into();
    document["timestamp"] = episode.timestamp.as_millis().into();
    if moment.is_redacted {
        document[REDACTED] = true.into();
    }
    Ok(folder.rewrite(&moment.name, &document)?)
}

/// The row that a document stands for, or why there is none.
fn row_of(reader: &Reader, folder: &MomentFolder, name: &str) -> Result<Result<EpisodeRecord, String>, ReconcileError> {
    let Some(document) = folder.read(name) else {
        return Ok(Err("there is no episode.json in it that can be read, and no row".to_owned()));
    };
    let (Ok(id), Some(at)) = (EpisodeId::parse(name), document.get("timestamp").and_then(Value::as_i64)) else {
        return Ok(Err("its document has no time, or its name is no id".to_owned()));
    };
    let session = document.get("sessionId").and_then(Value::as_str).unwrap_or("unknown");
    Ok(Ok(record(reader.identity()?.device_id, id, session, &document, Timestamp::from_millis(at))))
}

fn record(device_id: DeviceId, id: EpisodeId, session: &str, document: &Value, at: Timestamp) -> EpisodeRecord {
    // Nobody knows its boot any more; its time was right when the document was written.
    let at = Stamp { monotonic_ms: 0, utc: at, quality: ClockQuality::Rtc };
    let capture = Capture {
        device_id,
        session_id: SessionId::new(session),
        boot_id: BootId::new("unknown"),
        start_is_known: true,
    };
    let draft = Moment::of_document(document).draft(SourceId::new(SOURCE), at, at, 0, Metadata::new());
    let mut record = capture.record(draft);
    record.episode.id = id;
    record.episode.metadata.insert("multimodal_episode_id".to_owned(), id.to_string().into());
    record
}

/// Rows that wait in markers are written; returns how many.
fn settle_markers(writer: &Writer, folder: &MomentFolder, removed: &mut u64) -> Result<u64, ReconcileError> {
    let before = names_in(folder.markers())?.len() as u64;
    let records = folder.pending()?;
    let mut written = 0;
    let reader = Reader::open(folder.data_dir())?;
    for record in &records {
        let id = record.episode.id;
        match reader.standing(&id.to_string())? {
            Standing::Unknown => {
                writer.append(record.clone())?;
                written += 1;
            }
            Standing::Stored | Standing::Redacted => {}
            Standing::Gone => folder.remove(id)?,
        }
    }
    writer.flush()?;
    for record in &records {
        folder.settle(record.episode.id)?;
    }
    *removed += before.saturating_sub(written);
    Ok(written)
}

fn names_in(dir: &Path) -> Result<Vec<String>, MomentError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(moments::failed("read", dir, source)),
    };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

fn remove(path: &Path) -> Result<(), MomentError> {
    if path.is_dir() {
        return fs::remove_dir_all(path).map_err(|source| moments::failed("remove", path, source));
    }
    moments::remove_file(path)
}

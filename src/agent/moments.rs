//! Writes moments beside the store, so that document and row never diverge for good (DESIGN 3.4).
//!
//! ```text
//!  pending/{id}.json  →  multimodal-episodes/{id}/episode.json  →  row  →  marker removed
//!  (the whole row)       (temporary folder, fsync, rename)
//! ```
//!
//! A crash between any two steps leaves the marker; [`MomentFolder::pending`] finds it at the next start, and the
//! row is written again from it: its id makes the repeat harmless.
//! In: moments and their rows. Out: files, and the records that still need their row. Never: the store itself.

use crate::agent::forget;
use crate::domain::disposition::Disposition;
use crate::domain::episode::EpisodeRecord;
use crate::domain::id::EpisodeId;
use crate::domain::time::Timestamp;
use crate::memory::moments::Standing;
use crate::memory::reader::Reader;
use crate::memory::writer::Writer;
use anyhow::Context as _;
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::path::PathBuf;

/// The document's name in its folder.
pub const DOCUMENT: &str = "episode.json";

/// The key that a redacted document has.
pub const REDACTED: &str = "redacted";

/// A document that could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", file.display())]
pub struct MomentError {
    action: &'static str,
    file: PathBuf,
    source: std::io::Error,
}

impl MomentError {
    /// A full disk or a missing permission may pass; the marker keeps the moment until then.
    #[must_use]
    pub fn disposition(&self) -> Disposition {
        Disposition::Retry
    }
}

/// The folders of the moments of one data directory.
#[derive(Debug, Clone)]
pub struct MomentFolder {
    data_dir: PathBuf,
    episodes: PathBuf,
    pending: PathBuf,
}

impl MomentFolder {
    /// The folders below `data_dir`; they are made when first needed.
    #[must_use]
    pub fn new(data_dir: &Path) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
            episodes: data_dir.join("multimodal-episodes"),
            pending: data_dir.join("pending"),
        }
    }

    /// The data directory.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// The folder of documents.
    #[must_use]
    pub fn episodes(&self) -> &Path {
        &self.episodes
    }

    /// The folder of markers.
    #[must_use]
    pub fn markers(&self) -> &Path {
        &self.pending
    }

    /// Writes marker and document. The row may be appended after this; [`Self::settle`] is due once it has committed.
    ///
    /// # Errors
    /// [`MomentError`]; an earlier document of this id is then still whole.
    pub fn write(&self, record: &EpisodeRecord, document: &Value) -> Result<(), MomentError> {
        let id = record.episode.id;
        make_dir(&self.pending)?;
        make_dir(&self.episodes)?;
        let row = serde_json::to_vec(record).unwrap_or_default();
        replace_file(&self.marker(id), &row)?;
        let text = serde_json::to_vec_pretty(document).unwrap_or_default();
        let folder = self.episodes.join(id.to_string());
        if self.read(&id.to_string()).is_some_and(|stored| is_redacted(&stored)) {
            return Ok(());
        }
        if folder.is_dir() {
            return replace_file(&folder.join(DOCUMENT), &text);
        }
        let temporary = self.episodes.join(format!(".{id}.tmp"));
        let _ = fs::remove_dir_all(&temporary);
        make_dir(&temporary)?;
        replace_file(&temporary.join(DOCUMENT), &text)?;
        fs::rename(&temporary, &folder).map_err(|source| failed("rename", &temporary, source))?;
        sync_dir(&self.episodes)
    }

    /// The row has committed: removes the marker.
    ///
    /// # Errors
    /// [`MomentError`] when the marker is there and cannot be removed.
    pub fn settle(&self, id: EpisodeId) -> Result<(), MomentError> {
        remove_file(&self.marker(id))
    }

    /// Rows whose document stands but which may never have been committed. A marker without a document is the trace
    /// of a moment that was never acknowledged: it is removed.
    ///
    /// # Errors
    /// [`MomentError`] when the folder cannot be read.
    pub fn pending(&self) -> Result<Vec<EpisodeRecord>, MomentError> {
        let entries = match fs::read_dir(&self.pending) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(failed("read", &self.pending, source)),
        };
        let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.sort();
        let mut records = Vec::new();
        for file in files {
            let record = fs::read(&file).ok().and_then(|bytes| serde_json::from_slice::<EpisodeRecord>(&bytes).ok());
            match record {
                Some(record) if self.document(record.episode.id).is_file() => records.push(record),
                _ => remove_file(&file)?,
            }
        }
        Ok(records)
    }

    /// Writes a corrected time into the document of a moment.
    ///
    /// # Errors
    /// [`MomentError`]; the earlier document is then still whole.
    pub fn correct_time(&self, id: EpisodeId, timestamp: Timestamp) -> Result<(), MomentError> {
        let file = self.document(id);
        let bytes = fs::read(&file).map_err(|source| failed("read", &file, source))?;
        let invalid = |error: serde_json::Error| failed("understand", &file, error.into());
        let mut document: Value = serde_json::from_slice(&bytes).map_err(invalid)?;
        document["timestamp"] = timestamp.as_millis().into();
        replace_file(&file, &serde_json::to_vec_pretty(&document).map_err(invalid)?)
    }

    /// Removes the document of a moment whose row is gone.
    ///
    /// # Errors
    /// [`MomentError`] when it is there and cannot be removed.
    pub fn remove(&self, id: EpisodeId) -> Result<(), MomentError> {
        self.remove_named(&id.to_string())
    }

    /// The same by the id in the row's metadata. A text that is no plain name is none of ours.
    ///
    /// # Errors
    /// [`MomentError`] when it is there and cannot be removed.
    pub fn remove_named(&self, id: &str) -> Result<(), MomentError> {
        if id.is_empty() || id.contains(['/', '.']) {
            return Ok(());
        }
        let folder = self.episodes.join(id);
        match fs::remove_dir_all(&folder) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(failed("remove", &folder, source)),
            _ => Ok(()),
        }
    }

    /// The document in the folder of that name, if it can be read.
    #[must_use]
    pub fn read(&self, name: &str) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.episodes.join(name).join(DOCUMENT)).ok()?).ok()
    }

    /// Replaces the document in the folder of that name, whole or not at all.
    ///
    /// # Errors
    /// [`MomentError`]; the earlier document is then still whole.
    pub fn rewrite(&self, name: &str, document: &Value) -> Result<(), MomentError> {
        let folder = self.episodes.join(name);
        make_dir(&folder)?;
        replace_file(&folder.join(DOCUMENT), &serde_json::to_vec_pretty(document).unwrap_or_default())
    }

    fn marker(&self, id: EpisodeId) -> PathBuf {
        self.pending.join(format!("{id}.json"))
    }

    fn document(&self, id: EpisodeId) -> PathBuf {
        self.episodes.join(id.to_string()).join(DOCUMENT)
    }
}

/// Writes the rows that a crash kept from their documents.
///
/// # Errors
/// When a row cannot be stored; its marker stays for the next start.
pub fn reconcile(folder: &MomentFolder, writer: &Writer) -> anyhow::Result<usize> {
    forget::clean_up(folder).context("end a forgetting that was cut off")?;
    let mut records = folder.pending().context("look for moments without a row")?;
    if records.is_empty() {
        return Ok(0);
    }
    let reader = Reader::open(folder.data_dir())?;
    for index in (0..records.len()).rev() {
        let id = records[index].episode.id;
        match reader.standing(&id.to_string())? {
            Standing::Unknown | Standing::Stored => continue,
            Standing::Redacted => folder.settle(id)?,
            Standing::Gone => {
                folder.remove(id)?;
                folder.settle(id)?;
            }
        }
        records.remove(index);
    }
    let ids: Vec<EpisodeId> = records.iter().map(|record| record.episode.id).collect();
    if ids.is_empty() {
        return Ok(0);
    }
    for record in records {
        writer.append(record)?;
    }
    writer.flush()?;
    for id in &ids {
        folder.settle(*id)?;
    }
    tracing::info!(count = ids.len(), "moments of an interrupted run have their rows");
    Ok(ids.len())
}

/// Whether a document was redacted by `percept forget`: it stays as it is.
#[must_use]
pub fn is_redacted(document: &Value) -> bool {
    document.get(REDACTED).and_then(Value::as_bool) == Some(true)
}

pub(crate) fn failed(action: &'static str, file: &Path, source: std::io::Error) -> MomentError {
    MomentError { action, file: file.to_owned(), source }
}

pub(crate) fn make_dir(dir: &Path) -> Result<(), MomentError> {
    fs::create_dir_all(dir).map_err(|source| failed("create", dir, source))
}

fn sync_dir(dir: &Path) -> Result<(), MomentError> {
    fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(|source| failed("sync", dir, source))
}

pub(crate) fn remove_file(file: &Path) -> Result<(), MomentError> {
    match fs::remove_file(file) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(failed("remove", file, source)),
        _ => Ok(()),
    }
}

/// Writes a file whole or not at all: temporary file, fsync, rename, fsync of the folder.
fn replace_file(file: &Path, bytes: &[u8]) -> Result<(), MomentError> {
    let temporary = file.with_extension("prog");
    let write = || {
        let mut target = fs::File::create(&temporary)?;
        target.write_all(bytes)?;
        target.sync_all()?;
        fs::rename(&temporary, file)
    };
    write().map_err(|source| failed("write", file, source))?;
    file.parent().map_or(Ok(()), sync_dir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::identity::Capture;
    use crate::domain::episode::Metadata;
    use crate::domain::id::BootId;
    use crate::domain::id::DeviceId;
    use crate::domain::id::SensorKind;
    use crate::domain::id::SessionId;
    use crate::domain::id::SourceId;
    use crate::domain::time::ClockQuality;
    use crate::domain::time::Stamp;
    use crate::episodes::moment::Moment;
    use serde_json::json;

    #[test]
    fn a_moment_whose_row_never_committed_is_found_at_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let folder = MomentFolder::new(dir.path());
        let record = record();
        folder.write(&record, &json!({"timestamp": 1})).unwrap();

        assert_eq!(MomentFolder::new(dir.path()).pending().unwrap(), std::slice::from_ref(&record));

        folder.settle(record.episode.id).unwrap();
        assert_eq!(folder.pending().unwrap(), []);
    }

    #[test]
    fn a_marker_without_a_document_or_cut_in_two_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = MomentFolder::new(dir.path());
        let record = record();
        folder.write(&record, &json!({})).unwrap();
        folder.remove(record.episode.id).unwrap();
        fs::write(dir.path().join("pending/cut.json"), "{\"episode\": {").unwrap();

        assert_eq!(folder.pending().unwrap(), []);
        assert_eq!(fs::read_dir(dir.path().join("pending")).unwrap().count(), 0);
    }

    #[test]
    fn a_document_is_rewritten_whole_at_departure_and_when_the_clock_is_corrected() {
        let dir = tempfile::tempdir().unwrap();
        let folder = MomentFolder::new(dir.path());
        let record = record();
        folder.write(&record, &json!({"timestamp": 1, "social": {"personName": "Alice"}})).unwrap();
        folder.write(&record, &json!({"timestamp": 1, "text": {"content": "x"}})).unwrap();

        folder.correct_time(record.episode.id, Timestamp::from_millis(99)).unwrap();

        let document: Value = serde_json::from_slice(&fs::read(folder.document(record.episode.id)).unwrap()).unwrap();
        assert_eq!(document, json!({"timestamp": 99, "text": {"content": "x"}}));
        assert_eq!(fs::read_dir(dir.path().join("multimodal-episodes")).unwrap().count(), 1);
    }

    fn record() -> EpisodeRecord {
        let at = Stamp { monotonic_ms: 1, utc: Timestamp::from_millis(1), quality: ClockQuality::Network };
        let moment = Moment { person: Some("Alice".into()), location: Some("Kitchen".into()), ..Moment::default() };
        let draft = moment.draft(SourceId::of(SensorKind::Bluetooth, "hci0"), at, at, 0, Metadata::new());
        let capture = Capture {
            device_id: DeviceId::new("d"),
            session_id: SessionId::new("s"),
            boot_id: BootId::new("b"),
            start_is_known: true,
        };
        capture.record(draft)
    }
}

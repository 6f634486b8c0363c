//! Documents and markers of moments: what is forgotten in the store leaves them too.
//!
//! In: an order, where to go on. Out: counts, where to go on next.
//!
//! | the moment's row | its document |
//! |---|---|
//! | is gone | removed, with everything in its folder |
//! | was redacted, or stands and the document names the name | redacted; pictures, recordings and vectors in it go |
//! | is not known | removed if it names the name or was captured in the span |
//!
//! Never: reads a picture, touches the store.

use super::ForgetError;
use super::Phase;
use super::Report;
use crate::agent::moments;
use crate::agent::moments::DOCUMENT;
use crate::agent::moments::MomentError;
use crate::agent::moments::MomentFolder;
use crate::agent::moments::REDACTED;
use crate::domain::time::Timestamp;
use crate::memory::forget::Order;
use crate::memory::moments::Standing;
use crate::memory::reader::Reader;
use serde_json::Map;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

/// Documents looked at in one phase.
const DOCUMENTS_A_PHASE: usize = 200;

/// Parts of a document that say what a picture or recording holds.
const UNREADABLE: [&str; 3] = ["clipEmbedding", "imagePath", "recordingPath"];

/// Goes through the folders behind `after`. The markers are looked at with the first of them.
pub(super) fn forget(
    order: &Order,
    after: &str,
    reader: &Reader,
    folder: &MomentFolder,
) -> Result<Report, ForgetError> {
    let mut report = Report::default();
    if after.is_empty() {
        markers(order, reader, folder)?;
    }
    let mut names: Vec<String> = entries(folder.episodes())?.iter().filter_map(|path| name_of(path)).collect();
    names.retain(|name| name.as_str() > after);
    names.sort();
    let is_more = names.len() > DOCUMENTS_A_PHASE;
    names.truncate(DOCUMENTS_A_PHASE);
    for name in &names {
        one(order, name, reader, folder, &mut report)?;
    }
    report.next_phase = match names.pop().filter(|_| is_more) {
        Some(last) => Some(Phase::Documents(last)),
        None => Some(Phase::Store(crate::memory::forget::Step::CLEAN)),
    };
    Ok(report)
}

fn one(
    order: &Order,
    name: &str,
    reader: &Reader,
    folder: &MomentFolder,
    report: &mut Report,
) -> Result<(), ForgetError> {
    let path = folder.episodes().join(name);
    // Nobody writes a document now: what is unfinished was cut off.
    if name.starts_with('.') || !path.is_dir() {
        remove(&path)?;
        return Ok(());
    }
    let standing = reader.standing(name)?;
    let text = fs::read_to_string(path.join(DOCUMENT)).unwrap_or_default();
    let document: Option<Map<String, Value>> = serde_json::from_str(&text).ok();
    let redacted = document.as_ref().and_then(|document| order.redacted_document(document));
    let at = document.as_ref().and_then(|document| document.get("timestamp")?.as_i64()).map(Timestamp::from_millis);
    let is_meant = redacted.is_some() || order.is_named_in(&text) || order.is_named_in(name);
    let goes = match standing {
        Standing::Gone => true,
        Standing::Unknown => is_meant || at.is_some_and(|at| order.covers(at)),
        // A folder that is called by the name, or a document that is no JSON, cannot be redacted.
        Standing::Stored | Standing::Redacted => order.is_named_in(name) || (is_meant && document.is_none()),
    };
    if goes {
        remove(&path)?;
        report.documents_removed += 1;
        return Ok(());
    }
    let was_redacted = document.as_ref().is_some_and(|document| document.contains_key(REDACTED));
    let rest = redacted.or_else(|| document.filter(|_| standing == Standing::Redacted && !was_redacted));
    if let Some(mut rest) = rest {
        drop_unreadable(&mut rest);
        rest.insert(REDACTED.to_owned(), true.into());
        folder.rewrite(name, &Value::Object(rest))?;
        keep_document_alone(&path)?;
        report.documents_redacted += 1;
    }
    for file in entries(&path)?.iter().filter(|file| name_of(file).is_some_and(|name| order.is_named_in(&name))) {
        remove(file)?;
    }
    Ok(())
}

fn drop_unreadable(object: &mut Map<String, Value>) {
    object.retain(|key, _| !UNREADABLE.contains(&key.as_str()));
    object.values_mut().filter_map(Value::as_object_mut).for_each(drop_unreadable);
}

fn keep_document_alone(path: &Path) -> Result<(), MomentError> {
    for file in entries(path)?.iter().filter(|file| name_of(file).as_deref() != Some(DOCUMENT)) {
        remove(file)?;
    }
    Ok(())
}

/// Markers hold whole rows. Those whose row is committed have done their duty.
fn markers(order: &Order, reader: &Reader, folder: &MomentFolder) -> Result<(), ForgetError> {
    for file in entries(folder.markers())? {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let id = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let is_over = reader.standing(&id)? != Standing::Unknown;
        if is_over || order.is_named_in(&text) || file.extension().is_none_or(|extension| extension != "json") {
            remove(&file)?;
        }
    }
    Ok(())
}

fn name_of(path: &Path) -> Option<String> {
    path.file_name().map(|name| name.to_string_lossy().into_owned())
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, MomentError> {
    match fs::read_dir(dir) {
        Ok(entries) => Ok(entries.flatten().map(|entry| entry.path()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(moments::failed("read", dir, source)),
    }
}

fn remove(path: &Path) -> Result<(), MomentError> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(moments::failed("remove", path, source)),
        _ => Ok(()),
    }
}

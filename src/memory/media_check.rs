//! Rows and files of media that disagree: found, and mended on request.
//!
//! In: the data directory and a connection. Out: a [`MediaReport`], or what was done ([`Mending`]).
//!
//! | found | mended |
//! |---|---|
//! | a row whose file is gone or has another length | the row is marked `missing`; a file of another length is set aside |
//! | a file no row names (a crash came before its row, or its removal failed) | moved to `media/.orphans/`, which the operator may remove |
//! | a file whose row says `missing` | taken back if its content is right, else set aside |
//! | a file whose row says `evicted` | removed: that was decided |
//!
//! Never: removes a row, or reads the content of files that are in their place.

use crate::memory::error::StoreError;
use crate::memory::media;
use crate::memory::media::MEDIA_DIR;
use crate::memory::media::MediaState;
use crate::memory::store;
use rusqlite::Connection;
use rusqlite::OptionalExtension;
use std::fs::DirEntry;
use std::path::Path;
use std::path::PathBuf;

/// Where files without a row are put, in the folder of media.
pub const ORPHANS_DIR: &str = ".orphans";

/// Folders of media whose files have no rows by design.
const NOT_KEPT: [&str; 2] = [ORPHANS_DIR, "incoming"];

/// Paths a report names at most of each kind; the others are counted.
pub const LISTED_MAX: usize = 1_000;

/// Rows read at a time.
const ROWS_AT_A_TIME: usize = 500;

/// Paths of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Listed {
    /// How many there are.
    pub count: u64,
    /// The first [`LISTED_MAX`] of them, relative to the data directory.
    pub paths: Vec<String>,
}

impl Listed {
    /// Counts one more, and names it while there is room.
    pub fn add(&mut self, path: String) {
        self.count += 1;
        if self.paths.len() < LISTED_MAX {
            self.paths.push(path);
        }
    }
}

/// How rows and files disagree.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct MediaReport {
    /// Rows that say their file is kept, and it is not there whole.
    pub missing: Listed,
    /// Files that no row says are kept.
    pub orphans: Listed,
}

impl MediaReport {
    /// Whether rows and files agree.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.missing.count == 0 && self.orphans.count == 0
    }
}

/// What was mended.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Mending {
    /// Rows marked as missing their file.
    pub marked_missing: u64,
    /// Files that came back to their row.
    pub taken_back: u64,
    /// Files moved to `media/.orphans/`.
    pub set_aside: u64,
    /// Evicted files that were still there.
    pub removed: u64,
}

/// Compares rows with files.
///
/// # Errors
/// [`StoreError`] of the read, [`StoreError::Io`] of the folder.
pub(crate) fn check(dir: &Path, store: &Path, connection: &Connection) -> Result<MediaReport, StoreError> {
    let mut report = MediaReport::default();
    each_missing(dir, store, connection, |_, path| {
        report.missing.add(path);
        Ok(())
    })?;
    each_file(dir, |file| {
        let row = row_of(connection, &file.name).map_err(|error| StoreError::from_sqlite(store, error))?;
        if row.is_none_or(|row| row.state != MediaState::Kept.as_str()) {
            report.orphans.add(file.name.clone());
        }
        Ok(())
    })?;
    Ok(report)
}

/// Makes rows and files agree, inside the open transaction of the only writer.
///
/// # Errors
/// [`StoreError`] of the changes, [`StoreError::Io`] of the folder.
pub(crate) fn mend(dir: &Path, store: &Path, connection: &Connection) -> Result<Mending, StoreError> {
    let at_store = |error| StoreError::from_sqlite(store, error);
    let mut mending = Mending::default();
    each_missing(dir, store, connection, |hash, _| {
        mending.marked_missing += 1;
        media::set_state(connection, hash, MediaState::Missing).map_err(at_store)
    })?;
    each_file(dir, |file| {
        let row = row_of(connection, &file.name).map_err(at_store)?;
        let is_right = |row: &Row| hash_of(&file.path).is_some_and(|hash| hash == row.hash);
        match row {
            Some(row) if row.state == MediaState::Kept.as_str() => {}
            Some(row) if row.state == MediaState::Evicted.as_str() => {
                store::remove_if_there(&file.path)?;
                mending.removed += 1;
            }
            Some(row) if is_right(&row) => {
                media::set_state(connection, &row.hash, MediaState::Kept).map_err(at_store)?;
                mending.taken_back += 1;
            }
            _ => {
                set_aside(dir, file)?;
                mending.set_aside += 1;
            }
        }
        Ok(())
    })?;
    Ok(mending)
}

/// Removes the files that no row says are kept, and those that were set aside: nobody can tell what they show. Only the
/// holder of the directory's lock may do that. Returns how many.
pub(crate) fn remove_orphans(dir: &Path, store: &Path, connection: &Connection) -> Result<u64, StoreError> {
    let mut removed = 0;
    each_file(dir, |file| {
        let row = row_of(connection, &file.name).map_err(|error| StoreError::from_sqlite(store, error))?;
        // What its row misses may come back to it: a check decides.
        if file.path.is_file() && row.is_none_or(|row| row.state == MediaState::Evicted.as_str()) {
            store::remove_if_there(&file.path)?;
            removed += 1;
        }
        Ok(())
    })?;
    for file in sorted(&dir.join(MEDIA_DIR).join(ORPHANS_DIR))? {
        store::remove_if_there(&file.path())?;
        removed += 1;
    }
    Ok(removed)
}

struct Row {
    hash: String,
    state: String,
}

fn row_of(connection: &Connection, path: &str) -> rusqlite::Result<Option<Row>> {
    connection
        .prepare_cached("SELECT hash, state FROM media WHERE path = ?1")?
        .query_row([path], |row| Ok(Row { hash: row.get(0)?, state: row.get(1)? }))
        .optional()
}

/// Calls `found` with hash and path of every row whose file should be there and is not.
fn each_missing(
    dir: &Path,
    store: &Path,
    connection: &Connection,
    mut found: impl FnMut(&str, String) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut after = 0;
    loop {
        let rows = kept_rows(connection, after).map_err(|error| StoreError::from_sqlite(store, error))?;
        let Some((last, ..)) = rows.last() else { return Ok(()) };
        after = *last;
        for (_, hash, path, bytes) in rows {
            let is_whole = std::fs::metadata(dir.join(&path)).is_ok_and(|file| file.is_file() && file.len() == bytes);
            if !is_whole {
                found(&hash, path)?;
            }
        }
    }
}

fn kept_rows(connection: &Connection, after: i64) -> rusqlite::Result<Vec<(i64, String, String, u64)>> {
    connection
        .prepare_cached(&format!(
            "SELECT rowid, hash, path, bytes FROM media WHERE rowid > ?1 AND state = 'kept' ORDER BY rowid
             LIMIT {ROWS_AT_A_TIME}"
        ))?
        .query_map([after], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get::<_, i64>(3)?.unsigned_abs())))?
        .collect()
}

/// A file in the folder of media.
struct MediaFile {
    path: PathBuf,
    /// Relative to the data directory, as rows name it.
    name: String,
}

/// Calls `found` with every file in the folder of media, but for those being written and those set aside.
fn each_file(dir: &Path, mut found: impl FnMut(&MediaFile) -> Result<(), StoreError>) -> Result<(), StoreError> {
    for entry in sorted(&dir.join(MEDIA_DIR))? {
        let folder = entry.file_name().to_string_lossy().into_owned();
        if NOT_KEPT.contains(&folder.as_str()) {
            continue;
        }
        if !entry.path().is_dir() {
            found(&MediaFile { path: entry.path(), name: format!("{MEDIA_DIR}/{folder}") })?;
            continue;
        }
        for file in sorted(&entry.path())? {
            let name = format!("{MEDIA_DIR}/{folder}/{}", file.file_name().to_string_lossy());
            found(&MediaFile { path: file.path(), name })?;
        }
    }
    Ok(())
}

fn sorted(folder: &Path) -> Result<Vec<DirEntry>, StoreError> {
    let unreadable = |error| StoreError::from_io("read", folder, error);
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unreadable)?,
    };
    let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    entries.sort_by_key(DirEntry::file_name);
    Ok(entries)
}

fn hash_of(path: &Path) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    let mut file = std::fs::File::open(path).ok()?;
    std::io::copy(&mut file, &mut hasher).ok()?;
    Some(hasher.finalize().to_hex().to_string())
}

/// Moves the file beside the others that were set aside, under a name that is free.
fn set_aside(dir: &Path, file: &MediaFile) -> Result<(), StoreError> {
    let orphans = dir.join(MEDIA_DIR).join(ORPHANS_DIR);
    media::create_dir(&orphans)?;
    let name = file.name.trim_start_matches(MEDIA_DIR).replace('/', "");
    let mut target = orphans.join(&name);
    let mut number = 2;
    while target.exists() {
        target = orphans.join(format!("{name}.{number}"));
        number += 1;
    }
    std::fs::rename(&file.path, &target).map_err(|error| StoreError::from_io("move", &file.path, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::fixture;
    use crate::memory::reader::Reader;
    use std::fs;

    /// A store of six episodes with a picture each; returns the pictures' paths.
    fn store(dir: &Path) -> Vec<String> {
        let writer = fixture::writer(dir);
        for minute in 0..6 {
            let mut record = fixture::sound(minute);
            record.media = vec![fixture::picture(minute, 1_000)];
            writer.append(record).unwrap();
        }
        writer.close().unwrap();
        let reader = Reader::open(dir).unwrap();
        (0..6)
            .map(|minute| reader.episode(fixture::sound(minute).episode.id).unwrap().unwrap().media[0].path.clone())
            .collect()
    }

    #[test]
    fn three_files_deleted_and_two_orphans_added_are_reported_and_mended() {
        let dir = tempfile::tempdir().unwrap();
        let paths = store(dir.path());
        fs::remove_file(dir.path().join(&paths[0])).unwrap();
        fs::remove_file(dir.path().join(&paths[1])).unwrap();
        fs::write(dir.path().join(&paths[2]), b"cut off").unwrap();
        fs::create_dir_all(dir.path().join("media/ff")).unwrap();
        fs::write(dir.path().join("media/ff/one.jpg"), b"1").unwrap();
        fs::write(dir.path().join("media/two.jpg"), b"2").unwrap();

        let before = Reader::open(dir.path()).unwrap().check_media().unwrap();
        let writer = fixture::writer(dir.path());
        let mending = writer.mend_media().unwrap();
        let again = writer.mend_media().unwrap();
        writer.close().unwrap();
        let reader = Reader::open(dir.path()).unwrap();

        let mut missing = paths[..3].to_vec();
        missing.sort();
        let mut found = before.missing.paths.clone();
        found.sort();
        assert_eq!((before.missing.count, found), (3, missing));
        assert_eq!(before.orphans.paths, ["media/ff/one.jpg", "media/two.jpg"]);
        assert_eq!(mending, Mending { marked_missing: 3, set_aside: 3, ..Mending::default() });
        assert_eq!(again, Mending::default());
        assert!(reader.check_media().unwrap().is_clean());
        assert_eq!(fs::read(dir.path().join("media/.orphans/ffone.jpg")).unwrap(), b"1");
        let media = &reader.episode(fixture::sound(0).episode.id).unwrap().unwrap().media[0];
        assert_eq!(media.state, MediaState::Missing, "the episode still says that it had a picture");
        assert_eq!(reader.stats().unwrap().media_files, 3);
    }

    #[test]
    fn a_file_that_comes_back_is_taken_back_if_it_is_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let paths = store(dir.path());
        let content = fs::read(dir.path().join(&paths[0])).unwrap();
        for path in &paths[..2] {
            fs::remove_file(dir.path().join(path)).unwrap();
        }
        let writer = fixture::writer(dir.path());
        writer.mend_media().unwrap();
        fs::write(dir.path().join(&paths[0]), &content).unwrap();
        fs::write(dir.path().join(&paths[1]), vec![0; content.len()]).unwrap();

        let mending = writer.mend_media().unwrap();

        assert_eq!(mending, Mending { taken_back: 1, set_aside: 1, ..Mending::default() });
        // The same capture once more brings its file along.
        let mut record = fixture::sound(9);
        record.media = vec![fixture::picture(1, 1_000)];
        writer.append(record).unwrap();
        writer.close().unwrap();
        let reader = Reader::open(dir.path()).unwrap();
        assert!(reader.check_media().unwrap().is_clean());
        assert_eq!(reader.stats().unwrap().media_files, 6);
    }
}

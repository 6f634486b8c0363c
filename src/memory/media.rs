//! Kept pictures and sounds: files named by their BLAKE3 hash, and the rows that point at them.
//!
//! In: the bytes of a file. Out: `media/ab/cdef….jpg` under the data directory, and a row.
//! The file is whole and on the disk before its row is written, so a row never points at half a file. A crash in between
//! leaves a file without a row (an orphan): it is harmless, and the same capture adopts it when it is written again.
//! Files are removed only after the commit that removed their row.

use crate::domain::episode::Media;
use crate::domain::episode::MediaKind;
use crate::memory::error::StoreError;
use crate::memory::revision;
use crate::memory::revision::Context;
use crate::memory::store;
use rusqlite::Connection;
use rusqlite::OptionalExtension;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The folder of media in the data directory.
pub const MEDIA_DIR: &str = "media";

/// Where a file is written before it gets its name.
const INCOMING_DIR: &str = "media/incoming";

/// Every kind, for reading names back.
pub(crate) const KINDS: [MediaKind; 3] = [MediaKind::Jpeg, MediaKind::Png, MediaKind::Wav];

/// Where a file of a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaState {
    /// In its place.
    Kept,
    /// The disk budget took it.
    Evicted,
    /// It was found to be missing.
    Missing,
}

impl MediaState {
    /// The name stored in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Evicted => "evicted",
            Self::Missing => "missing",
        }
    }

    /// The state of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Kept, Self::Evicted, Self::Missing].into_iter().find(|state| state.as_str() == name)
    }
}

/// A kept file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaRow {
    /// BLAKE3 of the file, lower-case hexadecimal.
    pub hash: String,
    /// Where it is, relative to the data directory.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// What it is.
    pub kind: MediaKind,
    /// Whether it is there.
    pub state: MediaState,
}

/// Where the file of that hash and kind stands, relative to the data directory. The hash has 64 digits.
pub(crate) fn place_of(hash: &str, kind: MediaKind) -> String {
    let (folder, rest) = hash.split_at_checked(2).unwrap_or((hash, ""));
    format!("{MEDIA_DIR}/{folder}/{rest}.{}", kind.as_str())
}

/// Writes the file (if it is not there yet) and says how it is called.
///
/// # Errors
/// [`StoreError::Full`] and [`StoreError::Io`]; nothing stands under the final name then.
pub(crate) fn write(dir: &Path, media: &Media) -> Result<MediaRow, StoreError> {
    let hash = blake3::hash(&media.bytes).to_hex().to_string();
    let row = MediaRow {
        path: place_of(&hash, media.kind),
        bytes: media.bytes.len() as u64,
        kind: media.kind,
        hash: hash.clone(),
        state: MediaState::Kept,
    };
    let path = dir.join(&row.path);
    if std::fs::metadata(&path).is_ok_and(|found| found.len() == row.bytes) {
        return Ok(row);
    }
    let (incoming, parent) = (dir.join(INCOMING_DIR), dir.join(MEDIA_DIR).join(&hash[..2]));
    create_dir(&incoming)?;
    let is_new_folder = !parent.exists();
    create_dir(&parent)?;
    let unfinished = incoming.join(&hash);
    write_whole(&unfinished, &media.bytes).map_err(|error| {
        // Whatever was written would only take the room that is missing.
        let _ = std::fs::remove_file(&unfinished);
        StoreError::from_io("write", &path, error)
    })?;
    std::fs::rename(&unfinished, &path).map_err(|error| StoreError::from_io("write", &path, error))?;
    store::sync_dir(&parent)?;
    if is_new_folder {
        store::sync_dir(&dir.join(MEDIA_DIR))?;
    }
    Ok(row)
}

/// Makes a folder only the user and the group may look into.
pub(crate) fn create_dir(path: &Path) -> Result<(), StoreError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o750)
        .create(path)
        .map_err(|error| StoreError::from_io("create", path, error))
}

fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o640).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Removes files whose writing was cut off. Only the holder of the directory's lock may do that.
pub(crate) fn discard_unfinished(dir: &Path) -> Result<(), StoreError> {
    let incoming = dir.join(INCOMING_DIR);
    let entries = match std::fs::read_dir(&incoming) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::from_io("read", &incoming, error)),
    };
    for entry in entries.flatten() {
        store::remove_if_there(&entry.path())?;
    }
    Ok(())
}

/// Makes `media` the files of the episode.
pub(crate) fn put(
    connection: &Connection,
    context: &Context<'_>,
    episode_id: &str,
    media: &[MediaRow],
) -> rusqlite::Result<()> {
    for (ordinal, file) in (0_i64..).zip(media) {
        let known: Option<String> = connection
            .prepare_cached("SELECT state FROM media WHERE hash = ?1")?
            .query_row([&file.hash], |row| row.get(0))
            .optional()?;
        match known.as_deref() {
            None => insert(connection, context, file)?,
            Some("kept") => {}
            // The file is back.
            Some(_) => set_state(connection, &file.hash, MediaState::Kept)?,
        }
        connection
            .prepare_cached("INSERT INTO episode_media (episode_id, hash, ordinal) VALUES (?1, ?2, ?3)")?
            .execute((episode_id, &file.hash, ordinal))?;
    }
    Ok(())
}

fn insert(connection: &Connection, context: &Context<'_>, file: &MediaRow) -> rusqlite::Result<()> {
    let revision = revision::next(connection)?;
    connection
        .prepare_cached(
            "INSERT INTO media (hash, path, bytes, kind, store_id, stored_at, revision) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute((
            &file.hash,
            &file.path,
            i64::try_from(file.bytes).unwrap_or(i64::MAX),
            file.kind.as_str(),
            context.store_id,
            context.stored_at.as_millis(),
            revision,
        ))?;
    Ok(())
}

/// Says where the file of a row is. A change that central has to know of: that it need not wait for a file it lacks, or
/// that it may get one after all. What central has already (acknowledged) is the device's own business.
pub(crate) fn set_state(connection: &Connection, hash: &str, state: MediaState) -> rusqlite::Result<()> {
    let is_pending: bool = connection
        .prepare_cached("UPDATE media SET state = ?2 WHERE hash = ?1 RETURNING acked_revision < revision")?
        .query_row((hash, state.as_str()), |row| row.get(0))?;
    if is_pending {
        connection
            .prepare_cached("UPDATE media SET revision = ?2 WHERE hash = ?1")?
            .execute((hash, revision::next(connection)?))?;
    }
    Ok(())
}

/// Takes the files from the episode. Returns the paths of those no episode has any more; their rows are gone, and
/// the files are to be removed after the commit.
pub(crate) fn remove(connection: &Connection, episode_id: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare_cached("DELETE FROM episode_media WHERE episode_id = ?1 RETURNING hash")?;
    let hashes: Vec<String> = statement.query_map([episode_id], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut unused = Vec::new();
    for hash in hashes {
        let mut statement = connection.prepare_cached(
            "DELETE FROM media WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM episode_media WHERE hash = ?1) RETURNING path",
        )?;
        unused.extend(statement.query_map([&hash], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(unused)
}

/// Removes files that a committed change left unused, but for those that a row names again.
pub(crate) fn unlink(connection: &Connection, dir: &Path, paths: &[String]) -> rusqlite::Result<()> {
    for path in paths {
        let used: bool = connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM media WHERE path = ?1 AND state = 'kept')")?
            .query_row([path], |row| row.get(0))?;
        if !used {
            // A file that cannot be removed is an orphan, which is harmless and found by the next check.
            let _ = store::remove_if_there(&dir.join(path));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(bytes: &[u8]) -> Media {
        Media { kind: MediaKind::Jpeg, bytes: bytes.into() }
    }

    #[test]
    fn a_file_is_named_by_its_hash_and_written_once() {
        let dir = tempfile::tempdir().unwrap();

        let first = write(dir.path(), &picture(b"abc")).unwrap();
        let again = write(dir.path(), &picture(b"abc")).unwrap();

        assert_eq!(first, again);
        assert_eq!(
            first.path, "media/64/37b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85.jpg",
            "BLAKE3 test vector of \"abc\""
        );
        assert_eq!(std::fs::read(dir.path().join(&first.path)).unwrap(), b"abc");
        assert_eq!(std::fs::read_dir(dir.path().join(INCOMING_DIR)).unwrap().count(), 0);
    }

    #[test]
    fn what_a_crash_left_unfinished_is_discarded() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join(INCOMING_DIR)).unwrap();
        std::fs::write(dir.path().join(INCOMING_DIR).join("half"), b"x").unwrap();

        discard_unfinished(dir.path()).unwrap();

        assert!(!dir.path().join(INCOMING_DIR).join("half").exists());
    }
}

//! The place where a file grows before it gets its name.
//!
//! In: bytes under a name ending in `.part`. Out: the file under its own name, by a rename, once size and hash
//! are right and the bytes are on the disk. A crash at any point leaves the old file or the new one, and at
//! most a `.part`.

use std::fs::File;
use std::io;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use crate::perception::model::digest;
use crate::perception::model::file_error::ModelFileError;
use crate::perception::model::manifest::Pin;

/// Room left free on the disk beside the file itself, bytes: the agent's database must still be able to write.
const SPARE_BYTES: u64 = 4 << 20;

/// A file of a model that is to become right.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot<'a> {
    /// The model's id.
    pub(super) model: &'a str,
    /// The file's name.
    pub(super) name: &'a str,
    /// The model's folder.
    pub(super) folder: &'a Path,
    /// What the file must be.
    pub(super) pin: &'a Pin,
}

/// What came of putting a `.part` file in its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It has its name.
    Taken,
    /// It was not right and has been removed; why.
    Wrong(String),
}

impl Slot<'_> {
    /// The file.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(self.name)
    }

    /// Where a download grows. It outlives the process, to be gone on with.
    pub(super) fn part(&self) -> PathBuf {
        self.folder.join(format!("{}.part", self.name))
    }

    /// Where a copy grows; apart from the download's, so that a wrong mirror costs none of it.
    pub(super) fn copy_part(&self) -> PathBuf {
        self.folder.join(format!("{}.copy.part", self.name))
    }

    /// Removes what earlier tries left, once the file is in its place.
    pub(super) fn clear(&self) -> Result<(), ModelFileError> {
        remove(&self.part())?;
        remove(&self.copy_part())
    }

    /// Bytes of the download so far. One that is longer than the file must be is removed.
    pub(super) fn part_bytes(&self) -> Result<u64, ModelFileError> {
        let part = self.part();
        match std::fs::metadata(&part) {
            Ok(metadata) if metadata.len() <= self.pin.bytes => Ok(metadata.len()),
            Ok(_) => remove(&part).map(|()| 0),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(ModelFileError::io("read", part, 0, error)),
        }
    }

    /// Refuses early when the disk has no room for `needed` more bytes.
    pub(super) fn check_room(&self, needed: u64) -> Result<(), ModelFileError> {
        match rustix::fs::statvfs(self.folder) {
            Ok(disk) if disk.f_bavail.saturating_mul(disk.f_frsize) < needed.saturating_add(SPARE_BYTES) => {
                Err(ModelFileError::DiskFull { file: self.path(), needed })
            }
            // A disk that does not tell its room is found full by writing.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// The error for a failed write to `part`. On a full disk the part is removed, to give the room back.
    pub(super) fn write_failed(&self, part: &Path, written: u64, error: io::Error) -> ModelFileError {
        let error = ModelFileError::io("write", part, self.pin.bytes.saturating_sub(written), error);
        if let ModelFileError::DiskFull { .. } = error {
            let _ = std::fs::remove_file(part);
        }
        error
    }

    /// Gives `part` its name if its size and hash are right, else removes it.
    pub(super) fn accept(&self, part: &Path) -> Result<Verdict, ModelFileError> {
        let found = digest::of_file(part).map_err(|error| ModelFileError::io("read", part, 0, error))?;
        if found != *self.pin {
            remove(part)?;
            return Ok(Verdict::Wrong(difference(self.pin, &found)));
        }
        publish(part, &self.path()).map_err(|error| self.write_failed(part, found.bytes, error))?;
        Ok(Verdict::Taken)
    }

    /// Writes a whole file from memory, whose hash has been checked.
    pub(super) fn write_whole(&self, bytes: &[u8]) -> Result<(), ModelFileError> {
        self.check_room(bytes.len() as u64)?;
        let part = self.copy_part();
        let written = File::create(&part).and_then(|mut file| file.write_all(bytes));
        written.and_then(|()| publish(&part, &self.path())).map_err(|error| self.write_failed(&part, 0, error))
    }
}

/// Puts `part` on the disk for good, then renames it.
pub(super) fn publish(part: &Path, path: &Path) -> io::Result<()> {
    File::open(part)?.sync_all()?;
    std::fs::rename(part, path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Removes a file that may be absent.
pub(super) fn remove(path: &Path) -> Result<(), ModelFileError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ModelFileError::io("remove", path, 0, error)),
        _ => Ok(()),
    }
}

fn difference(expected: &Pin, found: &Pin) -> String {
    if expected.bytes == found.bytes {
        return format!("other bytes than pinned (sha256 expected {}, found {})", expected.sha256, found.sha256);
    }
    format!("a file of {} bytes, not {}", found.bytes, expected.bytes)
}

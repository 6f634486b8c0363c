//! Finds a model's files on disk and makes sure they are the right ones.
//!
//! In: the models folder and a model id. Out: paths whose size and SHA-256 have just been checked, or the
//! sentence that says what is missing and what to run.
//!
//! It changes nothing on disk and opens no connection.

use std::io;
use std::path::Path;
use std::path::PathBuf;

use crate::perception::model::digest;
use crate::perception::model::file_error::ModelFileError;
use crate::perception::model::manifest::Manifest;
use crate::perception::model::manifest::Model;
use crate::perception::model::manifest::ModelFile;
use crate::perception::model::manifest::Pin;
use crate::perception::model::manifest::Role;
use crate::perception::model::record;

/// The files of one model, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFiles {
    /// The model's id; vectors are stored under it.
    pub id: String,
    /// The files needed to run it.
    pub files: Vec<LocatedFile>,
}

/// One checked file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedFile {
    /// What it is for.
    pub role: Role,
    /// Where it is.
    pub path: PathBuf,
    /// Its SHA-256, 64 lower-case hexadecimal digits.
    pub sha256: String,
}

/// What a look at one file on disk found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// The model's id.
    pub model: String,
    /// The file's name in the manifest.
    pub file: String,
    /// What it is for.
    pub role: Role,
    /// Where it is or should be.
    pub path: PathBuf,
    /// What was found.
    pub state: FileState,
}

/// Whether a file may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    /// Size and hash are right.
    Good {
        /// The hash.
        sha256: String,
    },
    /// It has the right size; its hash was not looked at.
    Present,
    /// It is not there.
    Missing,
    /// It is there, but nobody has taken it in, so there is no hash to compare with.
    NotRecorded,
    /// It has another size.
    WrongSize {
        /// Bytes it must have.
        expected: u64,
        /// Bytes it has.
        found: u64,
    },
    /// It has another hash.
    WrongHash {
        /// SHA-256 it must have.
        expected: String,
        /// SHA-256 it has.
        found: String,
    },
    /// The system would not let it be read.
    Unreadable {
        /// What the system said.
        kind: io::ErrorKind,
    },
}

/// How closely to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Is it there, with the right size?
    Size,
    /// Read it through and compare the hash.
    Hash,
}

impl ModelFiles {
    /// The file for `role`. A graph with both towers serves [`Role::Image`] and [`Role::Text`] too.
    #[must_use]
    pub fn path(&self, role: Role) -> Option<&Path> {
        let find = |wanted| self.files.iter().find(|file| file.role == wanted);
        let both = || matches!(role, Role::Image | Role::Text).then(|| find(Role::ImageAndText)).flatten();
        find(role).or_else(both).map(|file| file.path.as_path())
    }

    /// A digest of the model's id and of the content of all its files, in hexadecimal: equal exactly when a
    /// replay would use the same model.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.id.as_bytes());
        for file in &self.files {
            hasher.update(b"\n").update(file.sha256.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// The files of model `id` in `models_dir`, each read through and compared with its hash (a second or two for
/// the largest; do it once per run). Files that only serve to build others may be absent.
///
/// # Errors
/// [`ModelFileError`]: an unknown id, or the first file that is missing, damaged or unreadable.
pub fn locate(models_dir: &Path, id: &str) -> Result<ModelFiles, ModelFileError> {
    locate_in(Manifest::builtin(), models_dir, id)
}

/// [`locate`] with another manifest.
///
/// # Errors
/// As [`locate`].
pub fn locate_in(manifest: &Manifest, models_dir: &Path, id: &str) -> Result<ModelFiles, ModelFileError> {
    let model = known(manifest, id)?;
    let needed = model.files.iter().filter(|file| file.role != Role::Source);
    let files = needed.map(|file| usable(model, look_at(models_dir, model, file, Depth::Hash)));
    Ok(ModelFiles { id: model.id.clone(), files: files.collect::<Result<_, _>>()? })
}

/// The model called `id`.
pub(super) fn known<'a>(manifest: &'a Manifest, id: &str) -> Result<&'a Model, ModelFileError> {
    manifest.model(id).ok_or_else(|| ModelFileError::UnknownModel {
        id: id.to_owned(),
        nearest: manifest.nearest(id).map(str::to_owned),
    })
}

/// Looks at every file of a model.
#[must_use]
pub fn inspect(models_dir: &Path, model: &Model, depth: Depth) -> Vec<FileReport> {
    model.files.iter().map(|file| look_at(models_dir, model, file, depth)).collect()
}

/// Looks at one file.
pub(super) fn look_at(models_dir: &Path, model: &Model, file: &ModelFile, depth: Depth) -> FileReport {
    let folder = models_dir.join(&model.id);
    let path = folder.join(&file.name);
    let state = match file.pin() {
        Some(pin) => compare(&path, pin, depth),
        None => compare_recorded(&folder, &file.name, depth),
    };
    let is_absent = |kind| matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    let state = state.unwrap_or_else(|error| {
        if is_absent(error.kind()) { FileState::Missing } else { FileState::Unreadable { kind: error.kind() } }
    });
    FileReport { model: model.id.clone(), file: file.name.clone(), role: file.role, path, state }
}

/// Compares a file with what it must be.
fn compare(path: &Path, pin: &Pin, depth: Depth) -> io::Result<FileState> {
    let found = size_of(path)?;
    if found != pin.bytes {
        return Ok(FileState::WrongSize { expected: pin.bytes, found });
    }
    match depth {
        Depth::Size => Ok(FileState::Present),
        Depth::Hash => compare_hash(path, &pin.sha256),
    }
}

fn compare_recorded(folder: &Path, name: &str, depth: Depth) -> io::Result<FileState> {
    let path = folder.join(name);
    size_of(&path)?;
    match (record::read(folder)?.get(name), depth) {
        (None, _) => Ok(FileState::NotRecorded),
        (Some(_), Depth::Size) => Ok(FileState::Present),
        (Some(sha256), Depth::Hash) => compare_hash(&path, sha256),
    }
}

fn compare_hash(path: &Path, expected: &str) -> io::Result<FileState> {
    let found = digest::of_file(path)?.sha256;
    if found == expected {
        return Ok(FileState::Good { sha256: found });
    }
    Ok(FileState::WrongHash { expected: expected.to_owned(), found })
}

fn size_of(path: &Path) -> io::Result<u64> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_file() { Ok(metadata.len()) } else { Err(io::ErrorKind::IsADirectory.into()) }
}

/// The file when it may be used, else why not.
fn usable(model: &Model, report: FileReport) -> Result<LocatedFile, ModelFileError> {
    let FileReport { model: id, role, path: file, state, .. } = report;
    Err(match state {
        FileState::Good { sha256 } => return Ok(LocatedFile { role, path: file, sha256 }),
        FileState::Missing if model.is_local => ModelFileError::NotSupplied { model: id, file },
        FileState::NotRecorded => ModelFileError::NotSupplied { model: id, file },
        FileState::Missing | FileState::Present => ModelFileError::Missing { model: id, file },
        FileState::WrongSize { expected, found } => ModelFileError::WrongSize { model: id, file, expected, found },
        FileState::WrongHash { expected, found } => ModelFileError::HashMismatch { model: id, file, expected, found },
        FileState::Unreadable { kind } => ModelFileError::Io { action: "read", file, source: kind.into() },
    })
}

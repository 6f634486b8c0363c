//! What makes a session unusable as a whole.
//!
//! What a session survives (one bad file, one bad line) is no error: it is a
//! [`crate::domain::reading::Loss`] reading and a count in [`super::problems::Problems`].

use crate::domain::disposition::Disposition;
use std::io;
use std::path::PathBuf;

/// Why a session cannot be read or written at all.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The path leads nowhere. Trying again will not help.
    #[error("there is nothing at {}", .path.display())]
    NotFound {
        /// What was asked for.
        path: PathBuf,
    },
    /// The folder is no session.
    #[error(
        "{} is a folder without session.toml; a session is a folder with session.toml beside microphone/, camera/, gps.jsonl or bluetooth.jsonl",
        .path.display()
    )]
    NoManifest {
        /// The folder.
        path: PathBuf,
    },
    /// `session.toml` is wrong; every mistake is listed.
    #[error("{} is refused: {}", .file.display(), .mistakes.join("; "))]
    Manifest {
        /// The file.
        file: PathBuf,
        /// One clause for each mistake.
        mistakes: Vec<String>,
    },
    /// The session was written by a later program.
    #[error("{} has format {found} and this percept reads format {known}: a newer percept is needed", .file.display())]
    NewerFormat {
        /// The file.
        file: PathBuf,
        /// What it says.
        found: i64,
        /// What this program knows.
        known: i64,
    },
    /// The file is none of the kinds percept reads.
    #[error(
        "{} is {found}; percept reads WAV, FLAC, JPEG, PNG, NMEA logs and files of gpsd JSON lines",
        .path.display()
    )]
    UnknownKind {
        /// The file.
        path: PathBuf,
        /// What it seems to be.
        found: String,
    },
    /// The file is of a known kind, and nothing in it can be used.
    #[error("{} cannot be used: {cause}", .path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// A start was given for a session that has its own.
    #[error("{} has its own started_at in session.toml; a start can be given for a bare file only", .path.display())]
    StartGiven {
        /// The session.
        path: PathBuf,
    },
    /// The system refused to read.
    #[error("{} cannot be read: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The system refused to write. A full disk may be freed: try later.
    #[error("{} cannot be written: {source}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The recorder was given something the format cannot hold.
    #[error("{} cannot record this: {cause}", .path.display())]
    Unwritable {
        /// The session.
        path: PathBuf,
        /// What does not fit.
        cause: String,
    },
}

impl SessionError {
    /// What the caller should do.
    #[must_use]
    pub fn disposition(&self) -> Disposition {
        match self {
            Self::NotFound { .. }
            | Self::NoManifest { .. }
            | Self::Manifest { .. }
            | Self::NewerFormat { .. }
            | Self::UnknownKind { .. }
            | Self::Unusable { .. }
            | Self::StartGiven { .. }
            | Self::Read { .. }
            | Self::Unwritable { .. } => Disposition::SetAside,
            Self::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull => Disposition::Retry,
            Self::Write { .. } => Disposition::Stop,
        }
    }
}

impl SessionError {
    /// For `map_err` on a read.
    pub(super) fn read(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| {
            if source.kind() == io::ErrorKind::NotFound { Self::NotFound { path } } else { Self::Read { path, source } }
        }
    }

    /// For `map_err` on a write.
    pub(super) fn write(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Write { path, source }
    }
}

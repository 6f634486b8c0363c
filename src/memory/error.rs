//! What can go wrong with the store, and what to do about it.
//!
//! In: errors of SQLite and of the file system, with the file they happened at.
//! Out: [`StoreError`], one sentence naming the file and the cause, with its [`Disposition`].
//! Never: decides to wait or to retry; that is the caller's.

use crate::domain::disposition::Disposition;
use rusqlite::ErrorCode;
use std::path::Path;
use std::path::PathBuf;

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another program writes to this data directory. Reading is still possible; writing is not.
    #[error("{} is in use by {holder}; only one program may write to it at a time", dir.display())]
    InUse {
        /// The data directory.
        dir: PathBuf,
        /// The program and process that hold the lock, as far as they said.
        holder: String,
    },
    /// There is no store here yet; nothing has been recorded.
    #[error("there is no store at {}: nothing has been recorded there yet", path.display())]
    Missing {
        /// Where it would be.
        path: PathBuf,
    },
    /// The file is something else. It was not touched.
    #[error("{} is no percept store: {found}; it was left as it is", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        found: String,
    },
    /// A later version of percept wrote this store. It was not touched.
    #[error("{} was written by a newer percept (schema {found}, this one knows {known}); it was left as it is", path.display())]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: u32,
        /// The newest version this program knows.
        known: u32,
    },
    /// An earlier version wrote this store, and it is only open for reading. A program that writes brings it up to date.
    #[error("{} was written by an older percept (schema {found}, this one needs {known}); start the agent once", path.display())]
    OlderSchema {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: u32,
        /// The version this program needs.
        known: u32,
    },
    /// The file is damaged. Nothing more can be written to it; it has to be set aside and salvaged.
    #[error("{} is damaged: {detail}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        detail: String,
    },
    /// The disk (or its quota) is full. Nothing partial was written; the same thing can be tried again once there is room.
    #[error("no room left on the disk for {}", path.display())]
    Full {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// Another program held SQLite's write lock for longer than the store waits. Trying again is right.
    #[error("{} is locked by another program", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The file system refused or failed. It may pass (a card that is put back), so trying again is right.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// SQLite failed in another way: a fault of the program.
    #[error("{}: {source}", path.display())]
    Sql {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: rusqlite::Error,
    },
    /// This one row cannot be stored as it is. Nothing of it was written; go on with the next.
    #[error("row {id} was refused: {reason}")]
    Refused {
        /// The row's id.
        id: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The text is no id and no beginning of one.
    #[error(
        "{text:?} is no episode id: give at least {} hexadecimal digits of one",
        crate::memory::query::PREFIX_DIGITS_MIN
    )]
    NoId {
        /// What was given.
        text: String,
    },
    /// More than one episode has an id that begins so.
    #[error("{text:?} is the beginning of more than one id: {}", ids.join(", "))]
    Ambiguous {
        /// What was given.
        text: String,
        /// The ids, at most ten of them.
        ids: Vec<String>,
    },
    /// A search that cannot be done as it was asked; another one can.
    #[error("this cannot be searched for: {0}")]
    BadQuery(String),
    /// A row was read that no version of percept writes.
    #[error("{} holds a row that cannot be read: {detail}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Which row and why.
        detail: String,
    },
    /// What was asked for is not possible while a session is being replaced, or without replacing it first.
    #[error("{0}")]
    WrongState(String),
    /// The writer is gone; nothing more can be stored through it.
    #[error("the store's writer has stopped: {cause}")]
    Stopped {
        /// Why.
        cause: String,
    },
}

impl StoreError {
    /// What the caller should do.
    #[must_use]
    pub const fn disposition(&self) -> Disposition {
        match self {
            Self::Full { .. } | Self::Busy { .. } | Self::Io { .. } => Disposition::Retry,
            Self::Refused { .. } => Disposition::SetAside,
            Self::InUse { .. }
            | Self::Missing { .. }
            | Self::Foreign { .. }
            | Self::NewerSchema { .. }
            | Self::OlderSchema { .. }
            | Self::Damaged { .. }
            | Self::Sql { .. }
            | Self::NoId { .. }
            | Self::Ambiguous { .. }
            | Self::BadQuery(_)
            | Self::Unreadable { .. }
            | Self::WrongState(_)
            | Self::Stopped { .. } => Disposition::Stop,
        }
    }

    /// An error of SQLite at this file, told apart by its code, never by its text.
    #[must_use]
    pub(crate) fn from_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_path_buf();
        let conversion =
            matches!(source, rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::InvalidColumnType(..));
        if conversion {
            return Self::Unreadable { path, detail: source.to_string() };
        }
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path, detail: source.to_string() },
            Some(ErrorCode::NotADatabase) => Self::Damaged { path, detail: "its first page is unreadable".to_owned() },
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::OutOfMemory,
            ) => Self::Io { action: "use", path, source: std::io::Error::other(source) },
            _ => Self::Sql { path, source },
        }
    }

    /// An error of the file system at this file.
    #[must_use]
    pub(crate) fn from_io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        let path = path.to_path_buf();
        let is_full = matches!(source.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded);
        if is_full { Self::Full { path } } else { Self::Io { action, path, source } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sqlite(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None)
    }

    #[test]
    fn a_full_disk_and_a_held_lock_are_worth_another_try_and_damage_is_not() {
        let path = Path::new("/data/memory.db");
        let plan = |code| StoreError::from_sqlite(path, sqlite(code)).disposition();

        assert_eq!(plan(rusqlite::ffi::SQLITE_FULL), Disposition::Retry);
        assert_eq!(plan(rusqlite::ffi::SQLITE_BUSY), Disposition::Retry);
        assert_eq!(plan(rusqlite::ffi::SQLITE_IOERR_WRITE), Disposition::Retry);
        assert_eq!(plan(rusqlite::ffi::SQLITE_CORRUPT), Disposition::Stop);
    }

    #[test]
    fn every_sentence_names_the_file() {
        let path = Path::new("/data/memory.db");
        for code in [rusqlite::ffi::SQLITE_FULL, rusqlite::ffi::SQLITE_CORRUPT, rusqlite::ffi::SQLITE_MISUSE] {
            assert!(StoreError::from_sqlite(path, sqlite(code)).to_string().contains("/data/memory.db"));
        }
    }
}

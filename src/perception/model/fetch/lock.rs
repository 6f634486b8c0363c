//! One fetch at a time into a models folder.
//!
//! The lock is the kernel's on an empty file `.fetch.lock`, so it ends with the process that holds it, however
//! that ends, and the file left behind means nothing.

use std::fs::File;
use std::fs::TryLockError;
use std::path::Path;

use crate::perception::model::file_error::ModelFileError;

/// Held while fetching.
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Creates `folder` if need be and locks it.
    pub(super) fn take(folder: &Path) -> Result<Self, ModelFileError> {
        create_folder(folder)?;
        let path = folder.join(".fetch.lock");
        let file = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(|error| ModelFileError::io("write", &path, 0, error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(ModelFileError::Busy { folder: folder.to_owned() }),
            Err(TryLockError::Error(error)) => Err(ModelFileError::io("lock", &path, 0, error)),
        }
    }
}

/// Creates a folder and those above it.
pub(super) fn create_folder(folder: &Path) -> Result<(), ModelFileError> {
    std::fs::create_dir_all(folder).map_err(|error| ModelFileError::io("create the folder", folder, 0, error))
}

//! Where the files beside the store stand, and how one comes to be there.
//!
//! In: a data directory, a space. Out: paths under `vectors/`, files that are complete when they have their name.
//! All of it can be removed at any time: it is made again from the rows. Nothing here is trusted without its checksum, so
//! nothing is synced to the disk either: after a power cut a half-written file is found out and made again.
//! Never: changes a file that has its name.

use crate::domain::episode::EmbeddingKind;
use crate::domain::id::ModelId;
use crate::memory::error::StoreError;
use std::fs::File;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;

/// The folder in the data directory.
pub(crate) const FOLDER: &str = "vectors";

/// Vectors that can be compared: one model, one kind, one length.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// The model.
    pub(crate) model_id: ModelId,
    /// What they were made from.
    pub(crate) kind: EmbeddingKind,
    /// Values of each.
    pub(crate) dims: usize,
}

impl Key {
    /// The folder of its files. Model names are free text, so it is called by a digest.
    pub(crate) fn folder(&self, dir: &Path) -> PathBuf {
        dir.join(FOLDER).join(&self.digest("").to_hex()[..16])
    }

    /// Tells the files of one store and space from those of every other.
    pub(crate) fn digest(&self, store_id: &str) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        for text in [store_id, self.model_id.as_str(), self.kind.as_str()] {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        hasher.update(&(self.dims as u64).to_le_bytes()).finalize()
    }
}

/// Which file stands at a path: another one has another mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Mark {
    /// The mark of an open file.
    pub(crate) fn of(file: &File) -> std::io::Result<Self> {
        file.metadata().map(|metadata| Self::from(&metadata))
    }

    /// The mark of the file at that path; `None` when there is none or it cannot be seen.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|metadata| Self::from(&metadata))
    }

    /// Its length.
    pub(crate) const fn bytes(self) -> u64 {
        self.bytes
    }
}

impl From<&std::fs::Metadata> for Mark {
    fn from(metadata: &std::fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// Makes the folder of a space.
pub(crate) fn create_folder(folder: &Path) -> Result<(), StoreError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o750)
        .create(folder)
        .map_err(|error| StoreError::from_io("create", folder, error))
}

/// Begins a file under a name that readers do not look for. Only the store's one writer makes files here.
pub(crate) fn begin(unfinished: &Path) -> Result<File, StoreError> {
    std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o640)
        .open(unfinished)
        .map_err(|error| StoreError::from_io("create", unfinished, error))
}

/// Gives a complete file its name, in place of the one that has it.
pub(crate) fn finish(unfinished: &Path, path: &Path) -> Result<(), StoreError> {
    std::fs::rename(unfinished, path).map_err(|error| StoreError::from_io("replace", path, error))
}

/// Removes all of it. What another process has open lives there until it looks again.
pub(crate) fn remove_all(dir: &Path) -> Result<(), StoreError> {
    let folder = dir.join(FOLDER);
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::from_io("remove", &folder, error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_spaces_share_a_folder_or_a_digest() {
        let key = |model: &str, kind, dims| Key { model_id: ModelId::new(model), kind, dims };
        let keys = [
            key("m", EmbeddingKind::Image, 512),
            key("m", EmbeddingKind::Text, 512),
            key("m", EmbeddingKind::Image, 513),
            key("mimage", EmbeddingKind::Image, 512),
            key("../..", EmbeddingKind::Image, 512),
        ];
        let dir = Path::new("/data");

        let folders: std::collections::BTreeSet<_> = keys.iter().map(|key| key.folder(dir)).collect();
        let digests: std::collections::BTreeSet<_> =
            keys.iter().flat_map(|key| ["s", "t"].map(|store| *key.digest(store).as_bytes())).collect();

        assert_eq!((folders.len(), digests.len()), (5, 10));
        assert!(folders.iter().all(|folder| folder.parent() == Some(&dir.join(FOLDER))));
    }
}

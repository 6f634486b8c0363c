//! What can go wrong between an address and a model file that may be used, each with the sentence a user reads.

use std::path::PathBuf;

use crate::domain::disposition::Disposition;

/// A model whose files cannot be had or may not be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelFileError {
    /// No model of that name. A mistake in the config or on the command line.
    #[error("there is no model {id:?}{}; `percept models list` names them", hint(nearest.as_deref()))]
    UnknownModel {
        /// What was asked for.
        id: String,
        /// The known name most like it.
        nearest: Option<String>,
    },
    /// The model has not been fetched. The agent says so once and goes on without its observations.
    #[error("model {model} is not here ({} is missing): run `percept models fetch {model}`", file.display())]
    Missing {
        /// Its id.
        model: String,
        /// The first file that is missing.
        file: PathBuf,
    },
    /// The model's owner has not brought it. The agent says so once and goes on without its observations.
    #[error(
        "model {model} is not here ({} is missing): it has no address, so bring its files with \
         `percept models fetch {model} --from FOLDER`",
        file.display()
    )]
    NotSupplied {
        /// Its id.
        model: String,
        /// The first file that is missing, or that nobody has taken in.
        file: PathBuf,
    },
    /// A file is not what it must be: damaged, or from another version. It is never used; fetching replaces it.
    #[error(
        "{} is not the file of model {model} (sha256 expected {expected}, found {found}): \
         run `percept models fetch {model}` to replace it",
        file.display()
    )]
    HashMismatch {
        /// The model's id.
        model: String,
        /// The file.
        file: PathBuf,
        /// SHA-256 it must have.
        expected: String,
        /// SHA-256 it has.
        found: String,
    },
    /// As [`Self::HashMismatch`], seen already by the size.
    #[error(
        "{} is not the file of model {model} ({expected} bytes expected, {found} found): \
         run `percept models fetch {model}` to replace it",
        file.display()
    )]
    WrongSize {
        /// The model's id.
        model: String,
        /// The file.
        file: PathBuf,
        /// Bytes it must have.
        expected: u64,
        /// Bytes it has.
        found: u64,
    },
    /// No mirror and no address gave the right bytes. What arrived of them is kept for the next try, unless it was wrong.
    #[error(
        "cannot get {file} of model {model}: {}. Try again later, or put the file into a folder and name that \
         folder in PERCEPT_MODEL_MIRROR",
        causes.join("; ")
    )]
    NoSource {
        /// The model's id.
        model: String,
        /// The file's name.
        file: String,
        /// What each source answered, in the order they were tried.
        causes: Vec<String>,
    },
    /// percept could not build this file from its source, or built other bytes than the manifest promises.
    #[error("cannot build {} of model {model}: {cause}", file.display())]
    Build {
        /// The model's id.
        model: String,
        /// The file that was to be built.
        file: PathBuf,
        /// What did not hold.
        cause: String,
    },
    /// Another percept is fetching into the same folder. It will be free when that one is done.
    #[error("another percept is fetching into {}: wait until it is done", folder.display())]
    Busy {
        /// The models folder.
        folder: PathBuf,
    },
    /// The disk is full. Nothing is left of the file that did not fit; room must be made.
    #[error("no room for {}: {needed} more bytes are needed; make room, or choose another models folder", file.display())]
    DiskFull {
        /// The file that did not fit.
        file: PathBuf,
        /// Bytes still to come when it was noticed.
        needed: u64,
    },
    /// The system refused. An operator must act: permissions, a read-only disk, a folder that is a file.
    #[error("cannot {action} {}: {source}", file.display())]
    Io {
        /// What was attempted: `read`, `write`, `create`.
        action: &'static str,
        /// On which file or folder.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl ModelFileError {
    /// What the caller should do.
    #[must_use]
    pub fn disposition(&self) -> Disposition {
        match self {
            Self::NoSource { .. } | Self::Busy { .. } => Disposition::Retry,
            Self::Missing { .. }
            | Self::NotSupplied { .. }
            | Self::HashMismatch { .. }
            | Self::WrongSize { .. }
            | Self::Build { .. } => Disposition::Degrade,
            Self::UnknownModel { .. } | Self::DiskFull { .. } | Self::Io { .. } => Disposition::Stop,
        }
    }

    /// The error for a system call on `file` that failed with `source`: a full disk is told apart.
    pub(super) fn io(action: &'static str, file: impl Into<PathBuf>, needed: u64, source: std::io::Error) -> Self {
        let file = file.into();
        if matches!(source.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded) {
            return Self::DiskFull { file, needed };
        }
        Self::Io { action, file, source }
    }
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|id| format!(" (do you mean {id}?)")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_model_says_what_to_run_and_lets_the_agent_go_on() {
        let error = ModelFileError::Missing { model: "yamnet".into(), file: "m/yamnet/yamnet.onnx".into() };

        assert_eq!(
            error.to_string(),
            "model yamnet is not here (m/yamnet/yamnet.onnx is missing): run `percept models fetch yamnet`"
        );
        assert_eq!(error.disposition(), Disposition::Degrade);
    }

    #[test]
    fn a_full_disk_is_told_apart_from_other_refusals() {
        let full = ModelFileError::io("write", "f", 5, std::io::ErrorKind::StorageFull.into());
        let denied = ModelFileError::io("write", "f", 5, std::io::ErrorKind::PermissionDenied.into());

        assert!(matches!(full, ModelFileError::DiskFull { needed: 5, .. }), "{full}");
        assert!(matches!(denied, ModelFileError::Io { .. }), "{denied}");
    }
}

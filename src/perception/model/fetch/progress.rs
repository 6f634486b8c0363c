//! What a fetch tells while it runs.

use std::path::Path;

/// One thing that happened.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The model's id.
    pub model: &'a str,
    /// The file's name.
    pub file: &'a str,
    /// What happened.
    pub step: Step<'a>,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    /// It was there already, with the right hash.
    Present,
    /// It is being copied from a mirror folder.
    Copying {
        /// The file in the mirror.
        from: &'a Path,
    },
    /// It is being asked for.
    Asking {
        /// The address.
        address: &'a str,
        /// Bytes that a cut-off download has left.
        kept_bytes: u64,
    },
    /// More of it has arrived.
    Received {
        /// Bytes so far.
        bytes: u64,
        /// Bytes in all.
        total_bytes: u64,
    },
    /// All of it is there; its hash is being compared.
    Checking,
    /// It is being built.
    Building {
        /// Name of the file it is built from.
        from: &'a str,
    },
    /// A place did not have the right bytes; the next is tried.
    Refused {
        /// Which place, and what was wrong.
        cause: &'a str,
    },
    /// It may be used.
    Ready,
}

//! What was wrong in a session that could be read all the same: counted by kind, the first of each told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

/// The kinds of thing a session survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemKind {
    /// Something in the session folder that is no part of the format.
    UnknownEntry,
    /// A file that is not named by its offset.
    MisnamedFile,
    /// A file that could not be opened or is not what it says.
    UnreadableFile,
    /// A file that ends before it should.
    TruncatedFile,
    /// A sound file whose header was never finalised; its length was rebuilt.
    RebuiltHeader,
    /// A sound file that starts before the one in front of it ends.
    OverlappingFile,
    /// A sound file without the channels that the channel map names.
    ChannelMap,
    /// A stretch that no file covers and no gap explains.
    Hole,
    /// A line that is no record.
    BadLine,
    /// A line whose time is before that of the line in front of it.
    LateLine,
    /// A value that cannot be true.
    ImpossibleValue,
    /// A log whose times run backward or leap.
    TimeLeap,
}

/// How often one kind of problem was met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What kind.
    pub kind: ProblemKind,
    /// How often.
    pub count: u64,
    /// The sentence about the first one.
    pub first: String,
}

/// The ledger that a session shares with its sensors; clones write into the same one.
#[derive(Debug, Clone, Default)]
pub struct Problems(Arc<Mutex<BTreeMap<ProblemKind, (u64, String)>>>);

impl Problems {
    /// Counts one more.
    pub(super) fn count(&self, kind: ProblemKind, detail: &str) {
        let mut ledger = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.entry(kind).or_insert_with(|| (0, detail.to_owned())).0 += 1;
    }

    /// Everything counted so far, by kind.
    #[must_use]
    pub fn list(&self) -> Vec<Problem> {
        let ledger = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.iter().map(|(&kind, (count, first))| Problem { kind, count: *count, first: first.clone() }).collect()
    }

    /// How often `kind` was met.
    #[must_use]
    pub fn count_of(&self, kind: ProblemKind) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&kind).map_or(0, |(count, _)| *count)
    }
}

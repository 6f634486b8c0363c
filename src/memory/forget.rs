//! Forgetting: a person, a place, a span of time or single episodes leave the store, and nothing brings them back.
//!
//! In: an [`Order`], a [`Step`] of it. Out: a [`Round`]: what this step did, and the next step.
//!
//! ```text
//!  rows (some at a time) → what is beside rows → set-aside files → full text → free pages → log and gaps in pages
//!  one transaction each: tombstones, rows, edges, vectors, links, media rows │ then nothing of it is in a file
//! ```
//!
//! A row goes whole or is redacted (see [`verdict`]); a tombstone holds the id of the one, the row's digest marks the other
//! ([`REDACTED`]): neither is brought back by a replay, by reprocessing or by ingest, and no name is kept to know it by.
//! Every step is bounded, so that the writer of a running agent never stops for long, and can be repeated: after a crash
//! each row is untouched or forgotten whole, and the same order again finishes the rest.
//! The documents of moments are not ours: their folders are named in the round and are the agent's to remove.
//! Never: stores the name, edits the config, or touches what other programs keep elsewhere.

mod apply;
pub(crate) mod held;
pub mod name;
pub(crate) mod rest;
mod scan;
pub(crate) mod scrub;
pub(crate) mod verdict;

use crate::domain::id::EpisodeId;
use crate::domain::time::Timestamp;
use crate::memory::error::StoreError;
use crate::memory::forget::name::Name;
use crate::memory::forget::name::NameError;
use crate::memory::forget::verdict::Named;
pub use crate::memory::forget::verdict::SOMEONE;
pub use crate::memory::forget::verdict::SOMEWHERE;
use crate::memory::revision::Context;
use rusqlite::Connection;
use serde_json::Map;
use serde_json::Value;

/// The digest of a redacted row: no record has it, and no record changes the row any more.
pub(crate) const REDACTED: [u8; blake3::OUT_LEN] = [0; blake3::OUT_LEN];

/// Whether a stored row of that digest was redacted.
pub(crate) fn is_redacted(digest: &[u8]) -> bool {
    digest == REDACTED
}

/// Rows looked at in one step.
const ROWS_A_STEP: usize = 2_000;

/// Rows changed in one step.
const CHANGES_A_STEP: usize = 50;

/// Episodes named as examples by a survey.
pub const EXAMPLES_MAX: usize = 10;

/// What is to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A person: their rows, and their name in the rows of others.
    Person(String),
    /// A place: the stays there, and its name and position elsewhere.
    Place(String),
    /// Everything that began, went on or ended in a span of time.
    Span {
        /// From here on.
        since: Timestamp,
        /// Up to, and not including.
        until: Timestamp,
    },
    /// These episodes.
    Ids(Vec<EpisodeId>),
}

/// An order to forget.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// What.
    pub subject: Subject,
    /// Phrases in which the name means something else: `Port Alice`.
    #[serde(default)]
    pub keep: Vec<String>,
    /// People known besides those of the graph: a row that names one of them as well is redacted and does not go.
    #[serde(default)]
    pub known: Vec<String>,
}

impl Order {
    /// Checks that it can be carried out.
    ///
    /// # Errors
    /// [`NameError`] in words for what is no name; a sentence for a span that ends before it begins.
    pub fn check(&self) -> Result<(), String> {
        match &self.subject {
            Subject::Person(name) | Subject::Place(name) => {
                let is_placeholder = [SOMEONE, SOMEWHERE].iter().any(|word| word.eq_ignore_ascii_case(name.trim()));
                if is_placeholder {
                    return Err(NameError::Placeholder(name.clone()).to_string());
                }
                self.named().map(|_| ()).map_err(|error| error.to_string())
            }
            Subject::Span { since, until } if since >= until => {
                Err(format!("the span ends ({until}) before it begins ({since})"))
            }
            Subject::Ids(ids) if ids.is_empty() => Err("no episode is named".to_owned()),
            Subject::Span { .. } | Subject::Ids(_) => Ok(()),
        }
    }

    /// The name that is looked for, if it is a name that is to be forgotten.
    pub(crate) fn named(&self) -> Result<Option<Named>, NameError> {
        let (text, is_place) = match &self.subject {
            Subject::Person(name) => (name, false),
            Subject::Place(name) => (name, true),
            Subject::Span { .. } | Subject::Ids(_) => return Ok(None),
        };
        Ok(Some(Named { name: Name::new(text, &self.keep)?, is_place }))
    }

    /// Takes the name out of a JSON object (a document beside the store). `None` when it is not in it.
    #[must_use]
    pub fn redacted_document(&self, document: &Map<String, Value>) -> Option<Map<String, Value>> {
        let named = self.named().ok().flatten()?;
        let mut redacted = verdict::redacted_object(document, &named)?;
        if named.is_place {
            verdict::drop_positions(&mut redacted);
        }
        Some(redacted)
    }

    /// Whether the name to be forgotten stands in the text.
    #[must_use]
    pub fn is_named_in(&self, text: &str) -> bool {
        self.named().ok().flatten().is_some_and(|named| named.name.is_in(text))
    }

    /// Whether something of that instant is to be forgotten for its time.
    #[must_use]
    pub fn covers(&self, at: Timestamp) -> bool {
        matches!(&self.subject, Subject::Span { since, until } if *since <= at && at < *until)
    }
}

/// How far an order is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The rows behind this row number.
    Rows(i64),
    /// What stands beside rows: coverage, sessions, nodes.
    Rest,
    /// Files that no row names: orphans, damaged stores, the sidecar of vectors.
    SetAside,
    /// Full text: its segments begin to be merged.
    FullText,
    /// They go on to be merged, some at a time.
    MoreFullText,
    /// Free pages, some at a time.
    FreePages,
    /// The write-ahead log, and gaps in the pages behind this one.
    Gaps(u32),
}

impl Step {
    /// The first one.
    pub const FIRST: Self = Self::Rows(0);

    /// The first of those that only clean up behind rows that are gone; they need no name.
    pub const CLEAN: Self = Self::SetAside;
}

/// What became of an episode.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Example {
    /// Which.
    pub id: String,
    /// Whether it goes; else it is redacted.
    pub goes: bool,
    /// Its sentence as it was.
    pub content: String,
}

/// What a step did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Round {
    /// Episodes that are gone.
    pub episodes_removed: u64,
    /// Episodes that stay without the name.
    pub episodes_redacted: u64,
    /// Summaries that were made of them; they are made again from what is left.
    pub gists_removed: u64,
    /// Facts that are gone.
    pub facts_removed: u64,
    /// Vectors that are gone.
    pub vectors_removed: u64,
    /// Links between episodes that are gone.
    pub links_removed: u64,
    /// Pictures and recordings that are gone.
    pub media_removed: u64,
    /// Coverage rows that stay without the name.
    pub coverage_redacted: u64,
    /// Sessions whose own name was in the way; they are called by a number from here on.
    pub sessions_renamed: u64,
    /// Set-aside files that are gone: orphans, damaged stores, the sidecar of vectors.
    pub files_removed: u64,
    /// Bytes of old content that were overwritten in the database.
    pub bytes_scrubbed: u64,
    /// Where the name still stands, and why.
    pub left: Vec<String>,
    /// Moments that are gone, by the name of their folder.
    pub moments_removed: Vec<String>,
    /// Moments that were redacted, by the name of their folder.
    pub moments_redacted: Vec<String>,
    /// Some of the episodes, when nothing was changed yet.
    pub examples: Vec<Example>,
    /// What is to be done next; `None` when all is done.
    pub next: Option<Step>,
}

impl Round {
    /// Adds what a later step did.
    pub fn add(&mut self, later: Self) {
        self.episodes_removed += later.episodes_removed;
        self.episodes_redacted += later.episodes_redacted;
        self.gists_removed += later.gists_removed;
        self.facts_removed += later.facts_removed;
        self.vectors_removed += later.vectors_removed;
        self.links_removed += later.links_removed;
        self.media_removed += later.media_removed;
        self.coverage_redacted += later.coverage_redacted;
        self.sessions_renamed += later.sessions_renamed;
        self.files_removed += later.files_removed;
        self.bytes_scrubbed += later.bytes_scrubbed;
        self.left.extend(later.left);
        self.moments_removed.extend(later.moments_removed);
        self.moments_redacted.extend(later.moments_redacted);
        self.examples.extend(later.examples);
        self.examples.truncate(EXAMPLES_MAX);
        self.next = later.next;
    }

    /// Whether no row was touched.
    #[must_use]
    pub const fn is_nothing(&self) -> bool {
        self.episodes_removed + self.episodes_redacted + self.coverage_redacted + self.sessions_renamed == 0
    }
}

/// An order that was checked, ready to look for its name.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    order: &'a Order,
    named: Option<Named>,
}

impl<'a> Plan<'a> {
    /// Makes the order ready.
    ///
    /// # Errors
    /// [`StoreError::WrongState`] when it cannot be carried out; `percept forget` checks it before.
    pub(crate) fn new(order: &'a Order) -> Result<Self, StoreError> {
        order.check().map_err(StoreError::WrongState)?;
        let named = order.named().map_err(|error| StoreError::WrongState(error.to_string()))?;
        Ok(Self { order, named })
    }
}

/// What the order would do to the rows behind `after`. Changes nothing.
pub(crate) fn survey(connection: &Connection, plan: &Plan<'_>, after: i64) -> rusqlite::Result<Round> {
    let found = scan::scan(connection, plan, after, usize::MAX)?;
    let mut round = Round { next: found.next.map(Step::Rows), ..Round::default() };
    for hit in found.hits {
        let goes = hit.redaction.is_none();
        *(if goes { &mut round.episodes_removed } else { &mut round.episodes_redacted }) += 1;
        if round.examples.len() < EXAMPLES_MAX {
            round.examples.push(Example { id: hit.id, goes, content: hit.content });
        }
    }
    Ok(round)
}

/// One transaction's worth of [`Step::Rows`]; also names the files to remove after the commit.
pub(crate) fn rows(
    connection: &Connection,
    context: &Context<'_>,
    plan: &Plan<'_>,
    after: i64,
) -> rusqlite::Result<(Round, Vec<String>)> {
    let found = scan::scan(connection, plan, after, CHANGES_A_STEP)?;
    let mut applied = apply::Applied::default();
    for hit in &found.hits {
        applied.apply(connection, context, plan, hit)?;
    }
    let next = Some(found.next.map_or(Step::Rest, Step::Rows));
    Ok((Round { next, ..applied.round }, applied.unused))
}

/// [`Step::Rest`].
pub(crate) fn beside_rows(connection: &Connection, context: &Context<'_>, plan: &Plan<'_>) -> rusqlite::Result<Round> {
    let round = match &plan.named {
        Some(named) => rest::redact(connection, context, named)?,
        None => Round::default(),
    };
    Ok(Round { next: Some(Step::SetAside), ..round })
}

#[cfg(test)]
mod tests;

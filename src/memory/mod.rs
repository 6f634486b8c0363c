//! The store: one SQLite file, one writer, any number of readers.
//!
//! In: [`crate::domain::episode::EpisodeRecord`]s, coverage, clock corrections, sessions, through [`writer::Writer`].
//! Out: the same, found again through [`reader::Reader`], and files under `media/`.
//!
//! Flow: [`writer`] → [`queue`] → [`worker`] → [`commit`] → [`append`] (rows, vectors, [`graph`], [`media`], [`links`]) → commit.
//! Living long: [`removal`] (expiry), [`retention`] and [`eviction`] (the disk budget), [`salvage`] (a damaged file),
//! [`media_check`] (rows and files that disagree), [`forget`] (what must be nowhere any more).
//! `docs/schema.md` explains every column.
//!
//! This module alone names the database. It never reads the clock, decides what is worth remembering, or talks to a network.

mod append;
mod associations;
pub mod clock;
pub mod command;
mod commit;
pub mod coverage;
pub mod detail;
pub mod dump;
pub mod embedding;
pub mod error;
pub mod eviction;
pub mod facts;
pub mod forget;
pub mod gists;
pub mod glance;
mod graph;
mod health;
pub mod links;
pub mod lock;
pub mod media;
pub mod media_check;
mod mentions;
pub mod moments;
pub mod places;
pub mod query;
mod queue;
pub mod reader;
pub mod recall;
pub mod record;
pub mod removal;
pub mod retention;
mod revision;
mod rows;
pub mod salvage;
pub mod schema;
pub mod search;
pub mod sessions;
pub mod similarity;
pub mod stats;
pub mod store;
pub mod strength;
mod tombstones;
mod worker;
pub mod writer;

#[cfg(test)]
#[path = "tests/fixture.rs"]
pub(crate) mod fixture;

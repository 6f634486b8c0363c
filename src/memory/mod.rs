//! The store: one SQLite file, one writer, any number of readers.
//!
//! In: [`crate::domain::episode::EpisodeRecord`]s, coverage, clock corrections, sessions, through [`writer::Writer`].
//! Out: the same, found again through [`reader::Reader`], and files under `media/`.
//!
//! Flow: [`writer`] → [`queue`] → [`worker`] → [`append`] (rows, vectors, [`graph`], [`media`], [`links`]) → commit.
//! `docs/schema.md` explains every column.
//!
//! This module alone names the database. It never reads the clock, decides what is worth remembering, or talks to a network.

mod append;
pub mod clock;
pub mod command;
pub mod coverage;
pub mod detail;
pub mod dump;
pub mod embedding;
pub mod error;
mod graph;
pub mod links;
pub mod lock;
pub mod media;
pub mod query;
mod queue;
pub mod reader;
pub mod record;
pub mod removal;
mod revision;
mod rows;
pub mod schema;
pub mod sessions;
pub mod stats;
pub mod store;
mod tombstones;
mod worker;
pub mod writer;

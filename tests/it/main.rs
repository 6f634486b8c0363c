//! The one integration binary: each module tells a behaviour that can be seen from outside.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test whose preparation fails has failed")]
#![allow(unreachable_pub, reason = "helpers are shared between the modules of this one binary")]
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a test that meets another variant fails, which is what it should do"
)]
#![allow(clippy::print_stdout, reason = "a test that cannot run here says so by name")]
#![allow(clippy::type_complexity, reason = "tables of cases")]

/// The resident agent: live sensors, its socket, reloads and restarts.
mod agent;
/// The house rules that no compiler knows: imports, names, sizes, clock.
mod architecture;
/// Bad frames, odd formats, static and flickering views become the right episodes.
mod camera;
/// A trained small CLIP finds pictures by text and text by pictures.
mod clip_fixture;
/// CLIP's preprocessing and tokens equal the reference's.
mod clip_parity;
/// What is worth knowing now, within a token budget.
mod context;
/// What held when, asked through the command line.
mod facts;
/// What is forgotten is in no file and does not come back.
mod forget;
/// A day, a place, a person in a few sentences.
mod gists;
/// Whole timelines, compared as text.
mod golden;
/// Sound, recorded: what is heard, and what becomes of it.
mod hearing;
/// Lines of other programs become episodes.
mod ingest;
/// Log-mel frames equal the numpy reference's.
mod log_mel;
/// The store from outside: what goes through the writer is found by the reader.
mod memory;
/// Rows for the tests of the store.
mod memory_rows;
/// Model files: fetched, verified, located, and never used when they are not right.
mod models;
/// PageRank equals networkx's.
mod pagerank;
/// A day's positions become stays and trips.
mod places;
/// Crowds of devices and floods of advertisements.
mod presence;
/// Recall through the command line.
mod recall;
/// Documents, rows and media that disagree.
mod reconcile;
/// From a recorded session to remembered episodes, through the command line.
mod replay;
/// Sessions for the tests, and `percept` run on them.
mod scene;
/// Searching by words, by likeness and by filters, and what it leaves behind.
mod search;
/// Recorded sessions: what is read from folders and bare files, right and wrong.
mod session;
/// Receiver logs, bare and as a real gpsd tells them: every fix, no false time, no false place.
mod session_gps;
/// Recording a session and reading it back.
mod session_writer;
/// The store under kill −9, cut files, held locks and crowding.
mod store_faults;
/// YAMNet: import, parity with other runtimes, damaged files.
mod yamnet;
/// YAMNet on real sounds, from samples to classes.
mod yamnet_clips;

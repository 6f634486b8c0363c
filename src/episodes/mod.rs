//! Turns observations into episodes.
//!
//! In: observations in the order they were captured, and the passing of time.
//! Out: [`crate::domain::episode::Draft`]s and [`crate::domain::coverage::Coverage`]. One builder per modality, all with
//! the same verbs: `handle_observation`, `handle_timeout`, `poll_timeout`, `poll_draft`, `finish`.
//! Never: I/O, ids of device or session, the clock.

pub mod audio;
pub mod coincidence;
pub mod coverage;
pub mod handed_in;
pub mod moment;
pub mod social;
pub mod spatial;
pub mod visual;

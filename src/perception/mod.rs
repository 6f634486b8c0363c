//! Turns readings into observations: levels, spectra, sound classes, scenes, places, presence.
//!
//! In: readings and the passing of time. Out: observations.
//! Only [`model`] touches files; nothing here reads a clock or writes to the store.

pub mod model;

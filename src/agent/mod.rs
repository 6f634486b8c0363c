//! Joins the stages of the device side.
//!
//! In: sensors, the config, the models that are there. Out: rows in the store and documents beside it.
//! This is the shell: it owns the files, the threads and the clock that the stages never touch.

pub mod clock;
pub mod digest;
pub mod identity;
pub mod machine;
pub mod models;
pub mod moment_maker;
pub mod moments;
pub mod people;
pub mod pipeline;
pub mod places;
pub mod recorder;
pub mod replay;
pub mod senses;
pub mod sights;
pub mod sounds;
pub mod surroundings;

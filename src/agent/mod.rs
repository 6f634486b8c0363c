//! Joins the stages of the device side.
//!
//! In: sensors, the config, the models that are there. Out: rows in the store and documents beside it.
//! This is the shell: it owns the files, the threads and the clock that the stages never touch.

pub mod asked;
pub mod backlog;
pub mod clock;
pub mod clock_source;
pub mod context;
pub mod control;
pub mod digest;
pub mod doctor;
pub mod drivers;
pub mod forget;
pub mod gists;
pub mod heartbeat;
pub mod identity;
pub mod ingest;
pub mod last_run;
pub mod machine;
pub mod models;
pub mod moment_maker;
pub mod moments;
pub mod mute;
pub mod people;
pub mod pipeline;
pub mod places;
pub mod power;
pub mod queue;
pub mod recall;
pub mod reconcile;
pub mod record;
pub mod recorder;
pub mod recording;
pub mod replay;
pub mod run;
pub mod search;
pub mod senses;
pub mod sensor_thread;
pub mod sentences;
pub mod sights;
pub mod sounds;
pub mod status;
pub mod surroundings;

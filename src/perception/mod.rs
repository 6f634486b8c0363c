//! Understands readings.
//!
//! In: [`crate::domain::reading::Reading`]s of one sensor, in order. Out: [`crate::domain::observation`]s.
//! Never: files, sockets, threads or the clock; only `model` names the model runtime and touches model files.

pub mod gate;
pub mod hearing;
pub mod level;
pub mod log_mel;
pub mod pcm;
pub mod resample;
pub mod spectrum;

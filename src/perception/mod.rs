//! Understands readings.
//!
//! In: [`crate::domain::reading::Reading`]s of one sensor, in order. Out: [`crate::domain::observation`]s.
//! Never: files, sockets, threads or the clock; only `model` names the model runtime and touches model files.

pub mod camera;
pub mod clip;
pub mod fix;
pub mod gate;
pub mod hearing;
pub mod identity;
pub mod image;
pub mod jpeg_end;
pub mod jpeg_scan;
pub mod labels;
pub mod level;
pub mod log_mel;
pub mod model;
pub mod pcm;
pub mod pixels;
pub mod place;
pub mod presence;
pub mod resample;
pub mod resize;
pub mod scene;
pub mod sound;
pub mod spectrum;
pub mod text;
pub mod text_clean;
pub mod tokenizer;

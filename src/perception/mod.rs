//! Understands readings.
//!
//! In: [`crate::domain::reading::Reading`]s of one sensor, in order. Out: [`crate::domain::observation`]s.
//! Never: files, sockets, threads or the clock; only `model` names the model runtime and touches model files.

pub mod model;
pub mod sound;
pub mod camera;
pub mod clip;
pub mod image;
pub mod jpeg_end;
pub mod labels;
pub mod pixels;
pub mod scene;
pub mod text;
pub mod text_clean;
pub mod tokenizer;
pub mod fix;
pub mod identity;
pub mod place;
pub mod presence;

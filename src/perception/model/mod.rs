//! Model files and the runtime that executes them.
//!
//! In: model files on disk and float or integer tensors. Out: float tensors, by output name.
//!
//! Only float32 ONNX is executed. This folder never decides what a score means, and it never reads a clock.

mod digest;
pub mod fetch;
mod file_error;
pub mod locate;
pub mod manifest;
mod record;

pub use file_error::ModelFileError;

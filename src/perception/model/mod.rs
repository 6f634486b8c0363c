//! Model files and the runtime that executes them.
//!
//! In: model files on disk and float or integer tensors. Out: float tensors, by output name.
//! Everything else in percept sees the traits in [`runtime`]; the library behind them is named in this folder only.
//!
//! Only float32 ONNX is executed. Quantised and half-precision files are refused by name, because the
//! runtime was measured to compute the former wrongly without any error and cannot read the latter.
//!
//! This folder never decides what a score means, and it never reads a clock.

mod channel_last;
mod digest;
mod error;
pub mod fetch;
mod file_error;
pub mod locate;
pub mod manifest;
mod onnx;
mod onnx_build;
mod pixel_op;
mod precision;
mod record;
pub mod runtime;
mod tflite;
mod tract;
mod wire;
pub mod yamnet;
mod yamnet_plan;

pub use error::ModelError;
pub use file_error::ModelFileError;
pub use tflite::TfliteError;
pub use tract::TractRuntime;
pub use tract::YamnetRuntime;

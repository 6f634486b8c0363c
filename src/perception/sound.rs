//! Says what is heard: YAMNet over log-mel frames.
//!
//! In: log-mel frames, one every 10 ms, in order. Out: for each window of 0.975 s, a score for each of 521 classes
//! and the embedding, as the model gives them.
//!
//! Windows begin every [`HOP_FRAMES`] frames, so each frame but the first and last few is in two windows. Several
//! windows go through the model in one run where they are there, which changes scores by less than 1e-6.
//!
//! This module does not decide whether a window is worth a run (the level gate does), nor what a score means.

use std::path::Path;
use std::sync::Arc;

use crate::domain::observation::sound::SoundScores;
use crate::perception::model::ModelError;
use crate::perception::model::runtime::InputSpec;
use crate::perception::model::runtime::Model;
use crate::perception::model::runtime::ModelSpec;
use crate::perception::model::runtime::Output;
use crate::perception::model::runtime::Runtime;
use crate::perception::model::runtime::Values;
use crate::perception::model::yamnet;

/// Frames of a window: 96, 0.975 s of sound.
pub const WINDOW_FRAMES: usize = yamnet::PATCH_FRAMES;
/// Frames from the start of one window to the start of the next: 48, 0.48 s.
pub const HOP_FRAMES: usize = 48;
/// Mel bands of a frame.
pub const MEL_BANDS: usize = yamnet::MEL_BANDS;
/// Windows that go through the model in one run at most.
pub const BATCH_WINDOWS_MAX: usize = 4;

/// YAMNet, loaded, with the names of its classes.
pub struct SoundClassifier {
    /// The same model prepared for one window a run and for [`BATCH_WINDOWS_MAX`].
    single: Box<dyn Model>,
    batch: Option<Box<dyn Model>>,
    class_names: Arc<[String]>,
    patch: Vec<f32>,
}

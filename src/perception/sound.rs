//! Says what is heard: YAMNet over log-mel frames.
//!
//! In: windows of 96 log-mel frames (0.975 s), cut every 48 frames. Out: for each window a score for each of
//! 521 classes and the embedding, as the model gives them.
//!
//! Several windows go through the model in one run where they are there, which changes scores by less than 1e-6.
//!
//! This module does not compute frames, does not decide whether a window is worth a run (the level gate does),
//! and does not judge scores.

use std::path::Path;
use std::sync::Arc;

use crate::domain::observation::sound::SoundScores;
use crate::perception::hearing::ClassifierFailure;
use crate::perception::hearing::WindowClassifier;
use crate::perception::log_mel::WINDOW_VALUES;
use crate::perception::model::ModelError;
use crate::perception::model::YamnetRuntime;
use crate::perception::model::runtime::Model;
use crate::perception::model::runtime::ModelSpec;
use crate::perception::model::runtime::Output;
use crate::perception::model::runtime::Runtime;
use crate::perception::model::runtime::Values;
use crate::perception::model::yamnet;

/// Windows that go through the model in one run at most. Beyond four, a run gains nothing more.
pub const BATCH_WINDOWS_MAX: usize = 4;

const _: () = assert!(WINDOW_VALUES == yamnet::PATCH_FRAMES * yamnet::MEL_BANDS, "frames fit the model");

/// YAMNet, loaded, with the names of its classes.
pub struct SoundClassifier {
    /// For one window a run, as live sound arrives.
    single: Box<dyn Model>,
    /// For [`BATCH_WINDOWS_MAX`] windows a run, as recorded sound arrives; loaded when first needed.
    batch: Option<Box<dyn Model>>,
    load_batch: Box<dyn Fn() -> Result<Box<dyn Model>, ModelError> + Send>,
    class_names: Arc<[String]>,
}

impl std::fmt::Debug for SoundClassifier {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SoundClassifier").field("classes", &self.class_names.len()).finish_non_exhaustive()
    }
}

impl SoundClassifier {
    /// Loads the file that `percept models fetch` makes of YAMNet.
    ///
    /// # Errors
    /// What [`Runtime::load`] says; [`ModelError::Malformed`] when the file does not name its classes.
    pub fn open(file: &Path) -> Result<Self, ModelError> {
        let single = YamnetRuntime.load(file, &ModelSpec::yamnet(1))?;
        let class_names: Arc<[String]> =
            single.metadata(yamnet::CLASS_NAMES).unwrap_or_default().lines().map(str::to_owned).collect();
        if class_names.len() != yamnet::CLASSES {
            let cause = format!("it names {} classes instead of {}", class_names.len(), yamnet::CLASSES);
            return Err(ModelError::Malformed { file: file.into(), cause });
        }
        let file = file.to_path_buf();
        let load_batch = Box::new(move || YamnetRuntime.load(&file, &ModelSpec::yamnet(BATCH_WINDOWS_MAX)));
        Ok(Self { single, batch: None, load_batch, class_names })
    }

    /// The display names of the classes, in the order of the scores.
    pub fn class_names(&self) -> &Arc<[String]> {
        &self.class_names
    }

    /// Scores windows of [`WINDOW_VALUES`] log-mel values each, in order.
    ///
    /// The embedding is the model's own; whoever stores it as a vector scales it to unit length.
    ///
    /// # Errors
    /// [`ModelError::Run`] when a window has another length; [`ModelError::Unreadable`] when the file has gone
    /// before the first call with [`BATCH_WINDOWS_MAX`] windows or more.
    pub fn classify(&mut self, windows: &[&[f32]]) -> Result<Vec<SoundScores>, ModelError> {
        let mut scores = Vec::with_capacity(windows.len());
        let batches = windows.chunks_exact(BATCH_WINDOWS_MAX);
        let rest = batches.remainder();
        for batch in batches {
            let model = match &mut self.batch {
                Some(model) => model,
                empty => empty.insert((self.load_batch)()?),
            };
            split(&model.run(&[Values::F32(&batch.concat())])?, &mut scores);
        }
        for window in rest {
            split(&self.single.run(&[Values::F32(window)])?, &mut scores);
        }
        Ok(scores)
    }
}

impl WindowClassifier for SoundClassifier {
    fn classify(&mut self, windows: &[&[f32]]) -> Result<Vec<SoundScores>, ClassifierFailure> {
        Ok(Self::classify(self, windows)?)
    }
}

/// Deals a run's outputs out to its windows.
fn split(outputs: &[Output], scores: &mut Vec<SoundScores>) {
    let [all_scores, all_embeddings] = outputs else { return };
    let windows = all_scores.values.chunks_exact(yamnet::CLASSES);
    for (window, embedding) in windows.zip(all_embeddings.values.chunks_exact(yamnet::EMBEDDING_VALUES)) {
        scores.push(SoundScores { scores: window.into(), embedding: embedding.into() });
    }
}

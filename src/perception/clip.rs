//! What the two towers of a CLIP model share.
//!
//! In: a way to load a tower ([`Loader`]), pictures and sentences through [`image`](crate::perception::image) and
//! [`text`](crate::perception::text). Out: unit vectors of one space, or a [`ClipError`].
//! It decides nothing about files: the agent, which knows the manifest, says where a tower is.

use crate::domain::disposition::Disposition;
use crate::domain::id::ModelId;
use crate::perception::model::ModelError;
use crate::perception::model::runtime::Model;
use crate::perception::model::runtime::ModelSpec;

/// Memory below which ViT-B/32 is refused: loading one of its towers peaks above 700 MiB.
pub const LARGE_MODEL_MEMORY_BYTES_MIN: u64 = 2 << 30;

/// Loads one tower from wherever the agent keeps it.
pub type Loader = Box<dyn Fn(&ModelSpec) -> Result<Box<dyn Model>, ModelError> + Send>;

/// Which CLIP is used and what is asked of it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Name in the model manifest; empty: no CLIP.
    pub model: String,
    /// Load a model although the machine has less memory than it asks for.
    pub force: bool,
    /// The words of zero-shot labelling.
    pub vocabulary: Vec<String>,
    /// The sentence each word is put into, at `{}`.
    pub prompt: String,
    /// Most labels given to one picture.
    pub labels_max: usize,
    /// Labels with a smaller share (0–1) are left out.
    pub label_score_min: f32,
    /// The text tower is let go after this many seconds without a sentence.
    pub text_idle_s: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            model: "tinyclip-vit-8m-16".to_owned(),
            force: false,
            vocabulary: DEFAULT_VOCABULARY.map(str::to_owned).to_vec(),
            prompt: "a photo of {}".to_owned(),
            labels_max: 3,
            label_score_min: 0.15,
            text_idle_s: 120,
        }
    }
}

/// Things and places that a wearable or a camera at home is likely to see.
const DEFAULT_VOCABULARY: [&str; 40] = [
    "a person",
    "a group of people",
    "a face",
    "a child",
    "a dog",
    "a cat",
    "a bird",
    "a horse",
    "a car",
    "a bus",
    "a bicycle",
    "a train",
    "a boat",
    "a street",
    "a house",
    "a garden",
    "a park",
    "a forest",
    "a beach",
    "a mountain",
    "a river or lake",
    "the sky",
    "a kitchen",
    "a living room",
    "a bedroom",
    "a bathroom",
    "an office",
    "a shop",
    "a restaurant",
    "a corridor",
    "a desk with a computer",
    "a screen",
    "a phone",
    "a book",
    "a document with text",
    "a plate of food",
    "a cup of coffee",
    "a bottle",
    "a plant",
    "a wall",
];

/// What can go wrong between a picture or a sentence and its vector.
#[derive(Debug, thiserror::Error)]
pub enum ClipError {
    /// The tower could not be loaded or run. Carry on without CLIP; coverage says so.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model answered with zeros, NaN or the wrong number of values: it is not the model it is said to be.
    #[error("model {model_id} gave no usable vector ({cause})")]
    NoVector {
        /// The model.
        model_id: ModelId,
        /// What was wrong with it.
        cause: String,
    },
    /// The machine is too small for the model. An operator may choose another or force it.
    #[error(
        "{model_id} needs a machine with {} MiB of memory and this one has {} MiB: choose a smaller model or set force = true",
        needed_bytes >> 20,
        found_bytes >> 20
    )]
    TooLittleMemory {
        /// The model.
        model_id: ModelId,
        /// What it asks for.
        needed_bytes: u64,
        /// What the machine has.
        found_bytes: u64,
    },
}

impl ClipError {
    /// Every one of them leaves the camera running without CLIP.
    #[must_use]
    pub fn disposition(&self) -> Disposition {
        Disposition::Degrade
    }
}

/// Whether a model may be loaded on a machine with this much memory in all.
///
/// # Errors
/// [`ClipError::TooLittleMemory`] for a ViT-B/32 below 2 GiB, unless forced. A board sold with 2 GB reports less and is refused too.
pub fn admit(model_id: &ModelId, memory_bytes: u64, is_forced: bool) -> Result<(), ClipError> {
    let is_large = model_id.as_str().contains("vit-b-32");
    if is_large && !is_forced && memory_bytes < LARGE_MODEL_MEMORY_BYTES_MIN {
        return Err(ClipError::TooLittleMemory {
            model_id: model_id.clone(),
            needed_bytes: LARGE_MODEL_MEMORY_BYTES_MIN,
            found_bytes: memory_bytes,
        });
    }
    Ok(())
}

/// The one vector a tower gave, scaled to unit length.
pub(in crate::perception) fn unit_vector(
    model_id: &ModelId,
    outputs: &[crate::perception::model::runtime::Output],
) -> Result<std::sync::Arc<[f32]>, ClipError> {
    let no_vector = |cause: &str| ClipError::NoVector { model_id: model_id.clone(), cause: cause.to_owned() };
    let [output] = outputs else { return Err(no_vector("not one output")) };
    crate::domain::episode::unit_length(&output.values).ok_or_else(|| no_vector("zero or not finite"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_large_model_is_refused_on_a_small_machine_unless_forced() {
        let (large, small) = (ModelId::new("clip-vit-b-32"), ModelId::new("tinyclip-vit-8m-16"));

        assert!(admit(&small, 400 << 20, false).is_ok());
        assert!(admit(&large, 2 << 30, false).is_ok());
        assert!(admit(&large, 1 << 30, true).is_ok());
        let refused = admit(&large, 1 << 30, false).unwrap_err().to_string();
        assert!(refused.contains("2048 MiB") && refused.contains("1024 MiB"), "{refused}");
        assert!(admit(&ModelId::new("openclip-laion2b-vit-b-32"), 1 << 30, false).is_err());
    }
}

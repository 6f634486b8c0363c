//! What was seen in one picture.

use crate::domain::episode::Media;
use crate::domain::id::SourceId;
use crate::domain::time::Stamp;
use std::sync::Arc;

/// One picture, understood.
#[derive(Debug, Clone, PartialEq)]
pub struct SceneObservation {
    /// The camera.
    pub source: SourceId,
    /// When it was taken.
    pub at: Stamp,
    /// Whether this picture begins a new scene.
    pub starts_scene: bool,
    /// Mean brightness, 0 (black) to 1.
    pub brightness: f32,
    /// Whether there is nothing in it (one flat colour): a lens cap, a dead sensor.
    pub is_blank: bool,
    /// What a zero-shot vocabulary says of it, best first; empty when CLIP did not run.
    pub labels: Vec<LabelScore>,
    /// The image vector, unit length; `None` when CLIP did not run.
    pub embedding: Option<Arc<[f32]>>,
    /// The picture as a file, when it begins a scene and the config keeps key frames.
    pub key_frame: Option<Media>,
}

/// A label of the vocabulary and how well it fits.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelScore {
    /// The label as the config words it.
    pub label: String,
    /// Share among the vocabulary, 0–1.
    pub score: f32,
}

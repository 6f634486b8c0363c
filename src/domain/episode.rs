//! What is remembered: an episode, and everything that belongs to it.

use crate::domain::fact::Fact;
use crate::domain::id::BootId;
use crate::domain::id::DeviceId;
use crate::domain::id::EpisodeId;
use crate::domain::id::ExternalId;
use crate::domain::id::ModelId;
use crate::domain::id::SessionId;
use crate::domain::id::SourceId;
use crate::domain::modality::DecayClass;
use crate::domain::modality::Modality;
use crate::domain::time::ClockQuality;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;
use std::sync::Arc;

/// JSON object of an episode; keys keep their order.
pub type Metadata = serde_json::Map<String, serde_json::Value>;

/// What a builder knows of an episode: everything but the ids of device and session.
///
/// A draft with the same modality, source, start and ordinal as an earlier one updates its row
/// (a meeting is written at arrival and completed at departure).
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// What it is about.
    pub modality: Modality,
    /// The sensor that observed it.
    pub source: SourceId,
    /// When it began.
    pub start: Stamp,
    /// When it ended (so far).
    pub end: Stamp,
    /// Counts episodes of this modality and source that began in the same millisecond.
    pub ordinal: u32,
    /// What produced it, e.g. `audio_capture`, `camera_capture`, `gps_location`, `bluetooth_scan`, `multimodal_memory`.
    pub tool_name: &'static str,
    /// One human sentence or two.
    pub content: String,
    /// Measured values and labels. Finite numbers only.
    pub metadata: Metadata,
    /// Vectors, unit length.
    pub embeddings: Vec<Embedding>,
    /// Edges for the graph.
    pub facts: Vec<Fact>,
    /// Files to keep, when the config says so.
    pub media: Vec<Media>,
}

/// An episode as it is stored.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Episode {
    /// Derived once, never recomputed.
    pub id: EpisodeId,
    /// The caller's own id, for episodes handed in from outside.
    pub external_id: Option<ExternalId>,
    /// Which device captured it.
    pub device_id: DeviceId,
    /// Which run or recorded session.
    pub session_id: SessionId,
    /// Which sensor.
    pub source: SourceId,
    /// Capture time.
    pub timestamp: Timestamp,
    /// End of capture.
    pub ended_at: Timestamp,
    /// Which boot.
    pub boot_id: BootId,
    /// Monotonic time of capture within the boot (recorded: within the session).
    pub monotonic_ms: i64,
    /// How far `timestamp` can be trusted.
    pub clock_quality: ClockQuality,
    /// What it is about.
    pub modality: Modality,
    /// What produced it.
    pub tool_name: String,
    /// One human sentence or two.
    pub content: String,
    /// 0–10.
    pub importance: u8,
    /// How fast it fades.
    pub decay_class: DecayClass,
    /// Measured values and labels.
    pub metadata: Metadata,
}

/// An episode with everything that commits in its transaction.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct EpisodeRecord {
    /// The row.
    pub episode: Episode,
    /// Its vectors.
    pub embeddings: Vec<Embedding>,
    /// Its edges.
    pub facts: Vec<Fact>,
    /// Its files; they stand in the media folder, never in a serialised record.
    #[serde(skip)]
    pub media: Vec<Media>,
}

/// What a vector was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmbeddingKind {
    /// A picture.
    Image,
    /// Words.
    Text,
    /// Sound.
    Audio,
}

impl EmbeddingKind {
    /// The name stored in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Text => "text",
            Self::Audio => "audio",
        }
    }
}

/// A vector of unit length and where it comes from.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Embedding {
    /// The model; a CLIP model's image and text towers share one id.
    pub model_id: ModelId,
    /// What it was made from.
    pub kind: EmbeddingKind,
    /// The vector, unit length, finite.
    pub vector: Arc<[f32]>,
}

/// What a kept file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MediaKind {
    /// A JPEG picture.
    Jpeg,
    /// A PNG picture.
    Png,
    /// A WAV recording.
    Wav,
}

impl MediaKind {
    /// The name stored in the database, which is also the file's extension.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Jpeg => "jpg",
            Self::Png => "png",
            Self::Wav => "wav",
        }
    }
}

/// A file to be kept, content-addressed by its BLAKE3 hash.
#[derive(Debug, Clone, PartialEq)]
pub struct Media {
    /// What it is.
    pub kind: MediaKind,
    /// The whole file.
    pub bytes: Arc<[u8]>,
}

/// Scales a vector to unit length. `None` for a zero, NaN or infinite one, which must not be stored.
#[must_use]
pub fn unit_length(vector: &[f32]) -> Option<Arc<[f32]>> {
    let norm = vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>().sqrt();
    if !norm.is_finite() || norm < 1e-12 {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "a unit vector's parts fit f32")]
    Some(vector.iter().map(|value| (f64::from(*value) / norm) as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_scaled_to_unit_length_and_nonsense_is_refused() {
        assert_eq!(unit_length(&[3.0, 4.0]).as_deref(), Some(&[0.6, 0.8][..]));
        assert_eq!(unit_length(&[0.0, 0.0]), None);
        assert_eq!(unit_length(&[f32::NAN, 1.0]), None);
    }
}

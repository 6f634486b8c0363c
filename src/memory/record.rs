//! A record on its way into the store: what is refused at the edge, and the digest that tells a repeat from a change.
//!
//! In: an [`EpisodeRecord`]. Out: a sentence about what is wrong with it, or its digest.
//! Never: changes a record, or lets NaN or an infinite number through.

use crate::domain::episode::Embedding;
use crate::domain::episode::Episode;
use crate::domain::episode::EpisodeRecord;
use crate::memory::error::StoreError;
use crate::memory::media::MediaRow;
use std::collections::BTreeSet;

/// Greatest number of values in a vector.
pub const DIMS_MAX: usize = 8192;

/// Greatest length of `content` and of `metadata` as JSON, in bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// How far from 1 the squared length of a stored vector may be.
const UNIT_TOLERANCE: f64 = 1e-3;

/// Refuses what must never be stored, naming the row.
///
/// # Errors
/// [`StoreError::Refused`].
pub(crate) fn check(record: &EpisodeRecord) -> Result<(), StoreError> {
    let episode = &record.episode;
    let refuse = |reason: String| Err(StoreError::Refused { id: episode.id.to_string(), reason });
    if episode.importance > 10 {
        return refuse(format!("importance {} is not within 0 to 10", episode.importance));
    }
    if episode.ended_at < episode.timestamp {
        return refuse("it ends before it begins".to_owned());
    }
    if episode.content.len() > TEXT_BYTES_MAX {
        return refuse(format!("its content is longer than {TEXT_BYTES_MAX} bytes"));
    }
    check_embeddings(&record.embeddings).map_or(Ok(()), refuse)
}

/// What is wrong with these vectors of one episode, if anything.
pub(crate) fn check_embeddings(embeddings: &[Embedding]) -> Option<String> {
    let mut seen = BTreeSet::new();
    embeddings.iter().find_map(|embedding| {
        let name = format!("{} vector of {}", embedding.kind.as_str(), embedding.model_id);
        let length: f64 = embedding.vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum();
        if embedding.vector.is_empty() || embedding.vector.len() > DIMS_MAX {
            return Some(format!("the {name} has {} values", embedding.vector.len()));
        }
        if !length.is_finite() {
            return Some(format!("the {name} holds a value that is not finite"));
        }
        if (length - 1.0).abs() > UNIT_TOLERANCE {
            return Some(format!("the {name} is not of unit length"));
        }
        (!seen.insert((embedding.model_id.as_str(), embedding.kind))).then(|| format!("it has two {name}"))
    })
}

/// Digest of everything a caller says about an episode, as given: a repeat has the same one, whatever clock correction
/// the stored row has had since. Importance and decay class are left out, because a stored row keeps its own.
pub(crate) fn digest(record: &EpisodeRecord, media: &[MediaRow]) -> blake3::Hash {
    let mut parts = Parts(blake3::Hasher::new());
    parts.episode(&record.episode);
    for embedding in &record.embeddings {
        parts.text(embedding.model_id.as_str()).text(embedding.kind.as_str());
        parts.number(i64::try_from(embedding.vector.len()).unwrap_or(i64::MAX));
        for value in embedding.vector.iter() {
            parts.0.update(&value.to_le_bytes());
        }
    }
    for fact in &record.facts {
        for node in [&fact.subject, &fact.object] {
            parts.text("node").text(&node.text).text(node.kind.as_str());
        }
        parts.text(&fact.relation).text(&fact.fact).text(&fact.edge_type).number(fact.valid_from.as_millis());
        parts.number(fact.valid_to.map_or(i64::MIN, |end| end.as_millis()));
    }
    for file in media {
        parts.text("media").text(&file.hash);
    }
    parts.0.finalize()
}

struct Parts(blake3::Hasher);

impl Parts {
    /// Length first, so that no choice of parts can imitate another.
    fn text(&mut self, text: &str) -> &mut Self {
        self.0.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        self
    }

    fn number(&mut self, number: i64) -> &mut Self {
        self.0.update(&number.to_le_bytes());
        self
    }

    fn episode(&mut self, episode: &Episode) {
        self.text(episode.external_id.as_ref().map_or("", |id| id.as_str()))
            .text(episode.source.as_str())
            .number(episode.timestamp.as_millis())
            .number(episode.ended_at.as_millis())
            .text(episode.boot_id.as_str())
            .number(episode.monotonic_ms)
            .text(episode.clock_quality.as_str())
            .text(episode.modality.as_str())
            .text(&episode.tool_name)
            .text(&episode.content)
            .text(&serde_json::Value::Object(episode.metadata.clone()).to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::episode::EmbeddingKind;
    use crate::domain::id::ModelId;

    fn vector(values: &[f32]) -> Embedding {
        Embedding { model_id: ModelId::new("m"), kind: EmbeddingKind::Text, vector: values.into() }
    }

    #[test]
    fn only_finite_vectors_of_unit_length_pass_and_one_of_a_kind() {
        let cases: [(&[Embedding], Option<&str>); 6] = [
            (&[vector(&[0.6, 0.8])], None),
            (&[vector(&[f32::NAN, 1.0])], Some("not finite")),
            (&[vector(&[f32::INFINITY])], Some("not finite")),
            (&[vector(&[3.0, 4.0])], Some("unit length")),
            (&[vector(&[])], Some("0 values")),
            (&[vector(&[1.0]), vector(&[1.0])], Some("two text vector of m")),
        ];

        for (embeddings, expected) in cases {
            let found = check_embeddings(embeddings);
            match expected {
                None => assert_eq!(found, None),
                Some(part) => assert!(found.as_deref().is_some_and(|text| text.contains(part)), "{found:?}"),
            }
        }
    }
}

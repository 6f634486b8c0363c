//! The vectors of a line.
//!
//! In: `embeddings: [{model_id, kind, vector}]`. Out: vectors of unit length.
//! One that has unit length already (to the store's tolerance) stays bit for bit, another is scaled: cosines stay the same.

use super::LineError;
use super::fields::Fields;
use super::fields::kind_of;
use crate::domain::episode::Embedding;
use crate::domain::episode::EmbeddingKind;
use crate::domain::episode::unit_length;
use crate::domain::id::ModelId;
use serde_json::Value;
use std::sync::Arc;

/// Most vectors of one line.
const VECTORS_MAX: usize = 16;

/// Most values of a vector, as in the store.
const DIMS_MAX: usize = 8192;

/// How far from 1 the squared length may be of what counts as unit length: well within what the store takes (1e-3), and
/// far above what rounding to f32 makes (about 1e-7 for 768 values).
const UNIT_TOLERANCE: f64 = 1e-4;

const KINDS: [EmbeddingKind; 3] = [EmbeddingKind::Image, EmbeddingKind::Text, EmbeddingKind::Audio];

/// Takes them.
pub(super) fn take(fields: &mut Fields) -> Result<Vec<Embedding>, LineError> {
    let list = fields.list("embeddings", VECTORS_MAX)?;
    let mut embeddings: Vec<Embedding> = Vec::with_capacity(list.len());
    for (index, value) in list.into_iter().enumerate() {
        let path = format!("embeddings[{index}]");
        let embedding = embedding(Fields::of(value, &path, &["model_id", "kind", "vector"])?)?;
        let is_there =
            embeddings.iter().any(|known| known.model_id == embedding.model_id && known.kind == embedding.kind);
        if is_there {
            let kind = embedding.kind.as_str();
            return Err(LineError::new(&path, format!("a second {kind} vector of {}", embedding.model_id)));
        }
        embeddings.push(embedding);
    }
    Ok(embeddings)
}

fn embedding(mut fields: Fields) -> Result<Embedding, LineError> {
    let needed = |path: String| LineError::new(&path, "it is missing; a vector needs model_id, kind and vector");
    let model_id = fields.name("model_id")?.ok_or_else(|| needed(fields.at("model_id")))?;
    let parse = |name: &str| KINDS.into_iter().find(|kind| kind.as_str() == name);
    let kind = fields.known("kind", parse, &KINDS.map(EmbeddingKind::as_str))?;
    let kind = kind.ok_or_else(|| needed(fields.at("kind")))?;
    let path = fields.at("vector");
    let values = fields.list("vector", DIMS_MAX)?;
    if values.is_empty() {
        return Err(LineError::new(&path, "it has no values"));
    }
    let values = values.iter().enumerate().map(|(index, value)| number(value, &path, index));
    let vector: Vec<f32> = values.collect::<Result<_, _>>()?;
    let vector = of_unit_length(vector).ok_or_else(|| {
        LineError::new(&path, "all its values are zero: it has no direction, and nothing can be near it")
    })?;
    Ok(Embedding { model_id: ModelId::new(model_id), kind, vector })
}

#[expect(clippy::cast_possible_truncation, reason = "what does not fit f32 becomes infinite and is refused")]
fn number(value: &Value, path: &str, index: usize) -> Result<f32, LineError> {
    let path = format!("{path}[{index}]");
    match value.as_f64().map(|number| number as f32) {
        Some(number) if number.is_finite() => Ok(number),
        Some(_) => Err(LineError::new(&path, format!("{value} does not fit a 32-bit float"))),
        None => Err(LineError::new(&path, format!("it must be a finite number, not {}", kind_of(value)))),
    }
}

fn of_unit_length(vector: Vec<f32>) -> Option<Arc<[f32]>> {
    let length: f64 = vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum();
    if (length - 1.0).abs() <= UNIT_TOLERANCE { Some(vector.into()) } else { unit_length(&vector) }
}

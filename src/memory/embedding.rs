//! Vectors in the store: little-endian f32, unit length, one per episode, model and kind.
//!
//! In: checked [`Embedding`]s. Out: rows, and vectors read back. Vectors travel with their episode when it syncs, so
//! adding one later is a change of the episode.
//! Never: compares vectors.

use crate::domain::episode::Embedding;
use crate::domain::episode::EmbeddingKind;
use crate::domain::id::ModelId;
use rusqlite::Connection;
use rusqlite::OptionalExtension;
use std::sync::Arc;

/// Every kind, for reading names back.
pub(crate) const KINDS: [EmbeddingKind; 3] = [EmbeddingKind::Image, EmbeddingKind::Text, EmbeddingKind::Audio];

/// The bytes of a vector as stored.
#[must_use]
pub fn encode(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The vector of stored bytes; `None` when their number is no multiple of four.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<Arc<[f32]>> {
    let (values, rest) = bytes.as_chunks::<4>();
    rest.is_empty().then(|| values.iter().map(|value| f32::from_le_bytes(*value)).collect())
}

/// Adds vectors, replacing those of the same model and kind.
pub(crate) fn put(connection: &Connection, episode_id: &str, embeddings: &[Embedding]) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO embeddings (episode_id, model_id, kind, dims, vector) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (episode_id, model_id, kind) DO UPDATE SET dims = excluded.dims, vector = excluded.vector",
    )?;
    for embedding in embeddings {
        let (model, kind) = (embedding.model_id.as_str(), embedding.kind.as_str());
        let dims = i64::try_from(embedding.vector.len()).unwrap_or(i64::MAX);
        statement.execute((episode_id, model, kind, dims, encode(&embedding.vector)))?;
    }
    Ok(())
}

/// Removes every vector of an episode. Returns how many there were.
pub(crate) fn remove(connection: &Connection, episode_id: &str) -> rusqlite::Result<u64> {
    let removed = connection.prepare_cached("DELETE FROM embeddings WHERE episode_id = ?1")?.execute([episode_id])?;
    Ok(removed as u64)
}

/// One vector of an episode.
pub(crate) fn load(
    connection: &Connection,
    episode_id: &str,
    model_id: &ModelId,
    kind: EmbeddingKind,
) -> rusqlite::Result<Option<Arc<[f32]>>> {
    let bytes: Option<Vec<u8>> = connection
        .prepare_cached("SELECT vector FROM embeddings WHERE episode_id = ?1 AND model_id = ?2 AND kind = ?3")?
        .query_row((episode_id, model_id.as_str(), kind.as_str()), |row| row.get(0))
        .optional()?;
    Ok(bytes.as_deref().and_then(decode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_vector_is_little_endian() {
        assert_eq!(encode(&[1.0, -2.0]), [0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]);
        assert_eq!(decode(&[0; 5]), None);
    }

    proptest! {
        #[test]
        fn a_vector_comes_back_bit_for_bit(vector: Vec<f32>) {
            let back = decode(&encode(&vector)).unwrap();

            let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&back), bits(&vector));
        }
    }
}

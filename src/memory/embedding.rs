//! Vectors in the store: little-endian f32, unit length, one per episode, model and kind.
//!
//! In: checked [`Embedding`]s. Out: rows, and vectors read back. Vectors travel with their episode when it syncs, so
//! adding one later is a change of the episode.
//! Never: compares vectors.

use crate::domain::episode::Embedding;
use crate::domain::episode::EmbeddingKind;
use crate::domain::id::ModelId;
use crate::memory::revision;
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

/// Adds vectors, replacing those of the same model and kind. Another vector is another row number.
pub(crate) fn put(connection: &Connection, episode_id: &str, embeddings: &[Embedding]) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO embeddings (row_id, episode_id, model_id, kind, dims, vector) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (episode_id, model_id, kind) DO UPDATE
         SET row_id = excluded.row_id, dims = excluded.dims, vector = excluded.vector",
    )?;
    for embedding in embeddings {
        let (model, kind) = (embedding.model_id.as_str(), embedding.kind.as_str());
        let dims = i64::try_from(embedding.vector.len()).unwrap_or(i64::MAX);
        let row_id = revision::next_vector(connection)?;
        statement.execute((row_id, episode_id, model, kind, dims, encode(&embedding.vector)))?;
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

/// The number of values of a vector of that model and kind: any of them, because they all have the same.
pub(crate) fn dims(connection: &Connection, model_id: &ModelId, kind: EmbeddingKind) -> rusqlite::Result<Option<u32>> {
    connection
        .prepare_cached("SELECT dims FROM embeddings WHERE model_id = ?1 AND kind = ?2 LIMIT 1")?
        .query_row((model_id.as_str(), kind.as_str()), |row| row.get(0))
        .optional()
}

/// Every vector of an episode, by model and kind; one whose bytes are no vector is left out.
pub(crate) fn all(connection: &Connection, episode_id: &str) -> rusqlite::Result<Vec<Embedding>> {
    let mut statement = connection.prepare_cached(
        "SELECT model_id, kind, vector FROM embeddings WHERE episode_id = ?1 ORDER BY model_id, kind",
    )?;
    let mut rows = statement.query([episode_id])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let kind: String = row.get(1)?;
        let kind = KINDS.into_iter().find(|known| known.as_str() == kind);
        if let (Some(kind), Some(vector)) = (kind, decode(row.get_ref(2)?.as_blob()?)) {
            found.push(Embedding { model_id: ModelId::new(row.get::<_, String>(0)?), kind, vector });
        }
    }
    Ok(found)
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

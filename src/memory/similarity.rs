//! Stand-in until the branch of vectors is merged: a plain scan.

use crate::domain::episode::EmbeddingKind;
use crate::domain::id::ModelId;
use crate::memory::embedding;
use crate::memory::error::StoreError;
use rusqlite::Connection;
use std::path::Path;

/// One model and one kind of stored vector.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Space {
    /// The model.
    pub model_id: ModelId,
    /// What the vectors were made from.
    pub kind: EmbeddingKind,
}

/// An episode near the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// `episodes.row_id`.
    pub row_id: i64,
    /// Its cosine.
    pub cosine: f32,
}

/// The vectors of a store.
#[derive(Debug)]
pub struct Similarity;

impl Similarity {
    /// Those of the store in that folder.
    #[must_use]
    pub fn open(_dir: &Path) -> Self {
        Self
    }

    /// The nearest episodes of a space.
    pub(crate) fn nearest(
        &mut self,
        connection: &Connection,
        space: &Space,
        query: &[f32],
        limit: usize,
        allowed: Option<&dyn Fn(i64) -> bool>,
    ) -> Result<Vec<Neighbour>, StoreError> {
        let read = || -> rusqlite::Result<Vec<(i64, Vec<u8>)>> {
            connection
                .prepare_cached(
                    "SELECT e.row_id, v.vector FROM embeddings AS v JOIN episodes AS e ON e.id = v.episode_id
                     WHERE v.model_id = ?1 AND v.kind = ?2",
                )?
                .query_map((space.model_id.as_str(), space.kind.as_str()), |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        };
        let rows = read().map_err(|error| StoreError::from_sqlite(Path::new("memory.db"), error))?;
        let mut found: Vec<Neighbour> = rows
            .into_iter()
            .filter(|(row_id, _)| allowed.is_none_or(|allowed| allowed(*row_id)))
            .filter_map(|(row_id, bytes)| {
                let vector = embedding::decode(&bytes).filter(|vector| vector.len() == query.len())?;
                Some(Neighbour { row_id, cosine: vector.iter().zip(query).map(|(one, other)| one * other).sum() })
            })
            .collect();
        found.sort_by(|one, other| other.cosine.total_cmp(&one.cosine).then(one.row_id.cmp(&other.row_id)));
        found.truncate(limit);
        Ok(found)
    }
}

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

/// Every space of the store.
pub(crate) fn spaces(connection: &Connection) -> rusqlite::Result<Vec<Space>> {
    // One step of the index for each space, however many rows it has.
    let mut statement = connection.prepare_cached(
        "WITH RECURSIVE model(id) AS (
           SELECT min(model_id) FROM embeddings
           UNION ALL SELECT (SELECT min(model_id) FROM embeddings WHERE model_id > model.id) FROM model WHERE id IS NOT NULL)
         SELECT id FROM model WHERE id IS NOT NULL",
    )?;
    let models: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut found = Vec::new();
    for model in models {
        for kind in embedding::KINDS {
            let is_there: bool = connection
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM embeddings WHERE model_id = ?1 AND kind = ?2)")?
                .query_row((&model, kind.as_str()), |row| row.get(0))?;
            if is_there {
                found.push(Space { model_id: ModelId::new(model.clone()), kind });
            }
        }
    }
    Ok(found)
}

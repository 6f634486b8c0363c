//! Search: what fits a query best, by the score of [`crate::recall::score`].
//!
//! ```text
//! filter ──► rows allowed ─┐
//! words  ──► BM25 ─────────┼──► candidates ──► standing (age, importance, strength) ──► score ──► best
//! vectors ─► cosines ──────┘
//! ```
//!
//! In: a [`SearchQuery`]. Out: [`Hit`]s, the best first, with the parts of their scores; ties go to the newer one.
//! Filters come before ranking and before any limit. With words or vectors an episode is a hit when a word of the query is in
//! it or when a vector of it is above the low mark of a pair; with filters alone all that pass are. The best BM25 that all are
//! measured against is that of the whole store: a filter changes no score.
//!
//! The hits are those of the whole ranking, although not all of it is made: [`best`] leaves out what cannot be among the best
//! for want of relevance, [`standing`] reads the newest of each class first, [`likest`] says when more vectors cannot help.
//! Never: changes strength; [`crate::memory::writer::Writer::raise_strength`] does, when the caller says so.

mod best;
mod likest;
pub(crate) mod rows;
mod standing;
#[cfg(test)]
mod tests;
pub(crate) mod words;

use crate::domain::episode::EmbeddingKind;
use crate::domain::id::EpisodeId;
use crate::domain::id::ModelId;
use crate::domain::time::Timestamp;
use crate::memory::embedding;
use crate::memory::error::StoreError;
use crate::memory::query;
use crate::memory::query::EpisodeFilter;
use crate::memory::query::StoredEpisode;
use crate::memory::search::likest::Likest;
use crate::memory::search::rows::Allowed;
use crate::memory::search::standing::Standings;
use crate::memory::similarity::Similarity;
use crate::recall::score;
use crate::recall::score::Score;
use rusqlite::Connection;
use rusqlite::OptionalExtension as _;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Hits that a search gives at most.
pub const LIMIT_MAX: usize = 1_000;

/// A vector to compare with.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryVector {
    /// The model; vectors of other models are never compared with it.
    pub model_id: ModelId,
    /// What it was made from.
    pub kind: EmbeddingKind,
    /// Unit length.
    pub vector: Arc<[f32]>,
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchQuery {
    /// Words, as the user wrote them: every character is plain text.
    pub text: Option<String>,
    /// Vectors of the words, of a picture, of another episode.
    pub vectors: Vec<QueryVector>,
    /// Only episodes that pass; its order and limit are not used.
    pub filter: EpisodeFilter,
    /// Not this one (the episode that others are to be like).
    pub without: Option<EpisodeId>,
    /// At most so many, up to [`LIMIT_MAX`].
    pub limit: usize,
    /// The present, for recency.
    pub now: Timestamp,
    /// Between which cosines likeness lies.
    pub marks: score::Config,
    /// How often searches returned episodes since their strength was last written.
    pub raised: BTreeMap<EpisodeId, u32>,
}

/// A found episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The episode.
    pub episode: StoredEpisode,
    /// Why it stands where it does.
    pub score: Score,
}

/// The best hits. The caller gives one consistent state of the store.
pub(crate) fn search(
    connection: &Connection,
    path: &Path,
    similarity: &mut Similarity,
    query: &SearchQuery,
) -> Result<Vec<Hit>, StoreError> {
    let at_store = |error| StoreError::from_sqlite(path, error);
    check_vectors(connection, path, query)?;
    let allowed = Allowed::of(connection, &query.filter, query.without).map_err(at_store)?;
    let standings = Standings::new(connection, query.now, &query.raised).map_err(at_store)?;
    let limit = query.limit.min(LIMIT_MAX);
    let best = if query.text.is_none() && query.vectors.is_empty() {
        best::of_allowed(&standings, &allowed, limit).map_err(at_store)?
    } else {
        let by_words = query.text.as_deref().map(|text| words::matches(connection, text)).transpose();
        let mut by_words = by_words.map_err(at_store)?.unwrap_or_default();
        by_words.retain(|(row_id, _)| allowed.contains(*row_id));
        by_words.sort_unstable_by_key(|(row_id, _)| *row_id);
        let mut likest = Likest { connection, path, similarity, query, allowed: &allowed };
        likest.best(&standings, &by_words, limit)?
    };
    best.into_sorted()
        .into_iter()
        .filter_map(|ranked| {
            let loaded = load(connection, ranked.row_id).map_err(at_store).transpose()?;
            Some(loaded.map(|episode| Hit { episode, score: ranked.score }))
        })
        .collect()
}

/// Refuses vectors that nothing can be compared with.
fn check_vectors(connection: &Connection, path: &Path, query: &SearchQuery) -> Result<(), StoreError> {
    for QueryVector { model_id, kind, vector } in &query.vectors {
        let name = format!("the {} vector of {model_id}", kind.as_str());
        let length: f64 = vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum();
        if vector.is_empty() || !length.is_finite() || length < f64::MIN_POSITIVE {
            return Err(StoreError::BadQuery(format!("{name} must have finite values that are not all 0")));
        }
        let stored =
            embedding::dims(connection, model_id, *kind).map_err(|error| StoreError::from_sqlite(path, error))?;
        if let Some(dims) = stored.filter(|dims| usize::try_from(*dims).is_ok_and(|dims| dims != vector.len())) {
            return Err(StoreError::BadQuery(format!("{name} has {} values, those stored have {dims}", vector.len())));
        }
    }
    Ok(())
}

fn load(connection: &Connection, row_id: i64) -> rusqlite::Result<Option<StoredEpisode>> {
    let sql = format!(
        "SELECT {} FROM episodes AS e LEFT JOIN strength AS s ON s.episode_id = e.id WHERE e.row_id = ?1",
        query::columns()
    );
    connection.prepare_cached(&sql)?.query_row([row_id], query::read).optional()
}

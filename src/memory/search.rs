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
//! it or when it is among the [`ALIKE_MAX`] likest of a space and above that pair's low mark; with filters alone all that
//! pass are. The best BM25 that all are measured against is that of the whole store: a filter changes no score.
//! Never: changes strength; [`crate::memory::writer::Writer::raise_strength`] does, when the caller says so.

pub(crate) mod rows;
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
use crate::memory::search::rows::Allowed;
use crate::memory::search::rows::Standings;
use crate::memory::similarity::Similarity;
use crate::memory::similarity::Space;
use crate::recall::score;
use crate::recall::score::Score;
use rusqlite::Connection;
use rusqlite::OptionalExtension as _;
use std::collections::BTreeMap;
use std::collections::BinaryHeap;
use std::path::Path;
use std::sync::Arc;

/// The likest of a space that are looked at.
pub const ALIKE_MAX: usize = 1_024;

/// Hits that a search gives at most.
pub const LIMIT_MAX: usize = 1_000;

/// Kinds of vectors there are.
const KINDS: [EmbeddingKind; 3] = [EmbeddingKind::Image, EmbeddingKind::Text, EmbeddingKind::Audio];

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

/// How well a row fits, each 0–1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Fit {
    words: f64,
    likeness: f64,
}

/// A row with its score, ordered by it.
#[derive(Debug, PartialEq)]
struct Ranked {
    score: Score,
    timestamp: i64,
    row_id: i64,
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_score = self.score.total.total_cmp(&other.score.total);
        by_score.then(self.timestamp.cmp(&other.timestamp)).then(self.row_id.cmp(&other.row_id))
    }
}

/// The best hits. The caller gives one consistent state of the store.
pub(crate) fn search(
    connection: &Connection,
    path: &Path,
    similarity: &mut Similarity,
    query: &SearchQuery,
) -> Result<Vec<Hit>, StoreError> {
    let at_store = |error| StoreError::from_sqlite(path, error);
    let allowed = Allowed::of(connection, &query.filter, query.without).map_err(at_store)?;
    check_vectors(connection, path, query)?;
    let is_open = query.text.is_none() && query.vectors.is_empty();
    let fits = if is_open { None } else { Some(fits(connection, path, similarity, query, &allowed)?) };
    best(connection, query, &allowed, fits).map_err(at_store)
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

/// What fits the words or the vectors, and how well.
fn fits(
    connection: &Connection,
    path: &Path,
    similarity: &mut Similarity,
    query: &SearchQuery,
    allowed: &Allowed,
) -> Result<BTreeMap<i64, Fit>, StoreError> {
    let mut fits: BTreeMap<i64, Fit> = BTreeMap::new();
    let by_words = query.text.as_deref().map(|text| words::matches(connection, text)).transpose();
    let by_words = by_words.map_err(|error| StoreError::from_sqlite(path, error))?.unwrap_or_default();
    for (row_id, words) in by_words.into_iter().filter(|(row_id, _)| allowed.contains(*row_id)) {
        fits.insert(row_id, Fit { words, likeness: 0.0 });
    }
    for vector in &query.vectors {
        for kind in KINDS {
            let Some(marks) = query.marks.marks(vector.model_id.as_str(), vector.kind, kind) else { continue };
            let space = Space { model_id: vector.model_id.clone(), kind };
            let filter = |row_id: i64| allowed.contains(row_id);
            let filter: Option<&dyn Fn(i64) -> bool> = if allowed.is_all() { None } else { Some(&filter) };
            for near in similarity.nearest(connection, &space, &vector.vector, ALIKE_MAX, filter)? {
                let likeness = marks.likeness(f64::from(near.cosine));
                if likeness <= 0.0 {
                    break;
                }
                let fit = fits.entry(near.row_id).or_default();
                fit.likeness = fit.likeness.max(likeness);
            }
        }
    }
    Ok(fits)
}

/// Scores the candidates and takes the best; `fits` is `None` when every allowed row is one.
fn best(
    connection: &Connection,
    query: &SearchQuery,
    allowed: &Allowed,
    fits: Option<BTreeMap<i64, Fit>>,
) -> rusqlite::Result<Vec<Hit>> {
    let candidates: Option<Vec<i64>> = match &fits {
        Some(fits) => Some(fits.keys().copied().collect()),
        None => allowed.rows().map(<[i64]>::to_vec),
    };
    let waiting = waiting(connection, &query.raised)?;
    let mut ranked: BinaryHeap<Ranked> = BinaryHeap::new();
    Standings::read(connection, candidates.as_deref(), query.now, |row_id, timestamp, standing| {
        let fit = fits.as_ref().map_or(Some(Fit::default()), |fits| fits.get(&row_id).copied());
        if let Some(fit) = fit {
            let standing = standing.stronger_by(waiting.get(&row_id).copied().unwrap_or_default());
            ranked.push(Ranked { score: standing.score(fit.words, fit.likeness), timestamp, row_id });
        }
    })?;
    let limit = query.limit.min(LIMIT_MAX);
    let mut hits = Vec::with_capacity(limit.min(ranked.len()));
    // The values of metadata have no index: they are looked at in the order of rank, until enough pass.
    while hits.len() < limit
        && let Some(next) = ranked.pop()
    {
        if allowed.passes_metadata(connection, next.row_id)? {
            hits.extend(load(connection, next.row_id)?.map(|episode| Hit { episode, score: next.score }));
        }
    }
    Ok(hits)
}

/// The rows whose raised strength is not written yet, and by how much.
fn waiting(connection: &Connection, raised: &BTreeMap<EpisodeId, u32>) -> rusqlite::Result<BTreeMap<i64, u32>> {
    let mut statement = connection.prepare_cached("SELECT row_id FROM episodes WHERE id = ?1")?;
    let mut found = BTreeMap::new();
    for (id, by) in raised {
        let row_id: Option<i64> = statement.query_row([id.to_string()], |row| row.get(0)).optional()?;
        found.extend(row_id.map(|row_id| (row_id, *by)));
    }
    Ok(found)
}

fn load(connection: &Connection, row_id: i64) -> rusqlite::Result<Option<StoredEpisode>> {
    let sql = format!(
        "SELECT {} FROM episodes AS e LEFT JOIN strength AS s ON s.episode_id = e.id WHERE e.row_id = ?1",
        query::columns()
    );
    connection.prepare_cached(&sql)?.query_row([row_id], query::read).optional()
}

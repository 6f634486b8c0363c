//! Where a recall begins: what the question names, and which episodes it fits.
//!
//! In: what is left of a question after time and question words. Out: a [`Start`].
//! An episode's fit is how well the question's words fit it, or how near one of its vectors is, whichever says more. It draws
//! the walk; there, words count twice where they are no names. Once more, at the end, they count alone: the walk has found the
//! names, the rest must be found in the episode. Never: writes.

use crate::domain::id::EpisodeId;
use crate::memory::embedding::KINDS;
use crate::memory::error::StoreError;
use crate::memory::recall::RecallQuery;
use crate::memory::recall::named::Named;
use crate::memory::recall::named::Said;
use crate::memory::rows;
use crate::memory::search::rows::Allowed;
use crate::memory::search::words;
use crate::memory::similarity::Similarity;
use crate::memory::similarity::Space;
use crate::recall::seeds;
use crate::recall::seeds::EpisodeFound;
use crate::recall::seeds::NameFound;
use crate::recall::seeds::Seed;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::path::Path;

/// Episodes that the query's words fit best and that are candidates for that alone.
const BY_WORDS_MAX: usize = 400;

/// What the nearest vector counts as a fit, beside 1 for the best words: sentences of one subject are all near each other.
const VECTOR_FIT: f64 = 0.5;

/// How well an episode fits the question, 0–1.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fit {
    /// All of it, and what is no name, averaged.
    pub(super) whole: f64,
    /// What is no name.
    pub(super) rest: f64,
}

/// What the walk begins at and what draws it.
#[derive(Debug, Default)]
pub(super) struct Start {
    /// The allowed episodes that fit.
    pub(super) fits: BTreeMap<EpisodeId, Fit>,
    by_words: Vec<EpisodeFound>,
    by_vector: Vec<EpisodeFound>,
    names: Vec<NameFound>,
}

impl Start {
    pub(super) fn of(
        connection: &Connection,
        path: &Path,
        similarity: &mut Similarity,
        query: &RecallQuery,
        text: &str,
        allowed: &Allowed,
    ) -> Result<Self, StoreError> {
        let at_store = |error| StoreError::from_sqlite(path, error);
        let mut named = Named::of(connection, text).map_err(at_store)?;
        let fits = by_words(connection, &named.said, allowed).map_err(at_store)?;
        let by_words: Vec<EpisodeFound> =
            fits.iter().map(|(id, fit)| EpisodeFound { id: *id, nearness: fit.whole }).collect();
        named.add_alike(connection, &by_words).map_err(at_store)?;
        let by_vector = by_vector(connection, path, similarity, query, allowed)?;
        Ok(Self { fits: with_vectors(fits, &by_vector), by_words, by_vector, names: named.found })
    }

    pub(super) fn seeds(&self) -> Vec<Seed> {
        seeds::seeds(&self.names, &self.by_words, &self.by_vector)
    }
}

/// The allowed episodes that the words fit best, the best first.
fn by_words(connection: &Connection, said: &Said, allowed: &Allowed) -> rusqlite::Result<Vec<(EpisodeId, Fit)>> {
    let mut rows: HashMap<i64, Fit> = words::weights(connection, &said.rest)?
        .into_iter()
        .map(|(row_id, rest)| (row_id, Fit { whole: rest, rest }))
        .collect();
    for (row_id, of_names) in words::weights(connection, &said.names)? {
        rows.entry(row_id).or_default().whole += of_names;
    }
    let best = |part: fn(&Fit) -> f64| rows.values().map(part).fold(f64::MIN_POSITIVE, f64::max);
    let (best_whole, best_rest) = (best(|fit| fit.whole), best(|fit| fit.rest));
    let share = |fit: Fit| {
        let rest = fit.rest / best_rest;
        Fit { whole: f64::midpoint(fit.whole / best_whole, rest), rest }
    };
    let mut fits: Vec<(i64, Fit)> = rows
        .into_iter()
        .filter(|(row_id, _)| allowed.contains(*row_id))
        .map(|(row_id, fit)| (row_id, share(fit)))
        .collect();
    fits.sort_by(|one, other| other.1.whole.total_cmp(&one.1.whole).then(one.0.cmp(&other.0)));
    fits.truncate(BY_WORDS_MAX);
    fits.into_iter().map(|(row_id, fit)| Ok((id_of(connection, row_id)?, fit))).collect()
}

/// The allowed episodes that a vector of the query is nearest to, the likest first.
fn by_vector(
    connection: &Connection,
    path: &Path,
    similarity: &mut Similarity,
    query: &RecallQuery,
    allowed: &Allowed,
) -> Result<Vec<EpisodeFound>, StoreError> {
    let is_allowed = |row_id: i64| allowed.contains(row_id);
    let filter: Option<&dyn Fn(i64) -> bool> = if allowed.is_all() { None } else { Some(&is_allowed) };
    let mut likeness_of: BTreeMap<i64, f64> = BTreeMap::new();
    for vector in &query.vectors {
        for kind in KINDS {
            let Some(marks) = query.marks.marks(vector.model_id.as_str(), vector.kind, kind) else { continue };
            let space = Space { model_id: vector.model_id.clone(), kind };
            for near in similarity.nearest(connection, &space, &vector.vector, seeds::BY_VECTOR_MAX, filter)? {
                let likeness = likeness_of.entry(near.row_id).or_default();
                *likeness = likeness.max(marks.likeness(f64::from(near.cosine)));
            }
        }
    }
    let mut nearest: Vec<(i64, f64)> = likeness_of.into_iter().filter(|(_, likeness)| *likeness > 0.0).collect();
    nearest.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    nearest
        .into_iter()
        .take(seeds::BY_VECTOR_MAX)
        .map(|(row_id, nearness)| Ok(EpisodeFound { id: id_of(connection, row_id)?, nearness }))
        .collect::<rusqlite::Result<_>>()
        .map_err(|error| StoreError::from_sqlite(path, error))
}

/// Each episode that words or vectors find, by what says more.
fn with_vectors(by_words: Vec<(EpisodeId, Fit)>, by_vector: &[EpisodeFound]) -> BTreeMap<EpisodeId, Fit> {
    let mut fits: BTreeMap<EpisodeId, Fit> = by_words.into_iter().collect();
    for found in by_vector {
        let near = VECTOR_FIT * found.nearness;
        let fit = fits.entry(found.id).or_default();
        *fit = Fit { whole: fit.whole.max(near), rest: fit.rest.max(near) };
    }
    fits
}

pub(super) fn id_of(connection: &Connection, row_id: i64) -> rusqlite::Result<EpisodeId> {
    connection.prepare_cached("SELECT id FROM episodes WHERE row_id = ?1")?.query_row([row_id], |row| rows::id(row, 0))
}

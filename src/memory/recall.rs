//! Recall: what comes to mind, by walking from what a question names.
//!
//! ```text
//! question ── time words, question words ──► filter
//!     │
//!     └─ names, words, vectors ──► seeds ──► part of the graph around them ──► PageRank ─┐
//!                 └──────────────────────── fit (weighs the graph, too) ─────────────────┴─► filter ──► best
//! ```
//!
//! In: a [`RecallQuery`]. Out: [`Recalled`] episodes, best first. A question that leaves nothing to start from (`Who did I
//! meet yesterday?` is all time and question words) lists what passes the filter, newest first.
//! Never: uses or changes the scores and strengths of search.

use crate::domain::id::EpisodeId;
use crate::domain::modality::Modality;
use crate::domain::time::Timestamp;
use crate::memory::associations::Associations;
use crate::memory::error::StoreError;
use crate::memory::query;
use crate::memory::query::EpisodeFilter;
use crate::memory::query::Order;
use crate::memory::query::StoredEpisode;
use crate::memory::search::QueryVector;
use crate::memory::search::rows::Allowed;
use crate::memory::similarity::Similarity;
use crate::recall::expansion::Expansion;
use crate::recall::expansion::Place;
use crate::recall::fusion;
use crate::recall::pagerank;
use crate::recall::pagerank::Graph;
use crate::recall::phrases;
use crate::recall::question;
use crate::recall::score;
use crate::recall::seeds::Seed;
use crate::recall::time_words;
use crate::recall::time_words::Span;
use jiff::tz::TimeZone;
use rusqlite::Connection;
use rusqlite::OptionalExtension;
use std::collections::BTreeMap;
use std::collections::HashSet;
use std::path::Path;

mod named;
mod start;

use start::Fit;
use start::Start;
use start::id_of;

/// Episodes that a recall gives at most.
pub const LIMIT_MAX: usize = 1_000;

/// Letters of a question that are read: a text of a megabyte is no question.
const TEXT_BYTES_MAX: usize = 16_384;

/// What is asked.
#[derive(Debug, Clone)]
pub struct RecallQuery {
    /// The question, as the user wrote it.
    pub text: String,
    /// Vectors of the question.
    pub vectors: Vec<QueryVector>,
    /// Between which cosines likeness lies.
    pub marks: score::Config,
    /// Only episodes that pass; its order and limit are not used. Time and question words narrow it further.
    pub filter: EpisodeFilter,
    /// The present, for time words.
    pub now: Timestamp,
    /// Whose days and hours are meant.
    pub time_zone: TimeZone,
    /// At most so many, up to [`LIMIT_MAX`].
    pub limit: usize,
    /// 0–[`pagerank::DAMPING_MAX`]: how far the walk goes from what the question names.
    pub damping: f64,
}

/// A recalled episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    /// The episode.
    pub episode: StoredEpisode,
    /// What decides the order; see [`fusion::score`]. 0 in a listing.
    pub score: f64,
    /// Its share of the walk, 0–1.
    pub rank: f64,
    /// How well it fits the question's words (their BM25 over the best of all episodes, of all words and of those that are
    /// no names, averaged) or vectors, 0–1.
    pub words: f64,
}

/// What a recall found and how.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recollection {
    /// The episodes, best first.
    pub found: Vec<Recalled>,
    /// Where the walk began; none when the answer is a listing, newest first.
    pub seeds: Vec<Seed>,
    /// The spans that the question's time words mean.
    pub spans: Vec<Span>,
    /// Those words.
    pub time_words: Vec<String>,
    /// The kind of episode that the question asks for.
    pub modality: Option<Modality>,
    /// Nodes walked on.
    pub places: usize,
    /// Edges between them.
    pub edges: usize,
    /// Whether the graph around the seeds was small enough to be taken whole.
    pub is_whole: bool,
}

/// A question taken apart.
#[derive(Debug, Default)]
struct Asked {
    /// What is left to look for; `None` when every word was understood.
    rest: Option<String>,
    spans: Vec<Span>,
    time_words: Vec<String>,
    is_absolute: bool,
    modality: Option<Modality>,
    filter: EpisodeFilter,
}

impl Asked {
    fn of(query: &RecallQuery, reads_time: bool) -> Self {
        let text = shortened(&query.text);
        let time = if reads_time { time_words::parse(text, query.now, &query.time_zone) } else { Default::default() };
        let rest = if reads_time { time.rest } else { text.to_owned() };
        let mut words = phrases::words(&rest);
        let hint = question::hint(&words);
        if let Some(hint) = &hint {
            words.remove(hint.verb);
        }
        let is_understood = hint.is_some() || !time.spans.is_empty();
        let says_nothing = words.iter().all(|word| phrases::is_stop_word(&word.text));
        let rest = match &hint {
            Some(_) => words.into_iter().map(|word| word.text).collect::<Vec<_>>().join(" "),
            None => rest,
        };
        let mut filter = query.filter.clone();
        if let (Some(first), Some(last)) = (time.spans.first(), time.spans.last()) {
            filter.since = filter.since.max(Some(first.start));
            filter.until = Some(filter.until.map_or(last.end, |until| until.min(last.end)));
        }
        let modality = hint.map(|hint| hint.modality).filter(|_| filter.modalities.is_empty());
        filter.modalities.extend(modality);
        Self {
            rest: (!says_nothing || (!is_understood && !rest.trim().is_empty())).then_some(rest),
            spans: time.spans,
            time_words: time.words,
            is_absolute: time.is_absolute,
            modality,
            filter,
        }
    }

    fn is_at(&self, timestamp: Timestamp) -> bool {
        self.spans.is_empty() || self.spans.iter().any(|span| span.contains(timestamp))
    }
}

fn shortened(text: &str) -> &str {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Recalls. The caller gives one consistent state of the store.
pub(crate) fn recall(
    connection: &Connection,
    path: &Path,
    similarity: &mut Similarity,
    query: &RecallQuery,
) -> Result<Recollection, StoreError> {
    let at_store = |error| StoreError::from_sqlite(path, error);
    let mut asked = Asked::of(query, true);
    let mut allowed = Allowed::of(connection, &asked.filter, None).map_err(at_store)?;
    if asked.is_absolute && allowed.rows().is_some_and(<[i64]>::is_empty) {
        // Nothing was captured then: the year is part of what is asked about ("the treaty of 1648").
        asked = Asked::of(query, false);
        allowed = Allowed::of(connection, &asked.filter, None).map_err(at_store)?;
    }
    let limit = query.limit.min(LIMIT_MAX);
    let start = match &asked.rest {
        Some(rest) => Start::of(connection, path, similarity, query, rest, &allowed)?,
        None => Start::default(),
    };
    let seeds = start.seeds();
    let mut recollection = Recollection {
        spans: asked.spans.clone(),
        time_words: asked.time_words.clone(),
        modality: asked.modality,
        is_whole: true,
        ..Recollection::default()
    };
    if seeds.is_empty() {
        let is_narrowed = asked.rest.is_none() || asked.filter != EpisodeFilter::default();
        if is_narrowed {
            recollection.found = listing(connection, &asked, limit).map_err(at_store)?;
        }
        return Ok(recollection);
    }
    let ranks = walk(connection, path, &start.fits, &seeds, query.damping, &mut recollection)?;
    let candidates = candidates(start.fits, ranks, &begun(&seeds, query.damping));
    recollection.seeds = seeds;
    recollection.found = best(connection, &asked, &allowed, candidates, limit).map_err(at_store)?;
    Ok(recollection)
}

/// Each episode's share of the walk.
fn walk(
    connection: &Connection,
    path: &Path,
    fits: &BTreeMap<EpisodeId, Fit>,
    seeds: &[Seed],
    damping: f64,
    recollection: &mut Recollection,
) -> Result<Vec<(EpisodeId, f64)>, StoreError> {
    let at_store = |error| StoreError::from_sqlite(path, error);
    let mut associations =
        Associations::new(connection, fits.iter().map(|(id, fit)| (*id, fit.whole))).map_err(at_store)?;
    let weights: Vec<(Place, f64)> = seeds.iter().map(|seed| (seed.place, seed.weight)).collect();
    let expansion = Expansion::around(&mut associations, &weights, damping).map_err(at_store)?;
    let numbered: Vec<(u32, f64)> = expansion.numbered(&weights);
    let graph = Graph::new(expansion.places.len(), &expansion.edges);
    let ranks = pagerank::rank(&graph, &numbered, damping)
        .map_err(|error| StoreError::Refused { id: "of the recall".to_owned(), reason: error.to_string() })?;
    recollection.places = expansion.places.len();
    recollection.edges = expansion.edges.len();
    recollection.is_whole = expansion.is_whole;
    let episodes = expansion.places.iter().zip(ranks).filter_map(|(place, rank)| match place {
        Place::Episode(id) => Some((*id, rank)),
        Place::Name(_) => None,
    });
    Ok(episodes.collect())
}

/// An episode with its share of the walk and its fit.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    id: EpisodeId,
    rank: f64,
    words: f64,
    score: f64,
}

/// What of each episode's share of the walk began there: it says where the walk was sent, not where it leads.
fn begun(seeds: &[Seed], damping: f64) -> BTreeMap<EpisodeId, f64> {
    let share = |seed: &Seed| match seed.place {
        Place::Episode(id) => Some((id, (1.0 - damping) * seed.weight)),
        Place::Name(_) => None,
    };
    seeds.iter().filter_map(share).collect()
}

/// Everything reached or fitting, the best first; ties by id.
fn candidates(
    mut fits: BTreeMap<EpisodeId, Fit>,
    ranks: Vec<(EpisodeId, f64)>,
    begun: &BTreeMap<EpisodeId, f64>,
) -> Vec<Candidate> {
    let arrived = |id: &EpisodeId, rank: f64| rank - begun.get(id).copied().unwrap_or(0.0);
    let best = ranks.iter().map(|(id, rank)| arrived(id, *rank)).fold(0.0, f64::max);
    let mut parts: Vec<(EpisodeId, f64, Fit)> =
        ranks.into_iter().map(|(id, rank)| (id, rank, fits.remove(&id).unwrap_or_default())).collect();
    parts.extend(fits.into_iter().map(|(id, fit)| (id, 0.0, fit)));
    let mut candidates: Vec<Candidate> = parts
        .into_iter()
        .filter(|(_, rank, fit)| *rank > 0.0 || fit.whole > 0.0)
        .map(|(id, rank, fit)| {
            let score = fusion::score(arrived(&id, rank), best, fit.rest);
            Candidate { id, rank, words: fit.whole, score }
        })
        .collect();
    candidates.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.id.cmp(&other.id)));
    candidates
}

/// The best candidates that pass.
fn best(
    connection: &Connection,
    asked: &Asked,
    allowed: &Allowed,
    candidates: Vec<Candidate>,
    limit: usize,
) -> rusqlite::Result<Vec<Recalled>> {
    let few = few_allowed(connection, allowed, candidates.len())?;
    let mut found = Vec::with_capacity(limit.min(candidates.len()));
    for candidate in candidates.into_iter().filter(|one| few.as_ref().is_none_or(|few| few.contains(&one.id))) {
        if found.len() >= limit {
            break;
        }
        let Some(row_id) = row_of(connection, candidate.id)? else { continue };
        if !allowed.contains(row_id) {
            continue;
        }
        let Some(episode) = load(connection, row_id)?.filter(|stored| asked.is_at(stored.episode.timestamp)) else {
            continue;
        };
        let Candidate { rank, words, score, .. } = candidate;
        found.push(Recalled { episode, score, rank, words });
    }
    Ok(found)
}

/// The allowed ids when they are fewer than the candidates: looking those up is the shorter way then.
fn few_allowed(
    connection: &Connection,
    allowed: &Allowed,
    candidates: usize,
) -> rusqlite::Result<Option<HashSet<EpisodeId>>> {
    let Some(rows) = allowed.rows().filter(|rows| rows.len() < candidates) else { return Ok(None) };
    rows.iter().map(|row_id| id_of(connection, *row_id)).collect::<rusqlite::Result<_>>().map(Some)
}

fn row_of(connection: &Connection, id: EpisodeId) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT row_id FROM episodes WHERE id = ?1")?
        .query_row([id.to_string()], |row| row.get(0))
        .optional()
}

fn load(connection: &Connection, row_id: i64) -> rusqlite::Result<Option<StoredEpisode>> {
    let sql = format!(
        "SELECT {} FROM episodes AS e LEFT JOIN strength AS s ON s.episode_id = e.id WHERE e.row_id = ?1",
        query::columns()
    );
    connection.prepare_cached(&sql)?.query_row([row_id], query::read).optional()
}

/// What passes the filter, newest first.
fn listing(connection: &Connection, asked: &Asked, limit: usize) -> rusqlite::Result<Vec<Recalled>> {
    let whole = [Span { start: Timestamp::from_millis(i64::MIN), end: Timestamp::from_millis(i64::MAX) }];
    let spans: &[Span] = if asked.spans.is_empty() { &whole } else { &asked.spans };
    let mut found = Vec::new();
    for span in spans.iter().rev() {
        let filter = EpisodeFilter {
            since: asked.filter.since.max(Some(span.start)),
            until: Some(asked.filter.until.map_or(span.end, |until| until.min(span.end))),
            order: Order::NewestFirst,
            limit: Some(limit - found.len()),
            ..asked.filter.clone()
        };
        let episodes = query::episodes(connection, &filter)?;
        found.extend(episodes.into_iter().map(|episode| Recalled { episode, score: 0.0, rank: 0.0, words: 0.0 }));
    }
    Ok(found)
}

#[cfg(test)]
mod tests;

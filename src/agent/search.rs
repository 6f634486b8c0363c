//! A search as the command, the control socket and MCP ask for it.
//!
//! In: a [`Request`]: words, a picture's vector, an episode that others are to be like, filters. Out: an [`Answer`]: rows as
//! programs read them, best first, and sentences about what could not be done.
//! Words get a vector only when the store has vectors of that model: an empty store loads no model. Without the model the
//! words themselves are still compared, and a note says so.

use crate::agent::machine;
use crate::agent::models;
use crate::agent::sentences::SharedText;
use crate::config::Loaded;
use crate::domain::episode::EmbeddingKind;
use crate::domain::episode::Metadata;
use crate::domain::id::EpisodeId;
use crate::domain::id::ModelId;
use crate::domain::time::Stamp;
use crate::domain::time::SystemClock;
use crate::memory::query::EpisodeFilter;
use crate::memory::reader::Reader;
use crate::memory::search::Hit;
use crate::memory::search::LIMIT_MAX;
use crate::memory::search::QueryVector;
use crate::memory::search::SearchQuery;
use crate::memory::similarity::Similarity;
use crate::memory::store::OpenOptions;
use crate::memory::store::Store;
use crate::memory::writer::Writer;
use crate::recall::score;
use anyhow::Context as _;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::PoisonError;

mod desk;
mod picture;

pub use desk::Desk;
pub use picture::vector_of;

/// Episodes returned when the asker names no number.
pub const LIMIT_DEFAULT: usize = 20;

/// Letters of a text that its vector is made from. CLIP reads 77 tokens, a few hundred letters.
const EMBEDDED_LETTERS_MAX: usize = 2_000;

/// What is asked: the body of `POST /v1/search`.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Words; every character is plain text.
    pub text: Option<String>,
    /// Vectors of something that is not stored, such as a picture.
    pub vectors: Vec<QueryVector>,
    /// An episode, by id or the beginning of one, whose vectors others are to be like.
    pub like: Option<String>,
    /// Which episodes are wanted; its order and limit are not used.
    pub filter: EpisodeFilter,
    /// At most so many, 1 to [`LIMIT_MAX`].
    pub limit: usize,
    /// Leave strength alone.
    pub peek: bool,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            text: None,
            vectors: Vec::new(),
            like: None,
            filter: EpisodeFilter::default(),
            limit: LIMIT_DEFAULT,
            peek: false,
        }
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Answer {
    /// The columns of each episode, `score`, and `score_parts`; the best first.
    pub episodes: Vec<Metadata>,
    /// What could not be done.
    pub notes: Vec<String>,
}

/// Where the words of a query get their vector.
pub struct Meaning<'a> {
    /// The model; empty: none.
    pub model_id: ModelId,
    /// Gives its text tower, or says why not. Asked only when it is needed.
    pub tower: Box<dyn FnOnce() -> anyhow::Result<SharedText> + 'a>,
}

/// What a search needs to know besides the request and the store.
pub struct Setting<'a> {
    /// What counts as alike.
    pub marks: score::Config,
    /// The present.
    pub now: Stamp,
    /// Strength that was raised and is not written yet.
    pub raised: BTreeMap<EpisodeId, u32>,
    /// Where words get their vector.
    pub meaning: Meaning<'a>,
}

/// Searches without changing anything.
///
/// # Errors
/// When nothing is asked for, an id is wrong, a vector does not fit, or the store cannot be read.
pub fn look(
    reader: &Reader,
    similarity: &mut Similarity,
    request: &Request,
    setting: Setting<'_>,
) -> anyhow::Result<(Vec<Hit>, Vec<String>)> {
    let text = request.text.as_deref().map(str::trim).filter(|text| !text.is_empty());
    let is_empty = text.is_none() && request.vectors.is_empty() && request.like.is_none();
    let filter = EpisodeFilter { limit: None, ..request.filter.clone() };
    let has_filter = filter != EpisodeFilter { order: filter.order, ..EpisodeFilter::default() };
    anyhow::ensure!(!is_empty || has_filter, "nothing to search for: name words, a picture, an episode or a filter");
    anyhow::ensure!(
        (1..=LIMIT_MAX).contains(&request.limit),
        "limit {} is not within 1 and {LIMIT_MAX}",
        request.limit
    );
    let mut notes = Vec::new();
    let mut vectors = request.vectors.clone();
    let models: Vec<ModelId> = reader.spaces()?.into_iter().map(|space| space.model_id).collect();
    for vector in vectors.iter().filter(|vector| !models.contains(&vector.model_id)) {
        notes.push(format!("nothing in the store has a vector of {} to compare with", vector.model_id));
    }
    let without = request.like.as_deref().map(|id| likeness_of(reader, id, &mut vectors)).transpose()?;
    if let Some(text) = text.filter(|_| models.contains(&setting.meaning.model_id)) {
        match embed(text, setting.meaning, setting.now) {
            Ok(vector) => vectors.push(vector),
            Err(error) => notes.push(without_meaning(&error)),
        }
    }
    let query = SearchQuery {
        text: text.map(str::to_owned),
        vectors,
        filter,
        without,
        limit: request.limit,
        now: setting.now.utc,
        marks: setting.marks,
        raised: setting.raised,
    };
    Ok((reader.search(similarity, &query)?, notes))
}

/// The episode of that id, whose vectors join the others.
fn likeness_of(reader: &Reader, id: &str, vectors: &mut Vec<QueryVector>) -> anyhow::Result<EpisodeId> {
    let found = reader.resolve(id)?;
    let found = found.with_context(|| format!("no episode has the id {id:?}; `percept episodes` lists them"))?;
    let own = reader.vectors(found)?;
    anyhow::ensure!(!own.is_empty(), "episode {found} has no vectors yet; search for its words instead");
    let own = own.into_iter();
    vectors.extend(own.map(|own| QueryVector { model_id: own.model_id, kind: own.kind, vector: own.vector }));
    Ok(found)
}

fn embed(text: &str, meaning: Meaning<'_>, now: Stamp) -> anyhow::Result<QueryVector> {
    let tower = (meaning.tower)()?;
    let text: String = text.chars().take(EMBEDDED_LETTERS_MAX).collect();
    let vector = tower.lock().unwrap_or_else(PoisonError::into_inner).embed(&text, now)?;
    Ok(QueryVector { model_id: meaning.model_id, kind: EmbeddingKind::Text, vector })
}

/// Searches while no agent runs. Strength is raised under the exclusive lock; when another program writes there, the search
/// still answers, and a note says that strength stays. `holder` is how the program calls itself.
///
/// # Errors
/// As [`look`].
pub fn alone(request: &Request, loaded: &Loaded, holder: &str, now: Stamp) -> anyhow::Result<Answer> {
    let reader = Reader::open(&loaded.data_dir)?;
    let marks = loaded.config.search.clone();
    let setting = Setting { marks, now, raised: BTreeMap::new(), meaning: own_meaning(loaded) };
    let (hits, mut notes) = look(&reader, &mut Similarity::open(&loaded.data_dir), request, setting)?;
    // A writer may want to move the file's end, which a reader would hold back.
    drop(reader);
    if !request.peek
        && !hits.is_empty()
        && let Err(error) = raise(&loaded.data_dir, holder, ids(&hits))
    {
        notes.push(format!("the strength of what was found stays as it was: {error:#}"));
    }
    Ok(answer(&hits, notes))
}

/// A text tower of this process, loaded when it is first needed.
fn own_meaning(loaded: &Loaded) -> Meaning<'_> {
    let tower = || {
        let tower = models::text_tower(&loaded.config, &loaded.models_dir(), machine::memory_bytes())?;
        tower.context("no CLIP model is configured")
    };
    Meaning { model_id: ModelId::new(loaded.config.clip.model.clone()), tower: Box::new(tower) }
}

/// The vector of a text, when the store has vectors it could be compared with; a note says when there is none although it
/// has.
///
/// # Errors
/// When the store cannot be read.
pub fn vector_of_text(
    text: &str,
    reader: &Reader,
    loaded: &Loaded,
    now: Stamp,
    notes: &mut Vec<String>,
) -> anyhow::Result<Option<QueryVector>> {
    let meaning = own_meaning(loaded);
    if text.trim().is_empty() || !reader.spaces()?.iter().any(|space| space.model_id == meaning.model_id) {
        return Ok(None);
    }
    Ok(embed(text, meaning, now).inspect_err(|error| notes.push(without_meaning(error))).ok())
}

fn without_meaning(error: &anyhow::Error) -> String {
    format!("only words are compared, not their meaning: {error:#}")
}

fn raise(data_dir: &Path, holder: &str, ids: Vec<EpisodeId>) -> anyhow::Result<()> {
    let store = Store::open(data_dir, &OpenOptions { holder: holder.to_owned(), ..OpenOptions::default() })?;
    let writer = Writer::spawn(store, Box::new(SystemClock::new()))?;
    writer.raise_strength(ids)?;
    writer.close()?;
    Ok(())
}

fn ids(hits: &[Hit]) -> Vec<EpisodeId> {
    hits.iter().map(|hit| hit.episode.episode.id).collect()
}

fn answer(hits: &[Hit], notes: Vec<String>) -> Answer {
    Answer { episodes: hits.iter().map(row).collect(), notes }
}

fn row(hit: &Hit) -> Metadata {
    let mut fields = hit.episode.fields();
    let score = hit.score;
    fields.insert("score".to_owned(), score.total.into());
    let parts = json!({
        "recency": score.recency,
        "importance": score.importance,
        "relevance": score.relevance,
        "relevant_by": score.relevant_by,
        "strength": score.strength,
    });
    fields.insert("score_parts".to_owned(), parts);
    fields
}

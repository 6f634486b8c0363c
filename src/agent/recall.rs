//! Recall as the command, MCP and `percept context` ask for it: a question gets its vector, and the store is asked.
//!
//! In: a question, limits. Out: what comes to mind, with how. It only reads, beside a running agent as well.
//! Never: raises strength.

use crate::agent::search;
use crate::config::Loaded;
use crate::domain::time::Stamp;
use crate::memory::query::EpisodeFilter;
use crate::memory::query::StoredEpisode;
use crate::memory::reader::Reader;
use crate::memory::recall::RecallQuery;
use crate::memory::recall::Recollection;
use crate::memory::similarity::Similarity;
use jiff::tz::TimeZone;

/// How far the walk goes from what a question names (DESIGN section 5).
pub const DAMPING: f64 = 0.5;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Question {
    /// In plain language.
    pub text: String,
    /// Only what passes; time words narrow it further.
    pub filter: EpisodeFilter,
    /// At most so many.
    pub limit: usize,
    /// 0–0.99.
    pub damping: f64,
}

impl Question {
    /// Anything that comes to mind.
    #[must_use]
    pub fn new(text: &str, limit: usize) -> Self {
        Self { text: text.to_owned(), filter: EpisodeFilter::default(), limit, damping: DAMPING }
    }
}

/// What comes to mind, and what could not be done.
///
/// # Errors
/// When the store cannot be read or the damping is out of range.
pub fn recall(
    question: Question,
    reader: &Reader,
    loaded: &Loaded,
    now: Stamp,
) -> anyhow::Result<(Recollection, Vec<String>)> {
    let mut notes = Vec::new();
    let vector = search::vector_of_text(&question.text, reader, loaded, now, &mut notes)?;
    let query = RecallQuery {
        text: question.text,
        vectors: vector.into_iter().collect(),
        marks: loaded.config.search.clone(),
        filter: question.filter,
        now: now.utc,
        time_zone: TimeZone::system(),
        limit: question.limit,
        damping: question.damping,
    };
    Ok((reader.recollect(&mut Similarity::open(&loaded.data_dir), &query)?, notes))
}

/// The episodes alone, for what is recalled beside other things.
///
/// # Errors
/// As [`recall`].
pub fn episodes(
    text: &str,
    limit: usize,
    reader: &Reader,
    loaded: &Loaded,
    now: Stamp,
) -> anyhow::Result<Vec<StoredEpisode>> {
    let (recollection, _) = recall(Question::new(text, limit), reader, loaded, now)?;
    Ok(recollection.found.into_iter().map(|recalled| recalled.episode).collect())
}

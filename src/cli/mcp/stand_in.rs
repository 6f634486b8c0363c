//! Wiring point: stands in for `Reader::search` and `Reader::facts` of DESIGN section 5, with what the store can do today.
//!
//! Search: filters, then all words of the text, the newest first. Facts: those of the newest episodes.

use crate::domain::time::Timestamp;
use crate::memory::detail::Edge;
use crate::memory::query::EpisodeFilter;
use crate::memory::query::Order;
use crate::memory::query::StoredEpisode;
use crate::memory::reader::Reader;

/// Episodes looked through for words.
const LOOKED_AT_MAX: usize = 5_000;

/// Episodes whose facts are looked at.
const FACT_EPISODES_MAX: usize = 500;

/// The newest episodes that pass the filter and hold every word.
pub(super) fn search(
    reader: &Reader,
    text: &str,
    filter: &EpisodeFilter,
    limit: usize,
) -> anyhow::Result<Vec<StoredEpisode>> {
    let filter = EpisodeFilter { order: Order::NewestFirst, limit: Some(LOOKED_AT_MAX), ..filter.clone() };
    let words: Vec<String> = text
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let has_all = |row: &StoredEpisode| {
        let content = row.episode.content.to_lowercase();
        words.iter().all(|word| content.contains(word.as_str()))
    };
    Ok(reader.episodes(&filter)?.into_iter().filter(has_all).take(limit).collect())
}

/// Facts about the entity that hold at the instant, newest episode first.
pub(super) fn facts(
    reader: &Reader,
    entity: Option<&str>,
    as_of: Option<Timestamp>,
    limit: usize,
) -> anyhow::Result<Vec<Edge>> {
    let filter =
        EpisodeFilter { order: Order::NewestFirst, limit: Some(FACT_EPISODES_MAX), ..EpisodeFilter::default() };
    let entity = entity.map(str::to_lowercase);
    let is_about = |edge: &Edge| {
        let names = [&edge.subject.0, &edge.object.0];
        entity.as_ref().is_none_or(|entity| names.iter().any(|name| name.to_lowercase() == *entity))
    };
    let holds = |edge: &Edge| as_of.is_none_or(|at| edge.valid_from <= at && edge.valid_to.is_none_or(|end| at < end));
    let mut found = Vec::new();
    for row in reader.episodes(&filter)? {
        let Some(detail) = reader.episode(row.episode.id)? else { continue };
        found.extend(detail.edges.into_iter().filter(|edge| is_about(edge) && holds(edge)));
        if found.len() >= limit {
            break;
        }
    }
    found.truncate(limit);
    Ok(found)
}

//! Links of episodes that happened together.
//!
//! In: an episode just stored. Out: rows of `links` with reason `co_occurrence`.
//!
//! ```text
//! camera       |--scene--|
//! microphone        |dog|            overlapping spans of other modalities of the same device are linked,
//! gps                       |-trip   and so are starts at most 5 s apart
//! ```
//!
//! A span counts as at least [`START_WINDOW_MS`] long, which makes both rules one. The score is the shared part of the two
//! spans over their union. A node has at most [`CO_OCCURRENCE_LINKS_MAX`] links; a full one drops its weakest (ties by id)
//! on both sides, or does not accept. The same appends in the same order give the same links; another order may keep
//! others, within the same bounds.
//!
//! Cost: a bounded number of index steps, however large the store is (see [`candidates`]).

use crate::domain::episode::Episode;
use crate::domain::modality::Modality;
use crate::domain::time::ClockQuality;
use rusqlite::Connection;

/// Starts at most this far apart count as together.
pub const START_WINDOW_MS: i64 = 5_000;

/// Most co-occurrence links of one episode.
pub const CO_OCCURRENCE_LINKS_MAX: usize = 8;

/// Most candidates looked at per class of span length and side.
const CANDIDATES_MAX: usize = 64;

/// Upper ends of the span classes in ms, as in the generated column `span_class`; the last class has none.
pub(crate) const SPAN_CLASS_MS_MAX: [i64; 6] = [START_WINDOW_MS, 60_000, 600_000, 3_600_000, 28_800_000, 259_200_000];

/// The reason of these links.
pub const CO_OCCURRENCE: &str = "co_occurrence";

/// An episode that may be linked.
#[derive(Debug, Clone, PartialEq)]
struct Candidate {
    id: String,
    score: f64,
}

/// What of an episode decides its links.
#[derive(Debug, Clone, Copy)]
struct Span<'a> {
    episode: &'a Episode,
    start: i64,
    end: i64,
}

/// Replaces the co-occurrence links of an episode that is stored as `episode`.
pub(crate) fn relink(connection: &Connection, episode: &Episode) -> rusqlite::Result<()> {
    // A summary of a day happened together with nothing.
    if episode.modality == Modality::Gist {
        return Ok(());
    }
    let id = episode.id.to_string();
    connection
        .prepare_cached("DELETE FROM links WHERE reason = ?2 AND (a = ?1 OR b = ?1)")?
        .execute((&id, CO_OCCURRENCE))?;
    let start = episode.timestamp.as_millis();
    let span = Span { episode, start, end: widened_end(start, episode.ended_at.as_millis()) };
    let mut found = candidates(connection, &id, span)?;
    found.sort_by(|one, other| other.score.total_cmp(&one.score).then_with(|| one.id.cmp(&other.id)));
    let mut accepted = 0;
    for candidate in found {
        if accepted == CO_OCCURRENCE_LINKS_MAX {
            break;
        }
        accepted += usize::from(offer(connection, &id, &candidate)?);
    }
    Ok(())
}

const fn widened_end(start: i64, end: i64) -> i64 {
    let least = start.saturating_add(START_WINDOW_MS);
    if end > least { end } else { least }
}

/// Shared part over union of two widened spans.
#[expect(clippy::cast_precision_loss, reason = "spans stay far below 2^53 ms")]
fn score(one: (i64, i64), other: (i64, i64)) -> f64 {
    let shared = one.1.min(other.1) - one.0.max(other.0);
    let union = one.1.max(other.1) - one.0.min(other.0);
    shared.max(0) as f64 / union.max(1) as f64
}

/// Episodes whose widened spans touch this one's. A span that began earlier and still runs is found without looking at
/// all that began earlier: within one class of lengths it cannot have begun more than the class's longest length ago.
fn candidates(connection: &Connection, id: &str, span: Span<'_>) -> rusqlite::Result<Vec<Candidate>> {
    let mut found = Vec::new();
    let earliest_of_class = SPAN_CLASS_MS_MAX.map(|longest| span.start.saturating_sub(longest));
    for (class, earliest) in (0_i64..).zip(earliest_of_class.into_iter().chain([i64::MIN])) {
        let later = (span.start, span.end, "ASC");
        let earlier = (earliest, span.start.saturating_sub(1), "DESC");
        for (from, to, order) in [later, earlier] {
            found.extend(scan(connection, id, span, class, (from, to), order)?);
        }
    }
    Ok(found)
}

fn scan(
    connection: &Connection,
    id: &str,
    span: Span<'_>,
    class: i64,
    (from, to): (i64, i64),
    order: &str,
) -> rusqlite::Result<Vec<Candidate>> {
    let sql = format!(
        "SELECT id, timestamp, ended_at FROM episodes
         WHERE device_id = ?1 AND span_class = ?2 AND timestamp BETWEEN ?3 AND ?4
           AND max(ended_at, timestamp + {START_WINDOW_MS}) >= ?5 AND modality NOT IN (?6, 'gist') AND id <> ?7
           AND (boot_id = ?8 OR (?9 AND clock_quality <> 'unset'))
         ORDER BY timestamp {order}, id {order} LIMIT {CANDIDATES_MAX}"
    );
    let episode = span.episode;
    // While a clock is unset its times mean nothing outside their own boot.
    let is_set = episode.clock_quality != ClockQuality::Unset;
    let parameters = (
        episode.device_id.as_str(),
        class,
        from,
        to,
        span.start,
        episode.modality.as_str(),
        id,
        episode.boot_id.as_str(),
        is_set,
    );
    connection
        .prepare_cached(&sql)?
        .query_map(parameters, |row| {
            let (start, end): (i64, i64) = (row.get(1)?, row.get(2)?);
            Ok(Candidate { id: row.get(0)?, score: score((span.start, span.end), (start, widened_end(start, end))) })
        })?
        .collect()
}

/// Links `id` and the candidate if the candidate accepts: it has room, or its weakest link is weaker than this one.
fn offer(connection: &Connection, id: &str, candidate: &Candidate) -> rusqlite::Result<bool> {
    let held = links_of(connection, &candidate.id)?;
    if held.len() >= CO_OCCURRENCE_LINKS_MAX {
        let weakest =
            held.iter().min_by(|one, other| one.score.total_cmp(&other.score).then_with(|| other.id.cmp(&one.id)));
        let Some(weakest) = weakest else { return Ok(false) };
        let is_stronger = candidate.score > weakest.score
            || (candidate.score.total_cmp(&weakest.score).is_eq() && id < weakest.id.as_str());
        if !is_stronger {
            return Ok(false);
        }
        let (a, b) = ordered(&candidate.id, &weakest.id);
        connection.prepare_cached("DELETE FROM links WHERE a = ?1 AND b = ?2 AND reason = ?3")?.execute((
            a,
            b,
            CO_OCCURRENCE,
        ))?;
    }
    let (a, b) = ordered(id, &candidate.id);
    connection.prepare_cached("INSERT INTO links (a, b, reason, score) VALUES (?1, ?2, ?3, ?4)")?.execute((
        a,
        b,
        CO_OCCURRENCE,
        candidate.score,
    ))?;
    Ok(true)
}

/// The other ends of a node's co-occurrence links.
fn links_of(connection: &Connection, id: &str) -> rusqlite::Result<Vec<Candidate>> {
    connection
        .prepare_cached(
            "SELECT b, score FROM links WHERE a = ?1 AND reason = ?2
             UNION ALL SELECT a, score FROM links WHERE b = ?1 AND reason = ?2",
        )?
        .query_map((id, CO_OCCURRENCE), |row| Ok(Candidate { id: row.get(0)?, score: row.get(1)? }))?
        .collect()
}

fn ordered<'a>(one: &'a str, other: &'a str) -> (&'a str, &'a str) {
    if one < other { (one, other) } else { (other, one) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_is_the_shared_part_of_both_spans() {
        assert!((score((0, 10_000), (0, 10_000)) - 1.0).abs() < f64::EPSILON);
        assert!((score((0, 10_000), (5_000, 15_000)) - 1.0 / 3.0).abs() < 1e-12);
        assert!(score((0, 5_000), (5_000, 10_000)).abs() < f64::EPSILON);
    }

    #[test]
    fn the_classes_are_those_of_the_schema() {
        let sql = include_str!("../migrations/0001.sql");
        for (class, longest) in SPAN_CLASS_MS_MAX.iter().enumerate() {
            assert!(sql.contains(&format!("WHEN ended_at - timestamp <= {longest} THEN {class}")), "class {class}");
        }
    }
}

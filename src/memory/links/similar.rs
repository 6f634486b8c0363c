//! Links of episodes whose vectors are near each other: the storage of [`crate::recall::links`].
//!
//! In: an episode whose vectors are stored. Out: rows of `links` with the pair as their reason (`similar:image-text`).
//! Neighbours are looked for in each space the episode has a vector in, and in those of the other kinds of the same model.
//! Which rows are near comes from the writer's graphs, how near from the stored vectors themselves.
//!
//! Cost: a look into each graph of a space, [`NEAR_MAX`] vectors and as many times [`LINKS_MAX`] rows of `links`.
//! Never: compares vectors of different models.

use crate::domain::episode::EmbeddingKind;
use crate::domain::id::EpisodeId;
use crate::domain::id::ModelId;
use crate::memory::embedding::KINDS;
use crate::memory::revision::Context;
use crate::memory::rows;
use crate::memory::similarity;
use crate::memory::similarity::storage::Key;
use crate::recall::links;
use crate::recall::links::Answer;
use crate::recall::links::LINKS_MAX;
use crate::recall::links::Pair;
use crate::recall::links::REASON_PREFIX;
use crate::recall::links::Tie;
use rusqlite::Connection;
use rusqlite::OptionalExtension;

/// Neighbours of one vector that are compared in full: enough to find five that accept.
const NEAR_MAX: usize = 24;

/// How far the cosine of two rows of codes may be from that of their vectors. A row of codes is off by at most half a step a
/// value, √dims / 254 of its largest value: with 512 values some 0.01 each for vectors without a peak. What is further below
/// the cut is not compared in full.
const CODES_OFF_MAX: f64 = 0.05;

/// Rows a graph is asked for at most, when many of those it knows have been removed from the store.
const NEAR_ASKED_MAX: usize = 16 * NEAR_MAX;

/// What sorts after every reason of these links.
const REASON_END: &str = "similar;";

/// A vector of the episode.
struct Own {
    model_id: ModelId,
    kind: EmbeddingKind,
    vector: Vec<f32>,
}

/// Replaces the links of an episode by those its stored vectors make.
pub(crate) fn relink(connection: &Connection, context: &Context<'_>, id: &str) -> rusqlite::Result<()> {
    let lost = remove(connection, id)?;
    if !lost.is_empty() {
        context.companion.borrow_mut().removed(lost);
    }
    fill(connection, context, id)
}

/// Takes note of who loses a link when the episode goes. The rows of the links go with it.
pub(crate) fn before_removal(connection: &Connection, context: &Context<'_>, id: &str) -> rusqlite::Result<()> {
    let lost = linked_to(connection, id)?;
    context.companion.borrow_mut().removed(lost);
    Ok(())
}

/// Looks for links in place of those that episodes have lost or could not find, for up to `count` of them.
pub(crate) fn refill(connection: &Connection, context: &Context<'_>, count: usize) -> rusqlite::Result<()> {
    let loosened = context.companion.borrow_mut().take_loosened(count);
    loosened.iter().try_for_each(|id| fill(connection, context, id))
}

fn remove(connection: &Connection, id: &str) -> rusqlite::Result<Vec<String>> {
    let lost = linked_to(connection, id)?;
    for (one, other) in lost.iter().map(|other| ordered(id, other)) {
        connection
            .prepare_cached("DELETE FROM links WHERE a = ?1 AND b = ?2 AND reason >= ?3 AND reason < ?4")?
            .execute((one, other, REASON_PREFIX, REASON_END))?;
    }
    Ok(lost)
}

fn linked_to(connection: &Connection, id: &str) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare_cached(
            "SELECT b FROM links WHERE a = ?1 AND reason >= ?2 AND reason < ?3
             UNION SELECT a FROM links WHERE b = ?1 AND reason >= ?2 AND reason < ?3",
        )?
        .query_map((id, REASON_PREFIX, REASON_END), |row| row.get(0))?
        .collect()
}

/// Offers ties until the episode has its links or nobody is left to offer one to.
fn fill(connection: &Connection, context: &Context<'_>, id: &str) -> rusqlite::Result<()> {
    let Ok(this) = EpisodeId::parse(id) else { return Ok(()) };
    let near = near(connection, context, id)?;
    context.companion.borrow_mut().linked(id);
    let mut held = ties_of(connection, context, id)?;
    for tie in links::offers(near) {
        if held.len() >= LINKS_MAX {
            break;
        }
        if held.iter().any(|known| known.other == tie.other) {
            continue;
        }
        let other = tie.other.to_string();
        match links::answer(&ties_of(connection, context, &other)?, this, tie.strength) {
            Answer::Refuse => continue,
            Answer::Accept => {}
            Answer::AcceptInPlaceOf(weakest) => unlink(connection, &other, &weakest)?,
        }
        let (a, b) = ordered(id, &other);
        connection.prepare_cached("INSERT INTO links (a, b, reason, score) VALUES (?1, ?2, ?3, ?4)")?.execute((
            a,
            b,
            tie.pair.reason(),
            tie.cosine,
        ))?;
        held.push(tie);
    }
    Ok(())
}

fn unlink(connection: &Connection, id: &str, tie: &Tie) -> rusqlite::Result<()> {
    let other = tie.other.to_string();
    let (a, b) = ordered(id, &other);
    connection.prepare_cached("DELETE FROM links WHERE a = ?1 AND b = ?2 AND reason = ?3")?.execute((
        a,
        b,
        tie.pair.reason(),
    ))?;
    Ok(())
}

/// Everything near enough to one of the episode's vectors, as ties.
fn near(connection: &Connection, context: &Context<'_>, id: &str) -> rusqlite::Result<Vec<Tie>> {
    let mut found = Vec::new();
    for own in vectors_of(connection, id)? {
        let mut codes = vec![0; own.vector.len()];
        similarity::quantise(&own.vector, &mut codes);
        let space = |kind| Key { model_id: own.model_id.clone(), kind, dims: own.vector.len() };
        // Searches want it indexed even if it is never linked.
        context.companion.borrow_mut().catch_up(connection, &space(own.kind))?;
        for kind in KINDS {
            let Some(pair) = Pair::of(own.kind, kind).filter(|pair| can_link(context, *pair)) else { continue };
            found.extend(near_in(connection, context, (id, &own, &codes), pair, &space(kind))?);
        }
    }
    Ok(found)
}

/// Whether any cosine reaches the cut.
fn can_link(context: &Context<'_>, pair: Pair) -> bool {
    context.companion.borrow().cuts.of(pair) <= 1.0
}

fn vectors_of(connection: &Connection, id: &str) -> rusqlite::Result<Vec<Own>> {
    connection
        .prepare_cached("SELECT model_id, kind, vector FROM embeddings WHERE episode_id = ?1 ORDER BY model_id, kind")?
        .query_map([id], |row| {
            let kind = rows::named(row, 1, |name| KINDS.into_iter().find(|kind| kind.as_str() == name))?;
            let mut vector = Vec::new();
            similarity::decode(row.get_ref(2)?, &mut vector);
            Ok(Own { model_id: ModelId::new(row.get::<_, String>(0)?), kind, vector })
        })?
        .collect()
}

/// The ties of one vector in one space. Graphs also know rows that are no longer in the store; while those take the place of
/// living ones, more are asked for.
fn near_in(
    connection: &Connection,
    context: &Context<'_>,
    (id, own, codes): (&str, &Own, &[i8]),
    pair: Pair,
    key: &Key,
) -> rusqlite::Result<Vec<Tie>> {
    let mut count = NEAR_MAX;
    loop {
        let rows = context.companion.borrow_mut().near(connection, key, codes, count)?;
        let least = context.companion.borrow().cuts.of(pair) - CODES_OFF_MAX;
        let is_all = rows.len() < count || rows.last().is_some_and(|last| f64::from(last.cosine) < least);
        let (mut found, mut alive, mut gone) = (Vec::new(), 0, Vec::new());
        for row in rows.into_iter().take_while(|row| f64::from(row.cosine) >= least) {
            match compare(connection, own, row.row_id)? {
                None => gone.push(row),
                Some(_) if alive == NEAR_MAX => {}
                Some((other, cosine)) => {
                    alive += 1;
                    let strength = context.companion.borrow().cuts.strength(pair, cosine);
                    let other = EpisodeId::parse(&other).ok().filter(|_| other != id);
                    found.extend(other.zip(strength).map(|(other, strength)| Tie { other, pair, cosine, strength }));
                }
            }
        }
        context.companion.borrow_mut().gone(key, &gone);
        if alive == NEAR_MAX || is_all || count >= NEAR_ASKED_MAX {
            return Ok(found);
        }
        count *= 2;
    }
}

/// Whose the vector of that number is, and its cosine with this one; `None` when it is no longer there.
fn compare(connection: &Connection, own: &Own, row_id: i64) -> rusqlite::Result<Option<(String, f64)>> {
    let mut vector = Vec::with_capacity(own.vector.len());
    connection
        .prepare_cached("SELECT episode_id, vector FROM embeddings WHERE row_id = ?1 AND model_id = ?2")?
        .query_row((row_id, own.model_id.as_str()), |row| {
            similarity::decode(row.get_ref(1)?, &mut vector);
            // A link's score is a cosine: two equal vectors may give 1 and a rounding error more.
            let cosine = f64::from(similarity::product(&own.vector, &vector)).clamp(-1.0, 1.0);
            Ok((row.get(0)?, cosine))
        })
        .optional()
}

/// The links by likeness an episode has. One that was made with a lower cut is the weakest there is.
fn ties_of(connection: &Connection, context: &Context<'_>, id: &str) -> rusqlite::Result<Vec<Tie>> {
    let companion = context.companion.borrow();
    connection
        .prepare_cached(
            "SELECT b, reason, score FROM links WHERE a = ?1 AND reason >= ?2 AND reason < ?3
             UNION ALL SELECT a, reason, score FROM links WHERE b = ?1 AND reason >= ?2 AND reason < ?3",
        )?
        .query_map((id, REASON_PREFIX, REASON_END), |row| {
            let other = rows::id(row, 0)?;
            let pair = rows::named(row, 1, Pair::parse)?;
            let cosine = row.get(2)?;
            Ok(Tie { other, pair, cosine, strength: companion.cuts.strength(pair, cosine).unwrap_or(-1.0) })
        })?
        .collect()
}

fn ordered<'a>(one: &'a str, other: &'a str) -> (&'a str, &'a str) {
    if one < other { (one, other) } else { (other, one) }
}

#[cfg(test)]
mod tests;

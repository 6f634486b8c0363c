//! One episode with everything that belongs to it, for `percept show`.
//!
//! In: an id. Out: [`EpisodeDetail`]. Never: the bytes of vectors or media.

use crate::domain::episode::EmbeddingKind;
use crate::domain::id::EpisodeId;
use crate::domain::id::ModelId;
use crate::domain::time::Timestamp;
use crate::memory::embedding;
use crate::memory::media;
use crate::memory::media::MediaRow;
use crate::memory::media::MediaState;
use crate::memory::query;
use crate::memory::query::StoredEpisode;
use crate::memory::rows;
use rusqlite::Connection;
use rusqlite::OptionalExtension;

/// An episode and what belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct EpisodeDetail {
    /// The row.
    pub stored: StoredEpisode,
    /// Its vectors, by model and kind.
    pub embeddings: Vec<EmbeddingInfo>,
    /// Its facts, by start.
    pub edges: Vec<Edge>,
    /// Its links, strongest first.
    pub links: Vec<Link>,
    /// Its files, in the order they were handed in, those that are gone included.
    pub media: Vec<MediaRow>,
}

/// What is known of a vector without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingInfo {
    /// The model that made it.
    pub model_id: ModelId,
    /// What it was made from.
    pub kind: EmbeddingKind,
    /// Number of values.
    pub dims: u32,
}

/// A fact as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// Its id.
    pub id: String,
    /// Text and type of the subject.
    pub subject: (String, String),
    /// The relation.
    pub relation: String,
    /// Text and type of the object.
    pub object: (String, String),
    /// The sentence.
    pub fact: String,
    /// From when it holds.
    pub valid_from: Timestamp,
    /// Until when; `None` while it holds.
    pub valid_to: Option<Timestamp>,
}

/// A link to another episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// The other end.
    pub other: EpisodeId,
    /// Why they are linked.
    pub reason: String,
    /// How strongly, 0–1.
    pub score: f64,
}

/// The episode, if it is there.
pub(crate) fn episode(connection: &Connection, id: EpisodeId) -> rusqlite::Result<Option<EpisodeDetail>> {
    let id = id.to_string();
    let sql = format!(
        "SELECT {} FROM episodes AS e LEFT JOIN strength AS s ON s.episode_id = e.id WHERE e.id = ?1",
        query::columns()
    );
    let Some(stored) = connection.prepare_cached(&sql)?.query_row([&id], query::read).optional()? else {
        return Ok(None);
    };
    Ok(Some(EpisodeDetail {
        stored,
        embeddings: embeddings(connection, &id)?,
        edges: edges(connection, &id)?,
        links: links(connection, &id)?,
        media: media_of(connection, &id)?,
    }))
}

fn embeddings(connection: &Connection, id: &str) -> rusqlite::Result<Vec<EmbeddingInfo>> {
    connection
        .prepare_cached("SELECT model_id, kind, dims FROM embeddings WHERE episode_id = ?1 ORDER BY model_id, kind")?
        .query_map([id], |row| {
            let kind = rows::named(row, 1, |name| embedding::KINDS.into_iter().find(|kind| kind.as_str() == name))?;
            Ok(EmbeddingInfo { model_id: ModelId::new(row.get::<_, String>(0)?), kind, dims: row.get(2)? })
        })?
        .collect()
}

fn edges(connection: &Connection, id: &str) -> rusqlite::Result<Vec<Edge>> {
    connection
        .prepare_cached(
            "SELECT k.id, s.text, s.node_type, k.relation, d.text, d.node_type, k.fact, k.valid_from, k.valid_to
             FROM kg_edges AS k JOIN kg_nodes AS s ON s.id = k.src_id JOIN kg_nodes AS d ON d.id = k.dst_id
             WHERE k.source_episode_id = ?1 ORDER BY k.valid_from, k.relation, s.text, d.text, k.id",
        )?
        .query_map([id], |row| {
            Ok(Edge {
                id: row.get(0)?,
                subject: (row.get(1)?, row.get(2)?),
                relation: row.get(3)?,
                object: (row.get(4)?, row.get(5)?),
                fact: row.get(6)?,
                valid_from: Timestamp::from_millis(row.get(7)?),
                valid_to: row.get::<_, Option<i64>>(8)?.map(Timestamp::from_millis),
            })
        })?
        .collect()
}

fn links(connection: &Connection, id: &str) -> rusqlite::Result<Vec<Link>> {
    connection
        .prepare_cached(
            "SELECT b, reason, score FROM links WHERE a = ?1 UNION ALL SELECT a, reason, score FROM links WHERE b = ?1
             ORDER BY 3 DESC, 1, 2",
        )?
        .query_map([id], |row| {
            let other = rows::named(row, 0, |text| EpisodeId::parse(text).ok())?;
            Ok(Link { other, reason: row.get(1)?, score: row.get(2)? })
        })?
        .collect()
}

fn media_of(connection: &Connection, id: &str) -> rusqlite::Result<Vec<MediaRow>> {
    connection
        .prepare_cached(
            "SELECT m.hash, m.path, m.bytes, m.kind, m.state FROM episode_media AS e JOIN media AS m ON m.hash = e.hash
             WHERE e.episode_id = ?1 ORDER BY e.ordinal",
        )?
        .query_map([id], |row| {
            let kind = rows::named(row, 3, |name| media::KINDS.into_iter().find(|kind| kind.as_str() == name))?;
            let bytes = row.get::<_, i64>(2)?.unsigned_abs();
            let state = rows::named(row, 4, MediaState::parse)?;
            Ok(MediaRow { hash: row.get(0)?, path: row.get(1)?, bytes, kind, state })
        })?
        .collect()
}

//! The row of an episode: its columns to [`Episode`] and back.
//!
//! In: an episode, or a row. Out: the other. Never: decides what is stored.

use crate::domain::episode::Episode;
use crate::domain::episode::Metadata;
use crate::domain::id::BootId;
use crate::domain::id::DeviceId;
use crate::domain::id::EpisodeId;
use crate::domain::id::ExternalId;
use crate::domain::id::SessionId;
use crate::domain::id::SourceId;
use crate::domain::modality::DecayClass;
use crate::domain::modality::Modality;
use crate::domain::time::ClockQuality;
use crate::domain::time::Timestamp;
use crate::memory::revision::Context;
use rusqlite::Connection;
use rusqlite::OptionalExtension;
use rusqlite::Row;
use rusqlite::types::Type;

/// The columns [`read`] expects, in its order, of a table called `e`.
pub(crate) const COLUMNS: &str = "e.id, e.external_id, e.device_id, e.session_id, e.source, e.timestamp, e.ended_at, \
     e.boot_id, e.monotonic_ms, e.clock_quality, e.modality, e.tool_name, e.content, e.importance, e.decay_class, e.metadata";

/// How many columns [`COLUMNS`] names.
pub(crate) const COLUMN_COUNT: usize = 16;

/// Every clock quality, for reading names back.
pub(crate) const QUALITIES: [ClockQuality; 4] =
    [ClockQuality::Unset, ClockQuality::Rtc, ClockQuality::Network, ClockQuality::Gps];

/// Adds the row.
pub(crate) fn insert(
    connection: &Connection,
    context: &Context<'_>,
    episode: &Episode,
    digest: &[u8],
    revision: i64,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO episodes (id, external_id, device_id, store_id, session_id, source, timestamp, ended_at, boot_id,
               monotonic_ms, clock_quality, modality, tool_name, content, importance, decay_class, metadata, digest,
               stored_at, revision)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)",
        )?
        .execute(rusqlite::params![
            episode.id.to_string(),
            episode.external_id.as_ref().map(ExternalId::as_str),
            episode.device_id.as_str(),
            context.store_id,
            episode.session_id.as_str(),
            episode.source.as_str(),
            episode.timestamp.as_millis(),
            episode.ended_at.as_millis(),
            episode.boot_id.as_str(),
            episode.monotonic_ms,
            episode.clock_quality.as_str(),
            episode.modality.as_str(),
            episode.tool_name,
            episode.content,
            episode.importance,
            episode.decay_class.as_str(),
            json(&episode.metadata),
            digest,
            context.stored_at.as_millis(),
            revision,
        ])?;
    Ok(())
}

/// Replaces what may change of a stored row. Its ids, importance and decay class stay: a stored row never changes
/// class because defaults changed.
pub(crate) fn update(
    connection: &Connection,
    context: &Context<'_>,
    episode: &Episode,
    digest: &[u8],
    revision: i64,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE episodes SET external_id = ?2, source = ?3, timestamp = ?4, ended_at = ?5, boot_id = ?6,
               monotonic_ms = ?7, clock_quality = ?8, modality = ?9, tool_name = ?10, content = ?11, metadata = ?12,
               digest = ?13, stored_at = ?14, revision = ?15 WHERE id = ?1",
        )?
        .execute(rusqlite::params![
            episode.id.to_string(),
            episode.external_id.as_ref().map(ExternalId::as_str),
            episode.source.as_str(),
            episode.timestamp.as_millis(),
            episode.ended_at.as_millis(),
            episode.boot_id.as_str(),
            episode.monotonic_ms,
            episode.clock_quality.as_str(),
            episode.modality.as_str(),
            episode.tool_name,
            episode.content,
            json(&episode.metadata),
            digest,
            context.stored_at.as_millis(),
            revision,
        ])?;
    Ok(())
}

/// A JSON object as text.
pub(crate) fn json(metadata: &Metadata) -> String {
    serde_json::Value::Object(metadata.clone()).to_string()
}

/// One stored episode.
pub(crate) fn load(connection: &Connection, id: &str) -> rusqlite::Result<Option<Episode>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM episodes AS e WHERE e.id = ?1"))?
        .query_row([id], read)
        .optional()
}

/// The episode in a row that begins with [`COLUMNS`]. Broken metadata reads as an empty object: another program's
/// mistake in one field must not hide the row.
pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Episode> {
    Ok(Episode {
        id: id(row, 0)?,
        external_id: row.get::<_, Option<String>>(1)?.map(ExternalId::new),
        device_id: DeviceId::new(row.get::<_, String>(2)?),
        session_id: SessionId::new(row.get::<_, String>(3)?),
        source: SourceId::new(row.get::<_, String>(4)?),
        timestamp: Timestamp::from_millis(row.get(5)?),
        ended_at: Timestamp::from_millis(row.get(6)?),
        boot_id: BootId::new(row.get::<_, String>(7)?),
        monotonic_ms: row.get(8)?,
        clock_quality: quality(row, 9)?,
        modality: named(row, 10, Modality::parse)?,
        tool_name: row.get(11)?,
        content: row.get(12)?,
        importance: row.get(13)?,
        decay_class: named(row, 14, DecayClass::parse)?,
        metadata: serde_json::from_str(&row.get::<_, String>(15)?).unwrap_or_default(),
    })
}

/// The episode id in a column.
pub(crate) fn id(row: &Row<'_>, column: usize) -> rusqlite::Result<EpisodeId> {
    EpisodeId::parse(&row.get::<_, String>(column)?).map_err(|error| unreadable(column, Box::new(error)))
}

/// The clock quality in a column.
pub(crate) fn quality(row: &Row<'_>, column: usize) -> rusqlite::Result<ClockQuality> {
    named(row, column, |name| QUALITIES.into_iter().find(|quality| quality.as_str() == name))
}

/// The value whose name stands in a column.
pub(crate) fn named<T>(row: &Row<'_>, column: usize, parse: impl Fn(&str) -> Option<T>) -> rusqlite::Result<T> {
    let name: String = row.get(column)?;
    parse(&name).ok_or_else(|| unreadable(column, format!("{name:?} is not known to this version").into()))
}

fn unreadable(column: usize, cause: Box<dyn std::error::Error + Send + Sync>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, cause)
}

//! Counts of what the store holds, for `percept stats`.
//!
//! In: a connection. Out: [`Stats`], with names sorted. Never: an estimate.

use crate::domain::time::Timestamp;
use rusqlite::Connection;

/// What the store holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stats {
    /// All episodes.
    pub episodes: u64,
    /// Episodes per modality, sorted by name.
    pub by_modality: Vec<(String, u64)>,
    /// Episodes per decay class, sorted by name.
    pub by_decay_class: Vec<(String, u64)>,
    /// Vectors per (model, kind), sorted.
    pub vectors: Vec<((String, String), u64)>,
    /// Coverage per (sensor, reason), sorted.
    pub coverage: Vec<CoverageStats>,
    /// Nodes of the graph.
    pub nodes: u64,
    /// Edges of the graph.
    pub edges: u64,
    /// Links per reason, sorted by name.
    pub links: Vec<(String, u64)>,
    /// Kept files.
    pub media_files: u64,
    /// Their bytes.
    pub media_bytes: u64,
    /// Bytes of the database that are in use.
    pub database_bytes: u64,
    /// Capture time of the earliest episode.
    pub first: Option<Timestamp>,
    /// Capture time of the latest one.
    pub last: Option<Timestamp>,
    /// Sessions per state (`done`, `running`), sorted by name.
    pub sessions: Vec<(String, u64)>,
    /// Tombstones.
    pub tombstones: u64,
    /// Synced rows that central has not acknowledged.
    pub pending: u64,
}

/// How blind one sensor was for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoverageStats {
    /// The sensor.
    pub sensor: String,
    /// Why.
    pub reason: String,
    /// How many intervals.
    pub rows: u64,
    /// Their length together, in milliseconds.
    pub total_ms: u64,
}

/// Counts everything.
pub(crate) fn stats(connection: &Connection) -> rusqlite::Result<Stats> {
    let number = |sql: &str| number(connection, sql);
    let instant = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
    Ok(Stats {
        episodes: number("SELECT count(*) FROM episodes")?,
        by_modality: groups(connection, "SELECT modality, count(*) FROM episodes GROUP BY 1 ORDER BY 1")?,
        by_decay_class: groups(connection, "SELECT decay_class, count(*) FROM episodes GROUP BY 1 ORDER BY 1")?,
        vectors: vectors(connection)?,
        coverage: coverage(connection)?,
        nodes: number("SELECT count(*) FROM kg_nodes")?,
        edges: number("SELECT count(*) FROM kg_edges")?,
        links: groups(connection, "SELECT reason, count(*) FROM links GROUP BY 1 ORDER BY 1")?,
        media_files: number("SELECT count(*) FROM media WHERE state = 'kept'")?,
        media_bytes: media_bytes(connection)?,
        database_bytes: database_bytes(connection)?.1,
        first: instant("SELECT min(timestamp) FROM episodes")?.map(Timestamp::from_millis),
        last: instant("SELECT max(timestamp) FROM episodes")?.map(Timestamp::from_millis),
        sessions: groups(connection, "SELECT state, count(*) FROM sessions GROUP BY 1 ORDER BY 1")?,
        tombstones: number("SELECT count(*) FROM tombstones")?,
        pending: pending(connection)?,
    })
}

/// Bytes of kept files.
pub(crate) fn media_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    number(connection, MEDIA_BYTES)
}

/// Synced rows that central has not acknowledged: one look along each index of pending rows.
pub(crate) fn pending(connection: &Connection) -> rusqlite::Result<u64> {
    number(connection, PENDING)
}

/// Bytes of the database's file: in all, and without the pages that are free.
pub(crate) fn database_bytes(connection: &Connection) -> rusqlite::Result<(u64, u64)> {
    let page_bytes = number(connection, "SELECT page_size FROM pragma_page_size")?;
    let pages = number(connection, "SELECT page_count FROM pragma_page_count")?;
    let free = number(connection, "SELECT freelist_count FROM pragma_freelist_count")?;
    Ok((pages * page_bytes, pages.saturating_sub(free) * page_bytes))
}

fn number(connection: &Connection, sql: &str) -> rusqlite::Result<u64> {
    connection.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
}

/// Sum over the index of kept files.
pub(crate) const MEDIA_BYTES: &str = "SELECT coalesce(sum(bytes), 0) FROM media WHERE state = 'kept'";

/// Count over the indexes of pending rows.
pub(crate) const PENDING: &str = "SELECT (SELECT count(*) FROM episodes WHERE acked_revision < revision)
    + (SELECT count(*) FROM strength WHERE acked_revision < revision)
    + (SELECT count(*) FROM kg_edges WHERE acked_revision < revision)
    + (SELECT count(*) FROM coverage WHERE acked_revision < revision)
    + (SELECT count(*) FROM media WHERE acked_revision < revision)
    + (SELECT count(*) FROM tombstones WHERE acked_revision < revision)";

fn groups(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<(String, u64)>> {
    connection.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))?.collect()
}

fn vectors(connection: &Connection) -> rusqlite::Result<Vec<((String, String), u64)>> {
    connection
        .prepare("SELECT model_id, kind, count(*) FROM embeddings GROUP BY 1, 2 ORDER BY 1, 2")?
        .query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get::<_, i64>(2)?.unsigned_abs())))?
        .collect()
}

fn coverage(connection: &Connection) -> rusqlite::Result<Vec<CoverageStats>> {
    connection
        .prepare(r#"SELECT sensor, reason, count(*), sum("to" - "from") FROM coverage GROUP BY 1, 2 ORDER BY 1, 2"#)?
        .query_map([], |row| {
            Ok(CoverageStats {
                sensor: row.get(0)?,
                reason: row.get(1)?,
                rows: row.get::<_, i64>(2)?.unsigned_abs(),
                total_ms: row.get::<_, i64>(3)?.max(0).unsigned_abs(),
            })
        })?
        .collect()
}

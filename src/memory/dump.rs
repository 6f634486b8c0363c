//! Everything a store remembers, as ordered text, so that two stores can be compared line by line.
//!
//! In: a connection. Out: one line per row, sorted by what the row says. Left out is what differs between two stores
//! that remember the same: store_id, stored_at, row numbers, revisions, and the store's own device id.
//! Never: binary. Vectors appear as model, kind, length and digest.

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use std::fmt::Write;

/// Each table's heading and the rows of the dump. Orders name only columns that are shown.
const TABLES: [(&str, &str); 12] = [
    (
        "episodes",
        "SELECT id, external_id, device_id, session_id, source, timestamp, ended_at, boot_id, monotonic_ms, clock_quality,
           modality, tool_name, importance, decay_class, content, metadata FROM episodes ORDER BY timestamp, id",
    ),
    ("strength", "SELECT episode_id, strength FROM strength ORDER BY episode_id"),
    (
        "embeddings",
        "SELECT episode_id, model_id, kind, dims, vector FROM embeddings ORDER BY episode_id, model_id, kind",
    ),
    ("kg_nodes", "SELECT node_type, text FROM kg_nodes ORDER BY node_type, text"),
    (
        "kg_edges",
        "SELECT k.source_episode_id, s.node_type, s.text, k.relation, d.node_type, d.text, k.fact, k.edge_type, k.modality,
           k.valid_from, k.valid_to, k.stated_to
         FROM kg_edges AS k JOIN kg_nodes AS s ON s.id = k.src_id JOIN kg_nodes AS d ON d.id = k.dst_id
         ORDER BY k.source_episode_id, k.id",
    ),
    (LINKS, "SELECT a, b, reason, score FROM links ORDER BY a, b, reason"),
    (
        "coverage",
        r#"SELECT id, device_id, session_id, sensor, "from", "to", state, reason, detail, boot_id, from_monotonic_ms,
           clock_quality FROM coverage ORDER BY "from", sensor, id"#,
    ),
    ("media", "SELECT hash, path, bytes, kind FROM media ORDER BY hash"),
    ("episode_media", "SELECT episode_id, ordinal, hash FROM episode_media ORDER BY episode_id, ordinal"),
    (
        "sessions",
        "SELECT session_id, device_id, boot_id, digest, started_at, clock_quality, state, counts FROM sessions
         ORDER BY session_id, device_id",
    ),
    (
        "clock_corrections",
        "SELECT device_id, scope, scope_id, before_monotonic_ms, delta_ms, clock_quality FROM clock_corrections
         ORDER BY device_id, scope, scope_id, before_monotonic_ms",
    ),
    ("tombstones", "SELECT kind, id, reason, device_id FROM tombstones ORDER BY kind, id"),
];

/// The heading of the one section that may depend on the order of appends.
const LINKS: &str = "links";

/// The whole store as text.
pub(crate) fn dump(connection: &Connection) -> rusqlite::Result<String> {
    let mut text = String::new();
    for (heading, sql) in TABLES {
        section(connection, heading, sql, &mut text)?;
    }
    Ok(text)
}

fn section(connection: &Connection, heading: &str, sql: &str, text: &mut String) -> rusqlite::Result<()> {
    text.push_str("# ");
    text.push_str(heading);
    text.push('\n');
    let mut statement = connection.prepare(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            if column > 0 {
                text.push_str(" | ");
            }
            value(row.get_ref(column)?, text);
        }
        text.push('\n');
    }
    Ok(())
}

fn value(value: ValueRef<'_>, text: &mut String) {
    // Writing to a String cannot fail.
    let _ = match value {
        ValueRef::Null => write!(text, "-"),
        ValueRef::Integer(number) => write!(text, "{number}"),
        ValueRef::Real(number) => write!(text, "{number:?}"),
        ValueRef::Text(bytes) => write!(text, "{}", String::from_utf8_lossy(bytes).replace('\n', "\\n")),
        ValueRef::Blob(bytes) => write!(text, "blake3:{}", blake3::hash(bytes).to_hex()),
    };
}

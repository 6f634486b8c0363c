//! The tables a salvage copies, in an order in which each row finds what it refers to, and the rules its rows must keep.
//!
//! In: a row of a damaged file. Out: whether it may be stored. The schema's own constraints come on top.
//! Full text is not copied: it is made from the episodes by the schema's triggers.

use crate::domain::episode::Embedding;
use crate::domain::id::EpisodeId;
use crate::domain::id::ModelId;
use crate::domain::modality::DecayClass;
use crate::domain::modality::Modality;
use crate::memory::embedding;
use crate::memory::media;
use crate::memory::record;
use crate::memory::rows;
use rusqlite::Connection;
use rusqlite::types::Value;

/// In which order a table's rows stand.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    /// By row number.
    RowNumber,
    /// By these columns (`WITHOUT ROWID`).
    Key(&'static [&'static str]),
}

/// A table.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) order: Order,
    pub(super) columns: &'static [&'static str],
    /// Whether the row would be accepted today.
    pub(super) is_sound: fn(&RowView<'_>) -> bool,
}

impl Table {
    pub(super) fn insert_sql(&self, columns: &[&str]) -> String {
        let names: Vec<String> = columns.iter().map(|column| format!("\"{column}\"")).collect();
        let places: Vec<String> = (1..=columns.len()).map(|number| format!("?{number}")).collect();
        format!("INSERT INTO {} ({}) VALUES ({})", self.name, names.join(", "), places.join(", "))
    }
}

/// A row with the names of its columns.
pub(super) struct RowView<'a> {
    pub(super) columns: &'a [&'a str],
    pub(super) values: &'a [Value],
}

impl RowView<'_> {
    fn value(&self, column: &str) -> Option<&Value> {
        self.columns.iter().position(|name| *name == column).and_then(|place| self.values.get(place))
    }

    fn text(&self, column: &str) -> Option<&str> {
        if let Some(Value::Text(text)) = self.value(column) { Some(text) } else { None }
    }

    fn number(&self, column: &str) -> Option<i64> {
        if let Some(Value::Integer(number)) = self.value(column) { Some(*number) } else { None }
    }

    fn blob(&self, column: &str) -> Option<&[u8]> {
        if let Some(Value::Blob(bytes)) = self.value(column) { Some(bytes) } else { None }
    }

    fn is_real_within(&self, column: &str, least: f64, most: f64) -> bool {
        matches!(self.value(column), Some(Value::Real(value)) if (least..=most).contains(value))
    }

    fn is_id(&self, column: &str) -> bool {
        self.text(column).is_some_and(|text| EpisodeId::parse(text).is_ok())
    }

    fn is_span(&self, from: &str, to: &str) -> bool {
        matches!((self.number(from), self.number(to)), (Some(from), Some(to)) if from <= to)
    }
}

/// All of them. Tombstones come first, so that what was forgotten does not come back from a damaged page.
#[rustfmt::skip]
pub(super) static TABLES: [Table; 12] = [
    Table {
        name: "tombstones",
        order: Order::Key(&["id", "kind"]),
        columns: &["id", "kind", "reason", "device_id", "store_id", "stored_at", "revision", "acked_revision"],
        is_sound: |row| row.is_id("id"),
    },
    Table {
        name: "episodes",
        order: Order::RowNumber,
        columns: &[
            "row_id", "id", "external_id", "device_id", "store_id", "session_id", "source", "timestamp", "ended_at",
            "boot_id", "monotonic_ms", "clock_quality", "modality", "tool_name", "content", "importance", "decay_class",
            "metadata", "digest", "stored_at", "revision", "acked_revision",
        ],
        is_sound: is_sound_episode,
    },
    Table {
        name: "strength",
        order: Order::Key(&["episode_id"]),
        columns: &["episode_id", "strength", "revision", "acked_revision"],
        is_sound: |row| row.is_real_within("strength", 1.0, f64::MAX),
    },
    Table {
        name: "embeddings",
        order: Order::RowNumber,
        columns: &["row_id", "episode_id", "model_id", "kind", "dims", "vector"],
        is_sound: is_sound_vector,
    },
    Table {
        name: "media",
        order: Order::RowNumber,
        columns: &["hash", "path", "bytes", "kind", "state", "store_id", "stored_at", "revision", "acked_revision"],
        is_sound: is_sound_media,
    },
    Table {
        name: "episode_media",
        order: Order::Key(&["episode_id", "ordinal"]),
        columns: &["episode_id", "hash", "ordinal"],
        is_sound: |_| true,
    },
    Table {
        name: "kg_nodes",
        order: Order::RowNumber,
        columns: &["id", "text", "node_type"],
        is_sound: |_| true,
    },
    Table {
        name: "kg_edges",
        order: Order::RowNumber,
        columns: &[
            "id", "src_id", "dst_id", "relation", "fact", "edge_type", "source_episode_id", "modality", "valid_from",
            "valid_to", "stated_to", "store_id", "revision", "acked_revision",
        ],
        is_sound: |row| row.is_id("id"),
    },
    Table {
        name: "links",
        order: Order::Key(&["a", "b", "reason"]),
        columns: &["a", "b", "reason", "score"],
        is_sound: |row| row.is_real_within("score", -1.0, 1.0),
    },
    Table {
        name: "coverage",
        order: Order::RowNumber,
        columns: &[
            "id", "device_id", "store_id", "session_id", "sensor", "from", "to", "state", "reason", "detail", "boot_id",
            "from_monotonic_ms", "clock_quality", "stored_at", "revision", "acked_revision",
        ],
        is_sound: |row| row.is_id("id") && row.is_span("from", "to"),
    },
    Table {
        name: "sessions",
        order: Order::Key(&["session_id", "device_id"]),
        columns: &[
            "session_id", "device_id", "boot_id", "digest", "started_at", "clock_quality", "state", "counts", "stored_at",
        ],
        is_sound: |_| true,
    },
    Table {
        name: "clock_corrections",
        order: Order::Key(&["scope", "scope_id", "device_id", "before_monotonic_ms"]),
        columns: &["device_id", "scope", "scope_id", "before_monotonic_ms", "delta_ms", "clock_quality", "stored_at"],
        is_sound: |_| true,
    },
];

fn is_sound_episode(row: &RowView<'_>) -> bool {
    let is_short = |column: &str| row.text(column).is_some_and(|text| text.len() <= record::TEXT_BYTES_MAX);
    row.is_id("id")
        && row.is_span("timestamp", "ended_at")
        && row.number("importance").is_some_and(|importance| (0..=10).contains(&importance))
        && row.text("modality").is_some_and(|name| Modality::parse(name).is_some())
        && row.text("decay_class").is_some_and(|name| DecayClass::parse(name).is_some())
        && row.text("clock_quality").is_some_and(|name| rows::QUALITIES.iter().any(|quality| quality.as_str() == name))
        && is_short("content")
        && is_short("metadata")
        && row.blob("digest").is_some_and(|digest| digest.len() == blake3::OUT_LEN)
}

fn is_sound_vector(row: &RowView<'_>) -> bool {
    let kind = row.text("kind").and_then(|name| embedding::KINDS.into_iter().find(|kind| kind.as_str() == name));
    let (Some(kind), Some(model), Some(vector)) =
        (kind, row.text("model_id"), row.blob("vector").and_then(embedding::decode))
    else {
        return false;
    };
    let is_long_enough = row.number("dims") == i64::try_from(vector.len()).ok();
    is_long_enough && record::check_embeddings(&[Embedding { model_id: ModelId::new(model), kind, vector }]).is_none()
}

fn is_sound_media(row: &RowView<'_>) -> bool {
    let kind = row.text("kind").and_then(|name| media::KINDS.into_iter().find(|kind| kind.as_str() == name));
    let hash = row.text("hash").filter(|hash| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let (Some(kind), Some(hash)) = (kind, hash) else { return false };
    row.text("path") == Some(media::place_of(hash, kind).as_str())
        && row.number("bytes").is_some_and(|bytes| bytes >= 0)
}

/// Whether the row was forgotten or has expired.
pub(super) fn is_blocked(connection: &Connection, table: &Table, row: &RowView<'_>) -> rusqlite::Result<bool> {
    let kind = match table.name {
        "episodes" => "episode",
        "coverage" => "coverage",
        _ => return Ok(false),
    };
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM tombstones WHERE id = ?1 AND kind = ?2 AND reason IN ('expired', 'forgotten'))",
        )?
        .query_row((row.text("id"), kind), |row| row.get(0))
}

/// What every store keeps true, after rows were lost: each episode has its strength, each node an edge, each file an episode.
pub(super) const MEND: &str = "
    INSERT INTO strength (episode_id)
      SELECT id FROM episodes WHERE NOT EXISTS (SELECT 1 FROM strength WHERE episode_id = id);
    DELETE FROM kg_nodes WHERE NOT EXISTS (SELECT 1 FROM kg_edges WHERE src_id = kg_nodes.id)
      AND NOT EXISTS (SELECT 1 FROM kg_edges WHERE dst_id = kg_nodes.id);
    DELETE FROM media WHERE NOT EXISTS (SELECT 1 FROM episode_media WHERE hash = media.hash);";

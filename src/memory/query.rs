//! Finding episodes by what is known of them.
//!
//! In: an [`EpisodeFilter`] or the beginning of an id. Out: episodes, in a stable order.
//! Every condition is part of the statement, so filters come before the limit, and each has an index.
//! Never: ranks, or changes strength.

use crate::domain::episode::Episode;
use crate::domain::episode::Metadata;
use crate::domain::id::DeviceId;
use crate::domain::id::EpisodeId;
use crate::domain::id::SessionId;
use crate::domain::id::SourceId;
use crate::domain::id::StoreId;
use crate::domain::modality::DecayClass;
use crate::domain::modality::Modality;
use crate::domain::time::Timestamp;
use crate::memory::error::StoreError;
use crate::memory::rows;
use rusqlite::Connection;
use rusqlite::Row;
use rusqlite::types::Value;
use serde_json::json;
use std::path::Path;

/// Fewest digits of an id that [`resolve`] takes.
pub const PREFIX_DIGITS_MIN: usize = 4;

/// Ids named when a beginning fits several.
const AMBIGUOUS_IDS_MAX: u32 = 10;

/// Which end of the timeline comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The earliest capture first.
    #[default]
    OldestFirst,
    /// The latest capture first.
    NewestFirst,
}

/// What episodes are wanted; an empty filter is all of them.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EpisodeFilter {
    /// One of these; any when empty.
    pub modalities: Vec<Modality>,
    /// Captured at or after.
    pub since: Option<Timestamp>,
    /// Captured before.
    pub until: Option<Timestamp>,
    /// Of that run or recorded session.
    pub session: Option<SessionId>,
    /// Of that sensor.
    pub source: Option<SourceId>,
    /// Of that device.
    pub device: Option<DeviceId>,
    /// At that place (`metadata.place`, or an edge of the graph).
    pub place: Option<String>,
    /// About that person (`metadata.person`, or an edge of the graph).
    pub person: Option<String>,
    /// With that top class of sound (`metadata.sound_class`).
    pub sound_class: Option<String>,
    /// At least that loud, dBFS (`metadata.rms_db` or `rmsDb`).
    pub rms_db_min: Option<f64>,
    /// At most that loud, dBFS.
    pub rms_db_max: Option<f64>,
    /// Of that decay class.
    pub decay_class: Option<DecayClass>,
    /// With exactly these values under these keys of the metadata, as text; of a list, one of its values.
    pub metadata: Vec<(String, String)>,
    /// Which end comes first.
    pub order: Order,
    /// At most so many.
    pub limit: Option<usize>,
}

/// An episode with what the store adds to it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEpisode {
    /// The episode.
    pub episode: Episode,
    /// The store that wrote it.
    pub store_id: StoreId,
    /// When it was last written.
    pub stored_at: Timestamp,
    /// 1 and up; grows as searches return it.
    pub strength: f64,
    /// The revision of its last change.
    pub revision: i64,
}

impl StoredEpisode {
    /// All columns by name, for programs; `time` is `timestamp` as people write it.
    #[must_use]
    pub fn fields(&self) -> Metadata {
        let episode = &self.episode;
        let object = json!({
            "id": episode.id.to_string(),
            "external_id": episode.external_id.as_ref().map(|id| id.as_str()),
            "device_id": episode.device_id.as_str(),
            "store_id": self.store_id.as_str(),
            "session_id": episode.session_id.as_str(),
            "source": episode.source.as_str(),
            "timestamp": episode.timestamp.as_millis(),
            "time": episode.timestamp.to_string(),
            "ended_at": episode.ended_at.as_millis(),
            "boot_id": episode.boot_id.as_str(),
            "monotonic_ms": episode.monotonic_ms,
            "clock_quality": episode.clock_quality.as_str(),
            "stored_at": self.stored_at.as_millis(),
            "modality": episode.modality.as_str(),
            "tool_name": episode.tool_name,
            "content": episode.content,
            "importance": episode.importance,
            "decay_class": episode.decay_class.as_str(),
            "strength": self.strength,
            "metadata": episode.metadata,
        });
        object.as_object().cloned().unwrap_or_default()
    }
}

/// Conditions with their values.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    parts: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    fn compare(&mut self, column_and_operator: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.values.push(value.into());
            self.parts.push(format!("{column_and_operator} ?{}", self.values.len()));
        }
    }

    fn one_of(&mut self, column: &str, names: &[&str]) {
        if names.is_empty() {
            return;
        }
        let places: Vec<String> = (1..=names.len()).map(|number| format!("?{}", self.values.len() + number)).collect();
        self.parts.push(format!("{column} IN ({})", places.join(", ")));
        self.values.extend(names.iter().map(|name| Value::from((*name).to_owned())));
    }

    /// An episode that says so itself, or from which the graph learnt of that node.
    fn named(&mut self, column: &str, node_type: &str, name: Option<&String>) {
        let Some(name) = name else { return };
        self.values.push(Value::from(name.clone()));
        let place = self.values.len();
        self.parts.push(format!(
            "e.row_id IN (SELECT row_id FROM episodes WHERE {column} = ?{place} UNION ALL
               SELECT of.row_id FROM kg_nodes AS n JOIN kg_edges AS k ON k.src_id = n.id OR k.dst_id = n.id
                 JOIN episodes AS of ON of.id = k.source_episode_id
               WHERE n.text = ?{place} AND n.node_type = '{node_type}')"
        ));
    }

    fn metadata(&mut self, key: &str, value: &str) {
        let other_spelling = match key {
            "rms_db" => "rmsDb",
            "rmsDb" => "rms_db",
            _ => key,
        };
        if other_spelling == key {
            self.mention(&format!("\"{key}\""), key);
        }
        let number = value.parse::<f64>().ok();
        if number.is_none() {
            self.mention(value, value);
        }
        self.values.extend([key, other_spelling, value].map(|text| Value::from(text.to_owned())));
        self.values.push(number.map_or(Value::Null, Value::from));
        let last = self.values.len();
        let is = |value: &str| {
            let (text, number) = (last - 1, last);
            format!(
                "CASE {value}.type WHEN 'true' THEN ?{text} = 'true' WHEN 'false' THEN ?{text} = 'false'
                   WHEN 'null' THEN ?{text} = 'null' WHEN 'text' THEN {value}.value = ?{text}
                   WHEN 'integer' THEN {value}.value = ?{number} WHEN 'real' THEN {value}.value = ?{number} ELSE 0 END"
            )
        };
        self.parts.push(format!(
            "CASE WHEN json_valid(e.metadata) THEN EXISTS (SELECT 1 FROM json_each(e.metadata) AS m
               WHERE m.key IN (?{}, ?{}) AND ({} OR CASE m.type WHEN 'array' THEN
                 EXISTS (SELECT 1 FROM json_each(m.value) AS v WHERE {}) ELSE 0 END)) ELSE 0 END",
            last - 3,
            last - 2,
            is("m"),
            is("v")
        ));
    }

    /// Only metadata in which this stands at all: much cheaper than reading their JSON. Letters and digits have one other
    /// spelling in JSON, `\u…`; anything else has more, and is not looked for.
    fn mention(&mut self, quoted: &str, plain: &str) {
        if !plain.is_empty() && plain.chars().all(|letter| letter.is_ascii_alphanumeric() || "_- .".contains(letter)) {
            self.values.push(Value::from(quoted.to_owned()));
            self.parts.push(format!("(instr(e.metadata, ?{}) > 0 OR instr(e.metadata, '\\u') > 0)", self.values.len()));
        }
    }

    /// The `WHERE` of them, or nothing.
    pub(crate) fn sql(&self) -> String {
        if self.parts.is_empty() { String::new() } else { format!("WHERE {}", self.parts.join(" AND ")) }
    }

    /// The values of its places, in order.
    pub(crate) fn values(&self) -> &[Value] {
        &self.values
    }
}

/// The conditions of a filter on a table called `e`.
pub(crate) fn conditions(filter: &EpisodeFilter) -> Conditions {
    let text = |text: &str| text.to_owned();
    let mut conditions = Conditions::default();
    let modalities: Vec<&str> = filter.modalities.iter().map(|modality| modality.as_str()).collect();
    conditions.one_of("e.modality", &modalities);
    conditions.compare("e.timestamp >=", filter.since.map(Timestamp::as_millis));
    conditions.compare("e.timestamp <", filter.until.map(Timestamp::as_millis));
    conditions.compare("e.session_id =", filter.session.as_ref().map(|id| text(id.as_str())));
    conditions.compare("e.source =", filter.source.as_ref().map(|id| text(id.as_str())));
    conditions.compare("e.device_id =", filter.device.as_ref().map(|id| text(id.as_str())));
    conditions.named("place", "location", filter.place.as_ref());
    conditions.named("person", "person", filter.person.as_ref());
    conditions.compare("e.sound_class =", filter.sound_class.clone());
    conditions.compare("e.rms_db >=", filter.rms_db_min);
    conditions.compare("e.rms_db <=", filter.rms_db_max);
    conditions.compare("e.decay_class =", filter.decay_class.map(|class| text(class.as_str())));
    filter.metadata.iter().for_each(|(key, value)| conditions.metadata(key, value));
    conditions
}

/// The columns of a [`StoredEpisode`], for [`read`], of tables called `e` and `s`.
pub(crate) fn columns() -> String {
    format!("{}, e.store_id, e.stored_at, coalesce(s.strength, 1.0), e.revision", rows::COLUMNS)
}

/// A row of [`columns`].
pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<StoredEpisode> {
    Ok(StoredEpisode {
        episode: rows::read(row)?,
        store_id: StoreId::new(row.get::<_, String>(rows::COLUMN_COUNT)?),
        stored_at: Timestamp::from_millis(row.get(rows::COLUMN_COUNT + 1)?),
        strength: row.get(rows::COLUMN_COUNT + 2)?,
        revision: row.get(rows::COLUMN_COUNT + 3)?,
    })
}

/// The episodes that pass the filter.
pub(crate) fn episodes(connection: &Connection, filter: &EpisodeFilter) -> rusqlite::Result<Vec<StoredEpisode>> {
    let mut conditions = conditions(filter);
    let direction = match filter.order {
        Order::OldestFirst => "ASC",
        Order::NewestFirst => "DESC",
    };
    let limit = filter.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
    conditions.values.push(Value::from(limit));
    let sql = format!(
        "SELECT {} FROM episodes AS e LEFT JOIN strength AS s ON s.episode_id = e.id {}
         ORDER BY e.timestamp {direction}, e.id {direction} LIMIT ?{}",
        columns(),
        conditions.sql(),
        conditions.values.len()
    );
    connection.prepare_cached(&sql)?.query_map(rusqlite::params_from_iter(conditions.values), read)?.collect()
}

/// The id that is, or begins with, `text`; hyphens may be left out.
pub(crate) fn resolve(connection: &Connection, path: &Path, text: &str) -> Result<Option<EpisodeId>, StoreError> {
    let digits: String = text.trim().to_ascii_lowercase().chars().filter(|letter| *letter != '-').collect();
    let is_prefix =
        (PREFIX_DIGITS_MIN..=32).contains(&digits.len()) && digits.chars().all(|digit| digit.is_ascii_hexdigit());
    if !is_prefix {
        return Err(StoreError::NoId { text: text.to_owned() });
    }
    let prefix = hyphenated(&digits);
    let ids = ids_beginning_with(connection, &prefix).map_err(|error| StoreError::from_sqlite(path, error))?;
    match ids.as_slice() {
        [] => Ok(None),
        [id] => EpisodeId::parse(id)
            .map(Some)
            .map_err(|error| StoreError::Unreadable { path: path.to_path_buf(), detail: format!("{id}: {error}") }),
        _ => Err(StoreError::Ambiguous { text: text.to_owned(), ids }),
    }
}

fn hyphenated(digits: &str) -> String {
    let mut id = String::with_capacity(36);
    for (place, digit) in digits.chars().enumerate() {
        if matches!(place, 8 | 12 | 16 | 20) {
            id.push('-');
        }
        id.push(digit);
    }
    id
}

fn ids_beginning_with(connection: &Connection, prefix: &str) -> rusqlite::Result<Vec<String>> {
    // 'g' sorts after every hexadecimal digit and after the hyphen.
    connection
        .prepare_cached("SELECT id FROM episodes WHERE id >= ?1 AND id < ?1 || 'g' ORDER BY id LIMIT ?2")?
        .query_map((prefix, AMBIGUOUS_IDS_MAX), |row| row.get(0))?
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_with_or_without_hyphens() {
        assert_eq!(hyphenated("0123456789abcdef0123456789abcdef"), "01234567-89ab-cdef-0123-456789abcdef");
        assert_eq!(hyphenated("01234567"), "01234567");
        assert_eq!(hyphenated("012345678"), "01234567-8");
    }
}

//! Takes values out of a TOML table and collects what is wrong with them instead of stopping at the first mistake.

use toml::Table;
use toml::Value;

/// Names further apart than this are no misspellings of each other (Jaro–Winkler, 0 to 1).
const LIKENESS_MIN: f64 = 0.8;

/// A table under inspection.
pub(super) struct Fields<'t, 'm> {
    table: &'t Table,
    path: &'m str,
    mistakes: &'m mut Vec<String>,
}

impl<'t, 'm> Fields<'t, 'm> {
    /// Notes every key that is not `known`. `path` is what stands before the keys in messages, empty at the top.
    pub(super) fn new(table: &'t Table, path: &'m str, known: &[&str], mistakes: &'m mut Vec<String>) -> Self {
        for key in table.keys().filter(|key| !known.contains(&key.as_str())) {
            mistakes.push(format!("unknown key `{path}{key}` ({})", hint(key, path, known)));
        }
        Self { table, path, mistakes }
    }

    /// Notes that `key` is wrong.
    pub(super) fn mistake(&mut self, key: &str, what: &str) {
        self.mistakes.push(format!("`{}{key}` {what}", self.path));
    }

    /// The value at `key`, if it is there and right.
    pub(super) fn optional<T>(&mut self, key: &str, take: impl FnOnce(&'t Value) -> Result<T, String>) -> Option<T> {
        let value = self.table.get(key)?;
        take(value).map_err(|what| self.mistake(key, &what)).ok()
    }

    /// The value at `key`; its absence is a mistake.
    pub(super) fn required<T>(&mut self, key: &str, take: impl FnOnce(&'t Value) -> Result<T, String>) -> Option<T> {
        if !self.table.contains_key(key) {
            self.mistake(key, "is missing");
        }
        self.optional(key, take)
    }

    /// The tables of the list at `key`.
    pub(super) fn tables(&mut self, key: &str) -> Vec<&'t Table> {
        let list = self.optional(key, |value| {
            let list: Option<Vec<_>> = value.as_array().and_then(|list| list.iter().map(Value::as_table).collect());
            list.ok_or_else(|| "must be a list of tables".to_owned())
        });
        list.unwrap_or_default()
    }

    pub(super) fn text(value: &Value) -> Result<String, String> {
        value.as_str().map(str::to_owned).ok_or_else(|| format!("must be a text, not {}", value.type_str()))
    }

    pub(super) fn integer(value: &Value) -> Result<i64, String> {
        value.as_integer().ok_or_else(|| format!("must be a whole number, not {}", value.type_str()))
    }

    pub(super) fn table(value: &Value) -> Result<&Table, String> {
        value.as_table().ok_or_else(|| format!("must be a table, not {}", value.type_str()))
    }
}

/// Keys that are right at the top and are easily put under a stream by mistake.
const TOP: [&str; 7] = ["format", "session_id", "device_id", "boot_id", "started_at", "clock_quality", "note"];

fn hint(key: &str, path: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|known| (strsim::jaro_winkler(key, known), known))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((_, nearest)) = nearest {
        return format!("did you mean `{nearest}`?");
    }
    let place = if path.is_empty() { "session.toml" } else { path.trim_end_matches('.') };
    let list = known.iter().map(|known| format!("`{known}`")).collect::<Vec<_>>().join(", ");
    match TOP.contains(&key) {
        true => format!("{place} takes {list}; `{key}` belongs at the top"),
        false => format!("{place} takes {list}"),
    }
}

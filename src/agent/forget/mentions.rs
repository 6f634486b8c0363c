//! Where the name stands outside of percept's memory: in the config, and in files that are not percept's.
//!
//! In: a config, the data directory, an order. Out: sentences that say where. Never: changes any of it.

use crate::config::Config;
use crate::config::Loaded;
use crate::memory::forget::Order;
use std::path::Path;
use toml::Value;

/// What percept itself keeps in the data directory: beginnings of names.
const OURS: [&str; 11] = [
    ".last-run.json",
    "forgetting",
    "last-run.json",
    "media",
    "memory.db",
    "models",
    "multimodal-episodes",
    "pending",
    "percept.lock",
    "percept.sock",
    "vectors",
];

/// Files that are not ours which are looked into, at most.
const STRANGERS_MAX: usize = 1_000;

/// Largest file that is looked into, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// Every key of the config whose value has the name in it: percept would go on to recognise it. Built-in values are nobody's
/// name.
#[must_use]
pub fn config_mentions(loaded: &Loaded, order: &Order) -> Vec<String> {
    let file = loaded.file.as_ref().map_or_else(|| "the environment".to_owned(), |file| file.display().to_string());
    let mut keys = Vec::new();
    let tables = toml::Table::try_from(&loaded.config).and_then(|table| {
        let built_in = toml::Table::try_from(Config::default())?;
        Ok((Value::Table(table), Value::Table(built_in)))
    });
    if let Ok((table, built_in)) = tables {
        walk(&table, Some(&built_in), "", order, &mut keys);
    }
    keys.into_iter().map(|key| format!("{file}: {key}")).collect()
}

fn walk(value: &Value, built_in: Option<&Value>, path: &str, order: &Order, keys: &mut Vec<String>) {
    if built_in == Some(value) {
        return;
    }
    match value {
        Value::String(text) if order.is_named_in(text) => keys.push(path.to_owned()),
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                let built_in = built_in.and_then(|list| list.get(index));
                walk(value, built_in, &format!("{path}[{index}]"), order, keys);
            }
        }
        Value::Table(table) => {
            for (key, value) in table {
                let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                walk(value, built_in.and_then(|table| table.get(key)), &inner, order, keys);
            }
        }
        Value::String(_) | Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
    }
}

/// Files in the data directory that are not percept's and have the name in their own name or, if they are small, in them.
pub(super) fn strangers(data_dir: &Path, order: &Order) -> Vec<String> {
    let mut waiting: Vec<_> = std::fs::read_dir(data_dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| !OURS.iter().any(|ours| entry.file_name().to_string_lossy().starts_with(ours)))
        .map(|entry| entry.path())
        .collect();
    let (mut found, mut looked_at) = (Vec::new(), 0);
    while let Some(path) = waiting.pop()
        && looked_at < STRANGERS_MAX
    {
        looked_at += 1;
        if path.is_dir() && !path.is_symlink() {
            waiting.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if order.is_named_in(&name) || (is_small(&path) && order.is_named_in(&read(&path))) {
            found.push(format!("{}: this file is not percept's, and was left as it is", path.display()));
        }
    }
    found.sort();
    found
}

fn is_small(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.len() <= BYTES_MAX)
}

fn read(path: &Path) -> String {
    std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

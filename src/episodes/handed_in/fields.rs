//! The fields of a JSON object, taken one by one; whatever is wrong is said with the field's name.
//!
//! In: bytes, and the keys that may be there. Out: values of the right type, or a [`LineError`]. `null` is as good as absent.

use crate::domain::episode::Metadata;
use crate::episodes::handed_in::LINE_BYTES_MAX;
use crate::episodes::handed_in::NAME_BYTES_MAX;
use serde_json::Map;
use serde_json::Value;
use std::ops::RangeInclusive;

/// How near a key must be to a known one (Jaro–Winkler similarity) to be taken for a slip of it; as in the config.
const HINT_SIMILARITY_MIN: f64 = 0.7;

/// Why a line cannot be stored, in a sentence that names the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LineError(String);

impl LineError {
    /// The field and what is wrong with it.
    pub(super) fn new(path: &str, sentence: impl AsRef<str>) -> Self {
        Self(format!("{path}: {}", sentence.as_ref()))
    }

    /// A mandatory field that is not there.
    pub(super) fn missing(key: &str) -> Self {
        Self(format!("{key} is missing; a line needs tool_name, content and timestamp"))
    }

    /// A text beyond its bound.
    pub(super) fn too_long(path: &str, bytes: usize, bytes_max: usize) -> Self {
        Self(format!("{path}: {bytes} bytes are too many; the most is {bytes_max}"))
    }
}

/// An object whose fields are being taken.
#[derive(Debug)]
pub(super) struct Fields {
    map: Map<String, Value>,
    path: String,
}

impl Fields {
    /// The object of a line.
    pub(super) fn of_line(line: &[u8], keys: &[&str]) -> Result<Self, LineError> {
        if line.len() > LINE_BYTES_MAX {
            return Err(LineError::too_long("the line", line.len(), LINE_BYTES_MAX));
        }
        let text = std::str::from_utf8(line).map_err(|error| {
            LineError(format!("it is no UTF-8 text: byte {} is wrong", error.valid_up_to().saturating_add(1)))
        })?;
        let value = serde_json::from_str(text).map_err(|error| LineError(no_json(text, &error)))?;
        Self::of(value, "", keys)
    }

    /// An object inside one, at that path.
    pub(super) fn of(value: Value, path: &str, keys: &[&str]) -> Result<Self, LineError> {
        let kind = kind_of(&value);
        let Value::Object(map) = value else {
            let what = if path.is_empty() { "a line" } else { path };
            return Err(LineError(format!("{what} must be a JSON object, not {kind}")));
        };
        let fields = Self { map, path: path.to_owned() };
        match fields.map.keys().find(|key| !keys.contains(&key.as_str())) {
            Some(key) => Err(LineError::new(&fields.at(key), unknown(key, keys))),
            None => Ok(fields),
        }
    }

    /// The path of a field.
    pub(super) fn at(&self, key: &str) -> String {
        let key: String = key.chars().take(80).collect();
        if self.path.is_empty() { key } else { format!("{}.{key}", self.path) }
    }

    /// The field, taken out.
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.map.get_mut(key).map(Value::take).filter(|value| !value.is_null())
    }

    fn wrong<T>(&self, key: &str, value: &Value, wanted: &str) -> Result<T, LineError> {
        Err(LineError::new(&self.at(key), format!("it must be {wanted}, not {}", kind_of(value))))
    }

    /// A text of at most so many bytes.
    pub(super) fn text(&mut self, key: &str, bytes_max: usize) -> Result<Option<String>, LineError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) if text.len() > bytes_max => {
                Err(LineError::too_long(&self.at(key), text.len(), bytes_max))
            }
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => self.wrong(key, &other, "a text"),
        }
    }

    /// A text that names something: not empty, not long.
    pub(super) fn name(&mut self, key: &str) -> Result<Option<String>, LineError> {
        match self.text(key, NAME_BYTES_MAX)? {
            Some(name) if name.trim().is_empty() => Err(LineError::new(&self.at(key), "it is empty")),
            name => Ok(name),
        }
    }

    /// An id: a name, or a whole number, which is its digits.
    pub(super) fn id(&mut self, key: &str) -> Result<Option<String>, LineError> {
        if let Some(Value::Number(number)) = self.map.get(key)
            && !number.is_f64()
        {
            return Ok(Some(number.to_string()));
        }
        self.name(key)
    }

    /// One of a few names.
    pub(super) fn known<T>(
        &mut self,
        key: &str,
        parse: impl Fn(&str) -> Option<T>,
        names: &[&str],
    ) -> Result<Option<T>, LineError> {
        let Some(name) = self.text(key, NAME_BYTES_MAX)? else { return Ok(None) };
        match parse(&name) {
            Some(value) => Ok(Some(value)),
            None => {
                Err(LineError::new(&self.at(key), format!("{name:?} is not known; known are {}", names.join(", "))))
            }
        }
    }

    /// A whole number within a range.
    pub(super) fn whole_number(&mut self, key: &str, range: RangeInclusive<u8>) -> Result<Option<u8>, LineError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let number = millis_of(&value).filter(|_| value.as_f64().is_some_and(|number| number.fract() == 0.0));
        match number.and_then(|number| u8::try_from(number).ok()).filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None if value.is_number() => {
                let sentence = format!("{value} is not a whole number within {} to {}", range.start(), range.end());
                Err(LineError::new(&self.at(key), sentence))
            }
            None => self.wrong(key, &value, "a number"),
        }
    }

    /// Milliseconds since 1970; fractions are cut off.
    pub(super) fn millis(&mut self, key: &str) -> Result<Option<i64>, LineError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match millis_of(&value) {
            Some(millis) => Ok(Some(millis)),
            None if value.is_number() => {
                Err(LineError::new(&self.at(key), format!("{value} is no time in milliseconds since 1970")))
            }
            None => self.wrong(key, &value, "a number: milliseconds since 1970"),
        }
    }

    /// An object of at most so many bytes of JSON.
    pub(super) fn object(&mut self, key: &str, bytes_max: usize) -> Result<Option<Metadata>, LineError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Object(object)) => {
                let bytes = serde_json::to_vec(&object).map_or(usize::MAX, |json| json.len());
                if bytes > bytes_max {
                    return Err(LineError::too_long(&self.at(key), bytes, bytes_max));
                }
                Ok(Some(object))
            }
            Some(other) => self.wrong(key, &other, "a JSON object"),
        }
    }

    /// A list of at most so many elements; empty when it is not there.
    pub(super) fn list(&mut self, key: &str, length_max: usize) -> Result<Vec<Value>, LineError> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) if list.len() > length_max => {
                let sentence = format!("{} are too many; the most is {length_max}", list.len());
                Err(LineError::new(&self.at(key), sentence))
            }
            Some(Value::Array(list)) => Ok(list),
            Some(other) => self.wrong(key, &other, "a list"),
        }
    }
}

/// A number as whole milliseconds; `None` for what is no number or does not fit.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "the range is checked first")]
fn millis_of(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        (number.abs() < i64::MAX as f64 / 2.0).then_some(number.floor() as i64)
    })
}

/// What a value is, for a sentence.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn unknown(key: &str, keys: &[&str]) -> String {
    let nearest = keys
        .iter()
        .map(|name| (strsim::jaro_winkler(key, name), name))
        .filter(|(similarity, _)| *similarity >= HINT_SIMILARITY_MIN)
        .max_by(|left, right| left.0.total_cmp(&right.0));
    match nearest {
        Some((_, name)) => format!("unknown key; did you mean {name:?}?"),
        None => format!("unknown key; known are {}; anything else belongs in \"metadata\"", keys.join(", ")),
    }
}

/// Python writes NaN where JSON has no word for it: that is worth more than a column number.
fn no_json(text: &str, error: &serde_json::Error) -> String {
    let column = error.column();
    // The column counts bytes, from 1, and points at or just behind the culprit.
    let culprit = text.get(column.saturating_sub(2)..).unwrap_or_default();
    let is_number_word = ["NaN", "Infinity", "-Infinity"]
        .iter()
        .any(|word| culprit.trim_start_matches([',', '[', ':', ' ', '-']).starts_with(word.trim_start_matches('-')));
    if is_number_word {
        return format!("column {column}: NaN and Infinity are no JSON numbers; every number must be finite");
    }
    let cause = error.to_string();
    let cause = cause.split(" at line ").next().unwrap_or_default();
    format!("it is no JSON object: {cause} at column {column}")
}

//! What an audio tool measured, out of its output: prose, followed by JSON or not (DESIGN 3.2).
//!
//! In: the content, and the line's metadata. Out: `rms_db`, `sound_class`, `peak_frequencies` (Hz, at most three) and
//! `band_energy` in the metadata, whatever spelling the tool has for them. What the caller gave under these names stays.
//! Never: fails; output that says nothing adds nothing.

use crate::domain::episode::Metadata;
use serde_json::Value;
use serde_json::json;

/// Places where JSON may begin that are tried.
const STARTS_MAX: usize = 64;

/// How deep the JSON is searched.
const DEPTH_MAX: usize = 6;

/// Peaks that become metadata.
const PEAKS_MAX: usize = 3;

const LEVEL: [&str; 2] = ["rms_db", "rmsDb"];
const BANDS: [&str; 4] = ["band_energy_db", "band_energy", "bandEnergyDb", "bandEnergy"];
const PEAKS: [&str; 2] = ["peak_frequencies", "peakFrequencies"];
const SOUND_CLASS: [&str; 2] = ["sound_class", "soundClass"];
const CLASS: [&str; 2] = ["class", "label"];
const SCORE: [&str; 2] = ["score", "confidence"];
const FREQUENCY: [&str; 4] = ["frequency_hz", "frequencyHz", "frequency", "hz"];

/// Adds what is found to the metadata.
pub(super) fn describe(content: &str, metadata: &mut Metadata) {
    let sources = [json_in(content), Some(Value::Object(metadata.clone()))];
    for source in sources.iter().flatten() {
        let level = find(source, &LEVEL, Value::is_number);
        let peaks = find(source, &PEAKS, Value::is_array).and_then(first_peaks);
        let bands = find(source, &BANDS, |value| value.is_array() || value.is_object()).cloned();
        let class =
            find(source, &SOUND_CLASS, Value::is_string).cloned().or_else(|| top_class(source).map(Value::from));
        let found =
            [("rms_db", level.cloned()), ("sound_class", class), ("peak_frequencies", peaks), ("band_energy", bands)];
        for (key, value) in found {
            if let Some(value) = value {
                metadata.entry(key).or_insert(value);
            }
        }
    }
}

/// The first JSON object or list of objects in the text.
fn json_in(content: &str) -> Option<Value> {
    let starts = content.match_indices(['{', '[']).map(|(at, _)| at).take(STARTS_MAX);
    starts.filter_map(|at| serde_json::Deserializer::from_str(&content[at..]).into_iter::<Value>().next()?.ok()).find(
        |value| match value {
            Value::Object(object) => !object.is_empty(),
            Value::Array(list) => list.iter().any(Value::is_object),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        },
    )
}

/// The first value under one of these keys that is of the right kind, nearest to the top first.
fn find<'a>(value: &'a Value, keys: &[&str], fits: fn(&Value) -> bool) -> Option<&'a Value> {
    let mut level = vec![value];
    for _ in 0..DEPTH_MAX {
        for value in &level {
            let here = keys.iter().filter_map(|key| value.get(key)).find(|value| fits(value));
            if here.is_some() {
                return here;
            }
        }
        level = level.into_iter().flat_map(children).collect();
    }
    None
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(object) => object.values().collect(),
        Value::Array(list) => list.iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// The class with the greatest score, wherever objects of class and score stand. A class without a score counts when no
/// class has one.
fn top_class(value: &Value) -> Option<String> {
    let mut level = vec![value];
    let mut top: Option<(f64, &str)> = None;
    for _ in 0..DEPTH_MAX {
        for value in &level {
            let class = CLASS.iter().find_map(|key| value.get(key)?.as_str()).filter(|class| !class.is_empty());
            let score = SCORE.iter().find_map(|key| value.get(key)?.as_f64()).unwrap_or(f64::NEG_INFINITY);
            if let Some(class) = class
                && top.is_none_or(|(best, _)| score > best)
            {
                top = Some((score, class));
            }
        }
        level = level.into_iter().flat_map(children).collect();
    }
    top.map(|(_, class)| class.to_owned())
}

/// Numbers, or objects with a frequency.
fn first_peaks(list: &Value) -> Option<Value> {
    let frequency = |peak: &Value| peak.as_f64().or_else(|| FREQUENCY.iter().find_map(|key| peak.get(key)?.as_f64()));
    let peaks: Vec<f64> = list.as_array()?.iter().filter_map(frequency).take(PEAKS_MAX).collect();
    (!peaks.is_empty()).then(|| json!(peaks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(content: &str) -> Value {
        let mut metadata = Metadata::new();
        describe(content, &mut metadata);
        Value::Object(metadata)
    }

    #[test]
    fn every_spelling_gives_the_same_metadata() {
        let expected = json!({
            "rms_db": -23.5, "sound_class": "Speech", "peak_frequencies": [220.0, 440.0, 880.0], "band_energy": [-40, -30],
        });
        let outputs = [
            r#"Heard someone talk. {"rms_db": -23.5, "classes": [{"class": "Music", "score": 0.2},
               {"class": "Speech", "score": 0.9}], "peak_frequencies": [220, 440, 880, 1760], "band_energy_db": [-40, -30]}"#,
            r#"{"rmsDb": -23.5, "classes": [{"label": "Speech", "confidence": 0.9}, {"label": "Music", "confidence": 0.2}],
               "peakFrequencies": [220, 440, 880], "band_energy": [-40, -30]}"#,
            r#"Analysis {of 3 s} done:
               ```json
               {"analysis": {"rmsDb": -23.5, "spectrum": {"peak_frequencies": [{"frequency_hz": 220, "db": -3},
               {"frequency_hz": 440}, {"frequency_hz": 880}], "bandEnergyDb": [-40, -30]}}, "label": "Speech", "confidence": 0.7}
               ```"#,
        ];

        for output in outputs {
            assert_eq!(described(output), expected, "{output}");
        }
    }

    #[test]
    fn output_without_json_or_with_other_json_adds_nothing() {
        for output in ["", "It was quiet.", "{", "[1, 2, 3]", "{}", "{\"rms_db\": \"loud\", \"class\": 3}", "a {b} [c]"]
        {
            assert_eq!(described(output), json!({}), "{output}");
        }
    }

    #[test]
    fn what_the_caller_gave_stays_and_its_metadata_is_read_as_well() {
        let mut metadata = Metadata::new();
        metadata.insert("sound_class".to_owned(), "Dog".into());
        metadata.insert("rmsDb".to_owned(), json!(-12.0));

        describe(r#"{"class": "Speech", "score": 1}"#, &mut metadata);

        assert_eq!(Value::Object(metadata), json!({"sound_class": "Dog", "rmsDb": -12.0, "rms_db": -12.0}));
    }

    #[test]
    fn brackets_without_end_cost_little() {
        let steps = described(&"[{".repeat(100_000));

        assert_eq!(steps, json!({}));
    }
}

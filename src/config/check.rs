//! Finds every mistake of a config file at once.
//!
//! In: the text of a TOML file, and a table that holds every known key (the defaults, with one example
//! element in each list of tables). Out: one sentence per mistake, each naming the path of its key.
//! Never: files, the environment.

use serde::de::DeserializeOwned;
use toml::Table;
use toml::Value;

/// One mistake, in a sentence that names the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where: `camera.labels`, `people[1].addresses`.
    pub path: String,
    /// What is wrong and what would be right.
    pub sentence: String,
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.path, self.sentence)
    }
}

/// How far a key may be from a known one (Jaro–Winkler similarity) to be taken for a slip of it.
const HINT_SIMILARITY_MIN: f64 = 0.7;

/// Checks `given` against `known`, then each value alone against `T`.
///
/// # Errors
/// Every unknown key and every value that does not fit, in the order of the file.
pub fn check<T: DeserializeOwned>(given: &Table, known: &Table) -> Result<T, Vec<Mistake>> {
    let mut mistakes = Vec::new();
    unknown_keys("", given, known, known, &mut mistakes);
    if mistakes.is_empty() {
        match Value::Table(given.clone()).try_into::<T>() {
            Ok(config) => return Ok(config),
            Err(error) => mistakes.push(Mistake { path: "config".to_owned(), sentence: first_line(&error) }),
        }
    }
    let singled = wrong_values::<T>(given, known);
    if !singled.is_empty() {
        mistakes.retain(|mistake| mistake.path != "config");
        mistakes.extend(singled);
    }
    Err(mistakes)
}

fn first_line(error: &toml::de::Error) -> String {
    error.message().lines().next().unwrap_or_default().to_owned()
}

fn unknown_keys(prefix: &str, given: &Table, known: &Table, root: &Table, mistakes: &mut Vec<Mistake>) {
    for (key, value) in given {
        let path = join(prefix, key);
        match (known.get(key), value) {
            (None, _) => mistakes.push(Mistake { sentence: unknown_sentence(key, known, root), path }),
            (Some(Value::Table(inner_known)), Value::Table(inner)) => {
                unknown_keys(&path, inner, inner_known, root, mistakes);
            }
            (Some(Value::Array(examples)), Value::Array(elements)) => {
                let Some(Value::Table(example)) = examples.first() else { continue };
                for (index, element) in elements.iter().enumerate() {
                    if let Value::Table(element) = element {
                        unknown_keys(&format!("{path}[{index}]"), element, example, root, mistakes);
                    }
                }
            }
            _ => {}
        }
    }
}

fn unknown_sentence(key: &str, known: &Table, root: &Table) -> String {
    let nearest = known
        .keys()
        .map(|name| (strsim::jaro_winkler(key, name), name))
        .filter(|(similarity, _)| *similarity >= HINT_SIMILARITY_MIN)
        .max_by(|left, right| left.0.total_cmp(&right.0));
    if let Some((_, name)) = nearest {
        return format!("unknown key; did you mean {name:?}?");
    }
    let elsewhere: Vec<&str> = root
        .iter()
        .filter(|(_, table)| element_table(table).is_some_and(|table| table.contains_key(key)))
        .map(|(name, _)| name.as_str())
        .collect();
    if let Some(table) = elsewhere.first() {
        return format!("unknown key here; {key:?} belongs under [{table}]");
    }
    let names: Vec<&str> = known.keys().map(String::as_str).collect();
    format!("unknown key; known here: {}", names.join(", "))
}

fn element_table(value: &Value) -> Option<&Table> {
    value.as_table().or_else(|| value.as_array()?.first()?.as_table())
}

/// Puts every known value alone into an otherwise empty config: what fails there fails for itself.
fn wrong_values<T: DeserializeOwned>(given: &Table, known: &Table) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    try_table::<T>(&[], given, known, &mut mistakes);
    mistakes
}

fn try_table<T: DeserializeOwned>(above: &[&str], given: &Table, known: &Table, mistakes: &mut Vec<Mistake>) {
    for (key, value) in given {
        let Some(known_value) = known.get(key) else { continue };
        let path = [above, &[key]].concat();
        match (known_value, value) {
            (Value::Table(inner_known), Value::Table(inner)) => try_table::<T>(&path, inner, inner_known, mistakes),
            (Value::Array(_), Value::Array(elements)) => {
                for (index, element) in elements.iter().enumerate() {
                    let element = Value::Array(vec![without_unknown(element, known_value)]);
                    try_alone::<T>(&path, element, &format!("{}[{index}]", path.join(".")), mistakes);
                }
            }
            _ => try_alone::<T>(&path, value.clone(), &path.join("."), mistakes),
        }
    }
}

fn without_unknown(element: &Value, examples: &Value) -> Value {
    match (element, element_table(examples)) {
        (Value::Table(table), Some(example)) => {
            Value::Table(table.clone().into_iter().filter(|(name, _)| example.contains_key(name)).collect())
        }
        _ => element.clone(),
    }
}

fn try_alone<T: DeserializeOwned>(path: &[&str], value: Value, name: &str, mistakes: &mut Vec<Mistake>) {
    let alone =
        path.iter().rev().fold(value, |inner, key| Value::Table(Table::from_iter([((*key).to_owned(), inner)])));
    if let Err(error) = alone.try_into::<T>() {
        mistakes.push(Mistake { path: name.to_owned(), sentence: first_line(&error) });
    }
}

fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Example {
        microphone: Section,
        camera: Camera,
        people: Vec<Person>,
    }

    #[derive(Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Section {
        sample_rate: u32,
        channels: Vec<u16>,
    }

    #[derive(Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Camera {
        keep_key_frames: bool,
    }

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Person {
        name: String,
        #[serde(default)]
        addresses: Vec<String>,
    }

    #[test]
    fn a_slip_names_its_path_and_the_nearest_key() {
        assert_eq!(
            mistakes("[microphone]\nsample_rat = 16000"),
            ["microphone.sample_rat: unknown key; did you mean \"sample_rate\"?"]
        );
    }

    #[test]
    fn a_right_key_under_the_wrong_table_is_sent_home() {
        assert_eq!(
            mistakes("[microphone]\nkeep_key_frames = true"),
            ["microphone.keep_key_frames: unknown key here; \"keep_key_frames\" belongs under [camera]"]
        );
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let text =
            "[microphone]\nsample_rate = \"fast\"\nchannels = [-1]\n[camera]\nkeep = 1\n[[people]]\naddresses = []";

        let found = mistakes(text);

        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].starts_with("camera.keep:"), "{found:?}");
        assert!(found[1].starts_with("microphone.sample_rate:"), "{found:?}");
        assert!(found[2].starts_with("microphone.channels[0]:"), "{found:?}");
        assert!(found[3].starts_with("people[0]:") && found[3].contains("`name`"), "{found:?}");
    }

    #[test]
    fn values_with_shell_signs_quotes_and_umlauts_are_plain_data() {
        let text = "[[people]]\nname = \"Zoë; $(rm -rf /) \\\"x\\\"\"";

        let config: Example = check(&text.parse().unwrap(), &known()).unwrap();

        assert_eq!(config.people[0].name, "Zoë; $(rm -rf /) \"x\"");
    }

    fn known() -> Table {
        let people = vec![Person { name: "Alice".into(), addresses: vec![] }];
        Table::try_from(Example { people, ..Example::default() }).unwrap()
    }

    fn mistakes(text: &str) -> Vec<String> {
        let given: Table = text.parse().unwrap();
        check::<Example>(&given, &known()).unwrap_err().iter().map(ToString::to_string).collect()
    }
}

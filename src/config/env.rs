//! Settings from the environment: `PERCEPT_CAMERA_FRAMES_PER_S=2` stands for `camera.frames_per_s = 2`.
//!
//! In: the names and values of the environment, a table of every known key. Out: the config table with the values put in.
//! A name that begins like a section and is no key of it is a mistake: it would be ignored otherwise.

use crate::config::check::Mistake;
use toml::Table;
use toml::Value;

/// What all names begin with.
const PREFIX: &str = "PERCEPT_";

/// Puts the values of `variables` into `given`; the environment comes before the file.
///
/// # Errors
/// Every name that looks like a setting and is none, and every value that does not fit its key.
pub(super) fn apply(
    given: &mut Table,
    known: &Table,
    variables: impl Iterator<Item = (String, String)>,
) -> Result<(), Vec<Mistake>> {
    let keys = names(known);
    let mut mistakes = Vec::new();
    for (name, text) in variables {
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        match keys.iter().find(|key| key.name == rest) {
            Some(key) => match value(&text, key.example) {
                Some(value) => put(given, &key.path, value),
                None => mistakes.push(Mistake {
                    path: format!("${name}"),
                    sentence: format!("{text:?} is no {}", key.example.type_str()),
                }),
            },
            None => mistakes.extend(unknown(&name, rest, known, &keys)),
        }
    }
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
}

struct Key<'a> {
    name: String,
    path: Vec<&'a str>,
    example: &'a Value,
}

/// Every key outside lists of tables.
fn names(known: &Table) -> Vec<Key<'_>> {
    let mut keys = Vec::new();
    collect(known, &[], &mut keys);
    keys
}

fn collect<'a>(table: &'a Table, above: &[&'a str], keys: &mut Vec<Key<'a>>) {
    for (name, example) in table {
        let path = [above, &[name.as_str()]].concat();
        match example {
            Value::Table(inner) => collect(inner, &path, keys),
            Value::Array(elements) if elements.iter().any(Value::is_table) => {}
            Value::String(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Boolean(_)
            | Value::Datetime(_)
            | Value::Array(_) => keys.push(Key { name: path.join("_").to_uppercase(), path, example }),
        }
    }
}

/// A text is taken as it is; everything else is written as in the file.
fn value(text: &str, example: &Value) -> Option<Value> {
    if example.is_str() {
        return Some(Value::String(text.to_owned()));
    }
    let table: Table = format!("value = {text}").parse().ok()?;
    let value = table.get("value").filter(|_| table.len() == 1)?.clone();
    let fits = value.same_type(example) || (example.is_float() && value.is_integer());
    fits.then_some(value)
}

fn put(given: &mut Table, path: &[&str], value: Value) {
    let Some((name, above)) = path.split_last() else { return };
    let mut table = given;
    for section in above {
        let entry = table.entry((*section).to_owned()).or_insert_with(|| Value::Table(Table::new()));
        // A section that is no table is told by the check of the file.
        let Value::Table(inner) = entry else { return };
        table = inner;
    }
    table.insert((*name).to_owned(), value);
}

fn unknown(name: &str, rest: &str, known: &Table, keys: &[Key<'_>]) -> Option<Mistake> {
    let is_section = |section: &String| rest.starts_with(&format!("{}_", section.to_uppercase()));
    if !known.iter().any(|(section, value)| value.is_table() && is_section(section)) {
        return None;
    }
    let nearest = keys.iter().max_by(|left, right| {
        strsim::jaro_winkler(rest, &left.name).total_cmp(&strsim::jaro_winkler(rest, &right.name))
    })?;
    let sentence = format!("no such setting; did you mean {PREFIX}{}?", nearest.name);
    Some(Mistake { path: format!("${name}"), sentence })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &str =
        "[camera]\nframes_per_s = 1.0\ncommand = \"\"\n[camera.scene]\ngap_s = 600\n[models]\nyamnet = true";

    #[test]
    fn the_environment_comes_before_the_file() {
        let set = [
            ("PERCEPT_CAMERA_FRAMES_PER_S", "2"),
            ("PERCEPT_CAMERA_SCENE_GAP_S", "7"),
            ("PERCEPT_MODELS_YAMNET", "false"),
        ];

        let given = applied("[camera]\nframes_per_s = 3.0", &set).unwrap();

        let expected = "[camera]\nframes_per_s = 2\n[camera.scene]\ngap_s = 7\n[models]\nyamnet = false";
        assert_eq!(given, expected.parse().unwrap());
    }

    #[test]
    fn a_text_is_plain_data_whatever_it_holds() {
        let given = applied("", &[("PERCEPT_CAMERA_COMMAND", "rpicam-vid -o - \"$(x)\"; ü")]).unwrap();

        assert_eq!(given["camera"]["command"].as_str(), Some("rpicam-vid -o - \"$(x)\"; ü"));
    }

    #[test]
    fn a_slip_is_told_with_the_nearest_name_and_other_names_are_left_alone() {
        let mistakes =
            applied("", &[("PERCEPT_CAMERA_FRAMES", "2"), ("PERCEPT_LOG", "info"), ("HOME", "/")]).unwrap_err();

        assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        assert!(mistakes[0].to_string().contains("PERCEPT_CAMERA_FRAMES_PER_S"), "{mistakes:?}");
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_told() {
        let mistakes = applied("", &[("PERCEPT_MODELS_YAMNET", "maybe")]).unwrap_err();

        assert_eq!(mistakes[0].to_string(), "$PERCEPT_MODELS_YAMNET: \"maybe\" is no boolean");
    }

    fn applied(file: &str, set: &[(&str, &str)]) -> Result<Table, Vec<Mistake>> {
        let mut given: Table = file.parse().unwrap();
        let variables = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        apply(&mut given, &KNOWN.parse().unwrap(), variables).map(|()| given)
    }
}

//! The settings of every stage in one file.
//!
//! In: `percept.toml`. Out: [`Config`], a plain value, checked whole: unknown keys and wrong values are refused, all
//! at once. Each stage owns its own section; this file only puts them together. `config/percept.toml` is the
//! documentation: a test holds it equal to the built-in values.

use crate::config::sections::Bluetooth;
use crate::config::sections::Camera;
use crate::config::sections::Gps;
use crate::config::sections::Microphone;
use crate::domain::disposition::Disposition;
use crate::memory::store::OpenOptions;
use crate::perception::place::NamedPlace;
use crate::perception::presence::Person;
use std::path::Path;
use std::path::PathBuf;

pub mod agent;
pub mod check;
mod env;
pub mod mute;
pub mod power;
pub mod sections;

/// The commented file with every key at its default.
pub const DEFAULT_FILE: &str = include_str!("../config/percept.toml");

/// All settings.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The store.
    pub store: Store,
    /// Model files.
    pub models: Models,
    /// The resident agent.
    pub agent: agent::Agent,
    /// When and where sensors are mute.
    pub mute: mute::Config,
    /// Heat and charge.
    pub power: power::Config,
    /// How much room the memory takes.
    pub disk: agent::Disk,
    /// Capturing sound, and from sound to what is heard in it.
    pub microphone: Microphone,
    /// Sound episodes.
    pub audio: crate::episodes::audio::Config,
    /// Capturing pictures, and from pictures to scenes.
    pub camera: Camera,
    /// What CLIP is asked about pictures.
    pub clip: crate::perception::clip::Config,
    /// Scene episodes.
    pub visual: crate::episodes::visual::Config,
    /// Reaching the receiver, and which fixes are believed.
    pub gps: Gps,
    /// From fixes to stays and trips.
    pub place: crate::perception::place::Config,
    /// Episodes of device counts.
    pub spatial: crate::episodes::spatial::Config,
    /// Hearing advertisements.
    pub bluetooth: Bluetooth,
    /// From advertisements to visits and counts.
    pub presence: crate::perception::presence::Config,
    /// Moments that are made without being asked for.
    pub moments: crate::episodes::coincidence::Config,
    /// What counts as alike when something is searched for.
    pub search: crate::recall::score::Config,
    /// When episodes that are alike are linked.
    pub links: crate::recall::links::Cuts,
    /// People to be recognised.
    pub people: Vec<Person>,
    /// Places with a name.
    pub places: Vec<NamedPlace>,
}

/// Where the store stands, and how it takes facts.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Store {
    /// Folder of `memory.db`; empty: `$STATE_DIRECTORY`, else `~/.local/share/percept`.
    pub data_dir: String,
    /// Hours after its capture that a kept picture or recording is let go; 0: only when the disk budget needs the room.
    pub media_keep_h: u32,
    /// Relations of which a subject has one at a time: a newer fact ends the older one. Counts for what is stored from
    /// then on.
    pub single_valued: Vec<String>,
}

impl Default for Store {
    fn default() -> Self {
        Self { data_dir: String::new(), media_keep_h: 0, single_valued: vec!["located_at".to_owned()] }
    }
}

/// Where model files stand, and whether sounds are named.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Models {
    /// Folder of the model files; empty: `models` in the data directory.
    pub dir: String,
    /// Name sounds with YAMNet; without it sound episodes carry levels and bands only.
    pub yamnet: bool,
}

impl Default for Models {
    fn default() -> Self {
        Self { dir: String::new(), yamnet: true }
    }
}

/// A config with where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The file, when there was one.
    pub file: Option<PathBuf>,
    /// The settings.
    pub config: Config,
    /// Folder of `memory.db`.
    pub data_dir: PathBuf,
}

impl Loaded {
    /// How the store is opened for writing by the program that calls itself `holder`.
    #[must_use]
    pub fn open_options(&self, holder: &str) -> OpenOptions {
        let single_valued = self.config.store.single_valued.clone();
        let links = self.config.links.clone();
        OpenOptions { holder: holder.to_owned(), single_valued, links, ..OpenOptions::default() }
    }

    /// Folder of the model files.
    #[must_use]
    pub fn models_dir(&self) -> PathBuf {
        if self.config.models.dir.is_empty() {
            self.data_dir.join("models")
        } else {
            PathBuf::from(&self.config.models.dir)
        }
    }
}

/// A config that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read. Nothing was changed.
    #[error("cannot read the config file {}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is no TOML.
    #[error("{}: {message}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// Line and cause.
        message: String,
    },
    /// Keys or values are wrong. All of them are named.
    #[error("{} has {} in it:\n  {}", file.display(), plural(mistakes.len()), lines(mistakes))]
    Mistakes {
        /// The file.
        file: PathBuf,
        /// Each of them.
        mistakes: Vec<check::Mistake>,
    },
}

impl ConfigError {
    /// An operator must mend the file.
    #[must_use]
    pub fn disposition(&self) -> Disposition {
        Disposition::Stop
    }
}

fn plural(count: usize) -> String {
    if count == 1 { "one mistake".to_owned() } else { format!("{count} mistakes") }
}

fn lines(mistakes: &[check::Mistake]) -> String {
    mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  ")
}

/// Loads the file that was named, else the first that exists of the usual places, else the built-in values.
///
/// # Errors
/// [`ConfigError`]; a named file that is not there is an error, a usual place that is empty is not.
pub fn load(named: Option<&Path>) -> Result<Loaded, ConfigError> {
    let file = named.map(Path::to_owned).or_else(|| usual_places().into_iter().find(|file| file.is_file()));
    let text = match &file {
        Some(file) => {
            std::fs::read_to_string(file).map_err(|source| ConfigError::Unreadable { file: file.clone(), source })?
        }
        None => String::new(),
    };
    let named = file.as_deref().unwrap_or_else(|| Path::new("the environment"));
    let config = parse_with(&text, named, environment())?;
    let data_dir = data_dir(&config);
    Ok(Loaded { file, config, data_dir })
}

/// Checks the text of a config file whole.
///
/// # Errors
/// [`ConfigError::Syntax`] or [`ConfigError::Mistakes`].
pub fn parse(text: &str, file: &Path) -> Result<Config, ConfigError> {
    parse_with(text, file, std::iter::empty())
}

fn parse_with(
    text: &str,
    file: &Path,
    variables: impl Iterator<Item = (String, String)>,
) -> Result<Config, ConfigError> {
    let mut given: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| ConfigError::Syntax { file: file.to_owned(), message: error.to_string() })?;
    let wrong = |mistakes| ConfigError::Mistakes { file: file.to_owned(), mistakes };
    let known = known_keys();
    env::apply(&mut given, &known, variables).map_err(wrong)?;
    let config: Config = check::check(&given, &known).map_err(wrong)?;
    let mistakes = config.mistakes();
    if mistakes.is_empty() { Ok(config) } else { Err(wrong(mistakes)) }
}

/// Names and values that are no UTF-8 are none of ours.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Every key that exists, with one example in each list of tables.
fn known_keys() -> toml::Table {
    let person = Person { name: "Alice".to_owned(), addresses: Vec::new(), key_file: String::new() };
    let place = NamedPlace { name: "Home".to_owned(), latitude_deg: 0.0, longitude_deg: 0.0, radius_m: 100.0 };
    let sensors = vec![crate::domain::id::SensorKind::Microphone];
    let hours = mute::Hours { sensors: sensors.clone(), from: "22:00".to_owned(), to: "07:00".to_owned() };
    let zone = mute::Zone { sensors, place: "Home".to_owned() };
    let mute = mute::Config { schedule: vec![hours], zones: vec![zone] };
    let model = crate::recall::score::ModelMarks { id: "model".to_owned(), ..Default::default() };
    let search = crate::recall::score::Config { models: vec![model], ..Default::default() };
    let example = Config { people: vec![person], places: vec![place], mute, search, ..Config::default() };
    toml::Table::try_from(example).unwrap_or_default()
}

impl Config {
    /// Values that are well-formed and still cannot be meant, each with its path.
    #[must_use]
    pub fn mistakes(&self) -> Vec<check::Mistake> {
        let sections = [
            ("microphone", self.microphone.capture.mistakes()),
            ("camera", self.camera.capture.mistakes()),
            ("gps", self.gps.capture.mistakes()),
            ("gps", self.gps.fix.mistakes()),
            ("mute", self.mute.mistakes()),
            ("power", self.power.mistakes()),
            ("agent", self.agent.mistakes()),
            ("place", self.place_config().mistakes()),
            ("spatial", self.spatial.mistakes()),
            ("presence", self.presence_config().mistakes()),
            ("search", self.search.mistakes()),
            ("links", self.links.mistakes()),
        ];
        let mistake = |(path, sentence): (&str, String)| check::Mistake { path: path.to_owned(), sentence };
        sections
            .into_iter()
            .flat_map(|(path, sentences)| sentences.into_iter().map(move |sentence| (path, sentence)))
            .map(mistake)
            .collect()
    }

    /// The settings of places, with the named ones.
    #[must_use]
    pub fn place_config(&self) -> crate::perception::place::Config {
        crate::perception::place::Config { named: self.places.clone(), ..self.place.clone() }
    }

    /// The settings of presence, with the people.
    #[must_use]
    pub fn presence_config(&self) -> crate::perception::presence::Config {
        crate::perception::presence::Config { people: self.people.clone(), ..self.presence.clone() }
    }
}

fn usual_places() -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from("percept.toml")];
    let home = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")));
    places.extend(home.map(|home| home.join("percept/percept.toml")));
    places.push(PathBuf::from("/etc/percept/percept.toml"));
    places
}

fn data_dir(config: &Config) -> PathBuf {
    if !config.store.data_dir.is_empty() {
        return PathBuf::from(&config.store.data_dir);
    }
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    var("STATE_DIRECTORY")
        .or_else(|| var("XDG_DATA_HOME").map(|home| home.join("percept")))
        .or_else(|| var("HOME").map(|home| home.join(".local/share/percept")))
        .unwrap_or_else(|| PathBuf::from("/var/lib/percept"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_file_has_every_key_commented_at_its_default() {
        let file: toml::Table = DEFAULT_FILE.parse().unwrap();
        let mut built_in = toml::Table::try_from(Config::default()).unwrap();
        for list in ["people", "places"] {
            assert_eq!(built_in.remove(list), Some(toml::Value::Array(Vec::new())));
            assert!(DEFAULT_FILE.contains(&format!("# [[{list}]]")), "{list} has no example");
        }

        assert_eq!(parse(DEFAULT_FILE, Path::new("percept.toml")).unwrap(), Config::default());
        assert_same_keys("", &file, &built_in);
        let mut above = "";
        for line in DEFAULT_FILE.lines() {
            let is_key = line.starts_with(|first: char| first.is_ascii_lowercase()) && line.contains(" = ");
            assert!(!is_key || above.starts_with('#'), "{line:?} has no comment above it");
            above = line;
        }
    }

    #[test]
    fn the_examples_of_people_and_places_are_right_as_they_stand() {
        let start = DEFAULT_FILE.find("# [[people]]").unwrap();
        let lines = DEFAULT_FILE[start..].lines().filter_map(|line| line.strip_prefix("# "));
        let text: Vec<&str> = lines.filter(|line| !line.starts_with(|first: char| first.is_uppercase())).collect();

        let config = parse(&text.join("\n"), Path::new("example")).unwrap();

        assert_eq!((config.people[0].name.as_str(), config.places[0].name.as_str()), ("Alice", "Home"));
    }

    #[test]
    fn every_mistake_is_told_with_its_path_and_the_file_is_named() {
        let text = "[camera.scene]\nrefresh = 3\n[gps]\nstale_s = -1\n[[places]]\nname = \"x\"";

        let error = parse(text, Path::new("/etc/percept/percept.toml")).unwrap_err().to_string();

        assert!(error.starts_with("/etc/percept/percept.toml has "), "{error}");
        assert!(error.contains("camera.scene.refresh: unknown key; did you mean \"refresh_s\"?"), "{error}");
        assert!(error.contains("places[0]: missing field `latitude_deg`"), "{error}");
    }

    #[test]
    fn a_value_out_of_range_is_a_mistake() {
        let error = parse("[gps]\nstale_s = -1.0", Path::new("f")).unwrap_err().to_string();

        assert!(error.contains("gps: stale_s = -1"), "{error}");
    }

    fn assert_same_keys(path: &str, file: &toml::Table, built_in: &toml::Table) {
        let names = |table: &toml::Table| table.keys().cloned().collect::<std::collections::BTreeSet<_>>();
        assert_eq!(names(file), names(built_in), "keys under [{path}]");
        for (key, value) in file {
            if let (toml::Value::Table(file), toml::Value::Table(built_in)) = (value, &built_in[key]) {
                assert_same_keys(&format!("{path}.{key}"), file, built_in);
            }
        }
    }
}

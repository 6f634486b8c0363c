//! `percept doctor`: is everything there that a run needs, and does it deliver?
//!
//! In: the config, and the running agent's status when there is one. Out: one verdict after the other.
//! Without an agent each enabled sensor is opened and has to prove itself with plausible data; with one the sensors are
//! its own, and its status is the proof. Nothing is changed.

use crate::agent::clock_source;
use crate::agent::drivers;
use crate::agent::machine;
use crate::agent::models::Models;
use crate::agent::power;
use crate::agent::status::Status;
use crate::config::Loaded;
use crate::domain::id::SensorKind;
use crate::domain::time::Clock as _;
use crate::domain::time::ClockQuality;
use crate::domain::time::LiveClock;
use crate::memory::error::StoreError;
use crate::memory::reader::Reader;
use crate::memory::store::STORE_FILE;
use crate::sensors::live::SharedClock;
use crate::sensors::live::State;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

mod proof;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Ok,
    /// percept works, with less than configured.
    Warning,
    /// This does not work.
    Failed,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Verdict {
    /// How bad it is.
    pub level: Level,
    /// What was looked at.
    pub what: String,
    /// What was found, and what to do about it.
    pub sentence: String,
}

impl Verdict {
    fn new(level: Level, what: &str, sentence: impl Into<String>) -> Self {
        Self { level, what: what.to_owned(), sentence: sentence.into() }
    }
}

/// Looks at everything; each verdict is told as it comes.
pub fn examine(loaded: &Loaded, running: Option<&Status>, tell: &mut dyn FnMut(Verdict)) {
    let clock = Arc::new(LiveClock::new());
    clock.set_quality(clock_source::quality(clock.wall()));
    tell(config(loaded));
    tell(agent(running));
    tell(wall_clock(&clock));
    power_findings(loaded).into_iter().for_each(&mut *tell);
    tell(disk(loaded));
    store(loaded, running).into_iter().for_each(&mut *tell);
    models(loaded, &clock).into_iter().for_each(&mut *tell);
    match running {
        Some(status) => live_sensors(status).into_iter().for_each(&mut *tell),
        None => probe_sensors(loaded, &clock, tell),
    }
}

fn config(loaded: &Loaded) -> Verdict {
    let sentence = loaded.file.as_ref().map_or_else(
        || "no config file: built-in values are used (`percept config default` prints them)".to_owned(),
        |file| format!("{} is right", file.display()),
    );
    Verdict::new(Level::Ok, "config", sentence)
}

fn agent(running: Option<&Status>) -> Verdict {
    match running {
        Some(status) if status.stuck.is_empty() => {
            Verdict::new(Level::Ok, "agent", format!("running as process {}", status.pid))
        }
        Some(status) => Verdict::new(Level::Failed, "agent", format!("no progress in: {}", status.stuck.join(", "))),
        None => Verdict::new(Level::Ok, "agent", "not running: sensors are opened to try them"),
    }
}

fn wall_clock(clock: &LiveClock) -> Verdict {
    match clock.quality() {
        ClockQuality::Unset => {
            let hint = "nobody has set it: rows are corrected once GPS or the network tells the time";
            Verdict::new(Level::Warning, "clock", format!("{} UTC; {hint}", clock.wall()))
        }
        ClockQuality::Rtc => Verdict::new(Level::Ok, "clock", "battery-backed, not synchronised with the network"),
        ClockQuality::Network => Verdict::new(Level::Ok, "clock", "synchronised with the network"),
        ClockQuality::Gps => Verdict::new(Level::Ok, "clock", "set by GPS"),
    }
}

fn power_findings(loaded: &Loaded) -> Vec<Verdict> {
    let signs = power::look(Path::new("/"));
    let level = |weight| match weight {
        power::Weight::Fine => Level::Ok,
        power::Weight::Notice | power::Weight::Problem => Level::Warning,
    };
    power::findings(&signs, &loaded.config.power)
        .into_iter()
        .map(|finding| Verdict::new(level(finding.weight), "power", finding.sentence))
        .collect()
}

/// The nearest folder that is there: the data directory is made by the first run.
fn existing(dir: &Path) -> PathBuf {
    dir.ancestors().find(|dir| dir.exists() && !dir.as_os_str().is_empty()).unwrap_or_else(|| Path::new(".")).to_owned()
}

fn disk(loaded: &Loaded) -> Verdict {
    let Some(free) = machine::free_bytes(&existing(&loaded.data_dir)) else {
        return Verdict::new(Level::Failed, "disk", format!("{} cannot be looked at", loaded.data_dir.display()));
    };
    let (free_mib, wanted_mib) = (free >> 20, loaded.config.disk.keep_free_mib);
    let sentence = format!("{free_mib} MiB free at {}", loaded.data_dir.display());
    if free_mib < wanted_mib {
        let hint = format!("{sentence}; disk.keep_free_mib wants {wanted_mib}: old episodes make room");
        return Verdict::new(Level::Warning, "disk", hint);
    }
    Verdict::new(Level::Ok, "disk", sentence)
}

fn store(loaded: &Loaded, running: Option<&Status>) -> Vec<Verdict> {
    if let Some(trouble) = running.and_then(|status| status.store.trouble.as_ref()) {
        return vec![Verdict::new(Level::Failed, "store", trouble.clone())];
    }
    if !loaded.data_dir.join(STORE_FILE).exists() {
        return vec![Verdict::new(Level::Ok, "store", "not there yet: the first run makes it")];
    }
    match Reader::open(&loaded.data_dir).and_then(|reader| whole(&reader, loaded)) {
        Ok(verdicts) => verdicts,
        Err(error) => vec![Verdict::new(Level::Failed, "store", error.to_string())],
    }
}

fn whole(reader: &Reader, loaded: &Loaded) -> Result<Vec<Verdict>, StoreError> {
    if let Some(complaint) = reader.complaint()? {
        let hint = "`percept run` sets a damaged store aside and keeps what can be read";
        return Ok(vec![Verdict::new(Level::Failed, "store", format!("damaged: {complaint}; {hint}"))]);
    }
    let stats = reader.stats()?;
    let mut verdicts = vec![Verdict::new(Level::Ok, "store", format!("whole, {} episodes", stats.episodes))];
    verdicts.extend(other_vectors(&stats.vectors, &loaded.config.clip.model));
    Ok(verdicts)
}

/// Vectors of another model are kept and never compared with those of the one configured.
fn other_vectors(vectors: &[((String, String), u64)], configured: &str) -> Vec<Verdict> {
    let is_clip = |kind: &str| matches!(kind, "image" | "text");
    vectors
        .iter()
        .filter(|((model, kind), _)| is_clip(kind) && model != configured && !configured.is_empty())
        .map(|((model, kind), count)| {
            let sentence = format!(
                "{count} {kind} vectors are of {model}, and {configured} is configured: they are never compared with its \
                 vectors. Pictures that were kept get new ones by replaying their session with --reprocess"
            );
            Verdict::new(Level::Warning, "vectors", sentence)
        })
        .collect()
}

fn models(loaded: &Loaded, clock: &LiveClock) -> Vec<Verdict> {
    let models = Models::load(&loaded.config, &loaded.models_dir(), machine::memory_bytes(), clock.stamp());
    let loaded = models.hashes().into_iter().map(|(id, _)| Verdict::new(Level::Ok, "model", format!("{id} is ready")));
    let missing = models.missing().iter().map(|sentence| Verdict::new(Level::Warning, "model", sentence.clone()));
    loaded.chain(missing).collect()
}

fn live_sensors(status: &Status) -> Vec<Verdict> {
    status
        .sensors
        .iter()
        .map(|sensor| {
            let error = sensor.last_error.clone().unwrap_or_default();
            let (level, sentence) = match sensor.state {
                State::Running if sensor.complaint.is_some() => {
                    (Level::Failed, sensor.complaint.clone().unwrap_or_default())
                }
                State::Running => (Level::Ok, format!("capturing, {} readings", sensor.captures)),
                State::Muted => (Level::Warning, "muted".to_owned()),
                State::Opening => (Level::Warning, format!("open, nothing captured yet; {error}")),
                State::Lost => (Level::Failed, format!("lost: {error}")),
            };
            Verdict::new(level, sensor.source.as_str(), sentence)
        })
        .collect()
}

fn probe_sensors(loaded: &Loaded, clock: &Arc<LiveClock>, tell: &mut dyn FnMut(Verdict)) {
    let shared: SharedClock = Arc::clone(clock) as SharedClock;
    let sensors = drivers::live_sensors(&loaded.config, &shared);
    for kind in SensorKind::ALL {
        if !sensors.iter().any(|(known, _)| *known == kind) {
            tell(Verdict::new(Level::Ok, kind.as_str(), "not enabled"));
        }
    }
    for (kind, sensor) in sensors {
        tell(proof::prove(kind, sensor, clock));
    }
}

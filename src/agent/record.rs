//! Captures without understanding: readings go straight into a session folder.

use crate::agent::clock_source;
use crate::agent::identity::Capture;
use crate::agent::machine;
use crate::agent::people::known_people;
use crate::agent::queue::HOLD_MS;
use crate::agent::queue::ReadingQueue;
use crate::agent::recording::Recording;
use crate::agent::run::Record;
use crate::agent::run::Signals;
use crate::agent::run::Sources;
use crate::agent::sensor_thread::SensorThread;
use crate::config::Loaded;
use crate::domain::id::BootId;
use crate::domain::id::DeviceId;
use crate::domain::id::SessionId;
use crate::domain::time::Clock as _;
use crate::domain::time::LiveClock;
use crate::memory::reader::Reader;
use crate::sensors::live::SharedClock;
use anyhow::Context as _;
use std::sync::Arc;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(200);

/// How far a recording is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Milliseconds since it began.
    pub length_ms: i64,
    /// Each sensor with what it delivered.
    pub words: String,
}

/// Records until told to stop. Returns the number of readings.
///
/// # Errors
/// When the folder cannot be made or a reading could not be written; what was written stays readable.
pub fn record(
    loaded: &Loaded,
    target: &Record,
    for_ms: Option<i64>,
    sources: &dyn Sources,
    signals: &Signals,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<u64> {
    let clock = Arc::new(LiveClock::new());
    clock.set_quality(clock_source::quality(clock.wall()));
    let started = clock.stamp();
    // The same device as the store beside it, so that a replay there is at home.
    let own = Reader::open(&loaded.data_dir).ok().and_then(|reader| reader.identity().ok());
    let random = || DeviceId::new(uuid::Uuid::new_v4().to_string());
    let capture = Capture {
        device_id: own.map_or_else(random, |identity| identity.device_id),
        session_id: SessionId::new(uuid::Uuid::new_v4().to_string()),
        boot_id: BootId::new(machine::boot_id()),
        start_is_known: true,
    };
    let mut recording =
        Recording::create(&target.dir, &capture, started, known_people(&loaded.config.people)?, target.raw)?;
    let queue = Arc::new(ReadingQueue::new());
    let shared: SharedClock = Arc::clone(&clock) as SharedClock;
    let sensors = sources
        .sensors(&loaded.config, &shared)
        .into_iter()
        .map(|(kind, sensor)| SensorThread::start(kind, sensor, Arc::clone(&queue)))
        .collect::<Result<Vec<_>, _>>()
        .context("start the sensors")?;
    anyhow::ensure!(!sensors.is_empty(), "no sensor is enabled in the config: nothing to record");
    loop {
        let now = clock.stamp();
        clock.set_quality(clock_source::quality(clock.wall()));
        while let Some(reading) = queue.pop(now.monotonic_ms - HOLD_MS) {
            recording.write(&reading);
        }
        let length_ms = now.millis_since(started);
        progress(&Progress { length_ms, words: words(&sensors) });
        if signals.must_stop() || for_ms.is_some_and(|for_ms| length_ms >= for_ms) {
            break;
        }
        queue.wait(TICK);
    }
    sensors.iter().for_each(SensorThread::stop);
    while let Some(reading) = queue.pop(i64::MAX) {
        recording.write(&reading);
    }
    recording.close()
}

fn words(sensors: &[SensorThread]) -> String {
    let of = |sensor: &SensorThread| format!("{} {}", sensor.kind.as_str(), sensor.health.get().captures);
    sensors.iter().map(of).collect::<Vec<_>>().join(", ")
}

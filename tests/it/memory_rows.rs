//! Rows for the tests of the store: one device, one session, times counted from one start.

use percept::domain::coverage::Coverage;
use percept::domain::coverage::CoverageReason;
use percept::domain::coverage::CoverageState;
use percept::domain::episode::Episode;
use percept::domain::episode::EpisodeRecord;
use percept::domain::episode::Metadata;
use percept::domain::fact::Fact;
use percept::domain::fact::Node;
use percept::domain::fact::NodeKind;
use percept::domain::id::BootId;
use percept::domain::id::DeviceId;
use percept::domain::id::EpisodeId;
use percept::domain::id::EpisodeKey;
use percept::domain::id::SensorKind;
use percept::domain::id::SessionId;
use percept::domain::id::SourceId;
use percept::domain::modality::Modality;
use percept::domain::time::ClockQuality;
use percept::domain::time::Stamp;
use percept::domain::time::SystemClock;
use percept::domain::time::Timestamp;
use percept::memory::coverage::CoverageRecord;
use percept::memory::sessions::Session;
use percept::memory::store::OpenOptions;
use percept::memory::store::Store;
use percept::memory::writer::Writer;
use std::path::Path;

/// 2026-05-01T08:00:00Z.
const START_MS: i64 = 1_777_622_400_000;

/// The instant `millis` after the start.
pub fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(START_MS + millis)
}

/// Milliseconds since the start.
pub fn since_start(time: Timestamp) -> i64 {
    time.as_millis() - START_MS
}

/// A writer on the store in `dir`.
pub fn writer(dir: &Path) -> Writer {
    let options = OpenOptions { holder: "percept test".to_owned(), ..OpenOptions::default() };
    Writer::spawn(Store::open(dir, &options).unwrap(), Box::new(SystemClock::new())).unwrap()
}

/// A sound from `start` to `end`, milliseconds after the start.
pub fn audio(start: i64, end: i64) -> EpisodeRecord {
    record(Modality::Audio, SensorKind::Microphone, (start, end), format!("A sound at {start}"))
}

/// A scene at `start`.
pub fn visual(start: i64) -> EpisodeRecord {
    record(Modality::Visual, SensorKind::Camera, (start, start), format!("A scene at {start}"))
}

/// A stay from `start` to `end`.
pub fn spatial(start: i64, end: i64) -> EpisodeRecord {
    record(Modality::Spatial, SensorKind::Gps, (start, end), format!("A stay at {start}"))
}

fn record(modality: Modality, sensor: SensorKind, (start, end): (i64, i64), content: String) -> EpisodeRecord {
    let (device_id, session_id) = (DeviceId::new("device"), SessionId::new("session"));
    let source = SourceId::of(sensor, "one");
    let key = EpisodeKey {
        device_id: &device_id,
        session_id: &session_id,
        modality,
        source: &source,
        started_at: at(start),
        ordinal: 0,
    };
    let episode = Episode {
        id: EpisodeId::derive(&key),
        external_id: None,
        timestamp: at(start),
        ended_at: at(end),
        boot_id: BootId::new("boot"),
        monotonic_ms: start,
        clock_quality: ClockQuality::Gps,
        modality,
        tool_name: "test".to_owned(),
        content,
        importance: modality.default_importance(),
        decay_class: modality.default_decay(),
        metadata: Metadata::new(),
        device_id,
        session_id,
        source,
    };
    EpisodeRecord { episode, embeddings: Vec::new(), facts: Vec::new(), media: Vec::new() }
}

/// Someone is somewhere from `start` on.
pub fn located(person: &str, place: &str, start: i64) -> Fact {
    let (subject, object) = (Node::new(NodeKind::Person, person), Node::new(NodeKind::Location, place));
    Fact::triple(subject, "located_at", object, format!("{person} is at {place}"), at(start))
}

/// The receiver was blind.
pub fn blind(from: i64, to: i64, reason: CoverageReason, quality: ClockQuality) -> CoverageRecord {
    let stamp = |millis| Stamp { monotonic_ms: millis, utc: at(millis), quality };
    CoverageRecord {
        device_id: DeviceId::new("device"),
        session_id: SessionId::new("session"),
        boot_id: BootId::new("boot"),
        coverage: Coverage {
            source: SourceId::of(SensorKind::Gps, "one"),
            from: stamp(from),
            to: stamp(to),
            state: CoverageState::Blind,
            reason,
            detail: None,
        },
    }
}

/// The session of these rows, read with a configuration of that digest.
pub fn session(digest: &str) -> Session {
    Session {
        session_id: SessionId::new("session"),
        device_id: DeviceId::new("device"),
        boot_id: BootId::new("boot"),
        digest: digest.to_owned(),
        started_at: at(0),
        clock_quality: ClockQuality::Gps,
    }
}

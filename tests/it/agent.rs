//! The resident agent on devices whose drivers stand at the edge, below everything that is under test.

use crate::replay::config;
use crate::scene::Scene;
use crate::scene::percept;
use percept::agent::control::Capture;
use percept::agent::control::Mute;
use percept::agent::control::client::Client;
use percept::agent::gists::AskedGist;
use percept::agent::run::End;
use percept::agent::run::Options;
use percept::agent::run::Record;
use percept::agent::run::Signals;
use percept::agent::run::Sources;
use percept::agent::run::run;
use percept::agent::status::Status;
use percept::config::Config;
use percept::config::Loaded;
use percept::domain::id::SensorKind;
use percept::domain::id::SourceId;
use percept::domain::reading::AddressType;
use percept::domain::reading::Advertisement;
use percept::domain::reading::GpsReport;
use percept::domain::reading::Payload;
use percept::domain::reading::Picture;
use percept::domain::reading::PixelFormat;
use percept::domain::reading::PositionReport;
use percept::domain::reading::Samples;
use percept::domain::reading::Sender;
use percept::domain::reading::SoundChunk;
use percept::domain::time::Clock as _;
use percept::domain::time::SystemClock;
use percept::recall::gist::Subject;
use percept::sensors::live::Driver;
use percept::sensors::live::Failure;
use percept::sensors::live::Fed;
use percept::sensors::live::Feed;
use percept::sensors::live::Limits;
use percept::sensors::live::LiveSensor;
use percept::sensors::live::SharedClock;
use percept::sensors::live::State;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

const RATE_HZ: u32 = 16_000;
const LIMITS: Limits = Limits { stall_ms: 2_000, first_ms: 5_000 };

/// A device that delivers one payload every `every`, made from its number.
struct Device {
    source: SourceId,
    every: Duration,
    make: fn(u64) -> Payload,
    clock: SharedClock,
}

struct DeviceFeed {
    every: Duration,
    make: fn(u64) -> Payload,
    clock: SharedClock,
    number: u64,
    // Never sends: its time-out paces the device.
    pace: mpsc::Receiver<()>,
    _open: mpsc::Sender<()>,
}

impl Driver for Device {
    fn source(&self) -> &SourceId {
        &self.source
    }

    fn open(&mut self) -> Result<Box<dyn Feed>, Failure> {
        let (open, pace) = mpsc::channel();
        let (every, make, clock) = (self.every, self.make, Arc::clone(&self.clock));
        Ok(Box::new(DeviceFeed { every, make, clock, number: 0, pace, _open: open }))
    }
}

impl Feed for DeviceFeed {
    fn next(&mut self, _timeout: Duration) -> Fed {
        let _ = self.pace.recv_timeout(self.every);
        self.number += 1;
        Fed::Captured(self.clock.stamp(), (self.make)(self.number - 1))
    }
}

/// The four sensors of a kitchen: a tone that comes and goes, a picture that changes, a fix, Alice's telephone.
struct Kitchen;

impl Sources for Kitchen {
    fn sensors(&self, _config: &Config, clock: &SharedClock) -> Vec<(SensorKind, LiveSensor)> {
        let devices: [(SensorKind, u64, fn(u64) -> Payload); 4] = [
            (SensorKind::Microphone, 100, sound),
            (SensorKind::Camera, 500, picture),
            (SensorKind::Gps, 500, fix),
            (SensorKind::Bluetooth, 400, advertisement),
        ];
        let sensor = |(kind, every_ms, make)| {
            let source = SourceId::of(kind, "test");
            let device = Device { source, every: Duration::from_millis(every_ms), make, clock: Arc::clone(clock) };
            (kind, LiveSensor::new(Box::new(device), Arc::clone(clock), LIMITS))
        };
        devices.into_iter().map(sensor).collect()
    }
}

/// Alice's telephone, and a receiver that knows the time whatever this machine's clock is worth.
struct Timed;

impl Sources for Timed {
    fn sensors(&self, _config: &Config, clock: &SharedClock) -> Vec<(SensorKind, LiveSensor)> {
        let devices: [(SensorKind, u64, fn(u64) -> Payload); 2] =
            [(SensorKind::Gps, 500, timed_fix), (SensorKind::Bluetooth, 400, advertisement)];
        let sensor = |(kind, every_ms, make)| {
            let source = SourceId::of(kind, "test");
            let device = Device { source, every: Duration::from_millis(every_ms), make, clock: Arc::clone(clock) };
            (kind, LiveSensor::new(Box::new(device), Arc::clone(clock), LIMITS))
        };
        devices.into_iter().map(sensor).collect()
    }
}

fn timed_fix(_number: u64) -> Payload {
    Payload::Position(GpsReport::Position(PositionReport {
        mode: 3,
        time: Some(SystemClock::new().utc()),
        latitude_deg: Some(52.5),
        longitude_deg: Some(13.4),
        ..PositionReport::default()
    }))
}

/// One microphone that delivers exact zeros.
struct Dead;

impl Sources for Dead {
    fn sensors(&self, _config: &Config, clock: &SharedClock) -> Vec<(SensorKind, LiveSensor)> {
        let (source, every) = (SourceId::of(SensorKind::Microphone, "dead"), Duration::from_millis(100));
        let device = Device { source, every, make: silence, clock: Arc::clone(clock) };
        vec![(SensorKind::Microphone, LiveSensor::new(Box::new(device), Arc::clone(clock), LIMITS))]
    }
}

fn silence(_number: u64) -> Payload {
    let samples = Samples::I16(vec![0; 1_600]);
    Payload::Sound(SoundChunk { sample_rate_hz: RATE_HZ, channel_count: 1, samples })
}

/// A second of a tone every five seconds, near silence between: each is an event of its own.
#[expect(clippy::cast_possible_truncation, reason = "the values are below 8,001")]
fn sound(number: u64) -> Payload {
    let is_loud = number / 10 % 5 == 1;
    let value = |at: u32| {
        let phase = f64::from(at) * 440.0 * std::f64::consts::TAU / f64::from(RATE_HZ);
        (phase.sin() * if is_loud { 8_000.0 } else { 2.0 }).round() as i16
    };
    let samples = Samples::I16((0..RATE_HZ / 10).map(value).collect());
    Payload::Sound(SoundChunk { sample_rate_hz: RATE_HZ, channel_count: 1, samples })
}

/// Stripes that turn after two seconds.
fn picture(number: u64) -> Payload {
    let turned = number / 4 % 2 == 1;
    let pixel = |at: u32| {
        let (x, y) = (at % 96, at / 96);
        if (if turned { x } else { y } / 12).is_multiple_of(2) { 230 } else { 20 }
    };
    let bytes: Vec<u8> = (0..96 * 96).map(pixel).collect();
    Payload::Picture(Picture { format: PixelFormat::Grey8, size_px: Some((96, 96)), bytes: bytes.into() })
}

fn fix(_number: u64) -> Payload {
    let report =
        PositionReport { mode: 3, latitude_deg: Some(52.5), longitude_deg: Some(13.4), ..PositionReport::default() };
    Payload::Position(GpsReport::Position(report))
}

fn advertisement(_number: u64) -> Payload {
    Payload::Advertisement(Advertisement {
        sender: Sender::Address([0xC0, 0xFF, 0xEE, 0x00, 0x12, 0x34], AddressType::Public),
        rssi_dbm: Some(-50),
        name: None,
        service_uuids: Vec::new(),
        manufacturer_data: Vec::new(),
    })
}

struct Agent {
    root: tempfile::TempDir,
    signals: Signals,
    thread: Option<JoinHandle<anyhow::Result<End>>>,
}

impl Agent {
    fn start(root: tempfile::TempDir, record: Option<&str>) -> Self {
        Self::start_with(root, record, Box::new(Kitchen))
    }

    fn start_with(root: tempfile::TempDir, record: Option<&str>, sources: Box<dyn Sources + Send>) -> Self {
        std::fs::write(root.path().join("percept.toml"), config()).unwrap();
        let loaded = load(root.path()).unwrap();
        let folder = root.path().to_owned();
        let options = Options {
            for_ms: None,
            record: record.map(|name| Record { dir: root.path().join(name), raw: false }),
            reload: Box::new(move || load(&folder)),
            sources,
        };
        let signals = Signals::none();
        let shared = signals.clone();
        let thread = std::thread::spawn(move || run(loaded, options, &shared, &mut |_| {}));
        Self { root, signals, thread: Some(thread) }
    }

    fn data_dir(&self) -> std::path::PathBuf {
        self.root.path().join("data")
    }

    fn client(&self) -> Client {
        eventually("the agent answers", || Client::find(&self.data_dir()).unwrap())
    }

    fn status(&self) -> Status {
        self.client().get("/v1/status").unwrap()
    }

    /// Waits until the status is as it should be.
    fn until(&self, what: &str, is_so: impl Fn(&Status) -> bool) -> Status {
        eventually(what, || Some(self.status()).filter(|status| is_so(status)))
    }

    fn stop(&mut self) -> End {
        self.signals.stop();
        self.thread.take().unwrap().join().unwrap().unwrap()
    }

    fn jsonl(&self, args: &[&str]) -> Vec<Value> {
        let file = self.root.path().join("percept.toml");
        let data = self.data_dir();
        let mut all = vec![
            "percept",
            "--config",
            file.to_str().unwrap(),
            "--data-dir",
            data.to_str().unwrap(),
            "--format",
            "jsonl",
        ];
        all.extend(args);
        let outcome = percept(&all);
        assert_eq!(outcome.code, 0, "{outcome:?}");
        outcome.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn load(root: &Path) -> anyhow::Result<Loaded> {
    let mut loaded = percept::config::load(Some(&root.join("percept.toml")))?;
    loaded.data_dir = root.join("data");
    Ok(loaded)
}

/// Asks again and again; fails after half a minute, which no healthy run needs.
fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let (_open, pace) = mpsc::channel::<()>();
    for _ in 0..600 {
        if let Some(answer) = ask() {
            return answer;
        }
        let _ = pace.recv_timeout(Duration::from_millis(50));
    }
    panic!("never so: {what}");
}

/// Alice comes by in the kitchen, a day and a half before now, in the store that the agent will have.
fn a_day_before(root: &Path) {
    let at = SystemClock::new().utc().plus_millis(-36 * 3_600_000);
    let mut scene = Scene::new("before").with("started_at", &format!("\"{at}\""));
    for second in (0..120).step_by(5) {
        scene = scene.advertisement(second * 1_000, "C0:FF:EE:00:12:34", -50);
    }
    scene.write();
    std::fs::write(root.join("percept.toml"), config()).unwrap();
    let (file, data) = (root.join("percept.toml"), root.join("data"));
    let [file, data, session] = [&file, &data, &scene.session()].map(|path| path.to_str().unwrap().to_owned());
    let replayed = percept(&["percept", "--config", &file, "--data-dir", &data, "replay", &session]);
    assert_eq!(replayed.code, 0, "{replayed:?}");
}

fn agent() -> Agent {
    Agent::start(tempfile::tempdir().unwrap(), None)
}

#[test]
fn a_live_run_writes_all_four_modalities_and_its_recording_replays_to_the_same_episodes() {
    let mut agent = Agent::start(tempfile::tempdir().unwrap(), Some("recorded"));
    agent.until("sound, a scene and a meeting are stored", |status| {
        ["audio", "visual", "social"].iter().all(|kind| status.store.episodes.contains_key(*kind))
    });

    assert_eq!(agent.stop(), End::Told);

    let live = agent.jsonl(&["episodes"]);
    let other = agent.root.path().join("again");
    let recorded = agent.root.path().join("recorded");
    let file = agent.root.path().join("percept.toml");
    let common =
        ["percept", "--config", file.to_str().unwrap(), "--data-dir", other.to_str().unwrap(), "--format", "jsonl"];
    let replayed = percept(&[&common[..], &["replay", recorded.to_str().unwrap()]].concat());
    assert_eq!(replayed.code, 0, "{replayed:?}");
    let again = percept(&[&common[..], &["episodes"]].concat());
    let again: Vec<Value> = again.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = |rows: &[Value]| {
        let mut told: Vec<String> = rows
            .iter()
            .map(|row| format!("{} {} {} {}", row["id"], row["timestamp"], row["modality"], row["content"]))
            .collect();
        told.sort();
        told
    };
    assert!(live.len() >= 3, "{live:#?}");
    assert_eq!(told(&live), told(&again));
}

#[test]
fn the_socket_tells_mutes_captures_and_is_gone_afterwards() {
    let mut agent = agent();
    agent.until("all four capture", |status| {
        status.sensors.len() == 4 && status.sensors.iter().all(|sensor| sensor.state == State::Running)
    });

    let order = Mute { sensors: vec![SensorKind::Microphone], for_ms: None };
    let answer: Value = agent.client().post("/v1/mute", &order).unwrap();
    assert_eq!(answer["muted"], serde_json::json!(["microphone"]));
    let is_muted = |status: &Status| status.sensors.iter().any(|sensor| sensor.state == State::Muted);
    let before = agent.until("the microphone is closed", is_muted);
    let captures = |status: &Status| status.sensors.iter().map(|sensor| sensor.captures).max().unwrap();
    agent.until("the others go on", |status| captures(status) > captures(&before) + 5);
    let _: Value = agent.client().post("/v1/unmute", &order).unwrap();
    agent.until("the microphone is open", |status| !is_muted(status));

    let asked = Capture { person: Some("Bob".to_owned()), transcript: Some("hello".to_owned()), ..Capture::default() };
    let moment: Value = agent.client().post("/v1/capture", &asked).unwrap();
    assert!(moment["content"].as_str().unwrap().starts_with("Met Bob. Said: \"hello\""), "{moment}");
    let error = agent.client().post::<Value>("/v1/mute", &serde_json::json!({"sensor": ["x"]})).unwrap_err();
    assert!(error.to_string().contains("unknown field"), "{error}");

    agent.stop();

    assert!(Client::find(&agent.data_dir()).unwrap().is_none());
    let rows = agent.jsonl(&["episodes", "--modality", "social"]);
    assert!(rows.iter().any(|row| row["id"] == moment["id"]), "{rows:#?}");
    let stats = agent.jsonl(&["stats"]);
    let is_muted = |row: &Value| row["which"] == "microphone:test muted";
    assert!(stats.iter().any(is_muted), "{stats:#?}");
}

#[test]
fn lines_handed_in_while_the_agent_runs_are_committed_by_it() {
    let mut agent = agent();
    agent.until("it captures", |status| status.sensors.iter().any(|sensor| sensor.captures > 0));
    let file = agent.root.path().join("lines.jsonl");
    let note = |number: u32| {
        let content = format!("Note {number}");
        serde_json::json!({"id": number.to_string(), "tool_name": "note", "content": content, "timestamp": 1_796_000_000_000_i64})
    };
    let mut lines: Vec<String> = (0..200).map(|number| note(number).to_string()).collect();
    std::fs::write(&file, lines.join("\n")).unwrap();

    let first = agent.jsonl(&["ingest", file.to_str().unwrap()]);
    let again = agent.jsonl(&["ingest", file.to_str().unwrap()]);
    lines = vec!["{}".to_owned(), note(7).to_string()];
    let answer: Value = agent.client().post_lines("/v1/ingest", lines.join("\n").into_bytes()).unwrap();
    let too_many = agent.client().post_lines::<Value>("/v1/ingest", vec![b'\n'; 1_000]).unwrap_err();
    let too_long = agent.client().post_lines::<Value>("/v1/ingest", vec![b' '; 6 << 20]).unwrap_err();
    let committed = agent.jsonl(&["episodes", "--session", "handed-in", "--limit", "1000"]).len();

    assert_eq!((&first[0]["new"], &first[0]["refused"]), (&serde_json::json!(200), &serde_json::json!(0)));
    assert_eq!((&again[0]["new"], &again[0]["known"]), (&serde_json::json!(0), &serde_json::json!(200)));
    let told: Vec<_> =
        answer["lines"].as_array().unwrap().iter().map(|line| (&line["line"], &line["outcome"])).collect();
    assert_eq!(serde_json::json!(told), serde_json::json!([[1, "refused"], [2, "known"]]));
    assert!(too_many.to_string().contains("the most in one request is 256"), "{too_many}");
    assert!(too_long.to_string().contains("The lines are too many"), "{too_long}");
    assert_eq!(committed, 200, "what is answered is committed");
    agent.stop();
}

#[test]
fn a_running_agent_forgets_who_is_there_and_captures_on() {
    let mut agent = agent();
    agent.until("she was met", |status| status.store.episodes.contains_key("social"));
    let asked = Capture { faces: vec!["Alice".to_owned(), "Bob".to_owned()], ..Capture::default() };
    let _: Value = agent.client().post("/v1/capture", &asked).unwrap();

    let rows = agent.jsonl(&["forget", "--person", "Alice", "--yes"]);

    assert!(rows[0]["episodes_removed"].as_u64() >= Some(1), "{rows:?}");
    assert_eq!(rows[0]["episodes_redacted"].as_u64(), Some(1), "{rows:?}");
    let captures = |status: &Status| status.sensors.iter().map(|sensor| sensor.captures).sum::<u64>();
    let before = captures(&agent.status());
    agent.until("capture goes on", |status| captures(status) > before + 20);
    // Whether this machine's clock is set is not the test's to say.
    match agent.client().post::<Value>("/v1/prune", &()) {
        Ok(answer) => assert_eq!(answer, serde_json::json!({"removed": 0, "is_more": false})),
        Err(error) => assert!(error.to_string().contains("the clock is not set"), "{error}"),
    }
    assert_eq!(agent.jsonl(&["reconcile", "--mend"]).len(), 7);
    // Her departure ends a meeting that is forgotten.
    agent.stop();

    assert_eq!(crate::forget::files_with(&agent.data_dir(), "alice"), [""; 0]);
    let told = agent.jsonl(&["episodes"]);
    assert!(told.iter().any(|row| row["content"].as_str().unwrap().contains("Faces: someone, Bob")), "{told:#?}");
}

#[test]
fn a_search_is_answered_by_the_running_agent_and_what_it_returns_is_stronger_at_once() {
    let mut agent = agent();
    let asked = Capture { person: Some("Bob".to_owned()), ..Capture::default() };
    let _: Value = agent.client().post("/v1/capture", &asked).unwrap();

    let first = agent.jsonl(&["search", "bob"]);
    assert!(first[0]["content"].as_str().unwrap().starts_with("Met Bob"), "{first:#?}");
    assert_eq!(first[0]["score_parts"]["strength"], 0.0);
    let stronger =
        || Some(agent.jsonl(&["search", "bob", "--peek"])).filter(|found| found[0]["score_parts"]["strength"] == 1.0);
    eventually("the next search counts it", stronger);
    let error = agent.client().post::<Value>("/v1/search", &serde_json::json!({"words": "bob"})).unwrap_err();
    assert!(error.to_string().contains("unknown field"), "{error}");
    let error = agent.client().post::<Value>("/v1/search", &serde_json::json!({})).unwrap_err();
    assert!(error.to_string().contains("nothing to search for"), "{error}");

    agent.stop();

    let stored = agent.jsonl(&["search", "bob", "--peek"]);
    assert_eq!(stored[0]["strength"], 2.0, "and the writer's end keeps it");
}

#[test]
fn a_microphone_that_delivers_zeros_is_named_in_health_while_it_runs() {
    let mut agent = Agent::start_with(tempfile::tempdir().unwrap(), None, Box::new(Dead));

    let status = agent.until("the complaint is told", |status| {
        status.sensors.iter().any(|sensor| sensor.complaint.as_deref() == Some("the microphone delivers no signal"))
    });

    assert_eq!(status.sensors[0].state, State::Running);
    agent.stop();
    assert_eq!(agent.jsonl(&["episodes"]), Vec::<Value>::new(), "silence is no episode");
}

#[test]
fn a_wrong_config_changes_nothing_and_the_mended_one_is_taken() {
    let mut agent = agent();
    let session = agent.until("it runs", |status| !status.session_id.is_empty()).session_id;
    let file = agent.root.path().join("percept.toml");
    std::fs::write(&file, format!("{}[camera]\nframes_per_second = 3\n", config())).unwrap();

    let error = agent.client().post::<Value>("/v1/reload", &()).unwrap_err().to_string();

    assert!(error.contains("frames_per_s"), "{error}");
    assert_eq!(agent.status().session_id, session);
    std::fs::write(&file, format!("{}[camera]\nframes_per_s = 3.0\n", config())).unwrap();
    agent.signals.reload();
    agent.until("another segment runs", |status| status.session_id != session);
    agent.stop();
}

#[test]
fn two_agents_never_share_a_store_and_the_time_between_two_runs_is_coverage() {
    let mut first = agent();
    first.until("it captures", |status| status.sensors.iter().any(|sensor| sensor.captures > 0));
    let loaded = load(first.root.path()).unwrap();
    let folder = first.root.path().to_owned();
    let second =
        Options { for_ms: Some(1), record: None, reload: Box::new(move || load(&folder)), sources: Box::new(Kitchen) };
    let error = run(loaded, second, &Signals::none(), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("percept run"), "{error}");
    first.stop();

    let root = std::mem::replace(&mut first.root, tempfile::tempdir().unwrap());
    let mut third = Agent::start(root, None);
    third.until("it captures", |status| status.sensors.iter().any(|sensor| sensor.captures > 0));
    third.stop();

    let stats = third.jsonl(&["stats"]);
    let blind = stats.iter().filter(|row| row["which"].as_str().unwrap_or_default().ends_with(" not_running")).count();
    assert_eq!(blind, 4, "{stats:#?}");
}

#[test]
fn the_days_before_are_told_by_themselves_and_today_when_it_is_asked_for() {
    let root = tempfile::tempdir().unwrap();
    a_day_before(root.path());
    let mut agent = Agent::start_with(root, None, Box::new(Timed));
    agent.until("a meeting is stored", |status| status.store.episodes.contains_key("social"));

    let told = eventually("the day before is told", || {
        let rows = agent.jsonl(&["episodes", "--modality", "gist"]);
        (rows.len() == 2).then_some(rows)
    });
    let today = jiff::Timestamp::from_millisecond(SystemClock::new().utc().as_millis()).unwrap();
    let today = today.to_zoned_datetime(jiff::tz::TimeZone::system()).date().to_string();
    let asked = |subject: Subject, first: &str| AskedGist { subject, first: first.to_owned(), last: today.clone() };
    let answer: Value = agent.client().post("/v1/gist", &asked(Subject::Day, &today)).unwrap();
    let refused = agent.client().post::<Value>("/v1/gist", &asked(Subject::Day, "2026-02-30")).unwrap_err();

    let contents: Vec<&str> = told.iter().map(|row| row["content"].as_str().unwrap()).collect();
    assert!(contents.iter().any(|content| content.contains(": met Alice at ")), "the day: {contents:?}");
    assert!(contents.iter().any(|content| content.starts_with("Alice in ")), "the month: {contents:?}");
    assert!(answer["content"].as_str().unwrap().contains("et Alice at "), "{answer}");
    assert!(refused.to_string().contains("\"2026-02-30\" is no date"), "{refused}");
    agent.stop();
    let rows = agent.jsonl(&["episodes", "--modality", "gist"]);
    assert!(rows.iter().any(|row| row["id"] == answer["id"]), "{rows:#?}");
}

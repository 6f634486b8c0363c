//! From a recorded session to remembered episodes: the whole line, through the command line.

use crate::scene::Outcome;
use crate::scene::STARTED_AT;
use crate::scene::Scene;
use crate::scene::percept;
use percept::domain::time::Timestamp;
use percept::memory::reader::Reader;
use serde_json::Value;
use serde_json::json;
use std::fs;

/// A config that asks for no model, so that the tests need none.
const NO_MODELS: &str = "[models]\nyamnet = false\n[clip]\nmodel = \"\"\n";

const ALICE: &str = "[[people]]\nname = \"Alice\"\naddresses = [\"C0:FF:EE:00:12:34\"]\n\
                     [[places]]\nname = \"Kitchen\"\nlatitude_deg = 52.5\nlongitude_deg = 13.4\n";

pub fn config() -> String {
    format!("{NO_MODELS}{ALICE}")
}

#[test]
fn a_session_of_four_sensors_gives_episodes_of_four_modalities_with_their_importance_and_decay() {
    let scene = home("four");

    scene.replay(&config());

    let mut kinds: Vec<(String, i64, String)> = scene
        .episodes(&[])
        .iter()
        .map(|row| (text(row, "modality"), row["importance"].as_i64().unwrap(), text(row, "decay_class")))
        .collect();
    kinds.sort();
    kinds.dedup();
    let expected =
        [("audio", 6, "daily"), ("social", 9, "permanent"), ("spatial", 5, "procedural"), ("visual", 7, "procedural")];
    assert_eq!(kinds, expected.map(|(modality, importance, decay)| (modality.into(), importance, decay.into())));
}

#[test]
fn a_meeting_is_one_row_that_binds_what_was_noticed_and_its_document_says_the_same() {
    let scene = home("meeting");

    scene.replay(&config());

    let rows = scene.episodes(&["--modality", "social"]);
    assert_eq!(rows.len(), 1, "{rows:#?}");
    let row = &rows[0];
    assert_eq!(text(row, "content"), "Met Alice. Location: Kitchen");
    assert_eq!(text(row, "tool_name"), "multimodal_memory");
    assert_eq!(row["metadata"]["has_gps"], json!(true));
    assert_eq!(row["metadata"]["nearest_rssi_dbm"], json!(-48));
    assert_eq!(row["ended_at"].as_i64().unwrap() - row["timestamp"].as_i64().unwrap(), 60_000);
    let id = text(row, "id");
    assert_eq!(row["metadata"]["multimodal_episode_id"], json!(id));
    let file = scene.data_dir().join("multimodal-episodes").join(&id).join("episode.json");
    let document: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert_eq!(document["social"], json!({"personName": "Alice"}));
    assert_eq!(document["spatial"]["locationLabel"], json!("Kitchen"));
    assert_eq!(document["timestamp"], row["timestamp"]);
    assert_eq!(fs::read_dir(scene.data_dir().join("pending")).unwrap().count(), 0, "no marker is left");
    let shown = scene.percept(&config(), &["show", &id[..8]]).out;
    assert!(shown.contains("Met Alice via multimodal capture (Alice → discovered_during → Alice)"), "{shown}");
    assert!(shown.contains("Alice seen at Kitchen (Alice → appears_in → Kitchen)"), "{shown}");
}

#[test]
fn replaying_into_two_stores_gives_equal_dumps_and_into_one_nothing_new() {
    let (first, second) = (home("twice"), home("twice"));
    first.replay(&config());
    second.replay(&config());
    let dump = |scene: &Scene| Reader::open(&scene.data_dir()).unwrap().dump().unwrap();
    assert!(dump(&first).lines().count() > 20);
    assert_eq!(dump(&first), dump(&second));

    let again = first.replay(&config());

    assert!(again.out.contains("nothing new"), "{}", again.out);
    assert_eq!(dump(&first), dump(&second));
}

#[test]
fn other_settings_need_reprocess_and_then_take_the_place_of_the_rows() {
    let scene = home("settings");
    scene.replay(&config());
    let count = scene.episodes(&[]).len();
    let other = format!("{}[moments]\npause_s = 601\n", config());
    let session = scene.session();
    let session = session.to_str().unwrap();

    let refused = scene.percept(&other, &["replay", session]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("--reprocess"), "{}", refused.err);

    let replaced = scene.percept(&other, &["replay", "--reprocess", session]);
    assert_eq!(replaced.code, 0, "{replaced:#?}");
    assert_eq!(scene.episodes(&[]).len(), count);
}

#[test]
fn a_meeting_in_which_the_clock_was_set_tells_its_arrival_and_departure_by_the_right_time() {
    let step = "[[clock_steps]]\nat_ms = 600000\nstep_ms = 1209600000\nquality = \"network\"\n";
    let mut scene = Scene::new("met").with("clock_quality", "\"unset\"");
    scene = scene.with("started_at", "\"2026-11-16T09:00:00+01:00\"").toml(step);
    // One over before the clock is set, one that goes on meanwhile.
    for second in (0..60).step_by(5).chain((570..690).step_by(5)) {
        scene = scene.advertisement(second * 1_000, "C0:FF:EE:00:12:34", -50);
    }
    scene.replay(&config());

    let rows = scene.episodes(&["--modality", "social"]);

    let time = |row: &Value, key: &str| Timestamp::parse(row["metadata"][key].as_str().unwrap()).unwrap().as_millis();
    let told: Vec<_> = rows.iter().map(|row| (time(row, "arrival"), time(row, "departure"))).collect();
    let row_times = |row: &Value| (row["timestamp"].as_i64().unwrap(), row["ended_at"].as_i64().unwrap());
    assert_eq!(told, rows.iter().map(row_times).collect::<Vec<_>>());
    assert_eq!(told.len(), 2, "{rows:#?}");
    assert_eq!(told[0].0, Timestamp::parse(STARTED_AT).unwrap().as_millis());
}

#[test]
fn a_clock_that_jumps_after_ten_minutes_moves_earlier_rows_and_leaves_their_ids() {
    let step = "[[clock_steps]]\nat_ms = 600000\nstep_ms = 1209600000\nquality = \"network\"\n";
    let wrong = tones("jump").with("clock_quality", "\"unset\"").with("started_at", "\"2026-11-16T09:00:00+01:00\"");
    let never_set =
        tones("jump").with("clock_quality", "\"unset\"").with("started_at", "\"2026-11-16T09:00:00+01:00\"");
    let set = wrong.toml(step);
    set.replay(NO_MODELS);
    never_set.replay(NO_MODELS);

    let (moved, unmoved) = (set.episodes(&[]), never_set.episodes(&[]));

    assert_eq!(moved.len(), 2, "{moved:#?}");
    assert_eq!(text(&moved[0], "id"), text(&unmoved[0], "id"), "ids are never recomputed");
    let shift_ms = moved[0]["timestamp"].as_i64().unwrap() - unmoved[0]["timestamp"].as_i64().unwrap();
    assert_eq!(shift_ms, 1_209_600_000);
    assert_eq!(text(&moved[0], "clock_quality"), "network");
    assert_eq!(text(&unmoved[0], "clock_quality"), "unset");
    for row in &moved {
        assert!(row["ended_at"].as_i64() >= row["timestamp"].as_i64(), "no negative duration: {row}");
    }
}

#[test]
fn gps_time_sets_a_clock_that_started_in_1970_and_a_rollover_never_does() {
    let gps = |name: &str, date: &str| {
        let time = |second: u64| format!("{date}T10:00:{second:02}.000Z");
        let start = tones(name).with("clock_quality", "\"unset\"").with("started_at", "\"1970-01-01T00:00:10Z\"");
        (20..30).fold(start, |scene, second| scene.gps(second * 1_000, &fix(&time(second), 52.5, 13.4)))
    };
    let (right, rollover) = (gps("right", "2030-05-01"), gps("rollover", "2010-09-15"));
    right.replay(NO_MODELS);
    rollover.replay(NO_MODELS);

    let first = |scene: &Scene| scene.episodes(&["--modality", "audio"])[0].clone();

    assert!(text(&first(&right), "time").starts_with("2030-05-01T10:00:0"), "{}", first(&right));
    assert_eq!(text(&first(&right), "clock_quality"), "gps");
    assert!(text(&first(&rollover), "time").starts_with("1970-01-01T"), "{}", first(&rollover));
    assert_eq!(text(&first(&rollover), "clock_quality"), "unset");
}

#[test]
fn a_minute_of_zeros_is_one_coverage_row_and_no_episode() {
    let scene = Scene::new("zeros").sound(0, &vec![0.0; 60 * 16_000]);

    scene.replay(NO_MODELS);

    assert_eq!(scene.episodes(&[]), Vec::<Value>::new());
    let stats = scene.percept(NO_MODELS, &["stats"]).out;
    let row = stats.lines().find(|line| line.starts_with("coverage")).unwrap_or_default();
    assert!(row.contains("no_signal") && row.contains('1'), "{stats}");
}

#[test]
fn a_sound_file_whose_header_was_never_finalised_is_heard_whole() {
    let scene = tones("header");
    let file = scene.microphone(0);
    let mut bytes = fs::read(&file).unwrap();
    bytes[4..8].copy_from_slice(&[0; 4]);
    bytes[40..44].copy_from_slice(&[0; 4]);
    fs::write(&file, bytes).unwrap();

    scene.replay(NO_MODELS);

    assert_eq!(scene.episodes(&["--modality", "audio"]).len(), 2);
}

#[test]
fn no_address_reaches_any_file_of_the_store() {
    let scene = home("privacy");

    scene.replay(&config());

    let mut looked_at = 0;
    for file in files_below(&scene.data_dir()) {
        let bytes = fs::read(&file).unwrap();
        let words = String::from_utf8_lossy(&bytes).to_ascii_uppercase();
        for address in ["C0:FF:EE:00:12:34", "AA:BB:CC:00:00:01"] {
            assert!(!words.contains(address), "{} holds an address", file.display());
        }
        looked_at += 1;
    }
    assert!(looked_at >= 2, "the store and a document at least");
}

#[test]
fn a_wrong_session_is_one_sentence_naming_the_file_and_nothing_is_written() {
    let scene = Scene::new("wrong").toml("sesion = 1\n");
    scene.write();
    let session = scene.session();

    let outcome = scene.percept(NO_MODELS, &["replay", session.to_str().unwrap()]);

    assert_eq!(outcome.code, 1);
    assert!(outcome.err.contains("session.toml"), "{}", outcome.err);
    assert!(!scene.data_dir().join("memory.db").exists());
}

#[test]
fn one_wrong_session_among_good_ones_does_not_keep_them_out() {
    let scene = tones("good");
    scene.write();
    let session = scene.session();

    let outcome = scene.percept(NO_MODELS, &["replay", "/nowhere/session", session.to_str().unwrap()]);

    assert_eq!(outcome.code, 1);
    assert!(outcome.err.contains("/nowhere/session"), "{}", outcome.err);
    assert_eq!(scene.episodes(&[]).len(), 2);
}

#[test]
fn a_foreign_database_is_named_and_left_as_it_was() {
    let scene = tones("foreign");
    let file = scene.data_dir().join("memory.db");
    fs::write(&file, b"this is no database, and somebody may need it").unwrap();
    let before = fs::read(&file).unwrap();
    scene.write();
    let session = scene.session();

    let outcome = scene.percept(NO_MODELS, &["replay", session.to_str().unwrap()]);

    assert_eq!(outcome.code, 1);
    assert!(outcome.err.contains("memory.db"), "{}", outcome.err);
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn a_missing_model_is_said_once_and_capture_goes_on() {
    let scene = tones("models");
    scene.write();
    let session = scene.session();

    let outcome = scene.percept("", &["replay", session.to_str().unwrap()]);

    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert_eq!(outcome.err.matches("percept models fetch yamnet").count(), 1, "{}", outcome.err);
    assert_eq!(scene.episodes(&["--modality", "audio"]).len(), 2);
}

#[test]
fn usage_errors_end_with_two_and_a_config_typo_with_one_and_its_path() {
    let code = |words: &[&str]| percept(words).code;
    assert_eq!((code(&["percept", "reply"]), code(&["percept", "--help"])), (2, 0));
    let scene = Scene::new("typo");

    let outcome: Outcome = scene.percept("[microphone]\ndiscontinuity = 3\n", &["config", "check"]);

    assert_eq!(outcome.code, 1);
    assert!(outcome.err.contains("microphone.discontinuity: unknown key"), "{}", outcome.err);
    assert!(outcome.err.contains("discontinuity_ms"), "{}", outcome.err);
}

#[test]
fn the_timeline_filters_by_time_and_modality_and_speaks_json() {
    let scene = home("timeline");
    scene.replay(&config());

    let all = scene.episodes(&[]).len();
    let social = scene.episodes(&["--modality", "social"]).len();
    let since = scene.episodes(&["--since", STARTED_AT]).len();
    let before = scene.episodes(&["--until", STARTED_AT]).len();

    assert_eq!((social, since, before), (1, all, 0));
    let table = scene.percept(&config(), &["episodes"]).out;
    assert!(table.contains("👤 social") && table.contains("Met Alice"), "{table}");
    let lines = scene.percept(&config(), &["episodes", "--format", "jsonl"]).out;
    assert_eq!(lines.lines().count(), all);
}

/// Ten minutes in the kitchen: two sounds, two pictures, a stay, Alice for a minute, a passer-by.
pub fn home(name: &str) -> Scene {
    let scene = tones(name);
    let scene = (0..600).fold(scene, |scene, second| {
        let time = format!("2026-11-30T08:{:02}:{:02}.000Z", second / 60, second % 60);
        scene.gps(second * 1_000, &fix(&time, 52.5, 13.4))
    });
    let scene = (400..=460).step_by(5).fold(scene, |scene, second| {
        let rssi_dbm = if second == 430 { -48 } else { -70 };
        scene.advertisement(second * 1_000, "C0:FF:EE:00:12:34", rssi_dbm)
    });
    let scene = (0..600)
        .step_by(30)
        .fold(scene, |scene, second| scene.advertisement(second * 1_000 + 7, "AA:BB:CC:00:00:01", -80));
    scene.picture(1_000, &checks(8)).picture(300_000, &checks(40))
}

/// Two seconds of a tone at 10 s, two seconds of another at 300 s, and faint noise around them.
pub fn tones(name: &str) -> Scene {
    Scene::new(name).sound(0, &tone(10.0, 440.0)).sound(300_000, &tone(302.0, 1_200.0))
}

/// Twenty seconds of faint noise, with two seconds of tone from second 10 on.
fn tone(seed: f32, frequency_hz: f32) -> Vec<f32> {
    let mut noise = seed.to_bits();
    (0..320_u16)
        .flat_map(|block| (0..1_000_u32).map(move |index| u32::from(block) * 1_000 + index))
        .map(|index| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            #[expect(clippy::cast_precision_loss, reason = "sample numbers stay far below 2^24")]
            let (hiss, time_s) = ((noise >> 16) as f32 / 65_536.0 - 0.5, index as f32 / 16_000.0);
            let is_on = (10.0..12.0).contains(&time_s);
            let tone = if is_on { 0.4 * (std::f32::consts::TAU * frequency_hz * time_s).sin() } else { 0.0 };
            tone + 0.0002 * hiss
        })
        .collect()
}

fn checks(size: u32) -> image::RgbImage {
    image::RgbImage::from_fn(320, 240, |x, y| {
        if (x / size + y / size).is_multiple_of(2) { image::Rgb([200, 60, 40]) } else { image::Rgb([30, 90, 160]) }
    })
}

fn fix(time: &str, latitude_deg: f64, longitude_deg: f64) -> Value {
    json!({"class": "TPV", "device": "/dev/ttyACM0", "mode": 3, "time": time, "lat": latitude_deg, "lon": longitude_deg,
           "alt": 40.0, "eph": 5.0, "speed": 0.0, "track": 0.0})
}

fn text(row: &Value, key: &str) -> String {
    row[key].as_str().unwrap_or_default().to_owned()
}

fn files_below(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        if entry.path().is_dir() { files.extend(files_below(&entry.path())) } else { files.push(entry.path()) }
    }
    files
}

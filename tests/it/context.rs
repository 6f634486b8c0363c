//! What is worth knowing now, through the command line.

use crate::replay::config;
use crate::scene::STARTED_AT;
use crate::scene::Scene;
use percept::domain::time::Timestamp;
use serde_json::Value;
use serde_json::json;
use std::fs;

const MINUTE_MS: i64 = 60_000;

/// When the commands of a scene run.
fn now_ms() -> i64 {
    Timestamp::parse(STARTED_AT).unwrap().as_millis() + 60 * MINUTE_MS
}

fn line(minutes_ago: i64, tool: &str, content: &str, metadata: Value) -> String {
    let timestamp = now_ms() - minutes_ago * MINUTE_MS;
    json!({"tool_name": tool, "content": content, "timestamp": timestamp, "metadata": metadata}).to_string()
}

/// A morning in the kitchen.
fn kitchen() -> Scene {
    let scene = Scene::new("context");
    let lines = [
        line(50, "gps_location", "Staying at Kitchen", json!({"place": "Kitchen", "is_over": false})),
        line(40, "bluetooth_scan", "12 devices near by", json!({})),
        line(45, "multimodal_memory", "Met Alice", json!({"person": "Alice", "arrival": "x"})),
        line(9, "multimodal_memory", "Met Bob", json!({"person": "Bob"})),
        line(90, "multimodal_memory", "Met Carl", json!({"person": "Carl"})),
        line(5, "audio_capture", "A kettle whistled", json!({"sound_class": "Whistle"})),
        line(14, "audio_capture", "A door closed", json!({})),
        line(30, "audio_capture", "Music long ago", json!({})),
        line(2, "vision", "A table with two cups", json!({})),
        line(3_000, "note", "Alice prefers green tea in the Kitchen", json!({"person": "Alice"})),
        line(4_000, "note", "The bicycle needs a new chain", json!({})),
        line(-600, "audio_capture", "A sound of tomorrow", json!({})),
    ];
    let file = scene.data_dir().join("lines.jsonl");
    fs::write(&file, lines.join("\n")).unwrap();
    let outcome = scene.percept(&config(), &["ingest", file.to_str().unwrap()]);
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    scene
}

fn context(scene: &Scene, args: &[&str]) -> (Value, usize) {
    let outcome = scene.percept(&config(), &[&["context"], args].concat());
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert_eq!(outcome.out.lines().count(), 1, "one line");
    (serde_json::from_str(&outcome.out).unwrap(), outcome.out.trim_end().len())
}

fn texts(value: &Value, list: &str, key: &str) -> Vec<String> {
    let list = value[list].as_array().cloned().unwrap_or_default();
    list.iter().map(|entry| entry[key].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn it_tells_who_is_here_where_and_what_was_just_heard_and_seen() {
    let scene = kitchen();

    let (value, _) = context(&scene, &[]);

    assert_eq!(value["place"]["name"], json!("Kitchen"));
    assert_eq!(texts(&value, "people", "name"), ["Alice", "Bob"]);
    assert!(value["people"][0]["here_since"].is_string() && value["people"][1]["met"].is_string(), "{value}");
    assert_eq!(texts(&value, "heard", "what"), ["A kettle whistled", "A door closed"]);
    assert_eq!(texts(&value, "seen", "what"), ["A table with two cups"]);
    let recalled = texts(&value, "recalls", "what");
    assert!(recalled.iter().any(|what| what == "Alice prefers green tea in the Kitchen"), "{recalled:?}");
}

#[test]
fn it_recalls_what_it_is_asked_about_and_looks_as_far_back_as_it_is_told() {
    let scene = kitchen();

    let (asked, _) = context(&scene, &["--about", "bicycle chain"]);
    let (narrow, _) = context(&scene, &["--recent", "4m", "--people-within", "10m", "--place-within", "10m"]);

    assert_eq!(texts(&asked, "recalls", "what"), ["The bicycle needs a new chain"]);
    assert_eq!(texts(&narrow, "seen", "what"), ["A table with two cups"]);
    assert!(["heard", "people", "place"].iter().all(|part| narrow.get(part).is_none()), "{narrow}");
}

#[test]
fn it_keeps_its_budget_and_changes_nothing() {
    let scene = kitchen();
    let before: Vec<Value> = scene.episodes(&[]);

    let (small, bytes) = context(&scene, &["--tokens", "100"]);
    let (large, _) = context(&scene, &["--tokens", "32000"]);

    assert!(bytes <= 400, "a token is never more than four bytes, and these are {bytes}");
    assert!(small["left_out"].as_u64().unwrap() > 0 && small["place"].is_object(), "{small}");
    assert!(large.get("left_out").is_none());
    assert_eq!(scene.episodes(&[]), before, "no strength was raised");
    for wrong in ["63", "32001", "many"] {
        assert_eq!(scene.percept(&config(), &["context", "--tokens", wrong]).code, 2, "{wrong}");
    }
}

#[test]
fn without_a_store_it_says_so() {
    let outcome = Scene::new("empty").percept(&config(), &["context"]);

    assert_eq!(outcome.code, 1);
    assert!(outcome.err.contains("nothing has been recorded there yet"), "{}", outcome.err);
}

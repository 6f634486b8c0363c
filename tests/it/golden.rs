//! Timelines a reviewer can read: each scene's episodes as text, compared with `tests/golden/NAME.txt`.
//!
//! `make golden` writes them anew; a changed file is explained in its commit.

use crate::replay::config;
use crate::replay::home;
use crate::replay::tones;
use crate::scene::Scene;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

#[test]
fn golden_a_morning_at_home() {
    compare("home", &home("golden-home"));
}

#[test]
fn golden_two_tones_in_a_quiet_room() {
    compare("tones", &tones("golden-tones"));
}

fn compare(name: &str, scene: &Scene) {
    scene.replay(&config());
    let rows = scene.episodes(&[]);
    let first = rows.iter().filter_map(|row| row["timestamp"].as_i64()).min().unwrap_or_default();
    let mut timeline = String::new();
    for row in &rows {
        writeln!(timeline, "{}", line(row, first)).unwrap();
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    if std::env::var_os("PERCEPT_GOLDEN").is_some_and(|value| value == "rewrite") {
        std::fs::write(&file, &timeline).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(timeline, expected, "{} differs; `make golden` rewrites it", file.display());
}

/// Seconds since the first episode, length, modality, importance, sentence.
fn line(row: &Value, first: i64) -> String {
    let text = |key: &str| row[key].as_str().unwrap_or_default();
    let number = |key: &str| row[key].as_i64().unwrap_or_default();
    #[expect(clippy::cast_precision_loss, reason = "a scene is minutes long")]
    let seconds = |millis: i64| millis as f64 / 1_000.0;
    format!(
        "{:>7.1} s  {:>6.1} s  {:<8} {}  {}",
        seconds(number("timestamp") - first),
        seconds(number("ended_at") - number("timestamp")),
        text("modality"),
        number("importance"),
        text("content")
    )
}

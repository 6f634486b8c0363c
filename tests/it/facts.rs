//! Facts through the command line, learnt from replayed scenes.

use crate::replay::config;
use crate::scene::Outcome;
use crate::scene::Scene;
use serde_json::Value;
use serde_json::json;

/// Home twice, a stay of ten minutes each with a way between; Alice comes by at the first.
fn two_stays() -> Scene {
    let mut scene = Scene::new("facts");
    let fix = |north_deg: f64| json!({"class": "TPV", "mode": 3, "lat": 52.5 + north_deg, "lon": 13.4, "eph": 5.0});
    for second in (0_i32..=3_000).step_by(10) {
        // 0.01 degrees north are 1.1 km.
        let north_deg = match second {
            0..=900 => 0.0,
            901..1_200 => f64::from(second - 900) * 0.01 / 300.0,
            1_200..=2_100 => 0.01,
            2_101..2_400 => 0.01 - f64::from(second - 2_100) * 0.01 / 300.0,
            _ => 0.0,
        };
        scene = scene.gps(u64::from(second.unsigned_abs()) * 1_000, &fix(north_deg));
    }
    for second in (600..700).step_by(5) {
        scene = scene.advertisement(second * 1_000, "C0:FF:EE:00:12:34", -50);
    }
    scene.replay(&config());
    scene
}

fn facts(scene: &Scene, args: &[&str]) -> Vec<Value> {
    let outcome = run(scene, &[&["--format", "json"], args].concat());
    assert_eq!(outcome.code, 0, "{outcome:?}");
    serde_json::from_str(&outcome.out).unwrap()
}

fn run(scene: &Scene, args: &[&str]) -> Outcome {
    scene.percept(&config(), &[&["facts"], args].concat())
}

fn told(rows: &[Value]) -> Vec<String> {
    rows.iter().map(|row| row["fact"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn what_held_at_an_instant_and_what_ever_held_are_told_apart() {
    let scene = two_stays();

    // The scene begins at 09:00 local time of its offset; the command runs at 10:00.
    let at = |time: &str| told(&facts(&scene, &["--relation", "located_at", "--as-of", time]));

    assert_eq!(at("2026-11-30T08:59:00+01:00"), Vec::<String>::new());
    assert_eq!(at("2026-11-30T09:05:00+01:00"), ["test-device is at Kitchen"]);
    assert_eq!(at("2026-11-30T09:17:00+01:00"), Vec::<String>::new(), "on the way");
    assert_eq!(at("2026-11-30T09:25:00+01:00"), ["test-device is at place-1"]);
    assert_eq!(at("2026-11-30T09:45:00+01:00"), ["test-device is at Kitchen"]);
    let history = facts(&scene, &["kitchen", "--relation", "located_at", "--history"]);
    assert_eq!(told(&history), ["test-device is at Kitchen", "test-device is at Kitchen"], "both intervals are kept");
    assert!(history[0]["valid_to"].as_i64() < history[1]["valid_from"].as_i64(), "{history:#?}");
}

#[test]
fn a_person_is_found_by_a_part_of_the_name_and_a_slip_is_named() {
    let scene = two_stays();

    let rows = facts(&scene, &["ali"]);

    assert_eq!(told(&rows), ["Met Alice via multimodal capture", "Alice seen at Kitchen"], "{rows:#?}");
    assert_eq!((&rows[1]["subject_type"], &rows[1]["object_type"]), (&json!("person"), &json!("location")));
    let lost = run(&scene, &["Alcie"]);
    assert_eq!(lost.code, 1);
    assert!(lost.err.contains("nothing is known of \"Alcie\"; did you mean Alice?"), "{}", lost.err);
    let table = run(&scene, &["Alice"]);
    assert!(table.out.starts_with("SINCE"), "{}", table.out);
    assert!(table.out.contains("Alice seen at Kitchen"), "{}", table.out);
}

//! Gists through the command line, of replayed scenes, and of the running agent.

use crate::replay::config;
use crate::scene::Outcome;
use crate::scene::STARTED_AT;
use crate::scene::Scene;
use percept::agent::gists;
use percept::domain::time::Timestamp;
use percept::memory::reader::Reader;
use serde_json::Value;
use serde_json::json;

/// A morning in the kitchen: Alice comes by for two minutes, a tone sounds.
fn morning(name: &str) -> Scene {
    let mut scene = Scene::new(name);
    let fix = json!({"class": "TPV", "mode": 3, "lat": 52.5, "lon": 13.4, "eph": 5.0});
    for second in (0..=1_800).step_by(10) {
        scene = scene.gps(second * 1_000, &fix);
    }
    for second in (600..720).step_by(5) {
        scene = scene.advertisement(second * 1_000, "C0:FF:EE:00:12:34", -50);
    }
    let tone: Vec<f32> = (0..16_000 * 3_u16).map(|at| (f32::from(at) * 0.17).sin() * 0.4).collect();
    scene.sound(900_000, &tone)
}

fn run(scene: &Scene, args: &[&str]) -> Outcome {
    let outcome = scene.percept(&config(), &[&["gist"], args].concat());
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome
}

fn gists_of(scene: &Scene, args: &[&str]) -> Vec<Value> {
    serde_json::from_str(&run(scene, &[&["--format", "json"], args].concat()).out).unwrap()
}

/// Where times of the scenes are told as they were captured, whatever zone this machine is in.
fn local(time: &str) -> String {
    let at = Timestamp::parse(STARTED_AT).unwrap();
    let shift: i64 = time.parse::<i64>().unwrap() * 60_000;
    let at = jiff::Timestamp::from_millisecond(at.plus_millis(shift).as_millis()).unwrap();
    at.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%H:%M").to_string()
}

#[test]
fn a_day_is_told_and_remembered_and_the_second_time_is_the_same_row() {
    let scene = morning("day");
    scene.replay(&config());
    assert_eq!(gists_of(&scene, &["--dry-run"]).len(), 1, "yesterday has nothing to tell");
    assert_eq!(scene.episodes(&["--modality", "gist"]).len(), 0, "a dry run writes nothing");

    let told = gists_of(&scene, &[]);
    let again = gists_of(&scene, &["--day", "2026-11-30"]);

    let content = told[0]["content"].as_str().unwrap();
    let expected = format!(
        "Monday 30 November 2026: at Kitchen from {} to {}. Met Alice at {} (2 min, at Kitchen). Heard sounds for 3 s.",
        local("0"),
        local("30"),
        local("10")
    );
    assert_eq!(content, expected);
    assert_eq!(told, again);
    let rows = scene.episodes(&["--modality", "gist"]);
    assert_eq!(rows.len(), 1, "{rows:#?}");
    assert_eq!((&rows[0]["importance"], &rows[0]["decay_class"]), (&json!(7), &json!("procedural")));
    assert_eq!((&rows[0]["tool_name"], &rows[0]["content"]), (&json!("gist"), &told[0]["content"]));
    let shown = scene.percept(&config(), &["show", rows[0]["id"].as_str().unwrap()]).out;
    assert!(shown.contains("gist"), "{shown}");
}

#[test]
fn a_person_and_a_place_are_told_by_a_part_of_their_names() {
    let scene = morning("person");
    scene.replay(&config());

    let person = run(&scene, &["--person", "ali"]).out.replace('\n', " ");
    let place = run(&scene, &["--place", "KITCHEN", "--since", "2026-11-30", "--until", "2026-11-30"]).out;

    assert!(
        person.starts_with("Alice in November 2026: met once, 2 min, at Kitchen. Last met on Monday 30"),
        "{person}"
    );
    assert!(
        place.starts_with("Kitchen on Monday 30 November 2026: stayed once, 30 min. Met here: Alice once."),
        "{place}"
    );
    let lost = scene.percept(&config(), &["gist", "--person", "Alcie"]);
    assert_eq!(lost.code, 1);
    assert!(lost.err.contains("no person \"Alcie\" is known; did you mean Alice?"), "{}", lost.err);
    let usage = scene.percept(&config(), &["gist", "--since", "2026-11-30"]);
    assert!(usage.err.contains("--day"), "{}", usage.err);
    let nothing = run(&scene, &["--day", "2020-02-02"]);
    assert_eq!((nothing.out.as_str(), nothing.err.contains("2020-02-02")), ("", true), "{nothing:?}");
}

#[test]
fn what_came_late_changes_the_gists_that_tell_of_its_day() {
    let scene = morning("late");
    scene.replay(&config());
    run(&scene, &[]);
    let before = scene.episodes(&["--modality", "gist"]);
    let zone = jiff::tz::TimeZone::system();
    let at = Timestamp::parse(STARTED_AT).unwrap();
    let again = || {
        let reader = Reader::open(&scene.data_dir()).unwrap();
        gists::again(&reader, at, at.plus_millis(1), &zone).unwrap()
    };
    let content = |made: &[gists::Made]| made[0].answer()["content"].as_str().unwrap().to_owned();
    assert_eq!(content(&again()), before[0]["content"].as_str().unwrap());

    let mut other = Scene::new("later");
    for second in (2_400..2_700).step_by(5) {
        other = other.advertisement(second * 1_000, "C0:FF:EE:00:12:34", -50);
    }
    other.write();
    let replayed = scene.percept(&config(), &["replay", other.session().to_str().unwrap()]);
    assert_eq!(replayed.code, 0, "{replayed:?}");
    let made = again();

    assert_eq!(made.len(), 1);
    assert_eq!(made[0].answer()["id"], before[0]["id"]);
    assert!(content(&made).contains("Met Alice twice (7 min in all, at Kitchen)"), "{}", content(&made));
}

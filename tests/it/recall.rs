//! Recall through the command line: questions about one's day, and what is remembered by way of something else.

use crate::memory_rows;
use crate::scene::Outcome;
use crate::scene::Scene;
use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use percept::domain::episode::EpisodeRecord;
use percept::domain::fact::Fact;
use percept::domain::fact::Node;
use percept::domain::fact::NodeKind;
use percept::domain::modality::Modality;
use percept::domain::time::Timestamp;
use percept::memory::reader::Reader;
use serde_json::Value;

const NO_CLIP: &str = "[models]\nyamnet = false\n[clip]\nmodel = \"\"\n";

/// When [`crate::scene::percept`] runs its commands.
const NOW: &str = "2026-11-30T09:00:00Z";

/// A store with these episodes.
fn store(name: &str, records: Vec<EpisodeRecord>) -> Scene {
    let scene = Scene::new(name);
    let writer = memory_rows::writer(&scene.data_dir());
    for record in records {
        writer.append(record).unwrap();
    }
    writer.close().unwrap();
    scene
}

/// Anna has to do with the workshop, the bicycle with Anna; the rain with neither.
fn workshop(name: &str) -> Scene {
    store(
        name,
        vec![
            note(0, "The workshop belongs to Anna Holm", &[("Workshop", "belongs to", "Anna Holm")]),
            note(3_600_000, "Somebody repaired a red bicycle", &[("Anna Holm", "repaired", "bicycle")]),
            note(7_200_000, "It rained all day", &[]),
        ],
    )
}

fn note(start: i64, content: &str, facts: &[(&str, &str, &str)]) -> EpisodeRecord {
    let node = |text: &str| Node::new(NodeKind::Other("thing".to_owned()), text);
    let mut record = memory_rows::visual(start);
    content.clone_into(&mut record.episode.content);
    record.facts = facts
        .iter()
        .map(|(subject, relation, object)| {
            Fact::triple(node(subject), relation, node(object), String::new(), record.episode.timestamp)
        })
        .collect();
    record
}

fn recall(scene: &Scene, args: &[&str]) -> Outcome {
    scene.percept(NO_CLIP, &[&["recall"], args].concat())
}

fn rows(scene: &Scene, args: &[&str]) -> Vec<Value> {
    let outcome = recall(scene, &[&["--format", "jsonl"], args].concat());
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    outcome.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn contents(scene: &Scene, args: &[&str]) -> Vec<String> {
    rows(scene, args).iter().map(|row| row["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_a_question_does_not_say_is_found_by_way_of_what_it_names() {
    let scene = workshop("association");

    let near = contents(&scene, &["what", "happened in the workshop?"]);
    let nearest = contents(&scene, &["--limit", "1", "what happened in the workshop?"]);
    let searched = scene.percept(NO_CLIP, &["search", "--peek", "what happened in the workshop?"]);

    assert_eq!(near, ["The workshop belongs to Anna Holm", "Somebody repaired a red bicycle"]);
    assert_eq!(nearest, ["The workshop belongs to Anna Holm"]);
    assert!(!searched.out.contains("bicycle"), "a search finds only what has the words: {}", searched.out);
}

#[test]
fn who_i_met_yesterday_is_yesterdays_meetings_and_nothing_else() {
    // The command's days are those of the machine's zone, whatever it is.
    let zone = TimeZone::system();
    let now = jiff::Timestamp::from_millisecond(Timestamp::parse(NOW).unwrap().as_millis()).unwrap();
    let today = now.to_zoned_datetime(zone.clone()).date();
    let midnight = |days_ago: i64| {
        let day = today.checked_sub(days_ago.days()).unwrap();
        Timestamp::from_millis(day.to_zoned_datetime(zone.clone()).unwrap().timestamp().as_millisecond())
    };
    let met = |time: Timestamp, modality: Modality, content: &str| {
        let mut record = note(memory_rows::since_start(time), content, &[]);
        record.episode.modality = modality;
        record
    };
    let (yesterday, after) = (midnight(1), midnight(0));
    let scene = store(
        "met",
        vec![
            met(yesterday.plus_millis(-1), Modality::Social, "Met Bob the day before"),
            met(yesterday, Modality::Social, "Met Anna"),
            met(yesterday.plus_millis(7_200_000), Modality::Audio, "Speech: who did I meet yesterday"),
            met(after.plus_millis(-1), Modality::Social, "Met Carl"),
            met(after, Modality::Social, "Met Dora today"),
        ],
    );

    assert_eq!(contents(&scene, &["Who did I meet yesterday?"]), ["Met Carl", "Met Anna"]);
    assert_eq!(contents(&scene, &["Who did I meet today?"]), ["Met Dora today"]);
    assert_eq!(contents(&scene, &["--since", "today", "who did I meet"]), ["Met Dora today"]);
    assert_eq!(contents(&scene, &["--until", "2020-01-01", "who did I meet yesterday"]), Vec::<String>::new());
}

#[test]
fn an_explanation_names_the_seeds_and_programs_get_the_parts() {
    let scene = workshop("explain");

    let outcome = recall(&scene, &["--explain", "what happened in the workshop?"]);
    let rows = rows(&scene, &["workshop"]);

    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert!(format!("{}{}", outcome.out, outcome.err).contains("workshop"), "{outcome:#?}");
    assert!(rows[0]["id"].is_string() && rows[0]["metadata"].is_object(), "{rows:#?}");
}

#[test]
fn recall_leaves_strength_and_store_alone() {
    let scene = workshop("strength");
    let before = Reader::open(&scene.data_dir()).unwrap().dump().unwrap();

    for _ in 0..3 {
        assert!(!rows(&scene, &["workshop"]).is_empty());
    }

    assert_eq!(Reader::open(&scene.data_dir()).unwrap().dump().unwrap(), before);
}

#[test]
fn recall_answers_beside_a_writer() {
    let scene = workshop("beside");
    let writer = memory_rows::writer(&scene.data_dir());
    writer.append(note(9_000_000, "The workshop was locked", &[])).unwrap();
    writer.flush().unwrap();

    assert_eq!(contents(&scene, &["workshop"]).len(), 3);
    writer.close().unwrap();
}

#[test]
fn damping_decides_how_far_the_walk_goes() {
    let scene = workshop("damping");
    let far = |damping: &str| contents(&scene, &["--damping", damping, "workshop"]).len();

    assert!(far("0") < far("0.5"), "without a step nothing is reached but what has the words");
}

#[test]
fn wrong_arguments_and_odd_questions_are_answered_in_words() {
    let scene = workshop("wrong");

    for (args, part) in [
        (vec!["--damping", "1.5", "x"], "0 to 0.99"),
        (vec!["--limit", "0", "x"], "1 to 1000"),
        (vec!["--since", "soon", "x"], "soon"),
    ] {
        let outcome = recall(&scene, &args);
        assert!(outcome.code > 0 && outcome.err.contains(part), "{args:?}: {outcome:#?}");
    }
    for text in ["'; DROP TABLE episodes; --", "NEAR(\"workshop\" *", "\u{1F600}", "日本"] {
        assert_eq!(recall(&scene, &[text]).code, 0, "{text}");
    }
    assert_eq!(recall(&scene, &["zeppelin"]).out, "");
}

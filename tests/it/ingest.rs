//! Lines of other programs become episodes, through the command line.

use crate::replay::config;
use crate::scene::Outcome;
use crate::scene::Scene;
use percept::domain::episode::EmbeddingKind;
use percept::domain::id::ModelId;
use percept::domain::modality::Modality;
use percept::domain::time::Timestamp;
use percept::memory::query::EpisodeFilter;
use percept::memory::reader::Reader;
use serde_json::Value;
use serde_json::json;
use std::fs;

const AT_MS: i64 = 1_796_000_000_000;

/// A right line with these fields more, or instead.
fn line(id: &str, more: &Value) -> String {
    let mut line = json!({"id": id, "tool_name": "note", "content": format!("Note {id}"), "timestamp": AT_MS});
    for (key, value) in more.as_object().unwrap() {
        line[key] = value.clone();
    }
    line.to_string()
}

/// Hands in the lines and returns what was done with them.
fn ingest(scene: &Scene, lines: &[String]) -> (Outcome, Value) {
    let file = scene.data_dir().join("lines.jsonl");
    fs::write(&file, lines.join("\n")).unwrap();
    let outcome = scene.percept(&config(), &["ingest", file.to_str().unwrap(), "--format", "jsonl"]);
    let told = serde_json::from_str(&outcome.out).unwrap_or_else(|error| panic!("{error}: {outcome:#?}"));
    (outcome, told)
}

fn counts(told: &Value) -> [u64; 4] {
    ["new", "known", "updated", "refused"].map(|key| told[key].as_u64().unwrap())
}

fn row<'a>(rows: &'a [Value], id: &str) -> &'a Value {
    rows.iter().find(|row| row["external_id"] == id).unwrap_or_else(|| panic!("no episode {id} in {rows:#?}"))
}

#[test]
fn the_same_file_twice_adds_nothing_and_a_changed_line_updates_its_episode() {
    let scene = Scene::new("twice");
    let mut lines: Vec<String> = (0..300).map(|number| line(&number.to_string(), &json!({}))).collect();
    lines.push(json!({"tool_name": "note", "content": "without an id", "timestamp": AT_MS}).to_string());

    let first = ingest(&scene, &lines);
    let dump = || Reader::open(&scene.data_dir()).unwrap().dump().unwrap();
    let before = dump();
    let second = ingest(&scene, &lines);
    let same = dump();
    lines[7] = line("7", &json!({"content": "Note 7, mended", "importance": 9}));
    let third = ingest(&scene, &lines);

    assert_eq!([first.0.code, second.0.code, third.0.code], [0, 0, 0]);
    assert_eq!([&first.1, &second.1, &third.1].map(counts), [[301, 0, 0, 0], [0, 301, 0, 0], [0, 300, 1, 0]]);
    assert_eq!(before, same);
    let rows = scene.episodes(&["--limit", "1000"]);
    let mended = row(&rows, "7");
    assert_eq!(
        (&mended["content"], &mended["importance"]),
        (&json!("Note 7, mended"), &json!(5)),
        "a row keeps its class"
    );
}

#[test]
fn every_bad_line_is_told_by_its_number_and_the_rest_goes_in() {
    let scene = Scene::new("bad");
    let vector = |values: Value| json!({"embeddings": [{"model_id": "m", "kind": "text", "vector": values}]});
    let lines = [
        line("1", &vector(json!([1, 0, 0]))),
        line("2", &vector(json!([1, 0]))),
        line("3", &vector(json!([1, 0, 0]))).replace("[1,0,0]", "[NaN,0,0]"),
        line("4", &json!({"modality": "sound"})),
        "{\"tool_name\": \"note\", ".to_owned(),
        line("6", &json!({"content": "x".repeat(1_000_000)})),
        line("7", &json!({"importance": 11})),
        line("8", &json!({"timestamp": -1})),
        line(
            "9",
            &json!({"facts": [{"subject": "a", "relation": "r", "object": "b", "valid_from": 9, "valid_to": 8}]}),
        ),
        line("1", &json!({"content": "Something else"})),
        String::new(),
        line("12", &json!({"contnt": "x"})),
        line("13", &json!({"content": "'); DROP TABLE episodes; -- \" OR NEAR(a b) *"})),
        line("14", &vector(json!([0, 0, 2]))),
    ];

    let (outcome, told) = ingest(&scene, &lines);

    assert_eq!(outcome.code, 1);
    assert_eq!(counts(&told), [3, 0, 0, 10]);
    let expected = [
        (2, "embeddings[0].vector: it has 2 values; the text vectors of m have 3"),
        (3, "NaN and Infinity are no JSON numbers"),
        (4, "modality: \"sound\" is not known"),
        (5, "it is no JSON object"),
        (6, "content: 1000000 bytes are too many"),
        (7, "importance: 11 is not a whole number within 0 to 10"),
        (8, "timestamp: -1 is before 1970"),
        (9, "facts[0].valid_to: it ends"),
        (10, "id: \"1\" stands in line 1 with other content"),
        (12, "contnt: unknown key; did you mean \"content\"?"),
    ];
    for ((number, sentence), refusal) in expected.iter().zip(told["refusals"].as_array().unwrap()) {
        assert_eq!(refusal["line"], json!(number));
        assert!(refusal["reason"].as_str().unwrap().contains(sentence), "{refusal}");
        assert!(outcome.err.contains(&format!("percept: line {number}: ")), "{}", outcome.err);
    }
    let rows = scene.episodes(&[]);
    assert_eq!(rows.len(), 3);
    assert_eq!(row(&rows, "13")["content"], json!("'); DROP TABLE episodes; -- \" OR NEAR(a b) *"));
    let reader = Reader::open(&scene.data_dir()).unwrap();
    assert_eq!(reader.vector_dims(&ModelId::new("m"), EmbeddingKind::Text).unwrap(), Some(3));
    assert_eq!(reader.complaint().unwrap(), None);
}

#[test]
fn a_later_file_is_held_to_the_length_of_the_stored_vectors() {
    let scene = Scene::new("dims");
    let vector = |model: &str, values: usize| json!({"embeddings": [{"model_id": model, "kind": "text", "vector": vec![0.1; values]}]});
    let (_, first) = ingest(&scene, &[line("1", &vector("nomic", 768))]);

    let (outcome, second) = ingest(&scene, &[line("2", &vector("nomic", 512)), line("3", &vector("clip", 512))]);

    assert_eq!((counts(&first), counts(&second), outcome.code), ([1, 0, 0, 0], [1, 0, 0, 1], 1));
    assert!(
        outcome.err.contains("line 1: embeddings[0].vector: it has 512 values; the text vectors of nomic have 768")
    );
}

#[test]
fn an_audio_tools_prose_and_json_become_metadata_that_filters_find() {
    let scene = Scene::new("audio");
    let content = "Someone talks. {\"rms_db\": -18.5, \"classes\": [{\"class\": \"Speech\", \"score\": 0.9}], \
                   \"peak_frequencies\": [200, 400, 800, 1600], \"band_energy_db\": {\"low\": -30}}";
    let quiet = "A dog. {\"rmsDb\": -50, \"classes\": [{\"label\": \"Dog\", \"confidence\": 0.4}]}";
    let audio = |content: &str| json!({"tool_name": "audio_analyze", "content": content});
    ingest(&scene, &[line("1", &audio(content)), line("2", &audio(quiet))]);

    let reader = Reader::open(&scene.data_dir()).unwrap();
    let found = |filter: EpisodeFilter| -> Vec<Value> {
        reader.episodes(&filter).unwrap().into_iter().map(|row| Value::Object(row.episode.metadata)).collect()
    };

    let expected = json!({
        "rms_db": -18.5, "sound_class": "Speech", "peak_frequencies": [200.0, 400.0, 800.0], "band_energy": {"low": -30},
    });
    assert_eq!(found(EpisodeFilter { rms_db_min: Some(-30.0), ..EpisodeFilter::default() }), [expected]);
    let dogs = found(EpisodeFilter { sound_class: Some("Dog".to_owned()), ..EpisodeFilter::default() });
    assert_eq!(dogs, [json!({"rms_db": -50, "sound_class": "Dog"})]);
}

#[test]
fn modality_importance_and_decay_follow_the_tables_unless_the_line_says_otherwise() {
    let scene = Scene::new("tables");
    let lines = [
        line("ocr", &json!({"tool_name": "ocr"})),
        line("sdr", &json!({"tool_name": "sdr_scan"})),
        line("done", &json!({"tool_name": "task_complete"})),
        line("other", &json!({"tool_name": "weather", "metadata": {"category": "visual"}})),
        line("said", &json!({"tool_name": "ocr", "modality": "text", "importance": 1, "decay_class": "session"})),
        line("moment", &json!({"tool_name": "multimodal_memory", "content": "Sound: Dog. Location: Garden"})),
    ];

    ingest(&scene, &lines);

    let rows = scene.episodes(&[]);
    let expected = [
        ("ocr", Modality::Visual, 7, "procedural"),
        ("sdr", Modality::Spatial, 5, "procedural"),
        ("done", Modality::Gist, 7, "procedural"),
        ("other", Modality::ToolResult, 5, "daily"),
        ("said", Modality::Text, 1, "session"),
        ("moment", Modality::Audio, 6, "daily"),
    ];
    for (id, modality, importance, decay) in expected {
        let row = row(&rows, id);
        let found = (&row["modality"], &row["importance"], &row["decay_class"]);
        assert_eq!(found, (&json!(modality.as_str()), &json!(importance), &json!(decay)), "{id}");
    }
}

#[test]
fn a_met_person_is_in_the_graph_and_has_a_document_like_every_moment() {
    let scene = Scene::new("moment");
    let moment = json!({
        "tool_name": "multimodal_memory", "content": null, "transcript": "see you", "faces": ["Bob"],
        "metadata": {"person": "Alice", "place": "Kitchen"}, "session_id": "s1",
    });
    let (_, told) = ingest(&scene, &[line("m1", &moment)]);

    assert_eq!(counts(&told), [1, 0, 0, 0]);
    let rows = scene.episodes(&[]);
    let row = row(&rows, "m1");
    assert_eq!(row["content"], json!("Met Alice. Said: \"see you\". Faces: Bob. Location: Kitchen"));
    let id = row["id"].as_str().unwrap();
    let shown = scene.percept("", &["show", id, "--format", "jsonl"]).out;
    let facts: Vec<String> = serde_json::from_str::<Value>(&shown).unwrap()["facts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fact| fact["fact"].as_str().unwrap().to_owned())
        .collect();
    for fact in ["Met Alice via multimodal capture", "Alice seen at Kitchen", "Bob seen at Kitchen"] {
        assert!(facts.iter().any(|known| known == fact), "{facts:?}");
    }
    let document = scene.data_dir().join("multimodal-episodes").join(id).join("episode.json");
    let document: Value = serde_json::from_slice(&fs::read(document).unwrap()).unwrap();
    assert_eq!((&document["id"], &document["sessionId"]), (&json!(id), &json!("s1")));
    assert_eq!(document["social"], json!({"personName": "Alice"}));
    assert_eq!(fs::read_dir(scene.data_dir().join("pending")).unwrap().count(), 0, "no marker is left");
}

#[test]
fn a_wrong_path_is_told_and_makes_no_store() {
    let scene = Scene::new("nothing");
    let folder = scene.data_dir();

    for path in ["/nowhere/lines.jsonl", folder.to_str().unwrap()] {
        let outcome = scene.percept(&config(), &["ingest", path]);
        assert_eq!(outcome.code, 1, "{outcome:#?}");
        assert!(outcome.err.contains(path), "{}", outcome.err);
    }
    assert!(!folder.join("memory.db").exists());
}

#[test]
fn what_is_gone_for_good_is_not_brought_back_by_handing_it_in_again() {
    let scene = Scene::new("gone");
    let moment = line("m1", &json!({"tool_name": "multimodal_memory", "content": "Met Eve", "decay_class": "session"}));
    ingest(&scene, std::slice::from_ref(&moment));
    let documents = scene.data_dir().join("multimodal-episodes");
    assert_eq!(fs::read_dir(&documents).unwrap().count(), 1);
    let writer = crate::memory_rows::writer(&scene.data_dir());
    assert_eq!(writer.prune_expired(Timestamp::from_millis(AT_MS + 4 * 3_600_000)).unwrap(), 1);
    writer.close().unwrap();
    fs::remove_dir_all(&documents).unwrap();

    let (outcome, told) = ingest(&scene, &[moment]);

    assert_eq!((outcome.code, counts(&told), &told["forgotten"]), (0, [0, 0, 0, 0], &json!(1)));
    assert!(scene.episodes(&[]).is_empty());
    assert_eq!(fs::read_dir(&documents).unwrap().count(), 0, "nor does its document come back");
    assert_eq!(fs::read_dir(scene.data_dir().join("pending")).unwrap().count(), 0);
}

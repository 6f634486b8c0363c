//! Searching: through the command line, and across pictures and sentences with the trained fixture.

use crate::clip_fixture;
use crate::memory_rows;
use crate::memory_rows::at;
use crate::scene::Scene;
use percept::agent::search;
use percept::agent::search::Meaning;
use percept::agent::search::Request;
use percept::agent::search::Setting;
use percept::domain::episode::Embedding;
use percept::domain::episode::EmbeddingKind;
use percept::domain::episode::EpisodeRecord;
use percept::domain::id::ModelId;
use percept::domain::time::ClockQuality;
use percept::domain::time::Stamp;
use percept::memory::reader::Reader;
use percept::memory::search::Hit;
use percept::memory::search::QueryVector;
use percept::memory::similarity::Similarity;
use percept::recall::score;
use percept::recall::score::Marks;
use percept::recall::score::ModelMarks;
use percept::recall::score::Pairs;
use serde_json::Value;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;

const NO_CLIP: &str = "[models]\nyamnet = false\n[clip]\nmodel = \"\"\n";

/// A folder with a store of these episodes.
fn kitchen(name: &str) -> Scene {
    let scene = Scene::new(name);
    let writer = memory_rows::writer(&scene.data_dir());
    let rows = [
        (0, "A dog barks in the kitchen", json!({"sound_class": "Dog", "rms_db": -20.0, "place": "Kitchen"})),
        (10_000, "Speech, then a door", json!({"sound_class": "Speech", "rmsDb": -45.0, "note": "O'Hara \"x\""})),
        (20_000, "A dog whines far away", json!({"sound_class": "Dog", "rms_db": -70.5, "person": "Alice"})),
    ];
    for (start, content, metadata) in rows {
        let mut record = memory_rows::audio(start, start + 1_000);
        record.episode.content = content.to_owned();
        record.episode.metadata = metadata.as_object().cloned().unwrap();
        writer.append(record).unwrap();
    }
    let mut seen = memory_rows::visual(30_000);
    seen.episode.content = "A garden".to_owned();
    seen.facts = vec![memory_rows::located("Bob", "Garden", 30_000)];
    writer.append(seen).unwrap();
    writer.close().unwrap();
    scene
}

fn rows(scene: &Scene, args: &[&str]) -> Vec<Value> {
    let outcome = scene.percept(NO_CLIP, &[&["search", "--format", "jsonl"], args].concat());
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    outcome.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn contents(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["content"].as_str().unwrap()).collect()
}

#[test]
fn words_and_every_filter_find_what_they_name() {
    let scene = kitchen("filters");
    let (near, far, door) = ("A dog barks in the kitchen", "A dog whines far away", "Speech, then a door");
    let cases: [(&[&str], &[&str]); 18] = [
        (&["dogs"], &[near, far]),
        (&["kitchen", "dog"], &[near, far]),
        (&["dog", "--person", "Alice"], &[far]),
        (&["--sound-class", "Speech"], &[door]),
        (&["--rms-min", "-30"], &[near]),
        (&["--rms-min=-50", "--rms-max=-40"], &[door]),
        (&["--rms-max", "-70.5"], &[far]),
        (&["--place", "Kitchen"], &[near]),
        (&["--place", "Garden"], &["A garden"]),
        (&["--person", "Bob"], &["A garden"]),
        (&["--modality", "visual"], &["A garden"]),
        (&["--meta", "note=O'Hara \"x\""], &[door]),
        (&["--meta", "sound_class=Dog", "--meta", "rms_db=-20"], &[near]),
        (&["--decay-class", "permanent"], &[]),
        (&["--session", "another"], &[]),
        (&["--device", "device", "--since", "2026-05-01T08:00:25Z"], &["A garden"]),
        (&["door", "--until", "2026-05-01T08:00:05Z"], &[]),
        (&["NEAR(dog* AND ^\"kitchen\")", "--limit", "1"], &[near]),
    ];

    for (args, expected) in cases {
        let found = rows(&scene, &[&["--peek"], args].concat());
        let mut found = contents(&found);
        let mut expected = expected.to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{args:?}");
    }
}

#[test]
fn the_timeline_takes_the_same_filters() {
    let scene = kitchen("timeline");

    let found = scene.episodes(&["--sound-class", "Dog", "--rms-max", "-40"]);

    assert_eq!(contents(&found), ["A dog whines far away"]);
}

#[test]
fn what_is_asked_wrongly_is_refused_in_words() {
    let scene = kitchen("wrong");
    let note = scene.data_dir().join("note.txt");
    std::fs::write(&note, "no picture").unwrap();
    let cut = scene.data_dir().join("cut.jpg");
    std::fs::write(&cut, [0xFF, 0xD8, 0xFF, 0xE0, 0, 4]).unwrap();
    let (note, cut) = (note.to_str().unwrap(), cut.to_str().unwrap());
    let cases: [(&[&str], u8, &str); 14] = [
        (&[], 2, "required arguments were not provided"),
        (&["--explain"], 2, "required arguments were not provided"),
        (&[" "], 2, "the text is empty"),
        (&["dog", "--limit", "0"], 2, "from 1 to 1000"),
        (&["--modality", "sound"], 2, "known are visual, audio"),
        (&["--decay-class", "weekly"], 2, "known are session"),
        (&["--rms-min", "NaN"], 2, "a number of dBFS"),
        (&["--meta", "place"], 2, "KEY=VALUE"),
        (&["--since", "soon"], 1, "\"soon\" is not a time"),
        (&["--like", "xyz"], 1, "is no episode id"),
        (&["--like", "00000000"], 1, "no episode has the id \"00000000\""),
        (&["--image", note], 1, "is no JPEG or PNG picture"),
        (&["--image", cut], 1, "holds no whole picture"),
        (&["--image", "/nowhere/at.all"], 1, "read the picture /nowhere/at.all"),
    ];

    for (args, code, sentence) in cases {
        let outcome = scene.percept(NO_CLIP, &[&["search"], args].concat());
        assert_eq!(outcome.code, code, "{args:?}: {outcome:#?}");
        assert!(outcome.err.contains(sentence), "{args:?}: {}", outcome.err);
        assert_eq!(outcome.out, "", "{args:?}");
    }
}

#[test]
fn what_was_returned_three_times_outranks_its_twin_and_a_peek_changes_nothing() {
    let scene = Scene::new("twins");
    let writer = memory_rows::writer(&scene.data_dir());
    for (start, note) in [(0, "a"), (1_000, "b")] {
        let mut twin = memory_rows::visual(start);
        twin.episode.content = "A fox".to_owned();
        twin.episode.metadata.insert("note".to_owned(), note.into());
        writer.append(twin).unwrap();
    }
    writer.close().unwrap();
    let first = |args: &[&str]| -> (String, f64) {
        let found = rows(&scene, &[&["fox", "--limit", "1"], args].concat()).remove(0);
        (found["metadata"]["note"].as_str().unwrap().to_owned(), found["strength"].as_f64().unwrap())
    };

    assert_eq!(first(&["--peek"]), ("b".to_owned(), 1.0), "the newer one, as long as nothing else tells");
    assert_eq!(first(&["--peek"]).1, 1.0);
    for strength in [1.0, 2.0, 3.0] {
        assert_eq!(first(&["--meta", "note=a"]), ("a".to_owned(), strength));
    }
    scene.percept(NO_CLIP, &["episodes"]);

    assert_eq!(first(&["--peek"]), ("a".to_owned(), 4.0));
    let found = rows(&scene, &["fox", "--peek"]);
    let bonus = |row: &Value| row["score_parts"]["strength"].as_f64().unwrap();
    assert_eq!((bonus(&found[0]), bonus(&found[1])), (1.0, 0.0));
}

#[test]
fn a_search_answers_while_another_program_writes_and_says_that_strength_stays() {
    let scene = kitchen("held");
    let writer = memory_rows::writer(&scene.data_dir());

    let outcome = scene.percept(NO_CLIP, &["search", "garden"]);

    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert!(outcome.out.contains("A garden"), "{}", outcome.out);
    assert!(outcome.err.contains("strength of what was found stays"), "{}", outcome.err);
    assert!(outcome.err.contains("in use by percept test"), "{}", outcome.err);
    writer.close().unwrap();
    assert_eq!(rows(&scene, &["garden", "--peek"])[0]["strength"], 1.0);
}

#[test]
fn a_score_is_shown_with_its_parts() {
    let scene = kitchen("explained");

    let table = scene.percept(NO_CLIP, &["search", "garden", "--explain", "--peek"]);
    let found = rows(&scene, &["garden", "--peek"]).remove(0);

    let heading = table.out.lines().next().unwrap();
    for column in ["SCORE", "RECENCY", "IMPORTANCE", "RELEVANCE", "STRENGTH", "BY", "EPISODE"] {
        assert!(heading.contains(column), "{heading}");
    }
    assert!(table.out.contains("words"), "{}", table.out);
    let part = |name: &str| found["score_parts"][name].as_f64().unwrap();
    let sum = part("recency") + part("importance") + 2.0 * part("relevance") + part("strength");
    assert!((found["score"].as_f64().unwrap() - sum).abs() < 1e-9);
    assert!((part("importance") - 0.7).abs() < 1e-9 && (part("relevance") - 1.0).abs() < 1e-9);
    assert_eq!((&found["importance"], &found["modality"]), (&json!(7), &json!("visual")), "and all columns by name");
}

#[test]
fn nothing_found_is_no_failure() {
    let scene = kitchen("nothing");

    let table = scene.percept(NO_CLIP, &["search", "submarine"]);
    let array = scene.percept(NO_CLIP, &["search", "submarine", "--format", "json"]);

    assert_eq!((table.code, table.out.as_str(), table.err.as_str()), (0, "", "nothing was found\n"));
    assert_eq!((array.code, array.out.as_str()), (0, "[]\n"));
}

// --- across pictures and sentences ----------------------------------------------------------------

/// The id the fixture's vectors are stored under.
const FIXTURE: &str = "fixture";

fn vector(model: &str, kind: EmbeddingKind, vector: &Arc<[f32]>) -> Embedding {
    Embedding { model_id: ModelId::new(model), kind, vector: Arc::clone(vector) }
}

/// One picture that says nothing in words.
fn picture(number: usize, model: &str, image: &Arc<[f32]>) -> EpisodeRecord {
    let mut record = memory_rows::visual(i64::try_from(number).unwrap() * 20_000);
    record.episode.content = format!("Picture {number}");
    record.embeddings = vec![vector(model, EmbeddingKind::Image, image)];
    record
}

/// A note with the vector of its sentence, and words that no query has.
fn note(number: usize, model: &str, text: &Arc<[f32]>) -> EpisodeRecord {
    let start = 500_000 + i64::try_from(number).unwrap() * 20_000;
    let mut record = memory_rows::audio(start, start);
    record.episode.content = format!("Note {number}");
    record.embeddings = vec![vector(model, EmbeddingKind::Text, text)];
    record
}

fn stored(records: impl IntoIterator<Item = EpisodeRecord>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let writer = memory_rows::writer(dir.path());
    records.into_iter().for_each(|record| writer.append(record).unwrap());
    writer.close().unwrap();
    dir
}

/// The fixture's pairs have cosines above 0.9 and others up to 0.6, where a published CLIP has 0.3 and 0.2.
fn marks() -> score::Config {
    let pairs = Pairs { image_text: Marks { low: 0.15, high: 1.0 }, ..Pairs::default() };
    score::Config { models: vec![ModelMarks { id: FIXTURE.to_owned(), pairs }], ..score::Config::default() }
}

fn look(dir: &Path, request: &Request, model: &str) -> Vec<Hit> {
    let now = Stamp { monotonic_ms: 0, utc: at(1_000_000), quality: ClockQuality::Network };
    let tower = || Ok(Arc::new(Mutex::new(clip_fixture::text_tower())));
    let meaning = Meaning { model_id: ModelId::new(model), tower: Box::new(tower) };
    let setting = Setting { marks: marks(), now, raised: BTreeMap::new(), meaning };
    let reader = Reader::open(dir).unwrap();
    search::look(&reader, &mut Similarity::open(dir), request, setting).unwrap().0
}

fn words(text: &str) -> Request {
    Request { text: Some(text.to_owned()), ..Request::default() }
}

fn first(hits: &[Hit]) -> &str {
    hits.first().map_or("nothing", |hit| hit.episode.episode.content.as_str())
}

#[test]
fn a_sentence_finds_its_picture_and_a_picture_its_sentence() {
    let pairs = clip_fixture::pairs();
    let (texts, images) = (clip_fixture::text_vectors(&pairs), clip_fixture::image_vectors(&pairs));
    let pictures = stored(images.iter().enumerate().map(|(number, image)| picture(number, FIXTURE, image)));
    let notes = stored(texts.iter().enumerate().map(|(number, text)| note(number, FIXTURE, text)));

    for (number, pair) in pairs.iter().enumerate() {
        let by_words = look(pictures.path(), &words(&pair.sentence), FIXTURE);
        assert_eq!(first(&by_words), format!("Picture {number}"), "{}", pair.sentence);
        assert!(by_words[0].score.relevance > 0.9, "{:?}", by_words[0].score);

        let (model_id, kind) = (ModelId::new(FIXTURE), EmbeddingKind::Image);
        let shown = QueryVector { model_id, kind, vector: Arc::clone(&images[number]) };
        let by_picture = look(notes.path(), &Request { vectors: vec![shown], ..Request::default() }, FIXTURE);
        assert_eq!(first(&by_picture), format!("Note {number}"), "{}", pair.picture);
    }
}

#[test]
fn a_note_finds_a_picture_by_likeness_and_not_itself() {
    let pairs = clip_fixture::pairs();
    let (texts, images) = (clip_fixture::text_vectors(&pairs), clip_fixture::image_vectors(&pairs));
    let own = note(3, FIXTURE, &texts[3]);
    let like = Request { like: Some(own.episode.id.to_string()), ..Request::default() };
    let dir = stored(images.iter().enumerate().map(|(number, image)| picture(number, FIXTURE, image)).chain([own]));

    let hits = look(dir.path(), &like, FIXTURE);

    assert_eq!(first(&hits), "Picture 3");
    assert!(hits.iter().all(|hit| hit.episode.episode.content.starts_with("Picture")));
}

#[test]
fn another_models_vectors_are_never_met() {
    let pairs = clip_fixture::pairs();
    let images = clip_fixture::image_vectors(&pairs);
    let dir = stored([picture(0, "before", &images[0]), picture(1, FIXTURE, &images[1])]);

    let present = look(dir.path(), &words(&pairs[0].sentence), FIXTURE);
    let absent = look(dir.path(), &words(&pairs[0].sentence), "after");

    assert!(present.iter().all(|hit| hit.episode.episode.content == "Picture 1"), "{present:?}");
    assert_eq!(first(&absent), "nothing");
}

#[test]
fn episodes_without_vectors_are_found_by_words_and_no_model_is_loaded_for_them() {
    let dir = stored([memory_rows::audio(0, 1_000), memory_rows::visual(5_000)]);
    let now = Stamp { monotonic_ms: 0, utc: at(1_000_000), quality: ClockQuality::Network };
    let meaning = Meaning { model_id: ModelId::new(FIXTURE), tower: Box::new(|| panic!("loaded for nothing")) };
    let setting = Setting { marks: score::Config::default(), now, raised: BTreeMap::new(), meaning };
    let reader = Reader::open(dir.path()).unwrap();

    let (hits, notes) = search::look(&reader, &mut Similarity::open(dir.path()), &words("sound"), setting).unwrap();

    assert_eq!((first(&hits), hits.len()), ("A sound at 0", 1));
    assert_eq!(notes, [""; 0]);
}

#[test]
fn without_the_model_only_words_are_compared_and_that_is_said() {
    let pairs = clip_fixture::pairs();
    let images = clip_fixture::image_vectors(&pairs);
    let dir = stored([picture(0, FIXTURE, &images[0])]);
    let now = Stamp { monotonic_ms: 0, utc: at(1_000_000), quality: ClockQuality::Network };
    let tower = Box::new(|| Err(anyhow::anyhow!("it is not there")));
    let setting = Setting {
        marks: score::Config::default(),
        now,
        raised: BTreeMap::new(),
        meaning: Meaning { model_id: ModelId::new(FIXTURE), tower },
    };
    let reader = Reader::open(dir.path()).unwrap();

    let (hits, notes) = search::look(&reader, &mut Similarity::open(dir.path()), &words("picture"), setting).unwrap();

    assert_eq!(first(&hits), "Picture 0");
    assert_eq!(notes, ["only words are compared, not their meaning: it is not there"]);
}

#[test]
fn a_vector_that_fits_nothing_is_refused_with_what_is_stored() {
    let pairs = clip_fixture::pairs();
    let images = clip_fixture::image_vectors(&pairs);
    let dir = stored([picture(0, FIXTURE, &images[0])]);
    let reader = Reader::open(dir.path()).unwrap();
    let refusal = |values: &[f32]| {
        let (model_id, kind) = (ModelId::new(FIXTURE), EmbeddingKind::Image);
        let vectors = vec![QueryVector { model_id, kind, vector: values.into() }];
        let now = Stamp { monotonic_ms: 0, utc: at(0), quality: ClockQuality::Network };
        let meaning = Meaning { model_id: ModelId::new(""), tower: Box::new(|| panic!("no words, no vector")) };
        let setting = Setting { marks: score::Config::default(), now, raised: BTreeMap::new(), meaning };
        let request = Request { vectors, ..Request::default() };
        search::look(&reader, &mut Similarity::open(dir.path()), &request, setting).unwrap_err().to_string()
    };

    assert!(refusal(&[0.6, 0.8]).contains("has 2 values, those stored have "), "{}", refusal(&[0.6, 0.8]));
    assert!(refusal(&[f32::NAN]).contains("finite values"), "{}", refusal(&[f32::NAN]));
    assert!(refusal(&[]).contains("finite values"), "{}", refusal(&[]));
}

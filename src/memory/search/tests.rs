//! Filters, words, vectors and strength on real stores.

use super::*;
use crate::domain::episode::EmbeddingKind;
use crate::domain::episode::EpisodeRecord;
use crate::domain::episode::Metadata;
use crate::domain::modality::DecayClass;
use crate::domain::modality::Modality;
use crate::memory::fixture;
use crate::memory::fixture::MINUTE_MS;
use crate::memory::reader::Reader;
use crate::memory::search::rows::statement;
use crate::memory::search::standing::ALL;
use crate::memory::search::standing::GROUP;

fn query(text: &str) -> SearchQuery {
    SearchQuery {
        text: (!text.is_empty()).then(|| text.to_owned()),
        vectors: Vec::new(),
        filter: EpisodeFilter::default(),
        without: None,
        limit: 10,
        now: Timestamp::from_millis(10_000 * MINUTE_MS),
        marks: score::Config::default(),
        raised: BTreeMap::new(),
    }
}

fn sound(minute: u32, content: &str, metadata: serde_json::Value) -> EpisodeRecord {
    let mut record = fixture::sound(minute);
    record.episode.content = content.to_owned();
    record.episode.metadata = metadata.as_object().cloned().unwrap_or_default();
    record
}

fn store(records: Vec<EpisodeRecord>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    records.into_iter().for_each(|record| writer.append(record).unwrap());
    writer.close().unwrap();
    dir
}

fn found(dir: &Path, query: &SearchQuery) -> Vec<String> {
    hits(dir, query).into_iter().map(|hit| hit.episode.episode.content).collect()
}

fn hits(dir: &Path, query: &SearchQuery) -> Vec<Hit> {
    Reader::open(dir).unwrap().search(&mut Similarity::open(dir), query).unwrap()
}

#[test]
fn words_find_their_episodes_and_a_filter_changes_no_score() {
    let none = || serde_json::json!({});
    let dir = store(vec![
        sound(1, "A dog barks in the kitchen", none()),
        sound(2, "A dog, a dog and another dog", none()),
        sound(3, "Rain on the roof", none()),
        fixture::episode(4, Modality::Visual),
    ]);

    let all = hits(dir.path(), &query("dog"));
    let filter = EpisodeFilter { until: Some(Timestamp::from_millis(2 * MINUTE_MS)), ..EpisodeFilter::default() };
    let some = hits(dir.path(), &SearchQuery { filter, ..query("dog") });

    assert_eq!(all.len(), 2);
    assert_eq!(some.len(), 1);
    let same = all.iter().find(|hit| hit.episode.episode.id == some[0].episode.episode.id).unwrap();
    assert_eq!(same.score, some[0].score, "what the filter leaves out still sets the measure");
    assert_eq!(found(dir.path(), &query("roofs raining"))[..], ["Rain on the roof"], "word stems meet");
}

#[test]
fn what_users_write_is_never_read_as_an_expression() {
    let dir = store(vec![sound(1, "The \"quoted\" (word) NEAR the end*", serde_json::json!({}))]);
    for text in ["\"quoted", "NEAR(", "end*", "(word", "col:quoted", "'); DROP TABLE episodes;--quoted"] {
        assert_eq!(found(dir.path(), &query(text)).len(), 1, "{text}");
    }
    for text in ["*", "\"", "%%%", "-", "☃"] {
        assert_eq!(found(dir.path(), &query(text)).len(), 0, "{text}");
    }
    let long = "word ".repeat(200_000);
    assert_eq!(found(dir.path(), &query(&long)).len(), 1, "a megabyte");
}

#[test]
fn each_filter_leaves_only_what_passes_and_is_applied_before_the_limit() {
    let mut records: Vec<EpisodeRecord> = (0..300)
        .map(|minute| sound(minute, "Speech", serde_json::json!({"sound_class": "Speech", "rms_db": -50.0})))
        .collect();
    records.push(sound(400, "Bark", serde_json::json!({"sound_class": "Bark", "rmsDb": -10, "faces": ["Ann", 7]})));
    records.push(sound(401, "At home", serde_json::json!({"place": "home", "person": "Bob", "loud": true})));
    let mut located = sound(402, "Seen", serde_json::json!({}));
    located.facts.push(fixture::located("Alice", "Kitchen", 402));
    records.push(located);
    let dir = store(records);
    let none = EpisodeFilter::default;
    let text = |text: &str| Some(text.to_owned());
    let meta = |key: &str, value: &str| EpisodeFilter { metadata: vec![(key.to_owned(), value.to_owned())], ..none() };
    let cases = [
        (EpisodeFilter { sound_class: text("Bark"), ..none() }, vec!["Bark"]),
        (EpisodeFilter { rms_db_min: Some(-30.0), ..none() }, vec!["Bark"]),
        (EpisodeFilter { place: text("home"), ..none() }, vec!["At home"]),
        (EpisodeFilter { person: text("Bob"), ..none() }, vec!["At home"]),
        (EpisodeFilter { person: text("Alice"), ..none() }, vec!["Seen"]),
        (EpisodeFilter { place: text("Kitchen"), ..none() }, vec!["Seen"]),
        (EpisodeFilter { person: text("Kitchen"), ..none() }, vec![]),
        (meta("loud", "true"), vec!["At home"]),
        (meta("faces", "Ann"), vec!["Bark"]),
        (meta("faces", "7"), vec!["Bark"]),
        (meta("rmsDb", "-10.0"), vec!["Bark"]),
        (meta("loud", "yes"), vec![]),
        (meta("$.loud", "true"), vec![]),
        (EpisodeFilter { since: Some(Timestamp::from_millis(401 * MINUTE_MS)), ..none() }, vec!["Seen", "At home"]),
    ];
    for (filter, expected) in cases {
        let by_filter = found(dir.path(), &SearchQuery { filter: filter.clone(), limit: 2, ..query("") });
        assert_eq!(by_filter, expected, "{filter:?}");
    }
}

/// One match far down among many, with broken metadata around it.
#[test]
fn one_match_among_many_rows_with_broken_metadata_is_found() {
    let records: Vec<EpisodeRecord> = (0..2_000)
        .map(|minute| {
            let (sound_class, rms_db) = if minute == 7 { ("Bark", -20.0) } else { ("Speech", -60.0) };
            let key = if minute % 2 == 0 { "rms_db" } else { "rmsDb" };
            sound(minute, "Sound", serde_json::json!({"sound_class": sound_class, key: rms_db}))
        })
        .collect();
    let dir = store(records);
    let connection = fixture::connection(dir.path());
    connection
        .execute_batch(
            r#"UPDATE episodes SET metadata = '{"rms_db": ' WHERE row_id % 100 = 1;
               UPDATE episodes SET metadata = '[1]' WHERE row_id % 100 = 2;
               UPDATE episodes SET metadata = '{"rms_db": "loud", "sound_class": 5}' WHERE row_id % 100 = 3;"#,
        )
        .unwrap();
    drop(connection);
    let by = |filter| found(dir.path(), &SearchQuery { filter, limit: 5, ..query("sound") }).len();

    assert_eq!(by(EpisodeFilter { sound_class: Some("Bark".to_owned()), ..EpisodeFilter::default() }), 1);
    assert_eq!(by(EpisodeFilter { rms_db_min: Some(-30.0), ..EpisodeFilter::default() }), 1);
    let metadata = vec![("sound_class".to_owned(), "Bark".to_owned())];
    assert_eq!(by(EpisodeFilter { metadata, ..EpisodeFilter::default() }), 1);
}

#[test]
fn vectors_meet_within_their_model_and_pair_only() {
    let mut picture = fixture::episode(1, Modality::Visual);
    picture.embeddings = vec![fixture::vector(1, 8)];
    picture.embeddings[0].kind = EmbeddingKind::Image;
    let vector = Arc::clone(&picture.embeddings[0].vector);
    let mut other = fixture::episode(2, Modality::Visual);
    other.embeddings = picture.embeddings.clone();
    other.embeddings[0].model_id = ModelId::new("another");
    let dir = store(vec![picture, other]);
    let like = |kind, model: &str| SearchQuery {
        vectors: vec![QueryVector { model_id: ModelId::new(model), kind, vector: Arc::clone(&vector) }],
        ..query("")
    };

    assert_eq!(found(dir.path(), &like(EmbeddingKind::Text, "m")), ["Sound number 1"]);
    assert_eq!(found(dir.path(), &like(EmbeddingKind::Image, "another")), ["Sound number 2"]);
    assert!(found(dir.path(), &like(EmbeddingKind::Audio, "m")).is_empty(), "a sound's space is another");
    assert!(found(dir.path(), &like(EmbeddingKind::Text, "third")).is_empty());
    let hit = hits(dir.path(), &like(EmbeddingKind::Text, "m")).remove(0);
    assert!((hit.score.relevance - 1.0).abs() < 1e-6, "{:?}", hit.score);
}

#[test]
fn an_episode_that_was_returned_three_times_outranks_its_twin() {
    let mut twins = [fixture::sound(1), fixture::sound(2)];
    for twin in &mut twins {
        twin.episode.content = "A dog barks".to_owned();
        twin.episode.decay_class = DecayClass::Permanent;
        twin.episode.metadata = Metadata::new();
    }
    let older = twins[0].episode.id;
    let dir = store(twins.to_vec());
    let newest = hits(dir.path(), &SearchQuery { limit: 1, ..query("dog") }).remove(0).episode.episode.id;
    assert_ne!(newest, older, "without strength the newer one is first");

    let writer = fixture::writer(dir.path());
    for _ in 0..3 {
        writer.raise_strength(vec![older]).unwrap();
    }
    writer.flush().unwrap();

    let first = hits(dir.path(), &SearchQuery { limit: 1, ..query("dog") }).remove(0);
    assert_eq!((first.episode.episode.id, first.episode.strength), (older, 4.0));
    assert!((first.score.strength - 1.0).abs() < 1e-12);
    let by_filter = hits(dir.path(), &query("")).remove(0);
    assert_eq!(by_filter.episode.episode.id, older, "with filters alone, too");
    writer.close().unwrap();
}

#[test]
fn every_condition_is_answered_by_an_index() {
    let dir = store(vec![fixture::sound(1)]);
    let connection = fixture::connection(dir.path());
    let plan = |sql: &str, values: &[rusqlite::types::Value]| -> String {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let rows = statement.query_map(rusqlite::params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
        rows.map(Result::unwrap).collect::<Vec<_>>().join("; ")
    };
    let none = EpisodeFilter::default;
    let text = |text: &str| Some(text.to_owned());
    let filters = [
        (EpisodeFilter { sound_class: text("a"), ..none() }, "episodes_by_sound"),
        (EpisodeFilter { rms_db_min: Some(-30.0), ..none() }, "episodes_by_level"),
        (EpisodeFilter { since: Some(Timestamp::from_millis(0)), ..none() }, "episodes_by_time"),
        (EpisodeFilter { modalities: vec![Modality::Audio], ..none() }, "episodes_by_modality"),
        (EpisodeFilter { place: text("a"), ..none() }, "episodes_by_place"),
        (EpisodeFilter { person: text("a"), ..none() }, "episodes_by_person"),
    ];
    for (filter, index) in filters {
        let (sql, conditions) = statement(&filter);
        let plan = plan(&sql, conditions.values());
        assert!(plan.contains(index) && !plan.contains("SCAN e "), "{filter:?}: {plan}");
    }
    assert!(plan(ALL, &[]).contains("COVERING INDEX episodes_by_value"), "{}", plan(ALL, &[]));
    let group: Vec<_> = [0, 0, 0, 0, 0].map(rusqlite::types::Value::from).to_vec();
    let group = plan(GROUP, &group);
    assert!(group.contains("COVERING INDEX episodes_by_value (<expr>=? AND decay_class=? AND importance=? AND <expr>=? AND timestamp>?)"), "{group}");
    assert!(!group.contains("TEMP B-TREE"), "the newest come first without sorting: {group}");
}

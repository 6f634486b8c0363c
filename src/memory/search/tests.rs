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

/// One match is the 5,000th of 100,000 rows that all have the word; 1 % of the metadata is broken in three ways, and the level
/// is spelled in two.
#[test]
fn one_match_among_many_rows_with_broken_metadata_is_found() {
    let dir = store(Vec::new());
    let connection = fixture::connection(dir.path());
    connection
        .execute_batch(
            r#"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
               INSERT INTO episodes (id, device_id, store_id, session_id, source, timestamp, ended_at, boot_id, monotonic_ms,
                 clock_quality, modality, tool_name, content, importance, decay_class, metadata, digest, stored_at, revision)
               SELECT format('%08x-0000-5000-8000-000000000000', i), 'd', 's', 's', 'microphone:m', i * 1000, i * 1000, 'b',
                 i, 'gps', 'audio', 't', 'A sound', 6, 'daily',
                 CASE i % 300 WHEN 1 THEN '{"rms_db": ' WHEN 2 THEN '[1]' WHEN 3 THEN '{"rms_db": "loud", "sound_class": 5}'
                   ELSE format('{"sound_class": "%s", "%s": %d}', iif(i = 95001, 'Bark', 'Speech'),
                     iif(i % 2, 'rmsDb', 'rms_db'), iif(i = 95001, -20, -60)) END,
                 x'', 0, i FROM n"#,
        )
        .unwrap();
    drop(connection);
    let by = |text: &str, filter| {
        let now = Timestamp::from_millis(100_001_000);
        let ids = hits(dir.path(), &SearchQuery { filter, limit: 5, now, ..query(text) }).into_iter();
        ids.map(|hit| hit.episode.episode.timestamp.as_millis() / 1_000).collect::<Vec<_>>()
    };
    let none = EpisodeFilter::default;
    let bark = || EpisodeFilter { sound_class: Some("Bark".to_owned()), ..none() };
    let meta = |key: &str, value: &str| EpisodeFilter { metadata: vec![(key.to_owned(), value.to_owned())], ..none() };

    for text in ["sound", ""] {
        assert_eq!(by(text, none()), [100_000, 99_999, 99_998, 99_997, 99_996], "it is far from the first");
        assert_eq!(by(text, bark()), [95_001]);
        assert_eq!(by(text, EpisodeFilter { rms_db_min: Some(-30.0), ..none() }), [95_001]);
        assert_eq!(by(text, meta("sound_class", "Bark")), [95_001]);
        assert_eq!(by(text, meta("rms_db", "-20.0")), [95_001], "in either spelling");
        assert_eq!(by(text, EpisodeFilter { rms_db_max: Some(-61.0), ..none() }), [0_i64; 0]);
    }
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
    assert!(group.contains(
            "COVERING INDEX episodes_by_value (<expr>=? AND decay_class=? AND importance=? AND <expr>=? AND timestamp>?)"
        ), "{group}");
    assert!(!group.contains("TEMP B-TREE"), "the newest come first without sorting: {group}");
}

/// A store of rows that differ in all a score is made of, each with two vectors of 8 values but for every fifth.
fn varied(count: u32) -> tempfile::TempDir {
    let mut random = fixture::seeded(3);
    let words = ["dog", "cat", "rain", "door", "song"];
    let mut raised = Vec::new();
    let mut records = Vec::new();
    for minute in 0..count {
        let modality = Modality::ALL[usize::try_from(random() % 8).unwrap()];
        let mut record = fixture::episode(minute, modality);
        let word = || words[usize::try_from(random() % 5).unwrap()];
        record.episode.content = std::iter::repeat_with(word).take(4).collect::<Vec<_>>().join(" ");
        record.episode.importance = u8::try_from(random() % 11).unwrap();
        if random().is_multiple_of(3) {
            record.episode.clock_quality = crate::domain::time::ClockQuality::Unset;
        }
        record.episode.metadata.insert("parity".to_owned(), (minute % 2).into());
        if !random().is_multiple_of(5) {
            for (number, kind) in [(0, EmbeddingKind::Image), (7, EmbeddingKind::Text)] {
                record.embeddings.push(crate::domain::episode::Embedding { kind, ..direction(minute + number) });
            }
        }
        if random().is_multiple_of(9) {
            raised.push(record.episode.id);
        }
        records.push(record);
    }
    let dir = store(records);
    let writer = fixture::writer(dir.path());
    writer.raise_strength(raised).unwrap();
    writer.close().unwrap();
    dir
}

/// One of many directions, in all of which no two are alike.
fn direction(number: u32) -> crate::domain::episode::Embedding {
    let mut random = fixture::seeded(u64::from(number) + 100);
    let values: Vec<f32> = (0..8).map(|_| f32::from(u16::try_from(random() % 2_001).unwrap()) - 1_000.0).collect();
    let vector = crate::domain::episode::unit_length(&values).unwrap();
    crate::domain::episode::Embedding { model_id: ModelId::new("m"), kind: EmbeddingKind::Text, vector }
}

/// The whole ranking, made the plain way: every row is scored.
fn ranking(dir: &Path, query: &SearchQuery) -> Vec<(String, f64)> {
    let reader = Reader::open(dir).unwrap();
    let connection = fixture::connection(dir);
    let by_words = query.text.as_deref().map_or_else(Vec::new, |text| words::matches(&connection, text).unwrap());
    let is_open = query.text.is_none() && query.vectors.is_empty();
    let mut rows = Vec::new();
    for stored in reader.episodes(&EpisodeFilter { limit: None, ..query.filter.clone() }).unwrap() {
        let id = stored.episode.id;
        let row_id: i64 = connection
            .query_row("SELECT row_id FROM episodes WHERE id = ?1", [id.to_string()], |row| row.get(0))
            .unwrap();
        let words = by_words.iter().find(|row| row.0 == row_id).map_or(0.0, |row| row.1);
        let mut likeness: f64 = 0.0;
        for own in reader.vectors(id).unwrap() {
            for asked in &query.vectors {
                let cosine: f32 = own.vector.iter().zip(asked.vector.iter()).map(|(one, other)| one * other).sum();
                let marks = query.marks.marks("m", asked.kind, own.kind).unwrap();
                likeness = likeness.max(marks.likeness(f64::from(cosine)));
            }
        }
        if (is_open || words > 0.0 || likeness > 0.0) && Some(id) != query.without {
            let standing = score::Standing {
                age_ms: query.now.millis_since(stored.episode.timestamp),
                decay_class: stored.episode.decay_class,
                importance: stored.episode.importance,
                strength: Some(stored.strength),
            };
            rows.push((standing.score(words, likeness).total, stored.episode.timestamp, row_id, id.to_string()));
        }
    }
    rows.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)).then(other.2.cmp(&one.2)));
    rows.into_iter().map(|(total, _, _, id)| (id, total)).take(query.limit).collect()
}

#[test]
fn the_hits_are_the_beginning_of_the_whole_ranking() {
    let dir = varied(120);
    let none = EpisodeFilter::default;
    let filters = [
        none(),
        EpisodeFilter { modalities: vec![Modality::Audio, Modality::Social], ..none() },
        EpisodeFilter { since: Some(Timestamp::from_millis(50 * MINUTE_MS)), ..none() },
        EpisodeFilter { metadata: vec![("parity".to_owned(), "1".to_owned())], ..none() },
        EpisodeFilter { decay_class: Some(DecayClass::Procedural), ..none() },
        EpisodeFilter { session: Some(crate::domain::id::SessionId::new("none")), ..none() },
    ];
    let asked = |kind, number| QueryVector { model_id: ModelId::new("m"), kind, vector: direction(number).vector };
    let mut compared = 0;
    for now in [60, 4_000].map(|minute| Timestamp::from_millis(minute * MINUTE_MS)) {
        for filter in &filters {
            for text in ["", "dog", "cat rain"] {
                for vectors in [
                    vec![],
                    vec![asked(EmbeddingKind::Text, 5)],
                    vec![asked(EmbeddingKind::Image, 900), asked(EmbeddingKind::Text, 77)],
                ] {
                    for limit in [1, 7, 200] {
                        let query =
                            SearchQuery { filter: filter.clone(), vectors: vectors.clone(), limit, now, ..query(text) };
                        let found: Vec<(String, f64)> = hits(dir.path(), &query)
                            .into_iter()
                            .map(|hit| (hit.episode.episode.id.to_string(), hit.score.total))
                            .collect();
                        let expected = ranking(dir.path(), &query);
                        assert_eq!(found.len(), expected.len(), "{query:?}");
                        for (one, other) in found.iter().zip(&expected) {
                            assert!((one.1 - other.1).abs() < 1e-5, "{query:?}: {one:?} where {other:?} is right");
                            compared += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(compared > 3_000, "{compared}");
}

#[test]
fn metadata_are_a_filter_before_the_likest_are_counted() {
    let dir = varied(60);
    let vector = QueryVector { model_id: ModelId::new("m"), kind: EmbeddingKind::Text, vector: direction(8).vector };
    let metadata = vec![("parity".to_owned(), "1".to_owned())];
    let query = SearchQuery {
        vectors: vec![vector],
        filter: EpisodeFilter { metadata, ..EpisodeFilter::default() },
        limit: 60,
        ..query("")
    };

    let found = hits(dir.path(), &query);

    assert!(found.len() > 10, "{}", found.len());
    assert!(found.iter().all(|hit| hit.episode.episode.metadata["parity"] == 1));
}

#[test]
fn strength_that_waits_to_be_written_counts() {
    let dir = varied(40);
    let asked = query("dog");
    let last = hits(dir.path(), &asked).pop().unwrap();
    assert_eq!(last.score.strength, 0.0);

    let id = last.episode.episode.id;
    let raised = BTreeMap::from([(id, 1)]);
    let again = hits(dir.path(), &SearchQuery { raised, ..asked });

    let place = again.iter().position(|hit| hit.episode.episode.id == id).unwrap();
    assert!((again[place].score.total - last.score.total - 1.0).abs() < 1e-9);
    assert!(place < again.len() - 1, "{place}");
}

//! Forgetting, through the writer, on stores that hold a person everywhere.

use super::*;
use crate::domain::episode::EpisodeRecord;
use crate::domain::id::SessionId;
use crate::domain::modality::Modality;
use crate::domain::time::ClockQuality;
use crate::memory::fixture;
use crate::memory::query::EpisodeFilter;
use crate::memory::reader::Reader;
use crate::memory::retention::Budget;
use crate::memory::sessions::Session;
use crate::memory::store::STORE_FILE;
use crate::memory::writer::Writer;
use proptest::prelude::*;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

const NAME: &str = "Zebulon";

fn person(name: &str) -> Order {
    order(Subject::Person(name.to_owned()))
}

fn order(subject: Subject) -> Order {
    Order { subject, keep: Vec::new(), known: Vec::new() }
}

/// Carries out every step.
fn forget(writer: &Writer, order: &Order) -> Round {
    let order = Arc::new(order.clone());
    let (mut total, mut next) = (Round::default(), Some(Step::FIRST));
    while let Some(step) = next {
        let round = writer.forget(Arc::clone(&order), step).unwrap();
        next = round.next;
        total.add(round);
    }
    total
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        if entry.path().is_dir() { files.extend(files_below(&entry.path())) } else { files.push(entry.path()) }
    }
    files
}

/// The files that hold one of the words in any letter case, in their bytes or their name.
fn files_with(dir: &Path, words: &[&str]) -> Vec<String> {
    let holds = |bytes: &[u8]| {
        let lower = bytes.to_ascii_lowercase();
        words.iter().any(|word| lower.windows(word.len()).any(|part| part == word.to_ascii_lowercase().as_bytes()))
    };
    let name = |file: &PathBuf| file.strip_prefix(dir).unwrap().display().to_string();
    let found = files_below(dir).into_iter();
    found
        .filter(|file| holds(&std::fs::read(file).unwrap()) || holds(name(file).as_bytes()))
        .map(|file| name(&file))
        .collect()
}

fn with(mut record: EpisodeRecord, content: &str, metadata: Value) -> EpisodeRecord {
    record.episode.content = content.to_owned();
    if let Value::Object(metadata) = metadata {
        record.episode.metadata = metadata;
    }
    record
}

fn meeting(minute: u32, who: &str) -> EpisodeRecord {
    let record = with(
        fixture::episode(minute, Modality::Social),
        &format!("Met {who}. Said: \"hello\". Location: Kitchen"),
        serde_json::json!({"person": who, "place": "Kitchen", "multimodal_episode_id": format!("moment-{minute}")}),
    );
    EpisodeRecord {
        facts: vec![fixture::located(who, "Kitchen", minute)],
        embeddings: vec![fixture::vector(minute, 64)],
        media: vec![fixture::picture(minute, 900)],
        ..record
    }
}

fn contents(dir: &Path) -> Vec<String> {
    let rows = Reader::open(dir).unwrap().episodes(&EpisodeFilter::default()).unwrap();
    rows.into_iter().map(|row| row.episode.content).collect()
}

#[test]
fn a_person_leaves_every_table_and_every_file_and_others_stay() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    let records = [
        meeting(1, NAME),
        meeting(2, "Bob"),
        with(
            fixture::sound(3),
            "Bob told zebulon's story to ZEBULON",
            serde_json::json!({"transcript": "a Zebulon b"}),
        ),
        with(fixture::sound(4), "Zebulonian music", Value::Null),
        with(
            fixture::episode(5, Modality::Visual),
            "Faces: Zebulon, Dora",
            serde_json::json!({"faces": [NAME, "Dora"]}),
        ),
    ];
    for record in &records {
        writer.append(record.clone()).unwrap();
    }
    writer.flush().unwrap();
    let before = Reader::open(dir.path()).unwrap().episode(records[1].episode.id).unwrap();

    let round = forget(&writer, &person(NAME));

    assert_eq!((round.episodes_removed, round.episodes_redacted), (1, 2), "{round:?}");
    assert_eq!(round.moments_removed, ["moment-1"]);
    assert_eq!((round.facts_removed, round.vectors_removed, round.media_removed), (1, 1, 1));
    writer.close().unwrap();
    assert_eq!(
        contents(dir.path()),
        [
            "Met Bob. Said: \"hello\". Location: Kitchen",
            "Bob told someone's story to someone",
            "Zebulonian music",
            "Faces: someone, Dora"
        ]
    );
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(reader.episode(records[1].episode.id).unwrap(), before, "who is not meant is not touched");
    assert_eq!((reader.stats().unwrap().media_files, reader.stats().unwrap().nodes), (1, 2));
    let words: Vec<String> = fixture::connection(dir.path())
        .prepare("SELECT content FROM episodes_fts WHERE episodes_fts MATCH 'zebulon'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(words, [""; 0]);
}

#[test]
fn neither_a_removed_nor_a_redacted_row_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    let redacted = with(fixture::sound(2), "Bob and Zebulon", serde_json::json!({"person": "Bob"}));
    let mut changed = redacted.clone();
    changed.episode.content = "Bob and Zebulon, again".to_owned();
    changed.media = vec![fixture::picture(7, 500)];
    let mut elsewhere = meeting(3, NAME);
    elsewhere.episode.metadata.insert("multimodal_episode_id".to_owned(), "moment-1".into());
    for record in [&meeting(1, NAME), &redacted] {
        writer.append(record.clone()).unwrap();
    }
    writer.flush().unwrap();
    forget(&writer, &person(NAME));

    for record in [meeting(1, NAME), redacted.clone(), changed, elsewhere] {
        writer.append(record).unwrap();
    }
    writer.add_vectors(redacted.episode.id, vec![fixture::vector(1, 64)]).unwrap();
    let counters = writer.flush().unwrap();

    assert_eq!((counters.rows_blocked, counters.episodes_inserted), (4, 2));
    assert_eq!(contents(dir.path()), ["Bob and someone"]);
    let detail = Reader::open(dir.path()).unwrap().episode(redacted.episode.id).unwrap().unwrap();
    assert!(detail.media.is_empty() && detail.embeddings.is_empty());
    // Not even when the budget lets the redacted row go.
    while writer.keep_within(Budget { bytes: 1 }, Some(Timestamp::from_millis(i64::MAX / 2))).unwrap().is_more {}
    writer.append(redacted).unwrap();
    writer.flush().unwrap();
    assert_eq!(contents(dir.path()), [""; 0]);
    let files = files_below(&dir.path().join("media"));
    assert!(files.is_empty(), "{files:?}");
    writer.close().unwrap();
    assert_eq!(files_with(dir.path(), &[NAME, "zebulon"]), [""; 0]);
}

#[test]
fn reprocessing_brings_nothing_back_under_another_id_and_replaces_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    let session = |digest: &str| Session {
        session_id: SessionId::new("s"),
        device_id: crate::domain::id::DeviceId::new("d"),
        boot_id: crate::domain::id::BootId::new("b"),
        digest: digest.to_owned(),
        started_at: Timestamp::from_millis(0),
        clock_quality: ClockQuality::Gps,
    };
    let replay = |minutes: [u32; 3], sound: &str| {
        for (minute, who) in minutes.into_iter().zip([NAME, "Bob", "Carol"]) {
            writer.append(meeting(minute, who)).unwrap();
        }
        writer.append(with(fixture::sound(1), sound, Value::Null)).unwrap();
        let session = session("");
        writer.finish_session(session.device_id, session.session_id, Map::new()).unwrap();
    };
    writer.register_session(session("one")).unwrap();
    replay([1, 2, 3], "Dog");
    forget(&writer, &person(NAME));

    writer.replace_session(session("two")).unwrap();
    replay([11, 12, 13], "Dog, loud");

    let told = ["Met Bob. Said: \"hello\". Location: Kitchen", "Met Carol. Said: \"hello\". Location: Kitchen"];
    assert_eq!(contents(dir.path()), ["Dog, loud", told[0], told[1]]);
    // What is held stays held.
    writer.replace_session(session("three")).unwrap();
    replay([21, 22, 23], "Dog");
    assert_eq!(contents(dir.path()), ["Dog", told[0], told[1]]);
    // Of a session that lost a span nothing is replaced.
    let minute = |minute: i64| Timestamp::from_millis(minute * fixture::MINUTE_MS);
    forget(&writer, &order(Subject::Span { since: minute(3), until: minute(4) }));
    writer.replace_session(session("four")).unwrap();
    replay([3, 32, 33], "Cat");
    assert_eq!(contents(dir.path()), ["Dog", told[0]]);
    writer.close().unwrap();
    assert_eq!(files_with(dir.path(), &["zebulon"]), [""; 0]);
}

#[test]
fn a_span_takes_everything_that_touches_it_and_ids_take_themselves() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    let mut lasting = fixture::sound(1);
    lasting.episode.ended_at = Timestamp::from_millis(5 * fixture::MINUTE_MS);
    writer.append(lasting).unwrap();
    for minute in 2..9 {
        writer.append(fixture::sound(minute)).unwrap();
    }
    writer.flush().unwrap();
    let minute = |minute: i64| Timestamp::from_millis(minute * fixture::MINUTE_MS);

    let span = forget(&writer, &order(Subject::Span { since: minute(4), until: minute(6) }));
    let ids = forget(&writer, &order(Subject::Ids(vec![fixture::sound(8).episode.id, fixture::sound(99).episode.id])));

    assert_eq!((span.episodes_removed, ids.episodes_removed), (3, 1));
    assert_eq!(contents(dir.path()), [2, 3, 6, 7].map(|minute| format!("Sound number {minute}")));
    let connection = fixture::connection(dir.path());
    let graves: i64 = connection
        .query_row("SELECT count(*) FROM tombstones WHERE reason = 'forgotten' AND revision > 0", [], |row| row.get(0))
        .unwrap();
    assert_eq!(graves, 4);
    assert!(writer.forget(Arc::new(order(Subject::Ids(Vec::new()))), Step::FIRST).is_err());
    assert!(writer.forget(Arc::new(person("...")), Step::FIRST).is_err());
    assert!(writer.forget(Arc::new(person("Someone")), Step::FIRST).is_err());
}

#[test]
fn what_stands_beside_rows_loses_the_name_too() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    let session = Session {
        session_id: SessionId::new("zebulon-visit"),
        device_id: crate::domain::id::DeviceId::new("d"),
        boot_id: crate::domain::id::BootId::new("b"),
        digest: "x".to_owned(),
        started_at: Timestamp::from_millis(0),
        clock_quality: ClockQuality::Gps,
    };
    writer.register_session(session.clone()).unwrap();
    let mut record = fixture::sound(1);
    record.episode.session_id = session.session_id.clone();
    writer.append(record).unwrap();
    writer.flush().unwrap();
    fixture::connection(dir.path())
        .execute_batch(
            r#"INSERT INTO coverage (id, device_id, store_id, session_id, sensor, "from", "to", state, reason, detail, boot_id,
                 from_monotonic_ms, clock_quality, stored_at, revision)
               VALUES ('1', 'd', 's', 'zebulon-visit', 'microphone:Zebulon''s phone', 0, 1, 'blind', 'muted', 'at Zebulon', 'b',
                 0, 'gps', 0, 1);
               INSERT INTO kg_nodes (text, node_type) VALUES ('Zebulon', 'person')"#,
        )
        .unwrap();
    for name in ["memory.db.damaged-2026-01-01T00-00-00Z", "memory.db.damaged-2026-01-01T00-00-00Z-wal", "vectors/a"] {
        let file = dir.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, b"xx zebulon xx").unwrap();
    }
    for name in ["media/zebulon.jpg", "media/.orphans/one.jpg", "media/ab/two.jpg"] {
        let file = dir.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, b"zebulon").unwrap();
    }

    let round = forget(&writer, &person(NAME));

    assert_eq!((round.coverage_redacted, round.sessions_renamed, round.files_removed), (1, 1, 5));
    assert_eq!(contents(dir.path()), ["Sound number 1"]);
    let again = writer.register_session(session).unwrap();
    assert_eq!(again, crate::memory::sessions::Registration::AlreadyDone);
    writer.close().unwrap();
    assert_eq!(files_with(dir.path(), &["zebulon"]), [""; 0]);
}

#[test]
fn every_step_is_bounded_and_may_be_cut_off_and_begun_again() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    for minute in 0..300 {
        writer.append(meeting(minute, if minute % 2 == 0 { NAME } else { "Bob" })).unwrap();
    }
    writer.flush().unwrap();
    let wanted = Arc::new(person(NAME));

    let first = writer.forget(Arc::clone(&wanted), Step::FIRST).unwrap();
    drop(writer);
    let writer = fixture::writer(dir.path());
    let rest = forget(&writer, &wanted);

    assert_eq!(first.episodes_removed, CHANGES_A_STEP as u64);
    assert_eq!(first.episodes_removed + rest.episodes_removed, 150);
    assert!(forget(&writer, &wanted).is_nothing());
    writer.close().unwrap();
    assert_eq!(files_with(dir.path(), &["zebulon"]), [""; 0]);
}

#[test]
fn a_survey_counts_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    for record in [meeting(1, NAME), with(fixture::sound(2), "Bob and Zebulon", serde_json::json!({"person": "Bob"}))] {
        writer.append(record).unwrap();
    }
    writer.flush().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    let before = reader.dump().unwrap();

    let round = reader.survey_forgetting(&person(NAME), Step::FIRST).unwrap();

    assert_eq!((round.episodes_removed, round.episodes_redacted, round.next), (1, 1, None));
    assert_eq!(round.examples.iter().map(|example| example.goes).collect::<Vec<_>>(), [true, false]);
    assert_eq!(reader.dump().unwrap(), before);
}

#[test]
fn a_summary_made_of_what_is_forgotten_goes_and_may_be_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    let gist = with(fixture::episode(9, Modality::Gist), "Sound number 1 and other things", Value::Null);
    writer.append(fixture::sound(1)).unwrap();
    writer.append(gist.clone()).unwrap();
    writer.flush().unwrap();
    let mut ends = [fixture::sound(1).episode.id.to_string(), gist.episode.id.to_string()];
    ends.sort();
    fixture::connection(dir.path())
        .execute("INSERT INTO links (a, b, reason, score) VALUES (?1, ?2, 'gist', 1.0)", ends)
        .unwrap();

    let round = forget(&writer, &order(Subject::Ids(vec![fixture::sound(1).episode.id])));

    assert_eq!((round.episodes_removed, round.gists_removed), (1, 1));
    writer.append(gist).unwrap();
    writer.flush().unwrap();
    assert_eq!(contents(dir.path()).len(), 1);
}

#[derive(Debug, Clone)]
enum Deed {
    Tell(u32, u8, usize),
    Change(u32, u8, usize),
    Forget(u8),
    Room(u64),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        8 => (0..400_u32, 0..4_u8, 1..900_usize).prop_map(|(minute, who, length)| Deed::Tell(minute, who, length)),
        3 => (0..400_u32, 0..4_u8, 1..900_usize).prop_map(|(minute, who, length)| Deed::Change(minute, who, length)),
        1 => (0..4_u8).prop_map(Deed::Forget),
        1 => (20..80_u64).prop_map(Deed::Room),
    ]
}

const PEOPLE: [&str; 4] = ["Zebulon", "Quirinius", "Xanthippe", "Wolfgang"];

fn told(minute: u32, who: u8, length: usize) -> EpisodeRecord {
    let name = PEOPLE[usize::from(who) % 4];
    let filler: String = name.chars().chain(" and the weather ".chars()).cycle().take(length).collect();
    let mut record = meeting(minute, name);
    record.media = Vec::new();
    record.episode.content = format!("Met {name}. {filler} end");
    record
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]
    /// Whatever was told, changed, evicted and forgotten before: nothing of a forgotten person is in the bytes of any file,
    /// and the database is as whole as before.
    #[test]
    fn no_history_leaves_a_copy_behind(deeds in prop::collection::vec(deed(), 40..250)) {
        let dir = tempfile::tempdir().unwrap();
        let writer = fixture::writer(dir.path());
        for deed in deeds {
            match deed {
                Deed::Tell(minute, who, length) | Deed::Change(minute, who, length) => {
                    writer.append(told(minute, who, length)).unwrap();
                }
                Deed::Forget(who) => drop(forget(&writer, &person(PEOPLE[usize::from(who)]))),
                Deed::Room(kib) => {
                    let now = Timestamp::from_millis(fixture::MINUTE_MS * 500);
                    drop(writer.keep_within(Budget { bytes: kib << 10 }, Some(now)).unwrap());
                }
            }
        }
        forget(&writer, &person(PEOPLE[0]));
        let still_open = files_with(dir.path(), &["zebulo"]);
        writer.close().unwrap();

        prop_assert_eq!(still_open, Vec::<String>::new());
        prop_assert_eq!(files_with(dir.path(), &["zebulo"]), Vec::<String>::new());
        let connection = fixture::connection(dir.path());
        let verdict: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        prop_assert_eq!(verdict, "ok");
        let words = connection.execute_batch("INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('integrity-check', 1)");
        prop_assert!(words.is_ok(), "{words:?}");
    }
}

/// Thousands of rows, so that pages split and merge on the way.
#[test]
fn a_large_store_holds_no_copy_of_the_name_in_the_gaps_of_its_pages() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    for number in 0..4_000_u32 {
        let minute = number.wrapping_mul(2_654_435_761) % 100_000;
        writer
            .append(told(minute, u8::try_from(number % 4).unwrap(), usize::try_from(number % 700).unwrap() + 1))
            .unwrap();
    }
    writer.flush().unwrap();

    forget(&writer, &person(PEOPLE[1]));
    let round = forget(&writer, &person(PEOPLE[0]));

    assert!(round.episodes_removed > 900, "{round:?}");
    assert_eq!(files_with(dir.path(), &["zebulo", "quiriniu"]), [""; 0]);
    let length = std::fs::metadata(dir.path().join(STORE_FILE)).unwrap().len();
    writer.close().unwrap();
    let connection = fixture::connection(dir.path());
    let verdict: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok", "{length} bytes");
}

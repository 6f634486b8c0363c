//! Gists out of a store, and back into it.

use super::*;
use crate::domain::id::DeviceId;
use crate::domain::id::SensorKind;
use crate::domain::id::SourceId;
use crate::memory::fixture;
use crate::memory::fixture::MINUTE_MS;
use crate::memory::reader::Reader;
use crate::memory::writer::Writer;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::Value;
use serde_json::json;
use std::path::Path;

const DAY_MIN: u32 = 1_440;

#[test]
fn what_reaches_into_a_day_belongs_to_it_and_only_its_part_of_it_counts() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    writer.append(stay(DAY_MIN - 120, 300, "Home")).unwrap();
    writer.append(stay(DAY_MIN + 400, 60, "Office")).unwrap();
    writer.append(stay(2 * DAY_MIN - 60, 3 * DAY_MIN, "Hut")).unwrap();
    // Over before it begins, and begun after it is over.
    writer.append(stay(DAY_MIN - 600, 300, "Cinema")).unwrap();
    writer.append(stay(2 * DAY_MIN + 10, 300, "Beach")).unwrap();
    writer.close().unwrap();

    let told = |day: u32| content(dir.path(), &day_frame(day));

    assert_eq!(
        told(1),
        "Friday 2 January 1970: at Home until 03:00, at Office from 06:40 to 07:40 and at Hut from 23:00 on."
    );
    assert_eq!(told(3), "Sunday 4 January 1970: at Hut all day.");
}

#[test]
fn a_stay_that_is_not_over_is_told_on_the_next_day_too() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    let mut open = stay(1_000, 5, "Home");
    open.episode.metadata.insert("is_over".to_owned(), false.into());
    writer.append(open).unwrap();
    writer.append(heard(DAY_MIN + 600, "Speech")).unwrap();
    writer.close().unwrap();

    let told = content(dir.path(), &day_frame(1));

    assert_eq!(told, "Friday 2 January 1970: at Home until 10:01. Heard speech (1 min).");
}

#[test]
fn late_rows_make_it_again_under_the_same_id_and_nothing_left_removes_it() {
    let dir = tempfile::tempdir().unwrap();
    let frame = day_frame(0);
    let writer = fixture::writer(dir.path());
    writer.append(heard(10, "Speech")).unwrap();
    let first = write(dir.path(), &writer, &frame).unwrap();
    let again = write(dir.path(), &writer, &frame).unwrap();
    writer.append(heard(20, "Dog")).unwrap();
    let late = write(dir.path(), &writer, &frame).unwrap();

    let rows = gists(dir.path());
    assert_eq!((first, again, late), (rows[0].0, rows[0].0, rows[0].0));
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].1, "Thursday 1 January 1970: heard dog (1 min) and speech (1 min).");
    assert_eq!(writer.counters().episodes_known, 1, "the same again changed nothing");
    let connection = fixture::connection(dir.path());
    let linked = |reason: &str| -> i64 {
        let sql = "SELECT count(*) FROM links WHERE reason = ?1";
        connection.query_row(sql, [reason], |row| row.get(0)).unwrap()
    };
    assert_eq!(linked(GIST), 2);
    assert_eq!(linked(links::co_occurrence::CO_OCCURRENCE), 0, "a gist happens together with nothing");

    connection.execute("DELETE FROM episodes WHERE modality = 'audio'", []).unwrap();
    assert_eq!(write(dir.path(), &writer, &frame), None);
    writer.close().unwrap();

    assert_eq!(gists(dir.path()), []);
}

#[test]
fn a_gist_is_due_when_it_is_missing_or_older_than_a_row_of_its_day() {
    let dir = tempfile::tempdir().unwrap();
    let frame = day_frame(0);
    let is_due = || Reader::open(dir.path()).unwrap().gist_is_due(&frame, frame.id(&DeviceId::new("d"))).unwrap();
    let writer = fixture::writer(dir.path());
    writer.flush().unwrap();
    assert!(!is_due(), "nothing happened");
    writer.append(heard(10, "Speech")).unwrap();
    writer.flush().unwrap();
    assert!(is_due());

    write(dir.path(), &writer, &frame);
    let connection = fixture::connection(dir.path());
    let stored = |ms: i64, which: &str| {
        connection.execute(&format!("UPDATE episodes SET stored_at = ?1 WHERE modality = '{which}'"), [ms]).unwrap();
    };
    stored(1_000, "audio");
    stored(2_000, "gist");
    assert!(!is_due());
    stored(3_000, "audio");

    assert!(is_due());
    writer.close().unwrap();
}

#[test]
fn a_person_is_told_by_rows_that_name_them_and_by_what_facts_were_learnt_from() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    writer.append(met(60, 30, "Alice")).unwrap();
    writer.append(met(90, 30, "Bob")).unwrap();
    let mut note = fixture::episode(100, Modality::Text);
    note.episode.content = "Alice has a new job at Acme.".to_owned();
    note.facts = vec![fixture::located("Alice", "Acme", 100)];
    note.facts[0].relation = "works_at".to_owned();
    note.facts[0].fact = "Alice works at Acme".to_owned();
    writer.append(note).unwrap();
    writer.close().unwrap();

    let told = content(dir.path(), &frame(Subject::Person("Alice".to_owned()), 0));

    assert_eq!(
        told,
        "Alice on Thursday 1 January 1970: met once, 30 min. Last met on Thursday 1 January at 01:00. Known: Alice works at \
         Acme. On Thursday 1 January at 01:40: Alice has a new job at Acme."
    );
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(reader.names(&NodeKind::Person, "alicia").unwrap().suggestions(), ["Alice"]);
}

#[test]
fn the_gists_of_a_span_are_found_by_their_frames() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    for day in 0..3 {
        writer.append(heard(day * DAY_MIN + 10, "Speech")).unwrap();
        write(dir.path(), &writer, &day_frame(day));
    }
    writer.close().unwrap();
    let at = |day: u32, minute: u32| Timestamp::from_millis(i64::from(day * DAY_MIN + minute) * MINUTE_MS);

    let found = Reader::open(dir.path()).unwrap().gists_overlapping(at(1, 0), at(1, 700)).unwrap();

    assert_eq!(found.len(), 1);
    assert_eq!((found[0].1.clone(), found[0].2, found[0].3), (Subject::Day, at(1, 0), at(2, 0)));
}

fn frame(subject: Subject, day: u32) -> Frame {
    let date = Date::new(1970, 1, 1 + i8::try_from(day).unwrap()).unwrap();
    Frame::dates(subject, date, date, &TimeZone::UTC).unwrap()
}

fn day_frame(day: u32) -> Frame {
    frame(Subject::Day, day)
}

fn content(dir: &Path, frame: &Frame) -> String {
    Reader::open(dir).unwrap().gist(frame).unwrap().unwrap().content
}

/// Makes the gist as the agent does.
fn write(dir: &Path, writer: &Writer, frame: &Frame) -> Option<EpisodeId> {
    writer.flush().unwrap();
    let device = DeviceId::new("d");
    let made = Reader::open(dir).unwrap().gist(frame).unwrap();
    match &made {
        Some(gist) => writer.gist(gist.record(frame, &device), gist.sources.clone()).unwrap(),
        None => writer.remove_gist(frame.id(&device)).unwrap(),
    }
    writer.flush().unwrap();
    made.map(|_| frame.id(&device))
}

fn gists(dir: &Path) -> Vec<(EpisodeId, String)> {
    let filter = crate::memory::query::EpisodeFilter { modalities: vec![Modality::Gist], ..Default::default() };
    let rows = Reader::open(dir).unwrap().episodes(&filter).unwrap();
    rows.into_iter().map(|stored| (stored.episode.id, stored.episode.content)).collect()
}

fn stay(minute: u32, length: u32, place: &str) -> EpisodeRecord {
    let metadata = json!({"kind": "stay", "place": place, "is_over": true});
    sensed((minute, length), Modality::Spatial, SensorKind::Gps, "gps_location", &metadata)
}

fn heard(minute: u32, class: &str) -> EpisodeRecord {
    sensed((minute, 1), Modality::Audio, SensorKind::Microphone, "audio_capture", &json!({"sound_class": class}))
}

fn met(minute: u32, length: u32, person: &str) -> EpisodeRecord {
    let metadata = json!({"person": person});
    sensed((minute, length), Modality::Social, SensorKind::Bluetooth, "multimodal_memory", &metadata)
}

fn sensed(
    (minute, length): (u32, u32),
    modality: Modality,
    sensor: SensorKind,
    tool: &str,
    metadata: &Value,
) -> EpisodeRecord {
    let mut record = fixture::episode(minute, modality);
    let episode = &mut record.episode;
    episode.external_id = None;
    episode.source = SourceId::of(sensor, "one");
    episode.tool_name = tool.to_owned();
    episode.ended_at = episode.timestamp.plus_millis(i64::from(length) * MINUTE_MS);
    episode.metadata = metadata.as_object().cloned().unwrap();
    record
}

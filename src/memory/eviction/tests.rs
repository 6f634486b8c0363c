//! Stores that outgrow their budget.

use super::*;
use crate::domain::episode::MediaKind;
use crate::domain::modality::Modality;
use crate::domain::time::ClockQuality;
use crate::memory::fixture;
use crate::memory::fixture::MINUTE_MS;
use crate::memory::query::EpisodeFilter;
use crate::memory::reader::Reader;
use crate::memory::retention::UsageAlarm;
use crate::memory::writer::Writer;

const DAY: u32 = 24 * 60;

fn at_minute(minute: u32) -> Option<Timestamp> {
    Some(Timestamp::from_millis(i64::from(minute) * MINUTE_MS))
}

fn acknowledge(dir: &Path, table: &str, condition: &str) {
    fixture::connection(dir)
        .execute(&format!("UPDATE {table} SET acked_revision = revision WHERE {condition}"), [])
        .unwrap();
}

fn used(dir: &Path) -> u64 {
    Reader::open(dir).unwrap().glance().unwrap().used_bytes
}

fn append(writer: &Writer, minutes: impl IntoIterator<Item = u32>, modality: Modality) {
    for minute in minutes {
        let mut record = fixture::episode(minute, modality);
        record.embeddings = vec![fixture::vector(minute, 512)];
        writer.append(record).unwrap();
    }
    writer.flush().unwrap();
}

/// How many episodes of each modality are left.
fn left(dir: &Path) -> Vec<(String, u64)> {
    Reader::open(dir).unwrap().stats().unwrap().by_modality
}

#[test]
fn within_the_budget_nothing_goes() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    append(&writer, 0..10, Modality::Audio);
    let bytes = used(dir.path());

    let eviction = writer.keep_within(Budget { bytes }, at_minute(DAY)).unwrap();

    assert_eq!(eviction, Eviction { used_bytes: bytes, budget_bytes: bytes, ..Eviction::default() });
}

#[test]
fn a_quota_of_10_mb_warns_on_the_way_and_is_kept_by_letting_the_least_valuable_go() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    let budget = Budget { bytes: 10_000_000 };
    let mut alarm = UsageAlarm::default();
    let (mut warned, mut evicted) = (Vec::new(), 0);
    append(&writer, 0..20, Modality::Social);
    for day in 1..36 {
        append(&writer, day * DAY + 100..day * DAY + 110, Modality::Visual);
        for minute in [0, 25, 50, 75] {
            append(&writer, day * DAY + minute..day * DAY + minute + 25, Modality::Audio);
            warned.extend(alarm.observe(Usage { used_bytes: used(dir.path()), budget_bytes: budget.bytes }));
        }
        loop {
            let eviction = writer.keep_within(budget, at_minute((day + 1) * DAY)).unwrap();
            evicted += eviction.rows_pending;
            if !eviction.is_more {
                break;
            }
        }
    }
    writer.close().unwrap();

    assert_eq!(warned, [80, 90, 95]);
    assert!(evicted > 500, "{evicted}");
    assert!(used(dir.path()) <= budget.bytes);
    let left = left(dir.path());
    let count = |name: &str| left.iter().find(|(modality, _)| modality == name).map_or(0, |(_, count)| *count);
    assert_eq!((count("social"), count("visual")), (20, 350), "sounds of long ago are worth less: {left:?}");
    let sounds = EpisodeFilter { modalities: vec![Modality::Audio], ..EpisodeFilter::default() };
    let reader = Reader::open(dir.path()).unwrap();
    let oldest = reader.episodes(&sounds).unwrap()[0].episode.timestamp;
    let gone = 3_500 - u32::try_from(count("audio")).unwrap();
    assert_eq!(Some(oldest), at_minute((1 + gone / 100) * DAY + gone % 100), "the oldest first, none between");
    assert_eq!(reader.complaint().unwrap(), None);
    assert_eq!(reader.stats().unwrap().tombstones, 0, "eviction is not forgetting");
}

fn hash_of(number: u32) -> String {
    blake3::hash(&fixture::picture(number, 10_000).bytes).to_hex().to_string()
}

#[test]
fn media_go_before_rows_and_what_central_has_before_what_it_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    for number in 0..80 {
        let mut record = fixture::sound(number);
        record.media = vec![fixture::picture(number, 10_000)];
        writer.append(record).unwrap();
    }
    writer.flush().unwrap();
    acknowledge(dir.path(), "media", &format!("hash IN ('{}', '{}')", hash_of(60), hash_of(70)));
    let is_there = |number: u32| dir.path().join(media::place_of(&hash_of(number), MediaKind::Jpeg)).exists();
    let full = used(dir.path());

    // Four files' worth too much, so that with the margin below the budget some more go.
    let first = writer.keep_within(Budget { bytes: full - 40_000 }, None).unwrap();
    let after_first: Vec<u32> = (0..80).filter(|number| !is_there(*number)).collect();
    let tight = Budget { bytes: full - 800_000 };
    let second = writer.keep_within(tight, None).unwrap();
    let third = writer.keep_within(tight, None).unwrap();
    let without_time = writer.keep_within(tight, None).unwrap();

    assert_eq!(first.files_acknowledged, 2);
    let oldest = u32::try_from(first.files_pending).unwrap();
    assert_eq!(after_first, (0..oldest).chain([60, 70]).collect::<Vec<_>>());
    assert!(!first.is_more && first.used_bytes <= full - 40_000);
    assert_eq!((second.files_pending, second.is_more), (FILES_MAX as u64, true), "a bounded piece a call");
    assert_eq!(first.files_pending + second.files_pending + third.files_pending, 78);
    assert_eq!((without_time.rows_pending, without_time.is_more), (0, false), "no row goes while the clock is unset");
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!((reader.stats().unwrap().episodes, reader.stats().unwrap().media_files), (80, 0));
    let media = &reader.episode(fixture::sound(3).episode.id).unwrap().unwrap().media;
    assert_eq!(media[0].state, MediaState::Evicted, "the row still says that there was a picture");
    // The same capture again is known: its picture does not come back.
    let mut repeat = fixture::sound(3);
    repeat.media = vec![fixture::picture(3, 10_000)];
    writer.append(repeat).unwrap();
    assert_eq!(writer.close().unwrap().episodes_known, 1);
    assert!(!is_there(3));
    assert!(reader.check_media().unwrap().is_clean());
}

#[test]
fn what_central_has_goes_first_permanent_rows_last_and_rows_of_an_unset_clock_are_no_older_than_now() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    append(&writer, 0..30, Modality::Social);
    append(&writer, 100 * DAY..100 * DAY + 30, Modality::Visual);
    append(&writer, 0..30, Modality::Audio);
    let mut unset = fixture::episode(40, Modality::Audio);
    unset.episode.clock_quality = ClockQuality::Unset;
    unset.episode.metadata.insert("multimodal_episode_id".to_owned(), "m".into());
    writer.append(unset.clone()).unwrap();
    writer.flush().unwrap();
    acknowledge(dir.path(), "episodes", "modality = 'visual'");
    let now = at_minute(100 * DAY + 60);
    let (mut seen, mut moments) = (Vec::new(), Vec::new());

    // A little at a time, so that the order shows.
    for _ in 0..400 {
        let eviction = writer.keep_within(Budget { bytes: used(dir.path()) - 1 }, now).unwrap();
        moments.extend(eviction.moments.clone());
        let names: Vec<String> = left(dir.path()).into_iter().map(|(name, count)| format!("{name} {count}")).collect();
        seen.push(names.join(", "));
        if eviction.removed() == 0 {
            break;
        }
    }

    seen.dedup();
    let place = |part: &str| seen.iter().position(|names| !names.contains(part));
    let (visual, audio, social) = (place("visual").unwrap(), place("audio").unwrap(), place("social").unwrap());
    assert!(visual < audio && audio < social, "{seen:?}");
    assert!(seen[..audio].iter().all(|names| names.contains("social 30")), "permanent rows go last: {seen:?}");
    assert_eq!(moments, ["m"], "the agent is told whose JSON is left");
    assert_eq!(writer.keep_within(Budget { bytes: 1 }, now).unwrap().usage().percent(), 255);
}

#[test]
fn pages_are_given_back_and_rows_of_a_replay_may_come_again() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    append(&writer, 0..1_200, Modality::Audio);
    let before = Reader::open(dir.path()).unwrap().glance().unwrap();
    let small = Budget { bytes: 600_000 };
    let mut pieces = 0;
    while writer.keep_within(small, at_minute(2_000)).unwrap().is_more {
        pieces += 1;
    }
    let after = Reader::open(dir.path()).unwrap().glance().unwrap();
    append(&writer, [0], Modality::Audio);
    let counters = writer.close().unwrap();

    assert!(pieces >= 2, "at most {ROWS_MAX} rows a call");
    assert!(after.used_bytes <= small.bytes);
    assert!(after.database_bytes < before.database_bytes / 2, "{after:?}");
    assert_eq!((counters.episodes_inserted, counters.rows_blocked), (1_201, 0));
    let plan: String = fixture::connection(dir.path())
        .query_row(&format!("EXPLAIN QUERY PLAN {OLDEST_ROWS}"), (0, "daily", 6, 0, 10), |row| row.get(3))
        .unwrap();
    assert!(plan.contains("episodes_by_value") && plan.contains("COVERING"), "{plan}");
}

#[test]
fn pictures_older_than_they_may_be_go_some_a_call_and_their_rows_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    let files = u32::try_from(FILES_MAX).unwrap();
    for minute in 0..files + 10 {
        let mut record = fixture::sound(minute);
        record.media = vec![fixture::picture(minute, 100)];
        writer.append(record).unwrap();
    }
    // An old picture that a younger episode shows too, and one whose age nobody knows.
    let mut shared = fixture::sound(files + 20);
    shared.media = vec![fixture::picture(0, 100)];
    let mut ageless = fixture::sound(files + 30);
    ageless.episode.timestamp = Timestamp::from_millis(0);
    ageless.episode.clock_quality = ClockQuality::Unset;
    ageless.media = vec![fixture::picture(9_999, 100)];
    writer.append(shared).unwrap();
    writer.append(ageless).unwrap();
    writer.flush().unwrap();
    let before = Timestamp::from_millis(i64::from(files + 5) * MINUTE_MS);

    let counts = [0; 3].map(|_| writer.expire_media(before).unwrap());

    writer.close().unwrap();
    assert_eq!(counts, [FILES_MAX, 4, 0]);
    let reader = Reader::open(dir.path()).unwrap();
    let picture = |minute: u32| reader.episode(fixture::sound(minute).episode.id).unwrap().unwrap().media[0].clone();
    assert_eq!(picture(1).state, MediaState::Evicted);
    assert!(!dir.path().join(picture(1).path).exists());
    for minute in [0, files + 5] {
        assert_eq!(picture(minute).state, MediaState::Kept, "minute {minute}");
        assert!(dir.path().join(picture(minute).path).exists());
    }
    assert_eq!(reader.stats().unwrap().media_files, 7);
    assert!(reader.check_media().unwrap().is_clean());
}

//! The store from outside: what goes through the writer is found by the reader.

use crate::memory_rows;
use crate::memory_rows::at;
use percept::domain::coverage::CoverageReason;
use percept::domain::disposition::Disposition;
use percept::domain::episode::Embedding;
use percept::domain::episode::EmbeddingKind;
use percept::domain::episode::EpisodeRecord;
use percept::domain::episode::Media;
use percept::domain::episode::MediaKind;
use percept::domain::episode::Metadata;
use percept::domain::id::ModelId;
use percept::domain::modality::DecayClass;
use percept::domain::modality::Modality;
use percept::domain::time::ClockQuality;
use percept::memory::clock::ClockCorrection;
use percept::memory::clock::ClockScope;
use percept::memory::error::StoreError;
use percept::memory::links::co_occurrence::CO_OCCURRENCE_LINKS_MAX;
use percept::memory::query::EpisodeFilter;
use percept::memory::query::Order;
use percept::memory::reader::Reader;
use percept::memory::sessions::Registration;
use percept::memory::sessions::SessionState;
use percept::memory::store::OpenOptions;
use percept::memory::store::Store;
use percept::memory::writer::Writer;
use proptest::prelude::*;
use std::path::Path;

fn writer(dir: &Path) -> Writer {
    memory_rows::writer(dir)
}

fn stored(dir: &Path, records: &[EpisodeRecord]) -> Reader {
    let writer = writer(dir);
    for record in records {
        writer.append(record.clone()).unwrap();
    }
    writer.close().unwrap();
    Reader::open(dir).unwrap()
}

fn contents(reader: &Reader, filter: &EpisodeFilter) -> Vec<String> {
    reader.episodes(filter).unwrap().into_iter().map(|stored| stored.episode.content).collect()
}

#[test]
fn an_episode_comes_back_with_everything_that_belongs_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let picture = Media { kind: MediaKind::Jpeg, bytes: b"picture"[..].into() };
    let mut record = memory_rows::audio(1_000, 3_000);
    record.embeddings =
        vec![Embedding { model_id: ModelId::new("yamnet"), kind: EmbeddingKind::Audio, vector: [0.6, 0.8][..].into() }];
    record.facts = vec![memory_rows::located("Alice", "Kitchen", 1_000)];
    record.media = vec![picture];

    let reader = stored(dir.path(), &[record.clone(), memory_rows::visual(2_000)]);
    let detail = reader.episode(record.episode.id).unwrap().unwrap();

    assert_eq!(detail.stored.episode, record.episode);
    assert!((detail.stored.strength - 1.0).abs() < f64::EPSILON);
    assert_eq!((detail.embeddings[0].model_id.as_str(), detail.embeddings[0].dims), ("yamnet", 2));
    assert_eq!(detail.edges[0].fact, "Alice is at Kitchen");
    assert_eq!(detail.links[0].other, memory_rows::visual(2_000).episode.id);
    assert_eq!(std::fs::read(dir.path().join(&detail.media[0].path)).unwrap(), b"picture");
    assert_eq!(reader.complaint().unwrap(), None);
}

#[test]
fn a_repeat_changes_nothing_and_other_content_updates_the_row() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let arrival = memory_rows::audio(1_000, 3_000);
    let mut departure = arrival.clone();
    departure.episode.ended_at = at(9_000);
    departure.episode.content = "A longer sound".to_owned();
    departure.episode.importance = 1;
    departure.episode.decay_class = DecayClass::Session;

    let mut revisions = Vec::new();
    for record in [&arrival, &arrival, &departure, &departure] {
        writer.append(record.clone()).unwrap();
        writer.flush().unwrap();
        let reader = Reader::open(dir.path()).unwrap();
        revisions.push(reader.episodes(&EpisodeFilter::default()).unwrap()[0].revision);
    }
    let counters = writer.close().unwrap();

    assert_eq!(revisions[0], revisions[1]);
    assert!(revisions[2] > revisions[1]);
    assert_eq!(revisions[2], revisions[3]);
    assert_eq!((counters.episodes_inserted, counters.episodes_updated, counters.episodes_known), (1, 1, 2));
    let row = Reader::open(dir.path()).unwrap().episodes(&EpisodeFilter::default()).unwrap().remove(0).episode;
    assert_eq!((row.content.as_str(), row.ended_at), ("A longer sound", at(9_000)));
    assert_eq!((row.importance, row.decay_class), (6, DecayClass::Daily), "a stored row keeps its class");
}

#[test]
fn the_same_moment_under_another_id_is_stored_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut one = memory_rows::audio(1_000, 3_000);
    one.episode.metadata.insert("multimodal_episode_id".to_owned(), "m1".into());
    let mut other = memory_rows::audio(5_000, 6_000);
    other.episode.metadata.insert("multimodal_episode_id".to_owned(), "m1".into());

    let reader = stored(dir.path(), &[one.clone(), other]);

    let rows = reader.episodes(&EpisodeFilter::default()).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].episode.id, one.episode.id);
}

#[test]
fn what_is_not_finite_is_refused_by_id_and_the_rest_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let mut bad = memory_rows::audio(1_000, 3_000);
    bad.embeddings =
        vec![Embedding { model_id: ModelId::new("m"), kind: EmbeddingKind::Audio, vector: [f32::NAN, 0.0][..].into() }];

    let error = writer.append(bad.clone()).unwrap_err();
    writer.append(memory_rows::audio(4_000, 5_000)).unwrap();

    assert_eq!(error.disposition(), Disposition::SetAside);
    assert!(error.to_string().contains(&bad.episode.id.to_string()), "{error}");
    assert_eq!(writer.close().unwrap().episodes_inserted, 1);
}

#[test]
fn filters_come_before_the_limit_and_the_order_is_stable() {
    let dir = tempfile::tempdir().unwrap();
    let mut records: Vec<EpisodeRecord> = (0..50).map(|number| memory_rows::visual(number * 10_000)).collect();
    let mut dog = memory_rows::audio(1_000, 2_000);
    dog.episode.metadata.insert("sound_class".to_owned(), "Dog".into());
    dog.episode.metadata.insert("rmsDb".to_owned(), (-20.5).into());
    dog.episode.content = "A dog".to_owned();
    records.push(dog);
    let reader = stored(dir.path(), &records);
    let only = |filter: EpisodeFilter| contents(&reader, &EpisodeFilter { limit: Some(1), ..filter });

    let newest = EpisodeFilter { order: Order::NewestFirst, ..EpisodeFilter::default() };
    assert_eq!(only(EpisodeFilter { modalities: vec![Modality::Audio], ..newest.clone() }), ["A dog"]);
    assert_eq!(only(EpisodeFilter { sound_class: Some("Dog".to_owned()), ..newest.clone() }), ["A dog"]);
    assert_eq!(only(EpisodeFilter { rms_db_min: Some(-21.0), rms_db_max: Some(-20.0), ..newest.clone() }), ["A dog"]);
    assert_eq!(only(newest), ["A scene at 490000"]);
    let span = EpisodeFilter { since: Some(at(100_000)), until: Some(at(120_000)), ..EpisodeFilter::default() };
    assert_eq!(contents(&reader, &span), ["A scene at 100000", "A scene at 110000"]);
}

#[test]
fn an_id_is_found_by_its_beginning_and_doubt_is_a_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let records: Vec<EpisodeRecord> = (0..400).map(|number| memory_rows::visual(number * 10_000)).collect();
    let reader = stored(dir.path(), &records);
    let id = records[7].episode.id;

    assert_eq!(reader.resolve(&id.to_string()[..13]).unwrap(), Some(id));
    assert_eq!(reader.resolve(&id.to_string().replace('-', "").to_uppercase()).unwrap(), Some(id));
    assert_eq!(reader.resolve("ffffffffffffffffffff").unwrap(), None);
    assert!(matches!(reader.resolve("abc"), Err(StoreError::NoId { .. })));
    assert!(matches!(reader.resolve("' OR 1=1"), Err(StoreError::NoId { .. })));
    let mut shared = records.iter().map(|record| record.episode.id.to_string()).collect::<Vec<_>>();
    shared.sort();
    let pair = shared.windows(2).find(|pair| pair[0][..4] == pair[1][..4]);
    if let Some(pair) = pair {
        let error = reader.resolve(&pair[0][..4]).unwrap_err().to_string();
        assert!(error.contains(&pair[0]) && error.contains(&pair[1]), "{error}");
    }
}

#[test]
fn a_newer_fact_closes_the_older_one_and_a_late_one_is_inserted_in_its_place() {
    let places = [("Kitchen", 1_000), ("Garden", 20_000), ("Office", 50_000), ("Hall", 30_000)];
    let expected = ["Kitchen 1000-20000", "Garden 20000-30000", "Hall 30000-50000", "Office 50000-now"];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
        let dir = tempfile::tempdir().unwrap();
        let records: Vec<EpisodeRecord> = order
            .iter()
            .map(|index| {
                let (place, start) = places[*index];
                let mut record = memory_rows::visual(start);
                record.facts = vec![memory_rows::located("Alice", place, start)];
                record
            })
            .collect();
        let reader = stored(dir.path(), &records);

        let mut edges = Vec::new();
        for record in reader.episodes(&EpisodeFilter::default()).unwrap() {
            for edge in reader.episode(record.episode.id).unwrap().unwrap().edges {
                let end = edge.valid_to.map_or("now".to_owned(), |end| memory_rows::since_start(end).to_string());
                edges.push(format!("{} {}-{end}", edge.object.0, memory_rows::since_start(edge.valid_from)));
            }
        }
        edges.sort_by_key(|edge| expected.iter().position(|line| line == edge));
        assert_eq!(edges, expected, "order {order:?}");
    }
}

#[test]
fn links_join_modalities_that_overlap_and_stay_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let stay = memory_rows::spatial(0, 3_600_000);
    let mut records = vec![stay.clone()];
    records.extend((0..40).map(|number| memory_rows::audio(number * 60_000, number * 60_000 + 30_000)));
    records.extend((0..40).map(|number| memory_rows::visual(number * 60_000 + 4_000)));
    let apart = memory_rows::visual(8_000_000);
    records.push(apart.clone());
    let reader = stored(dir.path(), &records);

    for record in &records {
        let links = reader.episode(record.episode.id).unwrap().unwrap().links;
        assert!(links.len() <= CO_OCCURRENCE_LINKS_MAX, "{} has {}", record.episode.content, links.len());
        for link in links {
            let other = reader.episode(link.other).unwrap().unwrap().stored.episode;
            assert_ne!(other.modality, record.episode.modality);
            assert!((0.0..=1.0).contains(&link.score));
        }
    }
    let first_sound = reader.episode(memory_rows::audio(0, 30_000).episode.id).unwrap().unwrap();
    assert_eq!(first_sound.links[0].other, memory_rows::visual(4_000).episode.id, "the nearest is the strongest");
    assert_eq!(reader.episode(stay.episode.id).unwrap().unwrap().links.len(), CO_OCCURRENCE_LINKS_MAX);
    assert!(reader.episode(apart.episode.id).unwrap().unwrap().links.is_empty());
}

#[test]
fn rows_captured_before_the_clock_was_right_are_moved_whenever_they_arrive() {
    let delta_ms = 14 * 86_400_000;
    let unset = |start: i64| {
        let mut record = memory_rows::audio(start, start + 2_000);
        record.episode.clock_quality = ClockQuality::Unset;
        record.facts = vec![memory_rows::located("Alice", "Kitchen", start)];
        record
    };
    let (early, late, right) = (unset(1_000), unset(5_000), memory_rows::audio(delta_ms + 20_000, delta_ms + 21_000));
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let correction = ClockCorrection {
        device_id: early.episode.device_id.clone(),
        scope: ClockScope::Session(early.episode.session_id.clone()),
        before_monotonic_ms: 10_000,
        delta_ms,
        quality: ClockQuality::Gps,
    };

    writer.append(early.clone()).unwrap();
    writer.coverage(memory_rows::blind(2_000, 4_000, CoverageReason::NoFix, ClockQuality::Unset)).unwrap();
    writer.correct_clock(correction.clone()).unwrap();
    writer.append(late.clone()).unwrap();
    writer.append(right.clone()).unwrap();
    writer.flush().unwrap();
    let before = Reader::open(dir.path()).unwrap().dump().unwrap();
    writer.correct_clock(correction).unwrap();
    writer.append(early.clone()).unwrap();
    writer.append(late.clone()).unwrap();
    let counters = writer.close().unwrap();

    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(reader.dump().unwrap(), before, "a repeat moves nothing again");
    assert_eq!((counters.rows_moved, counters.episodes_known), (2, 2));
    for (record, start) in [(&early, delta_ms + 1_000), (&late, delta_ms + 5_000)] {
        let detail = reader.episode(record.episode.id).unwrap().unwrap();
        assert_eq!(detail.stored.episode.timestamp, at(start));
        assert_eq!(detail.stored.episode.ended_at, at(start + 2_000));
        assert_eq!(detail.stored.episode.clock_quality, ClockQuality::Gps);
        assert_eq!(detail.edges[0].valid_from, at(start));
    }
    assert_eq!(reader.episode(right.episode.id).unwrap().unwrap().stored.episode.timestamp, right.episode.timestamp);
}

#[test]
fn session_rows_expire_after_three_hours_and_nothing_else_does() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let with_class = |start: i64, class: DecayClass, quality: ClockQuality| {
        let mut record = memory_rows::audio(start, start + 1_000);
        record.episode.decay_class = class;
        record.episode.clock_quality = quality;
        record
    };
    let expired = with_class(0, DecayClass::Session, ClockQuality::Gps);
    for record in [
        &expired,
        &with_class(10_000, DecayClass::Session, ClockQuality::Unset),
        &with_class(3_600_000, DecayClass::Session, ClockQuality::Gps),
        &with_class(20_000, DecayClass::Daily, ClockQuality::Gps),
        &with_class(30_000, DecayClass::Permanent, ClockQuality::Gps),
    ] {
        writer.append(record.clone()).unwrap();
    }

    let pruned = writer.prune_expired(at(3 * 3_600_000 + 1)).unwrap();
    writer.append(expired.clone()).unwrap();
    let counters = writer.close().unwrap();

    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(pruned, 1);
    assert_eq!(counters.rows_blocked, 1, "a replay does not bring it back");
    assert_eq!(reader.episode(expired.episode.id).unwrap(), None);
    assert_eq!(reader.stats().unwrap().episodes, 4);
    assert_eq!(reader.complaint().unwrap(), None);
}

#[test]
fn a_session_is_known_by_its_digest() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let session = memory_rows::session("one");
    let finish =
        |counts: Metadata| writer.finish_session(session.device_id.clone(), session.session_id.clone(), counts);

    assert!(finish(Metadata::new()).unwrap_err().to_string().contains("never registered"));
    assert_eq!(writer.register_session(session.clone()).unwrap(), Registration::New);
    assert_eq!(writer.register_session(session.clone()).unwrap(), Registration::Resumed);
    finish(Metadata::from_iter([("readings".to_owned(), 7.into())])).unwrap();
    assert_eq!(writer.register_session(session.clone()).unwrap(), Registration::AlreadyDone);
    let other = writer.register_session(memory_rows::session("two")).unwrap();

    assert_eq!(other, Registration::OtherDigest { digest: "one".to_owned() });
    let row = Reader::open(dir.path()).unwrap().session(&session.device_id, &session.session_id).unwrap().unwrap();
    assert_eq!((row.state, row.counts["readings"].as_i64()), (SessionState::Done, Some(7)));
}

/// The rows of one reading of a session: sounds, scenes, a stay, all facts and files.
fn reading_of_a_session(shift_ms: i64) -> Vec<EpisodeRecord> {
    let mut records = vec![memory_rows::spatial(0, 600_000)];
    for number in 0..20 {
        let start = number * 10_000 + shift_ms;
        let mut sound = memory_rows::audio(start, start + 4_000);
        sound.facts = vec![memory_rows::located("Alice", ["Kitchen", "Garden"][usize::from(number % 2 == 0)], start)];
        sound.media = vec![Media { kind: MediaKind::Wav, bytes: start.to_le_bytes()[..].into() }];
        records.extend([sound, memory_rows::visual(start + 1_000)]);
    }
    records
}

fn read_session(writer: &Writer, digest: &str, shift_ms: i64) {
    let session = memory_rows::session(digest);
    if let Registration::OtherDigest { .. } = writer.register_session(session.clone()).unwrap() {
        writer.replace_session(session.clone()).unwrap();
    }
    for record in reading_of_a_session(shift_ms) {
        writer.append(record).unwrap();
    }
    writer.coverage(memory_rows::blind(100 + shift_ms, 900, CoverageReason::NoFix, ClockQuality::Gps)).unwrap();
    writer.finish_session(session.device_id, session.session_id, Metadata::new()).unwrap();
}

fn media_files(dir: &Path) -> usize {
    let folders = std::fs::read_dir(dir.join("media")).unwrap().flatten();
    folders.map(|folder| std::fs::read_dir(folder.path()).unwrap().count()).sum()
}

#[test]
fn two_stores_that_read_the_same_session_remember_the_same() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for dir in [&one, &two] {
        let writer = writer(dir.path());
        read_session(&writer, "a", 0);
        writer.close().unwrap();
    }
    let dump = Reader::open(one.path()).unwrap().dump().unwrap();

    assert_eq!(dump, Reader::open(two.path()).unwrap().dump().unwrap());
    let writer = writer(one.path());
    read_session(&writer, "a", 0);
    let counters = writer.close().unwrap();
    assert_eq!((counters.episodes_inserted, counters.episodes_updated, counters.episodes_known), (0, 0, 41));
    assert_eq!(dump, Reader::open(one.path()).unwrap().dump().unwrap());
}

#[test]
fn a_reprocessed_session_is_as_if_it_had_been_read_that_way_first() {
    let (reprocessed, fresh) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = writer(reprocessed.path());
    read_session(&first, "a", 0);
    read_session(&first, "b", 1_700);
    first.close().unwrap();
    let second = writer(fresh.path());
    read_session(&second, "b", 1_700);
    second.close().unwrap();

    let reader = Reader::open(reprocessed.path()).unwrap();
    assert_eq!(reader.dump().unwrap(), Reader::open(fresh.path()).unwrap().dump().unwrap());
    assert_eq!(reader.complaint().unwrap(), None);
    assert_eq!(media_files(reprocessed.path()), 20, "files of the old reading are gone");
}

#[test]
fn a_replacement_that_ends_early_leaves_the_old_rows() {
    let dir = tempfile::tempdir().unwrap();
    let first = writer(dir.path());
    read_session(&first, "a", 0);
    first.close().unwrap();
    let before = Reader::open(dir.path()).unwrap().dump().unwrap();

    let second = writer(dir.path());
    second.replace_session(memory_rows::session("b")).unwrap();
    for record in reading_of_a_session(1_700) {
        second.append(record).unwrap();
    }
    let flushed = second.flush().unwrap_err();
    let beside = Reader::open(dir.path()).unwrap().dump().unwrap();
    let closed = second.close().unwrap_err();

    assert!(flushed.to_string().contains("is being replaced"), "{flushed}");
    assert!(closed.to_string().contains("its old rows stand"), "{closed}");
    assert_eq!(beside, before, "readers see the old rows all along");
    assert_eq!(Reader::open(dir.path()).unwrap().dump().unwrap(), before);
}

#[test]
fn the_reader_says_plainly_that_there_is_no_store() {
    let dir = tempfile::tempdir().unwrap();

    let error = Reader::open(dir.path()).unwrap_err().to_string();

    assert!(error.contains("memory.db") && error.contains("nothing has been recorded"), "{error}");
}

#[test]
fn a_second_writer_is_refused_with_the_name_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let _first = writer(dir.path());

    let error = Store::open(dir.path(), &OpenOptions::default()).unwrap_err().to_string();

    assert!(error.contains("in use by percept test (process "), "{error}");
    assert!(Reader::open(dir.path()).is_ok(), "reading is possible at any time");
}

#[test]
fn stats_count_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    read_session(&writer, "a", 0);
    writer.close().unwrap();

    let stats = Reader::open(dir.path()).unwrap().stats().unwrap();

    assert_eq!(stats.episodes, 41);
    assert_eq!(
        stats.by_modality.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>(),
        ["audio 20", "spatial 1", "visual 20"]
    );
    assert_eq!((stats.nodes, stats.edges, stats.media_files, stats.media_bytes), (3, 20, 20, 160));
    assert_eq!((stats.coverage[0].reason.as_str(), stats.coverage[0].total_ms), ("no_fix", 800));
    assert_eq!((stats.first, stats.last), (Some(at(0)), Some(at(191_000))));
    assert_eq!(stats.sessions, [("done".to_owned(), 1)]);
    assert!(stats.database_bytes > 100_000);
}

fn without_links(dump: &str) -> String {
    let (before, after) = dump.split_once("# links\n").unwrap();
    let (_, after) = after.split_once("# coverage\n").unwrap();
    format!("{before}# coverage\n{after}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    /// Which links a crowded node keeps depends on the order; everything else does not.
    #[test]
    fn any_order_and_repetition_of_appends_gives_the_same_store(
        order in Just((0..41).collect::<Vec<usize>>()).prop_shuffle(),
        repeats in proptest::collection::vec(0..41_usize, 0..8),
    ) {
        let records = reading_of_a_session(0);
        let (straight, shuffled) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let expected = stored(straight.path(), &records).dump().unwrap();

        let in_order: Vec<EpisodeRecord> = order.iter().chain(&repeats).map(|index| records[*index].clone()).collect();
        let found = stored(shuffled.path(), &in_order).dump().unwrap();

        prop_assert_eq!(without_links(&found), without_links(&expected));
    }
}

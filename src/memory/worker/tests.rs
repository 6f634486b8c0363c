//! The writer's thread against a store that may not grow, refused rows and its clock.

use crate::domain::disposition::Disposition;
use crate::domain::episode::Episode;
use crate::domain::episode::EpisodeRecord;
use crate::domain::episode::Metadata;
use crate::domain::id::BootId;
use crate::domain::id::DeviceId;
use crate::domain::id::EpisodeId;
use crate::domain::id::ExternalId;
use crate::domain::id::SessionId;
use crate::domain::id::SourceId;
use crate::domain::modality::Modality;
use crate::domain::time::ClockQuality;
use crate::domain::time::ManualClock;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;
use crate::memory::command::Stored;
use crate::memory::error::StoreError;
use crate::memory::fixture;
use crate::memory::query::EpisodeFilter;
use crate::memory::reader::Reader;
use crate::memory::retention::Budget;
use crate::memory::store::OpenOptions;
use crate::memory::store::Store;
use crate::memory::writer::Writer;
use std::path::Path;

#[test]
fn a_store_that_may_not_grow_keeps_what_was_committed_and_takes_the_rest_later() {
    let dir = tempfile::tempdir().unwrap();
    let full = writer(dir.path(), Some(120));
    let mut refused = None;
    for number in 0..2_000 {
        let sent = full.append(record(number)).and_then(|()| full.flush().map(drop));
        if let Err(error) = sent {
            refused = Some((number, error));
            break;
        }
    }
    let (first_refused, error) = refused.unwrap();

    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert_eq!(error.disposition(), Disposition::Retry);
    assert!(full.trouble().is_some_and(|trouble| trouble.contains("no room left")));
    assert!(full.close().is_err());
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(reader.stats().unwrap().episodes, first_refused);
    assert_eq!(reader.complaint().unwrap(), None);

    let roomy = writer(dir.path(), None);
    for number in 0..=first_refused {
        roomy.append(record(number)).unwrap();
    }
    let counters = roomy.close().unwrap();
    assert_eq!((counters.episodes_known, counters.episodes_inserted), (first_refused, 1));
}

#[test]
fn a_row_that_sqlite_refuses_is_set_aside_and_the_rest_of_its_group_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path(), None);
    let mut clash = record(2);
    clash.episode.external_id = record(0).episode.external_id;
    for record in [record(0), clash.clone(), record(1)] {
        writer.append(record).unwrap();
    }
    let counters = writer.close().unwrap();

    assert_eq!((counters.episodes_inserted, counters.rows_refused), (2, 1));
    assert!(counters.refusals[0].contains(&clash.episode.id.to_string()), "{:?}", counters.refusals);
    assert_eq!(Reader::open(dir.path()).unwrap().episodes(&EpisodeFilter::default()).unwrap().len(), 2);
}

#[test]
fn stored_at_is_the_time_of_the_writers_clock() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path(), None);
    writer.append(record(0)).unwrap();
    writer.close().unwrap();

    let rows = Reader::open(dir.path()).unwrap().episodes(&EpisodeFilter::default()).unwrap();

    assert_eq!(rows[0].stored_at, Timestamp::from_millis(42));
}

fn writer(dir: &Path, pages_max: Option<u32>) -> Writer {
    let store = Store::open(dir, &OpenOptions::default()).unwrap();
    if let Some(pages) = pages_max {
        let set = store.connection.pragma_update_and_check(None, "max_page_count", pages, |row| row.get::<_, u32>(0));
        assert_eq!(set.unwrap(), pages);
    }
    let now = Stamp { monotonic_ms: 0, utc: Timestamp::from_millis(42), quality: ClockQuality::Gps };
    Writer::spawn(store, Box::new(ManualClock { now })).unwrap()
}

fn record(number: u64) -> EpisodeRecord {
    let (device_id, external_id) = (DeviceId::new("d"), ExternalId::new(number.to_string()));
    let start = Timestamp::from_millis(i64::try_from(number).unwrap() * 60_000);
    let episode = Episode {
        id: EpisodeId::of_external(&device_id, &external_id),
        external_id: Some(external_id),
        device_id,
        session_id: SessionId::new("s"),
        source: SourceId::new("microphone:m"),
        timestamp: start,
        ended_at: start,
        boot_id: BootId::new("b"),
        monotonic_ms: start.as_millis(),
        clock_quality: ClockQuality::Gps,
        modality: Modality::Audio,
        tool_name: "t".to_owned(),
        content: format!("Sound {number}"),
        importance: 6,
        decay_class: Modality::Audio.default_decay(),
        metadata: Metadata::new(),
    };
    EpisodeRecord { episode, embeddings: Vec::new(), facts: Vec::new(), media: Vec::new() }
}

/// Mounts a small file system; `None` where the test may not (it needs root), which is printed.
fn small_disk(dir: &Path, size: &str) -> Option<impl Drop> {
    struct Mounted(std::path::PathBuf);
    impl Drop for Mounted {
        fn drop(&mut self) {
            let _ = std::process::Command::new("umount").arg(&self.0).status();
        }
    }
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
        .arg(dir)
        .stderr(std::process::Stdio::null())
        .status();
    if mounted.is_ok_and(|status| status.success()) {
        return Some(Mounted(dir.to_path_buf()));
    }
    println!("skipped: no small file system can be mounted here");
    None
}

#[test]
fn on_a_full_disk_the_lowest_value_stops_first_and_all_goes_on_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_disk) = small_disk(dir.path(), "3m") else { return };
    let ballast = dir.path().join("ballast");
    std::fs::write(&ballast, vec![1; 1_500_000]).unwrap();
    let writer = fixture::writer(dir.path());
    let sound = |minute| {
        let mut record = fixture::sound(minute);
        record.facts = vec![fixture::located("Alice", "Kitchen", minute)];
        record
    };
    let accepted: Vec<_> = (0..20_000).take_while(|minute| writer.append(sound(*minute)).is_ok()).collect();
    let people = (0..30).map(|minute| fixture::episode(minute, Modality::Social));
    let meetings: Vec<bool> = people.clone().map(|meeting| writer.append(meeting).is_ok()).collect();
    let more_sounds = writer.append(sound(20_001)).unwrap_err();

    // Nothing is handed over any more: the writer tries again by itself.
    std::fs::remove_file(&ballast).unwrap();
    let (_waiting, never) = std::sync::mpsc::channel::<()>();
    let mut turns = 0;
    while writer.trouble().is_some() && turns < 500 {
        let _ = never.recv_timeout(std::time::Duration::from_millis(20));
        turns += 1;
    }
    assert_eq!(writer.trouble(), None);
    let counters = writer.close().unwrap();

    assert!(accepted.len() > 100 && accepted.len() < 20_000);
    assert_eq!(meetings, [true; 30], "a meeting takes the place of a sound that waits");
    assert_eq!(more_sounds.disposition(), Disposition::Retry, "{more_sounds}");
    assert_eq!((counters.rows_shed, counters.rows_lost), (30, 0));
    let reader = Reader::open(dir.path()).unwrap();
    let found = reader.episodes(&EpisodeFilter::default()).unwrap();
    assert_eq!(found.len(), accepted.len(), "30 more and 30 less");
    let ids: Vec<_> = found.iter().map(|stored| stored.episode.id).collect();
    assert!(people.clone().all(|meeting| ids.contains(&meeting.episode.id)));
    let mut sounds = accepted[..accepted.len() - 30].iter().map(|minute| fixture::sound(*minute).episode.id);
    assert!(sounds.clone().all(|id| ids.contains(&id)), "the newest sounds went, the older ones stayed");
    assert!(sounds.all(|id| reader.episode(id).unwrap().unwrap().edges.len() == 1), "no row is partial");
    assert_eq!(reader.complaint().unwrap(), None);
}

#[test]
fn room_is_made_on_a_full_disk_while_rows_wait() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_disk) = small_disk(dir.path(), "4m") else { return };
    let writer = fixture::writer(dir.path());
    let mut taken = 0;
    for minute in 0..20_000 {
        let mut record = fixture::sound(minute);
        record.media = vec![fixture::picture(minute, 20_000)];
        if writer.append(record).is_err() {
            break;
        }
        taken += 1;
    }
    let used = Reader::open(dir.path()).unwrap().glance().unwrap().used_bytes;

    let mut files_gone = 0;
    loop {
        let eviction = writer.keep_within(Budget { bytes: used / 4 }, None).unwrap();
        files_gone += eviction.files_pending;
        if !eviction.is_more {
            break;
        }
    }

    assert!(files_gone > 10, "{files_gone}");
    writer.flush().unwrap();
    writer.close().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(reader.stats().unwrap().episodes, taken, "every row that was accepted");
    assert!(reader.check_media().unwrap().is_clean());
}

#[test]
fn episodes_whose_caller_waits_are_committed_and_answered_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    let first = fixture::sound(1);
    let mut nonsense = fixture::sound(2);
    nonsense.episode.importance = 11;
    let mut changed = first.clone();
    changed.episode.content = "Something else".to_owned();
    let mut clash = fixture::sound(3);
    clash.episode.external_id = first.episode.external_id.clone();

    let answers = [
        writer.store(vec![first.clone(), nonsense, clash, fixture::sound(4)]).unwrap(),
        writer.store(vec![first, changed]).unwrap(),
        writer.store(Vec::new()).unwrap(),
    ];

    let kinds: Vec<Vec<&str>> = answers.iter().map(|answers| answers.iter().map(kind).collect()).collect();
    assert_eq!(kinds, [vec!["new", "refused", "refused", "new"], vec!["known", "updated"], vec![]]);
    assert_eq!(Reader::open(dir.path()).unwrap().episodes(&EpisodeFilter::default()).unwrap().len(), 2);
    let counters = writer.counters();
    assert_eq!((counters.episodes_inserted, counters.episodes_updated, counters.episodes_known), (2, 1, 1));
    let too_many = vec![fixture::sound(9); crate::memory::writer::STORE_ROWS_MAX + 1];
    assert!(writer.store(too_many).unwrap_err().to_string().contains("257 episodes at once"));
}

fn kind(stored: &Stored) -> &'static str {
    match stored {
        Stored::New => "new",
        Stored::Updated => "updated",
        Stored::Known => "known",
        Stored::Blocked => "blocked",
        Stored::Refused(_) => "refused",
    }
}

//! The store under kill −9, cut files, held locks, a full disk and crowding.

use crate::memory_rows;
use percept::domain::disposition::Disposition;
use percept::domain::episode::EpisodeRecord;
use percept::domain::episode::Media;
use percept::domain::episode::MediaKind;
use percept::domain::modality::Modality;
use percept::memory::error::StoreError;
use percept::memory::query::EpisodeFilter;
use percept::memory::reader::Reader;
use percept::memory::store::OpenOptions;
use percept::memory::store::STORE_FILE;
use percept::memory::store::Store;
use percept::memory::writer::GROUP_ROWS_MAX;
use percept::memory::writer::QUEUE_ROWS_MAX;
use std::collections::BTreeSet;
use std::io::BufRead;
use std::io::BufReader;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

const CHILD_DIR: &str = "PERCEPT_TEST_STORE";
const KILLS: u64 = 50;

/// Row `number` of the child's session: every kind of thing that belongs to an episode.
fn row(number: i64) -> EpisodeRecord {
    let start = number * 3_000;
    let mut record =
        if number % 2 == 0 { memory_rows::audio(start, start + 2_000) } else { memory_rows::visual(start) };
    let place = if number % 4 == 0 { "Kitchen" } else { "Garden" };
    record.facts = vec![memory_rows::located("Alice", place, start)];
    if number % 5 == 0 {
        record.media = vec![Media { kind: MediaKind::Wav, bytes: number.to_le_bytes()[..].into() }];
    }
    record
}

#[test]
#[ignore = "runs as the child process of a_killed_writer_loses_nothing_it_called_committed"]
fn child_that_writes_until_it_is_killed() {
    let Some(dir) = std::env::var_os(CHILD_DIR) else { return };
    let writer = memory_rows::writer(Path::new(&dir));
    for number in 0.. {
        writer.append(row(number)).unwrap();
        if number % 3 == 2 {
            writer.flush().unwrap();
            println!("\ncommitted {}", number + 1);
        }
    }
}

/// Starts the child and kills it some time after it has called `rows` rows committed. Returns how many it called so.
fn write_and_kill(dir: &Path, rows: u64, then: Duration) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store_faults::child_that_writes_until_it_is_killed", "--ignored", "--nocapture"])
        .env(CHILD_DIR, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let (sender, heard) = mpsc::channel();
    let listener = std::thread::spawn(move || {
        let committed = |line: String| line.strip_prefix("committed ").and_then(|count| count.parse::<u64>().ok());
        let mut last = None;
        for count in lines.filter_map(committed) {
            // The listener may have heard enough; the last count still matters.
            let _ = sender.send(count);
            last = Some(count);
        }
        last
    });
    while heard.recv().is_ok_and(|count| count < rows) {}
    let (_waiting, never) = mpsc::channel::<()>();
    let _ = never.recv_timeout(then);
    child.kill().unwrap();
    child.wait().unwrap();
    listener.join().unwrap().unwrap_or(0)
}

#[test]
fn a_killed_writer_loses_nothing_it_called_committed() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = seeded(7);
    for round in 0..KILLS {
        let committed = write_and_kill(dir.path(), random() % 12, Duration::from_micros(random() % 20_000));

        let reader = Reader::open(dir.path());
        let reader = if committed == 0 && reader.is_err() { continue } else { reader.unwrap() };
        let found = reader.episodes(&EpisodeFilter::default()).unwrap();
        let ids: BTreeSet<_> = found.iter().map(|stored| stored.episode.id).collect();
        assert_eq!(ids.len(), found.len(), "round {round}: a row is doubled");
        for number in 0..i64::try_from(committed).unwrap() {
            assert!(ids.contains(&row(number).episode.id), "round {round}: committed row {number} is missing");
        }
        for stored in &found {
            let detail = reader.episode(stored.episode.id).unwrap().unwrap();
            let expected = row(memory_rows::since_start(stored.episode.timestamp) / 3_000);
            assert_eq!(detail.edges.len(), 1, "round {round}: an episode came without its fact");
            assert_eq!(detail.media.len(), expected.media.len(), "round {round}");
            assert!(detail.media.iter().all(|file| dir.path().join(&file.path).exists()), "round {round}");
        }
        assert_eq!(reader.complaint().unwrap(), None, "round {round}");
    }
    assert!(Reader::open(dir.path()).unwrap().stats().unwrap().episodes >= 3, "the rounds wrote something");
}

/// A small generator, so that every run kills at the same points of its plan.
fn seeded(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}

const CUTS: [u64; 9] = [1, 2, 17, 100, 512, 1_000, 2_048, 4_095, 4_096];

/// A store whose last commits are still in the WAL, as a power cut leaves it. Returns the rows in the order written.
fn interrupted_store(dir: &Path) -> Vec<EpisodeRecord> {
    let live = tempfile::tempdir().unwrap();
    let writer = memory_rows::writer(live.path());
    let records: Vec<EpisodeRecord> = (0..60).map(row).collect();
    for record in &records {
        writer.append(record.clone()).unwrap();
        writer.flush().unwrap();
    }
    for name in ["memory.db", "memory.db-wal"] {
        std::fs::copy(live.path().join(name), dir.join(name)).unwrap();
    }
    records
}

fn copy_and_cut(from: &Path, to: &Path, name: &str, cut: u64) {
    for entry in std::fs::read_dir(from).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    let file = std::fs::File::options().write(true).open(to.join(name)).unwrap();
    file.set_len(file.metadata().unwrap().len().saturating_sub(cut)).unwrap();
}

#[test]
fn a_wal_that_was_cut_off_loses_only_its_last_commits() {
    let whole = tempfile::tempdir().unwrap();
    let records = interrupted_store(whole.path());
    for cut in CUTS {
        let dir = tempfile::tempdir().unwrap();
        copy_and_cut(whole.path(), dir.path(), "memory.db-wal", cut);

        drop(Store::open(dir.path(), &OpenOptions::default()).unwrap());

        let reader = Reader::open(dir.path()).unwrap();
        let found = reader.episodes(&EpisodeFilter::default()).unwrap();
        let expected: Vec<_> = records[..found.len()].iter().map(|record| record.episode.id).collect();
        assert_eq!(found.iter().map(|stored| stored.episode.id).collect::<Vec<_>>(), expected);
        assert!(found.len() >= records.len() - 1, "{cut} bytes cost {} rows", records.len() - found.len());
        assert_eq!(reader.complaint().unwrap(), None);
    }
}

#[test]
fn a_database_that_was_cut_off_is_refused_in_a_sentence() {
    let whole = tempfile::tempdir().unwrap();
    interrupted_store(whole.path());
    drop(Store::open(whole.path(), &OpenOptions::default()).unwrap());
    for cut in CUTS {
        let dir = tempfile::tempdir().unwrap();
        copy_and_cut(whole.path(), dir.path(), STORE_FILE, cut);

        let writing = Store::open(dir.path(), &OpenOptions::default()).map(drop);
        let reading = Reader::open(dir.path()).and_then(|reader| reader.stats()).map(drop);

        for error in [writing.unwrap_err(), reading.unwrap_err()] {
            assert!(matches!(error, StoreError::Damaged { .. }), "{cut} bytes: {error:?}");
            assert!(error.to_string().contains("memory.db is damaged"), "{error}");
            assert_eq!(error.disposition(), Disposition::Stop);
        }
    }
}

#[test]
fn four_sensors_lose_nothing_while_another_process_holds_the_write_lock() {
    let dir = tempfile::tempdir().unwrap();
    let writer = memory_rows::writer(dir.path());
    let other = rusqlite::Connection::open(dir.path().join(STORE_FILE)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let rows_each = 2 * i64::try_from(QUEUE_ROWS_MAX).unwrap();

    std::thread::scope(|scope| {
        for sensor in 0..4 {
            let writer = &writer;
            scope.spawn(move || {
                for number in 0..rows_each {
                    let start = (number * 4 + sensor) * 1_000;
                    writer.append(memory_rows::audio(start, start + 500)).unwrap();
                }
            });
        }
        let (_waiting, never) = mpsc::channel::<()>();
        let _ = never.recv_timeout(Duration::from_millis(900));
        let beside = Reader::open(dir.path()).unwrap();
        assert_eq!(beside.stats().unwrap().episodes, 0, "nothing could be committed so far");
        other.execute_batch("ROLLBACK").unwrap();
    });
    let counters = writer.close().unwrap();

    assert_eq!(counters.episodes_inserted, 4 * rows_each.unsigned_abs());
    assert!(counters.sends_blocked > 0, "the queue is bounded");
    let reader = Reader::open(dir.path()).unwrap();
    let mut written: Vec<_> = reader.episodes(&EpisodeFilter::default()).unwrap();
    written.sort_by_key(|stored| stored.revision);
    for sensor in 0..4 {
        let starts: Vec<i64> = written
            .iter()
            .map(|stored| memory_rows::since_start(stored.episode.timestamp))
            .filter(|start| start / 1_000 % 4 == sensor)
            .collect();
        assert!(starts.is_sorted(), "rows of sensor {sensor} are out of order");
    }
}

#[test]
fn rows_are_committed_together_and_within_a_second_without_being_asked() {
    let dir = tempfile::tempdir().unwrap();
    let writer = memory_rows::writer(dir.path());
    let reader = Reader::open(dir.path()).unwrap();
    let few = i64::try_from(GROUP_ROWS_MAX).unwrap() / 2;
    for number in 0..few {
        writer.append(row(number)).unwrap();
    }
    let (_waiting, never) = mpsc::channel::<()>();
    let mut turns = 0;
    while reader.stats().unwrap().episodes == 0 && turns < 150 {
        let _ = never.recv_timeout(Duration::from_millis(20));
        turns += 1;
    }

    assert_eq!(reader.stats().unwrap().episodes, few.unsigned_abs(), "all of them in one commit");
    assert_eq!(writer.counters().commits, 1);
}

#[test]
fn every_filter_is_answered_by_an_index() {
    let dir = tempfile::tempdir().unwrap();
    drop(memory_rows::writer(dir.path()));
    let connection = rusqlite::Connection::open(dir.path().join(STORE_FILE)).unwrap();
    let modality = Modality::Audio.as_str();
    for condition in [
        "timestamp >= 5".to_owned(),
        format!("modality = '{modality}'"),
        "session_id = 's'".to_owned(),
        "source = 's'".to_owned(),
        "device_id = 'd'".to_owned(),
        "sound_class = 'Dog'".to_owned(),
        "rms_db >= -20.0".to_owned(),
        "place = 'Kitchen'".to_owned(),
        "person = 'Alice'".to_owned(),
        "decay_class = 'daily'".to_owned(),
    ] {
        let sql = format!("EXPLAIN QUERY PLAN SELECT id FROM episodes AS e WHERE {condition}");
        let plan: String = connection.query_row(&sql, [], |row| row.get(3)).unwrap();
        assert!(plan.contains("SEARCH e USING"), "{condition}: {plan}");
    }
}

/// Mounts a small file system; `None` where the test may not (it needs root), which is printed.
fn small_disk(dir: &Path, size: &str) -> Option<impl Drop> {
    struct Mounted(std::path::PathBuf);
    impl Drop for Mounted {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(&self.0).status();
        }
    }
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
        .arg(dir)
        .stderr(Stdio::null())
        .status();
    if mounted.is_ok_and(|status| status.success()) {
        return Some(Mounted(dir.to_path_buf()));
    }
    println!("skipped: no small file system can be mounted here");
    None
}

#[test]
fn a_full_disk_is_survived_and_nothing_is_half_written() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_disk) = small_disk(dir.path(), "3m") else { return };
    let ballast = dir.path().join("ballast");
    std::fs::write(&ballast, vec![1; 1_500_000]).unwrap();
    let writer = memory_rows::writer(dir.path());
    let mut handed_over = Vec::new();
    let mut trouble = None;
    // All of one importance: a full queue sheds none of them for another.
    for number in (0..40_000).step_by(2) {
        match writer.append(row(number)) {
            Ok(()) => handed_over.push(row(number).episode.id),
            Err(error) => {
                trouble = Some(error);
                break;
            }
        }
    }
    let trouble = trouble.expect("the disk fills");
    let flushed = writer.flush().unwrap_err();

    assert_eq!(trouble.disposition(), Disposition::Retry, "{trouble}");
    assert_eq!(flushed.disposition(), Disposition::Retry, "{flushed}");
    assert!(flushed.to_string().contains("no room left on the disk"), "{flushed}");
    std::fs::remove_file(&ballast).unwrap();
    writer.flush().unwrap();
    writer.close().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    let found: Vec<_> = reader.episodes(&EpisodeFilter::default()).unwrap();
    assert_eq!(found.iter().map(|stored| stored.episode.id).collect::<Vec<_>>(), handed_over);
    assert!(found.iter().all(|stored| reader.episode(stored.episode.id).unwrap().unwrap().edges.len() == 1));
    assert_eq!(reader.complaint().unwrap(), None);
}

#[test]
fn a_store_on_a_disk_that_may_only_be_read_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_disk) = small_disk(dir.path(), "3m") else { return };
    let writer = memory_rows::writer(dir.path());
    writer.append(row(0)).unwrap();
    writer.close().unwrap();
    let remount = Command::new("mount").args(["-o", "remount,ro"]).arg(dir.path()).status().unwrap();
    assert!(remount.success());

    let reader = Reader::open(dir.path()).unwrap();
    let refusal = Store::open(dir.path(), &OpenOptions::default()).unwrap_err();

    assert_eq!(reader.stats().unwrap().episodes, 1);
    assert!(refusal.to_string().contains("percept.lock"), "{refusal}");
}

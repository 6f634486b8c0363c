//! Stores with pages of garbage, cut ends and no first page.

use super::*;
use crate::domain::coverage::Coverage;
use crate::domain::coverage::CoverageReason;
use crate::domain::coverage::CoverageState;
use crate::domain::id::BootId;
use crate::domain::id::DeviceId;
use crate::domain::id::SessionId;
use crate::domain::id::SourceId;
use crate::domain::modality::Modality;
use crate::domain::time::ClockQuality;
use crate::domain::time::Stamp;
use crate::domain::time::SystemClock;
use crate::memory::coverage::CoverageRecord;
use crate::memory::fixture;
use crate::memory::reader::Reader;
use crate::memory::sessions::Session;
use crate::memory::store::Store;
use crate::memory::writer::Writer;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt;

const PAGE_BYTES: u64 = 4_096;
const EPISODES: u32 = 2_000;

fn now() -> Timestamp {
    Timestamp::parse("2026-11-30T12:00:00.250Z").unwrap()
}

fn options() -> OpenOptions {
    OpenOptions { device_id: Some(DeviceId::new("given")), ..OpenOptions::default() }
}

fn open(dir: &Path) -> (Store, Option<Salvage>) {
    Store::open_or_salvage(dir, &options(), now()).unwrap()
}

fn coverage(minute: i64) -> CoverageRecord {
    let stamp =
        |millis| Stamp { monotonic_ms: millis, utc: Timestamp::from_millis(millis), quality: ClockQuality::Gps };
    CoverageRecord {
        device_id: DeviceId::new("d"),
        session_id: SessionId::new("s"),
        boot_id: BootId::new("b"),
        coverage: Coverage {
            source: SourceId::new("gps:g"),
            from: stamp(minute * 60_000),
            to: stamp(minute * 60_000 + 30_000),
            state: CoverageState::Blind,
            reason: CoverageReason::NoFix,
            detail: None,
        },
    }
}

/// Writes rows of every kind to the writer.
fn fill(writer: &Writer, episodes: u32) {
    let session = Session {
        session_id: SessionId::new("s"),
        device_id: DeviceId::new("d"),
        boot_id: BootId::new("b"),
        digest: "digest".to_owned(),
        started_at: Timestamp::from_millis(0),
        clock_quality: ClockQuality::Gps,
    };
    writer.register_session(session).unwrap();
    for minute in 0..episodes {
        let modality = if minute % 2 == 0 { Modality::Audio } else { Modality::Visual };
        let mut record = fixture::episode(minute / 2, modality);
        record.embeddings = vec![fixture::vector(minute, 512)];
        if minute % 4 == 0 {
            record.facts = vec![fixture::located("Alice", if minute % 8 == 0 { "Kitchen" } else { "Garden" }, minute)];
        }
        if minute % 100 == 0 {
            record.media = vec![fixture::picture(minute, 500)];
        }
        writer.append(record).unwrap();
        if minute % 20 == 0 {
            writer.coverage(coverage(minute.into())).unwrap();
        }
    }
    writer.flush().unwrap();
}

/// A store as a power cut leaves it: all but its last row in the database, that one in the WAL.
fn interrupted(dir: &Path, episodes: u32) {
    let live = tempfile::tempdir().unwrap();
    let writer = fixture::writer(live.path());
    fill(&writer, episodes);
    fixture::connection(live.path()).query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    writer.append(fixture::sound(900_000)).unwrap();
    writer.flush().unwrap();
    copy_all(live.path(), dir);
}

fn copy_all(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().flatten() {
        if entry.path().is_file() && entry.file_name() != "memory.db-shm" {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// What the store remembers, without what a salvage renews, as lines.
fn lines(dir: &Path) -> BTreeSet<String> {
    Reader::open(dir).unwrap().dump().unwrap().lines().map(str::to_owned).collect()
}

fn table<'a>(salvage: &'a Salvage, name: &str) -> &'a TableSalvage {
    salvage.tables.iter().find(|table| table.table == name).unwrap()
}

/// Everything a salvaged store must be, whatever it lost.
fn is_sound(dir: &Path, original: &BTreeSet<String>) {
    let reader = Reader::open(dir).unwrap();
    assert_eq!(reader.complaint().unwrap(), None);
    let strange: Vec<_> = lines(dir).into_iter().filter(|line| !original.contains(line)).collect();
    assert!(strange.is_empty(), "what was kept is not what was stored: {:?}", strange.first());
    let stats = reader.stats().unwrap();
    let connection = fixture::connection(dir);
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap().unsigned_abs();
    assert_eq!(count("SELECT count(*) FROM episodes_fts WHERE episodes_fts MATCH 'sound'"), stats.episodes);
    assert_eq!(count("SELECT count(*) FROM strength"), stats.episodes);
    let others = ["kg_edges", "coverage", "media"].map(|name| count(&format!("SELECT count(*) FROM {name}")));
    assert_eq!(stats.pending, stats.episodes + others.iter().sum::<u64>(), "all of it is pending again");
}

fn goes_on(store: Store, dir: &Path) {
    let episodes = Reader::open(dir).unwrap().stats().unwrap().episodes;
    let writer = Writer::spawn(store, Box::new(SystemClock::new())).unwrap();
    writer.append(fixture::sound(999_999)).unwrap();
    writer.close().unwrap();
    assert_eq!(Reader::open(dir).unwrap().stats().unwrap().episodes, episodes + 1);
}

#[test]
fn a_sound_store_is_opened_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    interrupted(dir.path(), 50);
    let before = Reader::open(dir.path()).unwrap().identity().unwrap();

    let (store, salvage) = open(dir.path());

    assert_eq!((salvage, store.identity()), (None, &before));
}

#[test]
fn pages_of_garbage_cost_only_their_own_rows() {
    let whole = tempfile::tempdir().unwrap();
    interrupted(whole.path(), EPISODES);
    let original = lines(whole.path());
    let before = Reader::open(whole.path()).unwrap().identity().unwrap();
    for seed in [1, 2, 3] {
        let dir = tempfile::tempdir().unwrap();
        copy_all(whole.path(), dir.path());
        let mut random = fixture::seeded(seed);
        let file = File::options().write(true).open(dir.path().join(STORE_FILE)).unwrap();
        let pages = file.metadata().unwrap().len() / PAGE_BYTES;
        for _ in 0..20 {
            let page = pages / 10 + random() % (pages * 8 / 10);
            let garbage: Vec<u8> = (0..PAGE_BYTES).map(|_| random().to_le_bytes()[0]).collect();
            file.write_all_at(&garbage, page * PAGE_BYTES).unwrap();
        }
        drop(file);

        let mut told = Vec::new();
        let (store, salvage) =
            Store::open_or_salvage_with(dir.path(), &options(), now(), &mut |rows| told.push(rows)).unwrap();
        let salvage = salvage.expect("the damage is seen");

        assert_eq!(store.identity().device_id, before.device_id);
        assert_ne!(store.identity().store_id, before.store_id);
        assert_eq!(salvage.old_store_id, Some(before.store_id.clone()));
        assert_eq!(salvage.set_aside, dir.path().join("memory.db.damaged-2026-11-30T12-00-00Z"));
        assert!(salvage.has_losses() && salvage.sentence().contains("something was lost in"), "{}", salvage.sentence());
        assert!(told.is_sorted() && told.len() > 4, "{told:?}");
        assert!(table(&salvage, "episodes").kept > u64::from(EPISODES) * 8 / 10, "{}", salvage.sentence());
        assert!(table(&salvage, "embeddings").kept > u64::from(EPISODES) * 7 / 10, "{}", salvage.sentence());
        assert_eq!(table(&salvage, "sessions").kept, 1);
        is_sound(dir.path(), &original);
        goes_on(store, dir.path());
    }
}

#[test]
fn a_database_or_a_wal_that_was_cut_off_keeps_what_is_left() {
    let whole = tempfile::tempdir().unwrap();
    interrupted(whole.path(), 300);
    let original = lines(whole.path());
    for name in ["memory.db", "memory.db-wal"] {
        for cut in [1, 17, 512, 4_095, 4_096] {
            let dir = tempfile::tempdir().unwrap();
            copy_all(whole.path(), dir.path());
            let file = File::options().write(true).open(dir.path().join(name)).unwrap();
            file.set_len(file.metadata().unwrap().len() - cut).unwrap();

            let (store, salvage) = open(dir.path());

            is_sound(dir.path(), &original);
            let episodes = Reader::open(dir.path()).unwrap().stats().unwrap().episodes;
            assert!(episodes >= 250, "{name} without {cut} bytes: {episodes} and {salvage:?}");
            assert!(salvage.is_none() || name == "memory.db", "a WAL ends wherever it ends");
            assert!(!dir.path().join("memory.db.salvage-source").exists());
            goes_on(store, dir.path());
        }
    }
}

#[test]
fn without_a_first_page_a_new_store_begins_and_the_old_file_is_kept() {
    let whole = tempfile::tempdir().unwrap();
    let writer = fixture::writer(whole.path());
    fill(&writer, 30);
    writer.close().unwrap();
    let content = fs::read(whole.path().join(STORE_FILE)).unwrap();
    let header = [vec![0; 100], content[100..].to_vec()].concat();
    let page = [vec![0; 4_096], content[4_096..].to_vec()].concat();
    for ruin in [header, page, vec![0; 9_000]] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(STORE_FILE), &ruin).unwrap();
        for round in 0..2 {
            let (store, salvage) = open(dir.path());
            let salvage = salvage.unwrap();

            assert_eq!(fs::read(&salvage.set_aside).unwrap(), ruin, "round {round}");
            assert_eq!((salvage.rows_kept(), store.identity().device_id.as_str()), (0, "given"));
            assert!(salvage.sentence().contains("nothing of it could be read"), "{}", salvage.sentence());
            goes_on(store, dir.path());
            // The same date again, as without a clock: neither file is overwritten.
            fs::write(dir.path().join(STORE_FILE), &ruin).unwrap();
        }
        assert!(dir.path().join("memory.db.damaged-2026-11-30T12-00-00Z.2").exists());
    }
}

#[test]
fn files_that_are_not_ours_are_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(STORE_FILE);
    let newer = |path: &Path| {
        drop(Store::open(path.parent().unwrap(), &options()).unwrap());
        let connection = Connection::open(path).unwrap();
        connection.pragma_update(None, "journal_mode", "DELETE").unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
    };
    let other = |path: &Path| {
        let sql = "CREATE TABLE episodes (\n    row_id); INSERT INTO episodes VALUES (1)";
        Connection::open(path).unwrap().execute_batch(sql).unwrap();
    };
    let text = |path: &Path| fs::write(path, b"hello").unwrap();
    for make in [&newer as &dyn Fn(&Path), &other, &text] {
        let _ = fs::remove_file(&path);
        make(&path);
        let before = fs::read(&path).unwrap();

        let refusal = Store::open_or_salvage(dir.path(), &options(), now()).unwrap_err();

        assert!(refusal.to_string().contains("left as it"), "{refusal}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[test]
fn damage_that_a_writer_meets_is_salvaged_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let writer = fixture::writer(dir.path());
    fill(&writer, 400);
    writer.close().unwrap();
    let original = lines(dir.path());
    let file = File::options().write(true).open(dir.path().join(STORE_FILE)).unwrap();
    let pages = file.metadata().unwrap().len() / PAGE_BYTES;
    // Every second page but the first hundred, so that no table of any size is whole.
    for page in (100..pages).step_by(2) {
        file.write_all_at(&[0xa5; 4_096], page * PAGE_BYTES).unwrap();
    }
    drop(file);

    let (store, nothing) = open(dir.path());
    let writer = Writer::spawn(store, Box::new(SystemClock::new())).unwrap();
    for minute in 0..600 {
        let mut record = fixture::sound(minute);
        record.episode.content = "Changed".to_owned();
        // It stops at the first damaged page it meets.
        let _ = writer.append(record);
    }
    let end = writer.close().unwrap_err();
    let (store, salvage) = open(dir.path());

    assert_eq!(nothing, None, "after a clean end nobody looks");
    assert!(matches!(end, StoreError::Damaged { .. }), "{end:?}");
    assert!(salvage.is_some_and(|salvage| salvage.rows_kept() > 0));
    assert!(!dir.path().join(health::SUSPECT_FILE).exists());
    assert_eq!(Reader::open(dir.path()).unwrap().complaint().unwrap(), None);
    assert!(lines(dir.path()).intersection(&original).count() > 100);
    goes_on(store, dir.path());
}

#[test]
fn a_salvage_that_was_cut_off_is_repeated_or_ended() {
    let whole = tempfile::tempdir().unwrap();
    interrupted(whole.path(), 100);
    let original = lines(whole.path());
    let damaged = |dir: &Path| {
        copy_all(whole.path(), dir);
        let file = File::options().write(true).open(dir.join(STORE_FILE)).unwrap();
        file.set_len(file.metadata().unwrap().len() - 4_096 * 3).unwrap();
    };

    // Cut off while the new store is made.
    let dir = tempfile::tempdir().unwrap();
    damaged(dir.path());
    for left_over in ["memory.db.salvage", "memory.db.salvage-journal", "memory.db.salvage-source"] {
        fs::write(dir.path().join(left_over), b"half a page").unwrap();
    }
    let (_store, salvage) = open(dir.path());
    assert!(salvage.is_some());
    is_sound(dir.path(), &original);

    // Cut off after each step of the swap.
    for steps in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        damaged(dir.path());
        let path = |name: &str| dir.path().join(name);
        copy(&path(STORE_FILE), &path(UNFINISHED_FILE), &options(), &mut |_| {}).unwrap();
        let aside = swap::begin(dir.path(), &path(UNFINISHED_FILE), now()).unwrap();
        for suffix in ["", "-wal"].iter().take(steps) {
            let name = format!("memory.db.damaged-2026-11-30T12-00-00Z{suffix}");
            fs::rename(path(&format!("{STORE_FILE}{suffix}")), path(&name)).unwrap();
        }

        // Whoever opens next ends it, at another time, also a command that does not salvage.
        let store = Store::open(dir.path(), &options()).unwrap();

        assert!(aside.exists() && path("memory.db.damaged-2026-11-30T12-00-00Z-wal").exists(), "{steps}");
        is_sound(dir.path(), &original);
        goes_on(store, dir.path());
    }
}

#[test]
fn what_was_forgotten_does_not_come_back_and_a_row_that_breaks_a_rule_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    interrupted(dir.path(), 100);
    let [forgotten, broken, backward] = [1, 2, 3].map(|minute| fixture::sound(minute).episode.id);
    let connection = fixture::connection(dir.path());
    let run = |sql: &str, id: &crate::domain::id::EpisodeId| connection.execute(sql, [id.to_string()]).unwrap();
    run(
        "INSERT INTO tombstones (id, kind, reason, device_id, store_id, stored_at, revision)
         VALUES (?1, 'episode', 'forgotten', 'd', 's', 0, 1)",
        &forgotten,
    );
    run("UPDATE embeddings SET vector = zeroblob(2048) WHERE episode_id = ?1", &broken);
    run("UPDATE episodes SET ended_at = timestamp - 1 WHERE id = ?1", &backward);
    drop(connection);
    let file = File::options().write(true).open(dir.path().join(STORE_FILE)).unwrap();
    file.set_len(file.metadata().unwrap().len() - 1).unwrap();
    drop(file);

    let (_store, salvage) = open(dir.path());

    let salvage = salvage.unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(reader.episode(forgotten).unwrap(), None);
    assert!(reader.episode(broken).unwrap().unwrap().embeddings.is_empty());
    assert_eq!(table(&salvage, "episodes").refused, 2);
    assert!(table(&salvage, "embeddings").refused >= 3, "the broken one, and those of the two episodes");
}

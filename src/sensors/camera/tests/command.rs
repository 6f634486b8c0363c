//! Programs that write MJPEG, well and badly.

use super::bench::HandClock;
use crate::domain::coverage::CoverageReason;
use crate::domain::reading::Payload;
use crate::domain::reading::PixelFormat;
use crate::sensors::camera::CommandCamera;
use crate::sensors::camera::Config;
use crate::sensors::camera::splitter::tests::jpeg;
use crate::sensors::live::Driver;
use crate::sensors::live::Failure;
use crate::sensors::live::Fed;
use crate::sensors::live::Feed;
use std::path::Path;
use std::time::Duration;

/// Longer than any program here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn pictures_come_and_the_death_of_the_program_is_told_in_its_own_words() {
    let folder = tempfile::tempdir().unwrap();
    let image = write_stream(folder.path(), &[&jpeg(5, 2_000)]);
    let script = "cat \"$0\"; echo starting >&2; echo 'no cameras available' >&2; exit 3";
    let mut feed = open(&format!("sh -c '{}' {}", script.replace('\'', "'\\''"), image.display())).unwrap();

    let first = feed.next(PATIENCE);
    let last = until_broken(&mut *feed);

    let Fed::Captured(_, Payload::Picture(picture)) = first else { panic!("{first:?}") };
    assert_eq!((picture.format, &*picture.bytes), (PixelFormat::Jpeg, jpeg(5, 2_000).as_slice()));
    assert_eq!(last.reason, CoverageReason::Unplugged);
    assert!(last.detail.contains("exit status: 3") && last.detail.contains("no cameras available"), "{last}");
}

#[test]
fn a_damaged_picture_is_survived_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let good = jpeg(5, 300);
    let stream = write_stream(folder.path(), &[&good[..good.len() / 2], b"garbage", &good]);
    let mut feed = open(&format!("sh -c 'cat \"$0\"; exec sleep 1000' {}", stream.display())).unwrap();

    let seen = [feed.next(PATIENCE), feed.next(PATIENCE)];

    assert!(matches!(&seen[0], Fed::Captured(..)), "{seen:?}");
    assert!(matches!(&seen[1], Fed::Hiccup(words) if words.contains("damaged picture")), "{seen:?}");
}

#[test]
fn a_program_that_gives_no_picture_is_set_up_wrongly() {
    let mut feed = open("sh -c 'echo \"option --codec: bad value\" >&2; exit 255'").unwrap();

    let failure = until_broken(&mut *feed);

    assert_eq!(failure.reason, CoverageReason::Unusable);
    assert!(failure.detail.contains("bad value"), "{failure}");
}

#[test]
fn commands_that_cannot_be_started_say_why() {
    for (command, words) in [
        ("/nowhere/rpicam-vid -o -", "/nowhere/rpicam-vid cannot be started"),
        ("cat 'unfinished", "cannot be read"),
        ("''", "cannot be started"),
    ] {
        let failure = open(command).err().unwrap();
        assert!(failure.reason == CoverageReason::Unusable && failure.detail.contains(words), "{failure}");
    }
}

#[test]
fn no_shell_reads_the_command() {
    let mut feed = open("echo '$(id)' ; touch").unwrap();

    let failure = until_broken(&mut *feed);

    assert!(failure.detail.contains("echo ended (exit status: 0)"), "{failure}");
}

#[test]
fn dropping_the_feed_ends_the_program_and_all_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let script = "sleep 1000 & echo $! $$ > \"$0.new\"; mv \"$0.new\" \"$0\"; wait";
    let mut feed = open(&format!("sh -c '{script}' {}", pids.display())).unwrap();
    let written = (0..2_000).find_map(|_| {
        let _ = feed.next(Duration::from_millis(10));
        std::fs::read_to_string(&pids).ok()
    });

    drop(feed);

    let written = written.unwrap();
    let is_alive = |pid: &&str| Path::new("/proc").join(pid).join("exe").read_link().is_ok();
    // The grandchild is reaped by init whenever init likes; a zombie has no program any more.
    assert_eq!(written.split_whitespace().filter(is_alive).count(), 0, "{written}");
}

#[test]
fn a_program_that_says_nothing_hangs_nobody() {
    let mut feed = open("sleep 1000").unwrap();

    assert!(matches!(feed.next(Duration::from_millis(1)), Fed::Nothing));
}

#[test]
fn five_hundred_programs_leave_no_thread_no_zombie_and_no_descriptor() {
    let mut driver = camera("sleep 86399.25");
    let descriptors_before = descriptors();

    for _ in 0..500 {
        let feed = driver.open();
        assert!(feed.is_ok());
    }

    assert!((0..2_000).any(|_| driver.crew().wait_idle() == 0));
    assert_eq!(left_over("86399.25"), 0);
    // Other tests of this process open and close files meanwhile, but not this many.
    assert!(descriptors() < descriptors_before + 250, "{descriptors_before} became {}", descriptors());
}

fn camera(command: &str) -> CommandCamera {
    let config = Config { command: command.to_owned(), frames_per_s: 1.0, ..Config::default() };
    CommandCamera::new(&config, HandClock::new().share())
}

fn open(command: &str) -> Result<Box<dyn Feed>, Failure> {
    camera(command).open()
}

fn until_broken(feed: &mut dyn Feed) -> Failure {
    loop {
        match feed.next(PATIENCE) {
            Fed::Broken(failure) => return failure,
            Fed::Nothing => panic!("the program does not end"),
            Fed::Captured(..) | Fed::Hiccup(_) | Fed::Idle | Fed::Blind(_) => {}
        }
    }
}

fn write_stream(folder: &Path, pieces: &[&[u8]]) -> std::path::PathBuf {
    let path = folder.join("stream.mjpeg");
    std::fs::write(&path, pieces.concat()).unwrap();
    path
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Processes with this argument, and zombies of ours that were called `sleep`.
fn left_over(argument: &str) -> usize {
    let ours = format!("PPid:\t{}", std::process::id());
    let is_left = |folder: std::path::PathBuf| {
        let command = std::fs::read(folder.join("cmdline")).unwrap_or_default();
        let status = std::fs::read_to_string(folder.join("status")).unwrap_or_default();
        let is_zombie = status.contains("State:\tZ") && status.contains(&ours) && status.contains("Name:\tsleep");
        String::from_utf8_lossy(&command).contains(argument) || is_zombie
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_left(path.clone()))
        .count()
}

//! Opening, closing, muting, hanging: nothing is left behind.

use super::*;

#[test]
fn muted_twenty_times_it_resumes_at_once_and_stores_nothing_of_the_muted_time() {
    let mut bench = Bench::new();
    bench.told();
    for _ in 0..20 {
        bench.hear();
        assert_eq!(bench.told().len(), 1);
        let muted_ms = bench.now_ms();
        bench.sensor.set_muted(true);
        assert_eq!(bench.fake.open_streams(), 0);
        bench.hear();
        bench.pass(60_000);
        assert_eq!(bench.told(), [format!("{muted_ms} {}: ", CoverageReason::Muted.as_str())]);
        bench.sensor.set_muted(false);
        assert_eq!(bench.told(), [""; 0]);
        assert_eq!(bench.fake.open_streams(), 1);
    }

    assert_eq!(bench.fake.lock().opened.len(), 21);
}

#[test]
fn a_sound_system_that_hangs_while_opening_hangs_nobody_and_starts_no_second_thread() {
    let fake = Shared::default();
    fake.lock().inputs = vec![card(USB, 1)];
    fake.lock().offers = vec![offer(1)];
    let (release, hang) = channel();
    fake.lock().hang = Some(hang);
    let waits = Waits { open: Duration::from_millis(1), ..WAITS };
    let clock = Arc::new(HandClock::default());
    let mut driver = Microphone::with_system(&Config::default(), clock, Arc::new(fake.clone()), waits);

    let first = driver.open().err().unwrap();
    let second = driver.open().err().unwrap();
    drop(release);
    while Arc::strong_count(&driver.alive) > 1 {
        std::thread::yield_now();
    }
    driver.waits = WAITS;
    let third = driver.open();

    assert_eq!(first.detail, "the sound system did not answer within 1ms");
    assert_eq!(second.detail, "the sound system hangs in an earlier call; waiting for it");
    assert!(third.is_ok());
    assert_eq!(fake.open_streams(), 1, "the stream that came too late is closed");
}

/// The test below runs alone in a process of its own, where nothing else opens files or starts threads.
const ALONE: &str = "PERCEPT_TEST_ALONE";

#[test]
fn five_hundred_openings_closings_and_errors_leave_threads_and_descriptors_as_they_were() {
    if std::env::var_os(ALONE).is_none() {
        let name = std::thread::current().name().unwrap().to_owned();
        let program = std::env::current_exe().unwrap();
        let status = std::process::Command::new(program)
            .args(["--exact", &name, "--test-threads=1"])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&status.stdout);
        assert!(status.status.success() && output.contains("1 passed"), "{output}");
        return;
    }
    let mut bench = Bench::new();
    cycle(&mut bench, 0);
    let before = (entries("/proc/self/task"), entries("/proc/self/fd"));

    for index in 1..500 {
        cycle(&mut bench, index);
    }

    assert_eq!((entries("/proc/self/task"), entries("/proc/self/fd")), before);
    assert_eq!(bench.fake.open_streams(), 0);
}

/// Opens, hears, and loses the device in one of four ways.
fn cycle(bench: &mut Bench, index: usize) {
    bench.fake.lock().failure = (index % 4 == 3).then(|| Failure::unusable("busy"));
    bench.fake.lock().sinks.clear();
    bench.pass(30_000);
    bench.told();
    if index % 4 == 3 {
        return;
    }
    bench.hear();
    match index % 4 {
        0 => bench.sink().broken(Failure::unplugged("gone")),
        1 => (0..200).for_each(|_| bench.sink().error(&"EIO")),
        _ => {
            bench.told();
            bench.pass(10_000);
        }
    }
    bench.told();
    assert_eq!(bench.fake.open_streams(), 0);
}

fn entries(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

//! What a stream does while it is open.

use super::*;
use std::io::Write;

/// The lines a test logs.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn warnings(act: impl FnOnce()) -> usize {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, act);
    let bytes = log.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap().lines().filter(|line| line.contains("WARN")).count()
}

#[test]
fn ten_thousand_errors_after_ten_buffers_rebuild_the_stream_and_fill_no_log() {
    let mut bench = Bench::new();
    bench.told();
    for _ in 0..10 {
        bench.hear();
    }
    assert_eq!(bench.told().len(), 10);

    let mut told = Vec::new();
    let lines = warnings(|| {
        for _ in 0..10_000 {
            bench.sink().error(&"POLLERR");
        }
        told = bench.told();
    });

    assert_eq!(told, ["1000 stalled: 100 errors in a row and no data: opened anew"]);
    // One for the burst, one for giving up. Tests beside this one in the same process may keep tracing from seeing them.
    assert!(lines <= 2, "{lines} lines for one burst");
    assert_eq!(bench.fake.open_streams(), 0);
    bench.pass(499);
    bench.told();
    assert_eq!(bench.fake.lock().opened.len(), 1);
    bench.pass(1);
    bench.told();
    bench.hear();
    assert_eq!(bench.told(), ["1500 sound 1600"]);
    assert_eq!(bench.fake.lock().opened.len(), 2);
    assert_eq!(bench.sensor.health().get().hiccups, 100);
}

#[test]
fn one_harmless_error_per_buffer_tears_nothing_down() {
    let mut bench = Bench::new();
    bench.told();

    let mut heard = 0;
    for _ in 0..1_000 {
        bench.sink().error(&"harmless");
        bench.hear();
        heard += bench.told().iter().filter(|line| line.contains("sound")).count();
    }

    assert_eq!(heard, 1_000);
    assert_eq!(bench.fake.lock().opened.len(), 1);
}

#[test]
fn buffers_that_stop_are_noticed_within_two_seconds_and_the_device_comes_back_a_minute_later() {
    let mut bench = Bench::new();
    bench.told();
    bench.hear();
    bench.told();
    bench.fake.lock().failure = Some(Failure::unplugged("No such device"));
    let mut told = Vec::new();
    let mut noticed_ms = None;
    while bench.fake.open_streams() < 2 && bench.now_ms() < 120_000 {
        bench.pass(100);
        if bench.now_ms() == 60_000 {
            bench.fake.lock().failure = None;
        }
        told.extend(bench.poll().iter().map(tell));
        if bench.state() == State::Lost {
            noticed_ms.get_or_insert(bench.now_ms());
        }
        if bench.now_ms() > 60_000 && bench.fake.open_streams() == 1 {
            break;
        }
    }
    bench.hear();

    assert_eq!(noticed_ms, Some(2_100));
    assert_eq!(told[0], "100 stalled: nothing arrived for 2 s: opened anew");
    assert!(told[1..].iter().all(|line| line.ends_with(&format!(" unplugged: {USB}: No such device"))), "{told:?}");
    assert!(told[1].starts_with("2600 "), "{told:?}");
    assert!(told.len() > 2);
    assert_eq!(bench.told().len(), 1);
    assert_eq!(bench.state(), State::Running);
}

#[test]
fn an_overrun_of_our_own_is_a_loss_with_its_length_and_its_frames() {
    let mut bench = Bench::new();
    bench.told();
    for _ in 0..60 {
        bench.hear();
    }

    let told = bench.told();

    assert_eq!(told[0], "0 overrun for 2000: the agent did not keep up: 32000 frames lost");
    assert_eq!(told[1], "2000 sound 1600");
    assert_eq!(told.len(), 1 + 40);
    assert_eq!(bench.frames_lost.load(Ordering::SeqCst), 32_000);
}

#[test]
fn an_overrun_of_the_sound_system_is_as_long_as_the_times_say() {
    let mut bench = Bench::new();
    bench.told();
    bench.hear();
    bench.sink().xrun();
    bench.pass(300);
    bench.hear();
    bench.hear();

    assert_eq!(
        bench.told(),
        [
            "0 sound 1600",
            "100 overrun for 300: the sound system ran over: 4800 frames lost",
            "400 sound 1600",
            "500 sound 1600"
        ]
    );
    assert_eq!(bench.sensor.health().get().hiccups, 1);
}

#[test]
fn a_hole_that_nobody_reports_is_a_loss() {
    let mut bench = Bench::new();
    bench.told();
    bench.hear();
    bench.pass(1_000);
    bench.hear();

    let told = bench.told();

    assert_eq!(told[1], "100 stalled for 1000: the sound system delivered nothing: 16000 frames lost");
    assert_eq!(told[2], "1100 sound 1600");
}

#[test]
fn a_device_that_vanished_is_unplugged_after_its_last_buffer() {
    let mut bench = Bench::new();
    bench.told();
    bench.hear();
    bench.sink().broken(Failure::unplugged("Device disconnected"));

    assert_eq!(bench.told(), ["0 sound 1600", "100 unplugged: Device disconnected"]);
    assert_eq!(bench.fake.open_streams(), 0);
}

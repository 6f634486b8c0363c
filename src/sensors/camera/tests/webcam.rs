//! The rows of the field's table that concern a webcam's driver.

use super::bench::Bench;
use super::bench::HandClock;
use super::bench::Lab;
use super::bench::Opening;
use super::bench::Read;
use super::bench::bench;
use super::bench::webcam;
use crate::domain::coverage::CoverageReason;
use crate::domain::reading::PixelFormat;
use crate::sensors::Poll;
use crate::sensors::Sensor;
use crate::sensors::camera::Agreed;
use crate::sensors::camera::FourCc;
use crate::sensors::camera::Node;
use crate::sensors::camera::Offer;
use crate::sensors::camera::Sizes;
use crate::sensors::camera::Usb;
use crate::sensors::camera::handover::LEFT_BEHIND_MAX;
use crate::sensors::camera::node::tests::webcam as node;
use crate::sensors::live::Driver;
use crate::sensors::live::Fed;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::Duration;

const EIO: i32 = 5;
const EACCES: i32 = 13;
const EBUSY: i32 = 16;
const ENODEV: i32 = 19;

#[test]
fn twenty_frames_then_unplugged_and_back_under_another_number() {
    let mut bench = bench(vec![node(0)]);
    for _ in 0..20 {
        bench.will(Read::Frame(vec![7; 8]));
        bench.picture();
    }
    let before = bench.sensor.source().clone();

    bench.lab.set_nodes(Vec::new());
    bench.will(Read::Fails(ENODEV));
    let loss = bench.loss();

    assert_eq!(loss.reason, CoverageReason::Unplugged);
    assert!(bench.all_readers_end());
    for _ in 0..10 {
        bench.clock.advance(1_000);
        while let Poll::Reading(reading) = bench.sensor.poll(Duration::ZERO) {
            assert!(matches!(reading.payload, crate::domain::reading::Payload::Loss(_)));
        }
    }
    let other = Node { usb: Some(Usb { vendor: "1bcf".into(), ..Usb::default() }), ..node(0) };
    bench.lab.set_nodes(vec![other, node(2)]);
    bench.clock.advance(30_000);
    bench.will(Read::Frame(vec![7; 8]));
    bench.picture();

    assert_eq!(bench.lab.opened.lock().unwrap().as_slice(), [0, 2]);
    assert_eq!(bench.sensor.source(), &before);
    assert_eq!(bench.sensor.health().get().losses, 1);
}

#[test]
fn every_seventh_read_fails_and_no_picture_is_lost_for_it() {
    let mut bench = bench(vec![node(0)]);
    let mut failed = 0;

    for read in 1..=70 {
        if read % 7 == 0 {
            failed += 1;
            bench.will(Read::Fails(EIO));
            bench.hiccups(failed);
        } else {
            bench.will(Read::Frame(vec![7; 8]));
            bench.picture();
        }
    }

    let health = bench.sensor.health().get();
    assert_eq!((health.captures, health.hiccups, health.losses), (60, 10, 0));
    assert_eq!(bench.lab.opened.lock().unwrap().len(), 1, "never opened anew");
}

#[test]
fn an_error_on_every_frame_for_an_hour_is_counted_and_fills_no_log() {
    let mut bench = bench(vec![node(0)]);
    *bench.lab.always.lock().unwrap() = Some(EIO);
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
    let mut bytes_per_minute = Vec::new();

    tracing::subscriber::with_default(subscriber, || {
        for _minute in 0..60 {
            for _tick in 0..120 {
                bench.clock.advance(500);
                poll_all(&mut bench);
            }
            bytes_per_minute.push(log.take());
        }
    });

    let health = bench.sensor.health().get();
    assert!(health.hiccups >= 60 && health.losses >= 1, "{health:?}");
    assert!(bytes_per_minute.iter().all(|bytes| *bytes < 1_024), "{bytes_per_minute:?}");
    assert!(bytes_per_minute.iter().sum::<usize>() > 0, "and it was told");
    assert!(bench.lab.opened.lock().unwrap().len() < 200, "tried again with backoff");
}

#[test]
fn a_grey_frame_comes_as_grey() {
    let mut bench = bench(vec![node(0)]);
    let agreed = Agreed { fourcc: FourCc(*b"GREY"), size_px: (640, 360), stride_bytes: 640 };
    bench.lab.openings.lock().unwrap().push(Opening::Agrees(agreed));
    bench.will(Read::Frame(vec![9; 640 * 360]));

    let picture = bench.picture();

    assert_eq!((picture.format, picture.size_px), (PixelFormat::Grey8, Some((640, 360))));
    assert_eq!(picture.bytes.len(), 640 * 360);
}

#[test]
fn a_padded_or_broken_jpeg_is_passed_on_as_it_is() {
    let mut bench = bench(vec![node(0)]);
    let agreed = Agreed { fourcc: FourCc(*b"MJPG"), size_px: (640, 480), stride_bytes: 0 };
    bench.lab.openings.lock().unwrap().push(Opening::Agrees(agreed));
    let frames = [vec![0xFF, 0xD8, 0xFF, 0xD9, 0, 0, 0], vec![0xFF, 0xD8, 0xFF], vec![1, 2, 3]];

    for frame in frames {
        bench.will(Read::Frame(frame.clone()));
        let picture = bench.picture();
        assert_eq!((picture.format, &*picture.bytes), (PixelFormat::Jpeg, frame.as_slice()));
    }
}

#[test]
fn a_frame_that_is_too_short_is_survived_and_counted() {
    let mut bench = bench(vec![node(0)]);
    bench.will(Read::Frame(vec![7; 3]));
    bench.hiccups(1);

    bench.will(Read::Frame(vec![7; 8]));

    assert_eq!(&*bench.picture().bytes, [7; 8]);
}

#[test]
fn a_camera_that_offers_only_bayer_is_told_the_bridge_and_never_opened() {
    let bayer = Offer { fourcc: FourCc(*b"pBAA"), sizes: Sizes::default() };
    let mut bench = bench(vec![Node { formats: vec![bayer], usb: None, bus: "platform:csi".into(), ..node(0) }]);

    let loss = bench.loss();

    assert_eq!(loss.reason, CoverageReason::Unusable);
    assert!(loss.detail.contains("libcamera") && loss.detail.contains("rpicam-vid --codec mjpeg -o -"), "{loss:?}");
    assert!(bench.lab.opened.lock().unwrap().is_empty());
}

#[test]
fn errors_of_opening_say_what_can_be_done() {
    let cases = [
        (ENODEV, CoverageReason::Unplugged, "went away"),
        (EBUSY, CoverageReason::Unusable, "in use by another program"),
        (EACCES, CoverageReason::Unusable, "group video"),
    ];

    for (number, reason, words) in cases {
        let mut bench = bench(vec![node(0)]);
        bench.lab.openings.lock().unwrap().push(Opening::Fails(number));
        let loss = bench.loss();
        assert!(loss.reason == reason && loss.detail.contains(words), "{loss:?}");
    }
}

#[test]
fn a_driver_that_hangs_in_open_is_given_up() {
    let (lab, clock) = (Lab::new(vec![node(0)]), HandClock::new());
    let (_hold, until) = mpsc::channel();
    lab.openings.lock().unwrap().push(Opening::Hangs(until));
    let mut driver = webcam(&lab, &clock).impatient(Duration::from_millis(20));

    let failure = driver.open().err().map(|failure| failure.reason);

    assert_eq!(failure, Some(CoverageReason::Stalled));
    assert_eq!(driver.crew().running(), 1, "left behind");
}

#[test]
fn a_reader_that_hangs_is_left_behind_and_only_so_many_of_them() {
    let (lab, clock) = (Lab::new(vec![node(0)]), HandClock::new());
    let mut driver = webcam(&lab, &clock);
    let mut holds = Vec::new();
    for _ in 0..LEFT_BEHIND_MAX {
        let (hold, until) = mpsc::channel::<()>();
        let (started, has_started) = mpsc::channel();
        let mut feed = driver.open().unwrap_or_else(|failure| panic!("{failure}"));
        lab.will(Read::Hangs(passed_on(started, until)));
        has_started.recv().unwrap();
        assert!(matches!(feed.next(Duration::from_millis(1)), Fed::Nothing));
        drop(feed);
        holds.push(hold);
    }

    let refused = driver.open().err().unwrap();
    assert!(refused.reason == CoverageReason::Stalled && refused.detail.contains("hang"), "{refused}");
    holds.pop();

    let opened = (0..2_000).find_map(|_| driver.open().ok());

    assert!(opened.is_some(), "one of them ended, and the camera is opened again");
}

#[test]
fn a_library_that_panics_is_a_loss_and_no_crash() {
    let mut bench = bench(vec![node(0)]);
    bench.will(Read::Panics);

    let loss = bench.loss();

    assert!(loss.reason == CoverageReason::Stalled && loss.detail.contains("failed inside a library"), "{loss:?}");
    assert!(bench.all_readers_end());
}

#[test]
fn muting_lets_go_of_the_camera() {
    let mut bench = bench(vec![node(0)]);
    bench.will(Read::Frame(vec![7; 8]));
    bench.picture();

    bench.sensor.set_muted(true);

    assert_eq!(bench.loss().reason, CoverageReason::Muted);
    assert!(bench.all_readers_end());
    bench.sensor.set_muted(false);
    bench.will(Read::Frame(vec![8; 8]));
    assert_eq!(&*bench.picture().bytes, [8; 8]);
}

#[test]
fn five_hundred_openings_leave_no_thread() {
    let (lab, clock) = (Lab::new(vec![node(0)]), HandClock::new());
    let mut driver = webcam(&lab, &clock);

    for round in 0..500 {
        if round % 3 == 0 {
            lab.will(Read::Fails(ENODEV));
        }
        let mut feed = driver.open().unwrap_or_else(|failure| panic!("{failure}"));
        if round % 3 == 0 {
            while !matches!(feed.next(Duration::from_millis(50)), Fed::Broken(_)) {}
        }
    }

    assert!((0..2_000).any(|_| driver.crew().wait_idle() == 0));
}

/// Tells the test that a read began to hang, and hangs until the test lets go.
fn passed_on(started: mpsc::Sender<()>, until: mpsc::Receiver<()>) -> mpsc::Receiver<()> {
    let (hold, inner) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = started.send(());
        let _ = until.recv();
        drop(hold);
    });
    inner
}

fn poll_all(bench: &mut Bench) {
    // A reader that runs says something within moments; one that was given up leaves nothing to wait for.
    for _ in 0..4 {
        let _ = bench.sensor.poll(Duration::from_millis(20));
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn take(&self) -> usize {
        std::mem::take(&mut *self.0.lock().unwrap()).len()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> tracing_subscriber::fmt::MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

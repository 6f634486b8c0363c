//! The rows of SCENARIOS, GPS, that concern the driver: a scripted gpsd on a socket, a clock moved by hand.

use super::*;
use crate::domain::coverage::CoverageReason;
use crate::domain::reading::GpsReport;
use crate::domain::reading::Loss;
use crate::domain::reading::Payload;
use crate::sensors::Poll;
use crate::sensors::Sensor;
use crate::sensors::live::LiveSensor;
use crate::sensors::live::State;
use crate::sensors::live::hand_clock::HandClock;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::net::TcpListener;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

const VERSION: &str = r#"{"class":"VERSION","release":"3.22","rev":"3.22","proto_major":3,"proto_minor":14}"#;
const NO_DEVICES: &str = r#"{"class":"DEVICES","devices":[]}"#;
const DEVICES: &str = r#"{"class":"DEVICES","devices":[{"class":"DEVICE","path":"/dev/ttyACM0","driver":"u-blox"}]}"#;
const WATCHING: &str = r#"{"class":"WATCH","enable":true,"json":true}"#;
const FIX: &str = r#"{"class":"TPV","mode":3,"lat":46.5,"lon":7.5}"#;
const NO_FIX: &str = r#"{"class":"TPV","mode":1}"#;

/// Long enough for any machine; nothing waits for it when all is well.
const PATIENCE: Duration = Duration::from_secs(20);

/// A gpsd whose lines are written by the test.
struct Gpsd {
    listener: TcpListener,
}

impl Gpsd {
    fn new() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").unwrap() }
    }

    fn config(&self) -> Config {
        Config { enabled: true, address: self.listener.local_addr().unwrap().to_string() }
    }

    /// Accepts the connection that is waiting, and the command on it.
    fn accept(&self) -> (TcpStream, String) {
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut command = String::new();
        BufReader::new(stream.try_clone().unwrap()).read_line(&mut command).unwrap();
        (stream, command)
    }
}

fn say(mut stream: &TcpStream, lines: &[&str]) {
    for line in lines {
        stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    }
}

fn sensor(gpsd: &Gpsd) -> (LiveSensor, HandClock) {
    let clock = HandClock::new();
    let shared: SharedClock = Arc::new(clock.clone());
    (LiveSensor::new(Box::new(GpsDriver::new(&gpsd.config(), shared.clone())), shared, LIMITS), clock)
}

/// The next reading that the socket brings.
fn reading(sensor: &mut LiveSensor) -> Payload {
    for _ in 0..100 {
        if let Poll::Reading(reading) = sensor.poll(PATIENCE) {
            return reading.payload;
        }
    }
    panic!("nothing arrived")
}

fn report(sensor: &mut LiveSensor) -> GpsReport {
    let payload = reading(sensor);
    let Payload::Position(report) = payload else { panic!("{payload:?}") };
    report
}

fn loss(sensor: &mut LiveSensor) -> Loss {
    let payload = reading(sensor);
    let Payload::Loss(loss) = payload else { panic!("{payload:?}") };
    loss
}

fn nothing(sensor: &mut LiveSensor) {
    let poll = sensor.poll(Duration::from_millis(1));
    assert!(matches!(poll, Poll::Pending), "{poll:?}");
}

fn mode(report: &GpsReport) -> Option<u8> {
    let GpsReport::Position(position) = report else { return None };
    Some(position.mode)
}

#[test]
fn classes_that_nobody_knows_are_named_and_what_is_no_report_is_malformed() {
    let gpsd = Gpsd::new();
    let (mut sensor, _clock) = sensor(&gpsd);
    nothing(&mut sensor);
    let (stream, _) = gpsd.accept();

    say(&stream, &[VERSION, DEVICES, WATCHING]);
    for class in ["PPS", "GST", "TOFF", "ERROR", "ATT", "ZZZ"] {
        say(&stream, &[&format!(r#"{{"class":"{class}","device":"/dev/ttyACM0"}}"#)]);
    }
    say(&stream, &["$GPGGA,", r#"{"lat":1}"#, FIX]);

    for class in ["PPS", "GST", "TOFF", "ERROR", "ATT", "ZZZ"] {
        assert_eq!(report(&mut sensor), GpsReport::Other(class.to_owned()));
    }
    assert!(matches!(report(&mut sensor), GpsReport::Malformed(_)));
    assert!(matches!(report(&mut sensor), GpsReport::Malformed(_)));
    assert_eq!(mode(&report(&mut sensor)), Some(3));
}

#[test]
fn a_fix_without_time_and_error_estimates_has_the_time_it_was_received() {
    let gpsd = Gpsd::new();
    let (mut sensor, clock) = sensor(&gpsd);
    nothing(&mut sensor);
    let (stream, _) = gpsd.accept();
    clock.pass_ms(7_000);

    say(&stream, &[FIX]);

    let Poll::Reading(reading) = sensor.poll(PATIENCE) else { panic!("no reading") };
    let Payload::Position(GpsReport::Position(position)) = reading.payload else { panic!("no position") };
    assert_eq!((reading.captured_at.monotonic_ms, position.time, position.accuracy_m), (7_000, None, None));
}

#[test]
fn mode_decides_whatever_status_says() {
    let gpsd = Gpsd::new();
    let (mut sensor, _clock) = sensor(&gpsd);
    nothing(&mut sensor);
    let (stream, _) = gpsd.accept();

    for status in ["", r#""status":0,"#, r#""status":1,"#, r#""status":2,"#, r#""status":9,"#] {
        say(&stream, &[&format!(r#"{{"class":"TPV",{status}"mode":3,"lat":1.0,"lon":2.0}}"#)]);

        assert_eq!(mode(&report(&mut sensor)), Some(3), "{status}");
    }
}

#[test]
fn ten_minutes_without_a_fix_are_no_stall_and_the_first_fix_comes_through() {
    let gpsd = Gpsd::new();
    let (mut sensor, clock) = sensor(&gpsd);
    nothing(&mut sensor);
    let (stream, _) = gpsd.accept();
    say(&stream, &[VERSION, DEVICES]);

    for _ in 0..20 {
        clock.pass_ms(30_000);
        say(&stream, &[NO_FIX]);
        assert_eq!(mode(&report(&mut sensor)), Some(1));
    }
    say(&stream, &[FIX]);

    assert_eq!(mode(&report(&mut sensor)), Some(3));
    assert_eq!(sensor.health().get().losses, 0);
}

#[test]
fn a_closed_socket_is_connected_again_for_as_long_as_it_takes_with_the_same_command() {
    let gpsd = Gpsd::new();
    let (mut sensor, clock) = sensor(&gpsd);

    for _ in 0..5 {
        nothing(&mut sensor);
        let (stream, command) = gpsd.accept();
        assert_eq!(command, "?WATCH={\"enable\":true,\"json\":true};\n");
        say(&stream, &[VERSION, FIX]);
        assert_eq!(mode(&report(&mut sensor)), Some(3));
        drop(stream);

        let loss = loss(&mut sensor);
        assert_eq!(loss.reason, CoverageReason::Unplugged);
        assert!(loss.detail.contains("closed the connection"), "{}", loss.detail);
        clock.pass_ms(30_000);
    }
}

#[test]
fn a_gpsd_that_is_not_there_is_tried_again_and_told_in_words() {
    let gpsd = Gpsd::new();
    let (mut sensor, clock) = sensor(&gpsd);
    let address = gpsd.config().address;
    drop(gpsd);

    let first = loss(&mut sensor);
    clock.pass_ms(30_000);
    let gpsd = Gpsd { listener: TcpListener::bind(&address).unwrap() };
    nothing(&mut sensor);
    let (stream, _) = gpsd.accept();
    say(&stream, &[FIX]);

    assert_eq!(first.reason, CoverageReason::Unplugged);
    assert!(first.detail.contains("does not answer"), "{}", first.detail);
    assert_eq!(mode(&report(&mut sensor)), Some(3));
}

#[test]
fn silence_for_a_minute_is_a_failure_and_the_command_is_sent_again() {
    let gpsd = Gpsd::new();
    let (mut sensor, clock) = sensor(&gpsd);
    nothing(&mut sensor);
    let (stream, first) = gpsd.accept();
    say(&stream, &[VERSION, DEVICES, WATCHING, FIX]);
    assert_eq!(mode(&report(&mut sensor)), Some(3));

    clock.pass_ms(59_000);
    nothing(&mut sensor);
    clock.pass_ms(1_000);
    assert_eq!(loss(&mut sensor).reason, CoverageReason::Stalled);
    clock.pass_ms(1_000);
    nothing(&mut sensor);

    let (_stream, second) = gpsd.accept();
    assert_eq!(second, first);
}

#[test]
fn a_gpsd_without_a_receiver_is_watched_and_told_in_words_until_one_appears() {
    let gpsd = Gpsd::new();
    let (mut sensor, clock) = sensor(&gpsd);
    nothing(&mut sensor);
    let (stream, _) = gpsd.accept();
    say(&stream, &[VERSION, NO_DEVICES, WATCHING]);

    let told = loss(&mut sensor);
    assert_eq!(told.reason, CoverageReason::Unplugged);
    assert!(told.detail.contains("has no receiver"), "{}", told.detail);
    nothing(&mut sensor);
    clock.pass_ms(30_000);
    assert_eq!(loss(&mut sensor).reason, CoverageReason::Unplugged);
    clock.pass_ms(30_000);
    assert_eq!(loss(&mut sensor).reason, CoverageReason::Unplugged);
    assert_eq!(sensor.health().get().state, State::Lost);
    say(&stream, &[r#"{"class":"DEVICE","path":"/dev/ttyACM0","activated":"2026-12-01T00:00:00.000Z"}"#, FIX]);

    assert_eq!(mode(&report(&mut sensor)), Some(3));
    assert_eq!((sensor.health().get().state, sensor.health().get().losses), (State::Running, 1));
}

#[test]
fn a_receiver_that_is_pulled_out_is_told_and_a_gpsd_that_stays_silent_is_asked_anew() {
    let gpsd = Gpsd::new();
    let (mut sensor, clock) = sensor(&gpsd);
    nothing(&mut sensor);
    let (stream, _) = gpsd.accept();
    say(&stream, &[VERSION, DEVICES, FIX]);
    assert_eq!(mode(&report(&mut sensor)), Some(3));

    say(&stream, &[r#"{"class":"DEVICE","path":"/dev/ttyACM0","activated":0}"#]);
    assert!(loss(&mut sensor).detail.contains("has no receiver"));
    for _ in 0..20 {
        clock.pass_ms(30_000);
        assert_eq!(loss(&mut sensor).reason, CoverageReason::Unplugged);
    }
    clock.pass_ms(1_000);
    nothing(&mut sensor);

    gpsd.accept();
}

#[test]
fn a_server_that_is_no_gpsd_is_refused_by_name() {
    let gpsd = Gpsd::new();
    let (mut sensor, _clock) = sensor(&gpsd);
    nothing(&mut sensor);
    let (stream, _) = gpsd.accept();
    say(&stream, &["HTTP/1.1 400 Bad Request"; 20]);

    for _ in 0..19 {
        assert!(matches!(report(&mut sensor), GpsReport::Malformed(_)));
    }
    let loss = loss(&mut sensor);

    assert_eq!(loss.reason, CoverageReason::Unusable);
    assert!(loss.detail.contains("is no gpsd"), "{}", loss.detail);
}

#[test]
fn the_default_is_gpsd_and_another_address_is_part_of_the_name() {
    let source = |address: &str| Config { enabled: true, address: address.to_owned() }.source().as_str().to_owned();

    assert_eq!(Config::default().source().as_str(), "gps:gpsd");
    assert_eq!(source("127.0.0.1"), "gps:gpsd");
    assert_eq!(source("boat.local:3000"), "gps:boat.local:3000");
    assert_eq!(Config { enabled: true, address: "a b".to_owned() }.mistakes().len(), 1);
}

#[test]
fn the_list_names_gpsd_and_its_receivers() {
    let gpsd = Gpsd::new();
    let config = gpsd.config();
    let answers = std::thread::spawn(move || {
        for devices in [DEVICES, NO_DEVICES] {
            let (stream, _) = gpsd.accept();
            say(&stream, &[VERSION, devices, WATCHING]);
        }
    });

    let with = list(&config).unwrap();
    let without = list(&config).unwrap();
    answers.join().unwrap();

    assert!(with[0].name.starts_with("gpsd 3.22 at "));
    assert_eq!((with[0].detail.as_str(), &with[0].refused), ("/dev/ttyACM0, driver u-blox", &None));
    assert!(without[0].refused.as_ref().is_some_and(|refused| refused.contains("no receiver")));
}

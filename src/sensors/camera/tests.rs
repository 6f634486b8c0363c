//! Cameras in the field: faults are put at the edge, below the driver, on a clock that is moved by hand.

mod bench;
mod command;
mod webcam;

use super::*;
use crate::domain::id::SensorKind;
use bench::HandClock;

#[test]
fn the_config_decides_which_driver_there_is() {
    let clock = HandClock::new();
    let webcam = Config { device: "camera:usb-046d:0825-A1B2C3".into(), ..Config::default() };
    let program = Config { command: "rpicam-vid --codec mjpeg -o -".into(), ..Config::default() };

    let sources =
        [Config::default(), webcam, program].map(|config| driver(&config, clock.share()).source().to_string());

    assert_eq!(sources, ["camera:first", "camera:usb-046d:0825-A1B2C3", "camera:command-rpicam-vid"]);
    assert!(sources.iter().all(|source| crate::domain::id::SourceId::new(source).kind() == Some(SensorKind::Camera)));
}

#[test]
fn a_slow_camera_is_given_up_after_three_missing_pictures_and_no_sooner() {
    let at = |frames_per_s: f64| limits(&Config { frames_per_s, ..Config::default() });

    assert_eq!(at(1.0), LIMITS);
    assert_eq!(at(30.0), LIMITS);
    assert_eq!(at(0.1), Limits { stall_ms: 30_000, first_ms: 30_000 });
}

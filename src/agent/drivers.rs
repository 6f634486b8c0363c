//! The drivers of the sensors that the config enables.
//!
//! In: the config. Out: live sensors, not opened yet. A program built without the feature `hardware` has only GPS.

use crate::config::Config;
use crate::domain::id::SensorKind;
use crate::sensors::gps;
use crate::sensors::live::Failure;
use crate::sensors::live::Found;
use crate::sensors::live::LiveSensor;
use crate::sensors::live::SharedClock;

/// Every enabled sensor.
#[must_use]
pub fn live_sensors(config: &Config, clock: &SharedClock) -> Vec<(SensorKind, LiveSensor)> {
    let mut sensors = hardware(config, clock);
    let receiver = &config.gps.capture;
    if receiver.enabled {
        let driver = Box::new(gps::GpsDriver::new(receiver, SharedClock::clone(clock)));
        sensors.push((SensorKind::Gps, LiveSensor::new(driver, SharedClock::clone(clock), gps::LIMITS)));
    }
    sensors.sort_by_key(|(kind, _)| *kind);
    sensors
}

#[cfg(feature = "hardware")]
fn hardware(config: &Config, clock: &SharedClock) -> Vec<(SensorKind, LiveSensor)> {
    use crate::sensors::bluetooth;
    use crate::sensors::camera;
    use crate::sensors::microphone;
    let mut sensors = Vec::new();
    let mut add = |kind, driver, limits| {
        sensors.push((kind, LiveSensor::new(driver, SharedClock::clone(clock), limits)));
    };
    if config.microphone.capture.enabled {
        let driver = microphone::driver(&config.microphone.capture, SharedClock::clone(clock));
        add(SensorKind::Microphone, driver, microphone::LIMITS);
    }
    if config.camera.capture.enabled {
        let driver = camera::driver(&config.camera.capture, SharedClock::clone(clock));
        add(SensorKind::Camera, driver, camera::limits(&config.camera.capture));
    }
    if config.bluetooth.enabled {
        let driver = bluetooth::driver(&config.bluetooth, SharedClock::clone(clock));
        add(SensorKind::Bluetooth, driver, bluetooth::LIMITS);
    }
    sensors
}

#[cfg(not(feature = "hardware"))]
fn hardware(_config: &Config, _clock: &SharedClock) -> Vec<(SensorKind, LiveSensor)> {
    Vec::new()
}

/// The devices of each kind, or why they cannot be listed.
#[must_use]
pub fn list(config: &Config) -> Vec<(SensorKind, Result<Vec<Found>, Failure>)> {
    let mut lists = list_hardware();
    lists.push((SensorKind::Gps, gps::list(&config.gps.capture)));
    lists.sort_by_key(|(kind, _)| *kind);
    lists
}

#[cfg(feature = "hardware")]
fn list_hardware() -> Vec<(SensorKind, Result<Vec<Found>, Failure>)> {
    vec![
        (SensorKind::Microphone, crate::sensors::microphone::list()),
        (SensorKind::Camera, crate::sensors::camera::list()),
        (SensorKind::Bluetooth, crate::sensors::bluetooth::list()),
    ]
}

#[cfg(not(feature = "hardware"))]
fn list_hardware() -> Vec<(SensorKind, Result<Vec<Found>, Failure>)> {
    Vec::new()
}

//! Joins the streams of a session into one, in order of capture.
//!
//! In: recorded sensors. Out: their readings by monotonic time; at one time, those of the sensor that
//! stands earlier in the list first. The same session gives the same order on every machine.

use crate::domain::reading::Reading;
use crate::sensors::Poll;
use crate::sensors::Sensor;
use std::time::Duration;

/// Readings of several recorded sensors in order of capture.
pub struct Merged {
    sensors: Vec<(Box<dyn Sensor>, Option<Reading>)>,
}

/// Joins recorded sensors. A live sensor, which may have nothing to say, must not be among them.
#[must_use]
pub fn merge(sensors: Vec<Box<dyn Sensor>>) -> Merged {
    let sensors = sensors.into_iter().map(|mut sensor| (next(sensor.as_mut()), sensor));
    Merged { sensors: sensors.map(|(ahead, sensor)| (sensor, ahead)).collect() }
}

/// A recorded sensor never waits: whatever is no reading is the end.
fn next(sensor: &mut dyn Sensor) -> Option<Reading> {
    match sensor.poll(Duration::ZERO) {
        Poll::Reading(reading) => Some(reading),
        Poll::Pending | Poll::Ended => None,
    }
}

impl Iterator for Merged {
    type Item = Reading;

    fn next(&mut self) -> Option<Reading> {
        let at = |ahead: &Option<Reading>| ahead.as_ref().map(|reading| reading.captured_at.monotonic_ms);
        let (sensor, ahead) =
            self.sensors.iter_mut().filter(|(_, ahead)| ahead.is_some()).min_by_key(|(_, ahead)| at(ahead))?;
        std::mem::replace(ahead, next(sensor.as_mut()))
    }
}

//! Where a run's readings come from: the drivers of the config, or what a test puts in their place.

use crate::agent::drivers;
use crate::config::Config;
use crate::domain::id::SensorKind;
use crate::sensors::live::LiveSensor;
use crate::sensors::live::SharedClock;

/// Makes the sensors of one segment.
pub trait Sources {
    /// Sensors for this config, not opened yet.
    fn sensors(&self, config: &Config, clock: &SharedClock) -> Vec<(SensorKind, LiveSensor)>;
}

/// The real devices.
#[derive(Debug, Clone, Copy, Default)]
pub struct LiveSources;

impl Sources for LiveSources {
    fn sensors(&self, config: &Config, clock: &SharedClock) -> Vec<(SensorKind, LiveSensor)> {
        drivers::live_sensors(config, clock)
    }
}

//! Where readings come from.
//!
//! In: devices (live) or files (recorded sessions). Out: [`Reading`]s in the order they were captured,
//! through one trait, so that nothing to the right can tell a recording from live hardware.
//! Never: any understanding of what was captured, and no store.

use crate::domain::id::SourceId;
use crate::domain::reading::Reading;
use std::time::Duration;

#[cfg(feature = "hardware")]
pub mod bluetooth;
#[cfg(feature = "hardware")]
pub mod camera;
pub mod gps;
pub mod live;
#[cfg(feature = "hardware")]
pub mod microphone;
pub mod session;
pub mod settings;

/// A source of readings.
pub trait Sensor: Send {
    /// Its stable identity.
    fn source(&self) -> &SourceId;

    /// The next reading, waiting at most `timeout` for one (a recorded sensor never waits).
    ///
    /// A failure that the sensor survives (one bad file, one broken buffer) is no end: it is a
    /// [`crate::domain::reading::Loss`] reading.
    fn poll(&mut self, timeout: Duration) -> Poll;
}

/// What a sensor answered.
#[derive(Debug)]
pub enum Poll {
    /// A reading.
    Reading(Reading),
    /// Nothing within the time allowed.
    Pending,
    /// There will never be another one.
    Ended,
}

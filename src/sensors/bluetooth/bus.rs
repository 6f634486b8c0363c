//! What the driver asks of BlueZ, and what BlueZ tells: the edge where tests inject their own.

use super::adapter::Adapter;
use super::adapter::switched_off;
use super::facts::Facts;
use crate::sensors::live::Failure;
use std::time::Duration;

/// A connection to BlueZ. Each question is answered within two seconds. Dropping it ends the scan and never hangs.
pub(super) trait Bus: Send {
    /// The adapters there are. What BlueZ knows of devices already comes as events.
    fn adapters(&mut self) -> Result<Vec<Adapter>, BusError>;

    /// Asks the adapter to report every advertisement of low-energy devices.
    fn start(&mut self, adapter: &str) -> Result<(), BusError>;

    /// Ends the scan.
    fn stop(&mut self, adapter: &str) -> Result<(), BusError>;

    /// Asks what BlueZ knows of a device; the answer comes as an event, if at all.
    fn describe(&mut self, adapter: &str, device: [u8; 6]);

    /// What BlueZ told next, waiting at most `timeout` for it.
    fn next(&mut self, timeout: Duration) -> Option<Event>;

    /// Events that were lost since the last question, because they came faster than they were taken.
    fn lost(&mut self) -> u64;
}

/// What BlueZ told.
#[derive(Clone, PartialEq)]
pub(super) enum Event {
    /// A device appeared or changed.
    Device {
        /// The adapter's object.
        adapter: String,
        /// The device, by the address that names its object.
        device: [u8; 6],
        /// What was told of it.
        facts: Facts,
    },
    /// An adapter was switched on or off.
    Power {
        /// The adapter's object.
        adapter: String,
        /// Whether it is on.
        is_powered: bool,
    },
    /// An adapter was removed.
    AdapterGone {
        /// The adapter's object.
        adapter: String,
    },
    /// BlueZ ended or was started anew: what was asked of it is forgotten.
    ServiceGone,
    /// The bus closed the connection.
    Closed,
}

/// Why BlueZ did not do what it was asked. No text of BlueZ is kept: it may name a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BusError {
    /// The adapter is not ready, or off.
    NotReady,
    /// It is at it already.
    InProgress,
    /// We may not ask.
    Denied,
    /// There is no system bus, or it closed.
    NoBus,
    /// BlueZ is not running.
    NoService,
    /// No answer in time.
    Timeout,
    /// The adapter is not there.
    NoAdapter,
    /// Another error, by its D-Bus name.
    Other(String),
}

impl BusError {
    /// What the operator reads.
    pub(super) fn failure(self) -> Failure {
        match self {
            Self::NotReady => switched_off(),
            Self::InProgress => Failure::stalled("BlueZ is busy with another scan"),
            Self::Denied => Failure::unusable("BlueZ refuses us: add the user to the group bluetooth"),
            Self::NoBus => Failure::unusable("there is no D-Bus system bus: install dbus, and see that it runs"),
            Self::NoService => Failure::unplugged("BlueZ is not running: `systemctl start bluetooth`"),
            Self::Timeout => Failure::stalled("BlueZ does not answer"),
            Self::NoAdapter => Failure::unplugged("the Bluetooth adapter is gone"),
            Self::Other(name) => Failure::stalled(format!("BlueZ answered {name}")),
        }
    }
}

//! Bluetooth advertisements, through BlueZ over D-Bus.
//!
//! ```text
//!  BlueZ ─signals─► SystemBus (own thread) ─Event─► BluetoothFeed ─► Advertisement | Loss | broken
//!                                                    ├─ Devices: what each one told so far, bounded
//!                                                    ├─ Window: one reading for each device and second
//!                                                    └─ Scan: when the scan is started anew
//! ```
//!
//! In: an adapter, by its address. Out: advertisements with signal strengths as reported, sentinels included.
//! Never: a connection to a device, a change of the adapter's power, an address in a message.

use crate::domain::id::SensorKind;
use crate::domain::id::SourceId;
use crate::sensors::live::Driver;
use crate::sensors::live::Failure;
use crate::sensors::live::Feed;
use crate::sensors::live::Found;
use crate::sensors::live::Limits;
use crate::sensors::live::SharedClock;

mod adapter;
mod bus;
mod calls;
mod devices;
mod facts;
mod feed;
mod queue;
mod scan;
mod signals;
mod system_bus;
mod window;

use adapter::Adapter;
use adapter::Choice;
use bus::Bus;
use bus::BusError;
use feed::BluetoothFeed;
use system_bus::SystemBus;

/// The scan is started anew after a minute of silence; when that does not help three times, everything is opened anew.
pub const LIMITS: Limits = Limits { stall_ms: 240_000, first_ms: 240_000 };

/// What the user decides about Bluetooth: which adapter.
pub use crate::sensors::settings::Bluetooth as Config;

/// What is wrong with the config: at most one sentence for each key, without the value (it may be an address).
#[must_use]
pub fn mistakes(config: &Config) -> Vec<String> {
    Choice::parse(&config.adapter).err().map(|what| format!("adapter {what}")).into_iter().collect()
}

/// A driver on the system bus (`DBUS_SYSTEM_BUS_ADDRESS`, when set) that has not connected yet.
#[must_use]
pub fn driver(config: &Config, clock: SharedClock) -> Box<dyn Driver> {
    Box::new(BluetoothDriver::with_bus(config, clock, Box::new(|| Ok(Box::new(SystemBus::connect()?)))))
}

/// How the bus is reached: the edge where tests inject theirs.
type Connect = Box<dyn FnMut() -> Result<Box<dyn Bus>, BusError> + Send>;

/// Finds the adapter and scans with it.
struct BluetoothDriver {
    source: SourceId,
    choice: Result<Choice, String>,
    /// The adapter of the last opening: preferred when the config names none.
    last: Option<[u8; 6]>,
    connect: Connect,
    clock: SharedClock,
}

impl BluetoothDriver {
    fn with_bus(config: &Config, clock: SharedClock, connect: Connect) -> Self {
        let choice = Choice::parse(&config.adapter);
        let name = choice.as_ref().ok().and_then(Choice::name).unwrap_or_else(|| "first".to_owned());
        Self { source: SourceId::of(SensorKind::Bluetooth, &name), choice, last: None, connect, clock }
    }
}

impl Driver for BluetoothDriver {
    fn source(&self) -> &SourceId {
        &self.source
    }

    fn open(&mut self) -> Result<Box<dyn Feed>, Failure> {
        let choice = self.choice.as_ref().map_err(|what| Failure::unusable(format!("bluetooth.adapter {what}")))?;
        let mut bus = (self.connect)().map_err(BusError::failure)?;
        let adapters = bus.adapters().map_err(BusError::failure)?;
        let adapter = choice.of(&adapters, self.last)?;
        self.last = Some(adapter.address);
        self.source = adapter.source();
        if !adapter.is_powered {
            return Err(adapter::switched_off());
        }
        Ok(Box::new(BluetoothFeed::open(bus, adapter.path.clone(), self.clock.clone())?))
    }
}

/// The adapters of this machine. Takes some seconds when nobody answers.
///
/// # Errors
/// [`Failure`] when BlueZ does not answer.
pub fn list() -> Result<Vec<Found>, Failure> {
    let mut bus = SystemBus::connect().map_err(BusError::failure)?;
    let adapters = bus.adapters().map_err(BusError::failure)?;
    Ok(adapters.iter().map(Adapter::found).collect())
}

#[cfg(test)]
mod tests;

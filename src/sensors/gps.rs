//! The GPS receiver, through gpsd over TCP.
//!
//! ```text
//!  gpsd ─JSON lines─► Lines ─► GpsFeed ─► GpsReport | blind: no receiver | broken
//! ```
//!
//! In: gpsd's address. Out: its reports, translated exactly as those of a recording are; classes that nobody knows are
//! counted downstream. gpsd without a receiver is told in words, and watched until one appears.
//! Never: a judgement about a fix, a talk with a receiver itself (gpsd does that), a position in a message.

use crate::domain::id::SensorKind;
use crate::domain::id::SourceId;
use crate::sensors::live::Driver;
use crate::sensors::live::Failure;
use crate::sensors::live::Feed;
use crate::sensors::live::Limits;
use crate::sensors::live::SharedClock;
use serde::Deserialize;
use serde::Serialize;

mod address;
mod connect;
mod control;
mod feed;
mod lines;
mod survey;

use address::Address;
use connect::Connector;
use feed::GpsFeed;
pub use survey::list;

/// A receiver reports once a second or more; gpsd that says nothing for a minute is given up and connected anew.
pub const LIMITS: Limits = Limits { stall_ms: 60_000, first_ms: 60_000 };

/// Where gpsd is when the config does not say.
const ADDRESS_DEFAULT: &str = "127.0.0.1:2947";

/// What the user decides about GPS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Whether gpsd is asked at all.
    pub enabled: bool,
    /// Where gpsd listens: `host:port` (an IPv6 address in brackets). Without a port, 2947.
    pub address: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { enabled: true, address: ADDRESS_DEFAULT.to_owned() }
    }
}

impl Config {
    /// Values that cannot be meant, in sentences.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        Address::parse(&self.address).err().map(|what| format!("address {what}")).into_iter().collect()
    }

    /// `gps:gpsd` for the default address, `gps:HOST:PORT` for any other.
    #[must_use]
    pub fn source(&self) -> SourceId {
        let address =
            Address::parse(&self.address).map_or_else(|_| self.address.clone(), |address| address.to_string());
        SourceId::of(SensorKind::Gps, if address == ADDRESS_DEFAULT { "gpsd" } else { &address })
    }
}

/// Connects to gpsd and asks it to report.
pub struct GpsDriver {
    source: SourceId,
    address: Result<Address, String>,
    connector: Connector,
    clock: SharedClock,
}

impl GpsDriver {
    /// A driver that has not connected yet.
    #[must_use]
    pub fn new(config: &Config, clock: SharedClock) -> Self {
        Self {
            source: config.source(),
            address: Address::parse(&config.address),
            connector: Connector::default(),
            clock,
        }
    }
}

impl Driver for GpsDriver {
    fn source(&self) -> &SourceId {
        &self.source
    }

    fn open(&mut self) -> Result<Box<dyn Feed>, Failure> {
        let address = self.address.as_ref().map_err(|what| Failure::unusable(format!("gps.address {what}")))?;
        let stream = self.connector.watch(address)?;
        Ok(Box::new(GpsFeed::new(stream, address.to_string(), self.clock.clone())))
    }
}

#[cfg(test)]
mod tests;

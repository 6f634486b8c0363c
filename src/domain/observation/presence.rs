//! Who was near: meetings of known people, and the number of unknown devices. No address and no token is in here.

use crate::domain::id::SourceId;
use crate::domain::time::Stamp;

/// What the advertisements amount to.
#[derive(Debug, Clone, PartialEq)]
pub enum PresenceObservation {
    /// A known person arrived (`departure` is `None`) or, with the same arrival, departed.
    Met(Meeting),
    /// How many unknown devices were near.
    Crowd(CrowdCount),
}

/// One visit of a known person.
#[derive(Debug, Clone, PartialEq)]
pub struct Meeting {
    /// The adapter that noticed it.
    pub source: SourceId,
    /// The person's name.
    pub person: String,
    /// The first sighting.
    pub arrival: Stamp,
    /// The last sighting, once the absence has lasted long enough; `None` while the person is here.
    pub departure: Option<Stamp>,
    /// The strongest signal in dBm; `None` when no sighting carried a measurement.
    pub nearest_rssi_dbm: Option<i16>,
    /// Advertisements seen, so far.
    pub sightings: u64,
}

/// An estimate of how many unknown devices were near, their changing addresses seen through.
#[derive(Debug, Clone, PartialEq)]
pub struct CrowdCount {
    /// The adapter.
    pub source: SourceId,
    /// Start of what the count stands for.
    pub from: Stamp,
    /// End of what the count stands for.
    pub to: Stamp,
    /// Devices.
    pub device_count: u32,
}

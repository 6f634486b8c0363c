//! When a sensor was blind, and why: missing data is data.

use crate::domain::id::SourceId;
use crate::domain::time::Stamp;

/// An interval in which a sensor delivered nothing, nonsense, or less than configured.
#[derive(Debug, Clone, PartialEq)]
pub struct Coverage {
    /// The sensor.
    pub source: SourceId,
    /// Start.
    pub from: Stamp,
    /// End.
    pub to: Stamp,
    /// How blind it was.
    pub state: CoverageState,
    /// Why.
    pub reason: CoverageReason,
    /// One sentence for the operator, when there is more to say than the reason. Names no position and no address.
    pub detail: Option<String>,
}

/// How blind a sensor was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CoverageState {
    /// It delivered, but less than configured (slowed down, part of it unusable).
    Degraded,
    /// It delivered nothing usable.
    Blind,
}

impl CoverageState {
    /// The name stored in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Degraded => "degraded",
            Self::Blind => "blind",
        }
    }
}

/// Why a sensor was blind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoverageReason {
    /// The device is not there.
    Unplugged,
    /// Nothing arrives although the device is there.
    Stalled,
    /// The user muted it.
    Muted,
    /// The receiver has no fix.
    NoFix,
    /// Data came faster than it could be taken; some was lost.
    Overrun,
    /// Exact zeros, one repeated value, a black picture: no signal behind it.
    NoSignal,
    /// The device is there and cannot be used as it is set up: a permission, a format nobody offers, switched off.
    Unusable,
    /// A file or buffer could not be read or decoded.
    Unreadable,
    /// Values that cannot be true (NaN, infinite, out of range).
    Invalid,
    /// The recording itself says that this stretch is missing.
    Recorded,
    /// Slowed down for heat.
    Throttled,
    /// Slowed down or stopped for the battery.
    LowPower,
    /// The wall clock was not set.
    ClockUnset,
    /// The disk was full.
    DiskFull,
    /// A model that the config asks for is not there.
    ModelMissing,
    /// percept itself was not running.
    NotRunning,
}

impl CoverageReason {
    /// The name stored in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unplugged => "unplugged",
            Self::Stalled => "stalled",
            Self::Muted => "muted",
            Self::NoFix => "no_fix",
            Self::Overrun => "overrun",
            Self::NoSignal => "no_signal",
            Self::Unusable => "unusable",
            Self::Unreadable => "unreadable",
            Self::Invalid => "invalid",
            Self::Recorded => "recorded",
            Self::Throttled => "throttled",
            Self::LowPower => "low_power",
            Self::ClockUnset => "clock_unset",
            Self::DiskFull => "disk_full",
            Self::ModelMissing => "model_missing",
            Self::NotRunning => "not_running",
        }
    }
}

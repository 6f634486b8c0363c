//! What a session says about itself: who recorded it, when, with what, and where it has holes.

use crate::domain::coverage::CoverageReason;
use crate::domain::id::BootId;
use crate::domain::id::DeviceId;
use crate::domain::id::SensorKind;
use crate::domain::id::SessionId;
use crate::domain::id::SourceId;
use crate::domain::time::ClockQuality;
use crate::domain::time::Stamp;

/// The version of the folder format that this program writes, and the newest it reads.
pub const FORMAT: i64 = 1;

/// What is known about a session before any of its readings is read.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionHeader {
    /// The session's own id; of a bare file the BLAKE3 of its bytes, in hex.
    pub session_id: SessionId,
    /// Who recorded it. A bare file does not say: the store's own device is used.
    pub device_id: Option<DeviceId>,
    /// Which boot of the recorder; of a bare file the session id.
    pub boot_id: BootId,
    /// What the recorder's clock said at offset 0. `monotonic_ms` is 0.
    pub started: Stamp,
    /// False when the start was taken from a bare file's modification time: it is then no part of ids.
    pub start_is_known: bool,
    /// The recorder's remark.
    pub note: Option<String>,
    /// When the recorder's wall clock was set during the session, in order.
    pub clock_steps: Vec<ClockStep>,
    /// The sensors, in the order microphone, camera, gps, bluetooth; at most one of each.
    pub streams: Vec<StreamHeader>,
}

impl SessionHeader {
    /// The stream of one kind of sensor, if the session has it.
    #[must_use]
    pub fn stream(&self, kind: SensorKind) -> Option<&StreamHeader> {
        self.streams.iter().find(|stream| stream.kind == kind)
    }
}

/// The wall clock was set: from `at_ms` on it shows `step_ms` more than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockStep {
    /// Milliseconds since the start of the session.
    pub at_ms: i64,
    /// By how much the clock went forward (negative: back).
    pub step_ms: i64,
    /// How far it can be trusted from there on.
    pub quality: ClockQuality,
}

/// One sensor of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamHeader {
    /// Which kind.
    pub kind: SensorKind,
    /// Its stable identity.
    pub source: SourceId,
    /// Which channels of the sound to use (from 0); more than one are mixed. `None`: all of them.
    pub channel_map: Option<Vec<u16>>,
    /// Stretches that the recorder knows to be missing, in order.
    pub gaps: Vec<Gap>,
}

impl StreamHeader {
    /// A stream about which only the kind is known.
    pub(super) fn plain(kind: SensorKind, name: &str) -> Self {
        Self { kind, source: SourceId::of(kind, name), channel_map: None, gaps: Vec::new() }
    }
}

/// A stretch that the recorder knows to be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// First missing millisecond since the start of the session.
    pub from_ms: i64,
    /// First millisecond after it; greater than `from_ms`.
    pub to_ms: i64,
    /// Why; `recorded` when the recorder does not say.
    pub reason: CoverageReason,
    /// More about it.
    pub note: Option<String>,
}

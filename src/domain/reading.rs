//! What a sensor delivers: one timed piece of raw capture. Never stored as such.

use crate::domain::coverage::CoverageReason;
use crate::domain::id::SourceId;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;
use std::sync::Arc;

/// One piece of raw capture.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The sensor it came from.
    pub source: SourceId,
    /// When its first frame was captured, by the device's own time where it has one.
    pub captured_at: Stamp,
    /// What was captured.
    pub payload: Payload,
}

/// The kinds of raw capture.
#[derive(Debug, Clone)]
pub enum Payload {
    /// Consecutive frames of sound.
    Sound(SoundChunk),
    /// One picture.
    Picture(Picture),
    /// One report of the GPS receiver.
    Position(GpsReport),
    /// One advertisement.
    Advertisement(Advertisement),
    /// Nothing was delivered from `captured_at` on for this long, and why. The next reading of
    /// this source does not follow the last one without a break.
    Loss(Loss),
}

/// Sound as the device delivered it.
#[derive(Debug, Clone)]
pub struct SoundChunk {
    /// Frames per second, 1 to 768,000.
    pub sample_rate_hz: u32,
    /// Values in a frame, at least 1.
    pub channel_count: u16,
    /// Interleaved values, a whole number of frames.
    pub samples: Samples,
}

/// Interleaved audio values in the device's format.
#[derive(Debug, Clone)]
pub enum Samples {
    /// Signed 16-bit.
    I16(Vec<i16>),
    /// Signed 24-bit, sign-extended into 32 bits (±8,388,607).
    I24(Vec<i32>),
    /// Signed 32-bit.
    I32(Vec<i32>),
    /// Floating point, full scale ±1.
    F32(Vec<f32>),
}

impl Samples {
    /// Number of values over all channels.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::I16(values) => values.len(),
            Self::I24(values) | Self::I32(values) => values.len(),
            Self::F32(values) => values.len(),
        }
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl SoundChunk {
    /// Number of whole frames.
    #[must_use]
    pub fn frame_count(&self) -> usize {
        self.samples.len() / usize::from(self.channel_count.max(1))
    }
}

/// A picture as the device delivered it.
#[derive(Debug, Clone)]
pub struct Picture {
    /// How `bytes` are laid out.
    pub format: PixelFormat,
    /// Width and height in pixels; `None` for the compressed formats, which carry their own.
    pub size_px: Option<(u32, u32)>,
    /// The picture.
    pub bytes: Arc<[u8]>,
}

/// Pixel layouts that cameras deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PixelFormat {
    /// A JPEG file (a frame of MJPEG), possibly padded behind its end marker.
    Jpeg,
    /// A PNG file.
    Png,
    /// 8-bit red, green, blue.
    Rgb8,
    /// 8-bit grey.
    Grey8,
    /// 4:2:2, Y0 U Y1 V.
    Yuyv,
    /// 4:2:0, a plane of Y and a plane of UV pairs.
    Nv12,
}

/// One report of the receiver, as gpsd words it.
#[derive(Debug, Clone, PartialEq)]
pub enum GpsReport {
    /// Time, position, velocity.
    Position(PositionReport),
    /// Satellites in view: the number used in the solution and the number seen.
    Satellites {
        /// Used in the fix.
        used: u32,
        /// In view.
        seen: u32,
    },
    /// A class that says nothing about position (VERSION, DEVICES, PPS, TOFF …), by name. Counted.
    Other(String),
    /// A line that is no report.
    Malformed(String),
}

/// gpsd's TPV, reduced to what percept uses. Positions are never logged above DEBUG.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PositionReport {
    /// 0 unknown, 1 no fix, 2 two-dimensional, 3 three-dimensional. It alone decides whether there is a fix.
    pub mode: u8,
    /// The receiver's time, when it gave one.
    pub time: Option<Timestamp>,
    /// Degrees north, −90 to 90.
    pub latitude_deg: Option<f64>,
    /// Degrees east, −180 to 180.
    pub longitude_deg: Option<f64>,
    /// Metres above mean sea level.
    pub altitude_m: Option<f64>,
    /// Estimated horizontal error in metres (95 %).
    pub accuracy_m: Option<f64>,
    /// Metres per second over ground.
    pub speed_mps: Option<f64>,
    /// Degrees from true north.
    pub course_deg: Option<f64>,
}

/// Who sent an advertisement, as far as the recording says.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Sender {
    /// A device address, most significant byte first. Never written anywhere but by `record --raw`.
    Address([u8; 6], AddressType),
    /// A pseudonym a recorder put in place of the address.
    Token(String),
    /// A known person a recorder recognised.
    Person(String),
}

impl std::fmt::Debug for Sender {
    /// Hides the address, so that no log line can carry one by accident.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Address(..) => "Address(***)",
            Self::Token(_) => "Token(***)",
            Self::Person(_) => "Person(***)",
        })
    }
}

/// How a Bluetooth address was chosen by its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressType {
    /// Given by the manufacturer.
    Public,
    /// Random, of a kind told by its two highest bits (static, resolvable, non-resolvable).
    Random,
}

/// One advertisement.
#[derive(Debug, Clone, PartialEq)]
pub struct Advertisement {
    /// Who sent it.
    pub sender: Sender,
    /// Signal strength as reported, sentinels included; `None` when there was none.
    pub rssi_dbm: Option<i16>,
    /// The advertised local name.
    pub name: Option<String>,
    /// Advertised service UUIDs.
    pub service_uuids: Vec<String>,
    /// Company ids with which manufacturer data came, and the data.
    pub manufacturer_data: Vec<(u16, Vec<u8>)>,
}

/// A stretch in which a sensor delivered nothing usable.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    /// How long, when known; else until the next reading of this source.
    pub length_ms: Option<i64>,
    /// Why.
    pub reason: CoverageReason,
    /// The sentence for the operator: the file and what is wrong with it, or the device's error.
    pub detail: String,
}

//! What was heard in one hop of sound.

use crate::domain::id::SourceId;
use crate::domain::time::Stamp;
use std::sync::Arc;

/// Number of frequency bands (20–250, 250–500, 500–2000, 2000–4000, 4000–8000 Hz, half open).
pub const BAND_COUNT: usize = 5;

/// One hop (0.48 s) of sound. Consecutive hops of one run touch.
#[derive(Debug, Clone, PartialEq)]
pub struct SoundObservation {
    /// The microphone.
    pub source: SourceId,
    /// Start of the hop.
    pub start: Stamp,
    /// End of the hop.
    pub end: Stamp,
    /// Mean square after removal of the mean, linear (full-scale sine 0.5), over the hop.
    pub mean_square: f64,
    /// Greatest absolute value in the hop, linear 0–1 (above 1 when the source clipped in f32).
    pub peak: f32,
    /// Mean square in each band, linear.
    pub band_mean_square: [f64; BAND_COUNT],
    /// Up to five spectral peaks, strongest first.
    pub peaks: Vec<SpectralPeak>,
    /// Whether the level gate was open: something was loud enough to be an event.
    pub is_active: bool,
    /// Whether there is a signal behind the values.
    pub signal: Signal,
    /// What YAMNet heard in the window that begins here; `None` when it did not run.
    pub scores: Option<SoundScores>,
}

/// A maximum of the spectrum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpectralPeak {
    /// Interpolated frequency in Hz.
    pub frequency_hz: f32,
    /// dBFS of a sine of that strength.
    pub level_dbfs: f32,
}

/// Whether a microphone delivers sound at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Ordinary sound, or noise of an open microphone.
    Live,
    /// Exact zeros or one repeated value: no signal.
    Absent,
    /// NaN, infinite or out-of-scale values, which were left out.
    Invalid,
}

/// YAMNet's answer for one window.
#[derive(Debug, Clone, PartialEq)]
pub struct SoundScores {
    /// One score (0–1) per class, in the order of the class map (521).
    pub scores: Arc<[f32]>,
    /// The 1024-d embedding as the model gives it (not unit length).
    pub embedding: Arc<[f32]>,
}

/// The level of perfect silence: nothing reads lower.
pub const LEVEL_FLOOR_DB: f64 = -120.0;

/// dBFS of a mean square (full-scale sine −3.01), never below [`LEVEL_FLOOR_DB`], never NaN or infinite.
#[must_use]
pub fn dbfs_of_mean_square(mean_square: f64) -> f64 {
    let db = 10.0 * mean_square.log10();
    if db.is_finite() { db.max(LEVEL_FLOOR_DB) } else { LEVEL_FLOOR_DB }
}

//! Log-mel frames, the input of YAMNet.
//!
//! In: mono sound at 16 kHz, full scale ±1. Out: every 160 samples one frame of 64 natural logarithms of
//! mel-band magnitudes: periodic Hann of 400 samples, FFT of 512, magnitude, 64 mel bands from 125 to
//! 7500 Hz, `ln(x + 0.001)`. These are the features of YAMNet as Google publishes it
//! (`research/audioset/yamnet/features.py` and the graph of `yamnet.tflite`).
//!
//! Nothing is allocated per frame but the room in the caller's vector. Never: resampling, a model, I/O.

use realfft::RealFftPlanner;
use realfft::RealToComplex;
use realfft::num_complex::Complex;
use std::f64::consts::PI;
use std::sync::Arc;

/// The rate the features are defined at, in Hz.
pub const SAMPLE_RATE_HZ: u32 = 16_000;
/// Samples under one frame's Hann window (25 ms).
pub const FRAME_SAMPLES: usize = 400;
/// Samples from one frame to the next (10 ms).
pub const FRAME_HOP_SAMPLES: usize = 160;
/// Length of the FFT; the window is zero-padded to it.
pub const FFT_LENGTH: usize = 512;
/// Bins of the one-sided spectrum, 0 to 8000 Hz.
pub const SPECTRUM_BINS: usize = FFT_LENGTH / 2 + 1;
/// Mel bands of a frame.
pub const MEL_BANDS: usize = 64;
/// Frames in one window of YAMNet (0.975 s).
pub const WINDOW_FRAMES: usize = 96;
/// Values in one window of YAMNet, frame after frame.
pub const WINDOW_VALUES: usize = WINDOW_FRAMES * MEL_BANDS;
/// Samples in one window of YAMNet (0.975 s).
pub const WINDOW_SAMPLES: usize = (WINDOW_FRAMES - 1) * FRAME_HOP_SAMPLES + FRAME_SAMPLES;
/// Frames from one window to the next (0.48 s): half of a window's frames are reused.
pub const HOP_FRAMES: usize = 48;
/// Samples from one window to the next (0.48 s).
pub const HOP_SAMPLES: usize = HOP_FRAMES * FRAME_HOP_SAMPLES;

/// Lower edge of the lowest band in Hz.
const MEL_LOWEST_HZ: f64 = 125.0;
/// Upper edge of the highest band in Hz.
const MEL_HIGHEST_HZ: f64 = 7500.0;
/// Added before the logarithm, so that silence is `ln(0.001)` = −6.9078 and not −∞.
const LOG_OFFSET: f32 = 0.001;
/// Products added side by side, so that the compiler uses vector registers (SSE2 and NEON hold four).
const LANES: usize = 4;
/// Bins with room for the zero weights behind the highest band.
const PADDED_BINS: usize = SPECTRUM_BINS + LANES - 1;

/// The weights that sum 257 magnitudes into 64 bands, of which only the non-zero ones are kept.
#[derive(Debug, Clone, PartialEq)]
pub struct MelMatrix {
    bands: Vec<Band>,
    weights: Vec<f32>,
}

/// Where one band's weights lie: `weights[weight..weight + length]` apply to the bins from `bin` on. The
/// length is a whole number of lanes, filled up with zero weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Band {
    bin: usize,
    weight: usize,
    length: usize,
}

/// A matrix that does not have 64 × 257 finite weights.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a mel matrix has 64 × 257 finite weights; this one has {found} values, {not_finite} of them not finite")]
pub struct MelMatrixError {
    /// Values given.
    pub found: usize,
    /// How many of them are NaN or infinite.
    pub not_finite: usize,
}

impl MelMatrix {
    /// The matrix of YAMNet by its formula: triangles on the HTK mel scale, `1127 ln(1 + f/700)`, equal
    /// areas not wanted, the bin at 0 Hz unused (`tf.signal.linear_to_mel_weight_matrix`, computed in
    /// f64). It equals the matrix stored in `yamnet.tflite`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "bin and band numbers are small")]
    #[expect(clippy::cast_possible_truncation, reason = "the weights are stored as f32")]
    pub fn yamnet() -> Self {
        let (lowest, highest) = (mel(MEL_LOWEST_HZ), mel(MEL_HIGHEST_HZ));
        let edge = |index: usize| lowest + (highest - lowest) * index as f64 / (MEL_BANDS + 1) as f64;
        let mut rows = vec![0.0_f32; MEL_BANDS * SPECTRUM_BINS];
        for (band, row) in rows.chunks_exact_mut(SPECTRUM_BINS).enumerate() {
            let (lower, center, upper) = (edge(band), edge(band + 1), edge(band + 2));
            for (bin, weight) in row.iter_mut().enumerate().skip(1) {
                let at = mel(bin as f64 * f64::from(SAMPLE_RATE_HZ) / FFT_LENGTH as f64);
                let rising = (at - lower) / (center - lower);
                let falling = (upper - at) / (upper - center);
                *weight = rising.min(falling).max(0.0) as f32;
            }
        }
        Self::of_finite_rows(&rows)
    }

    /// The matrix as the model file stores it: 64 rows (bands) of 257 weights (bins).
    ///
    /// # Errors
    /// [`MelMatrixError`] when there are not 64 × 257 values or one is not finite.
    pub fn from_rows(rows: &[f32]) -> Result<Self, MelMatrixError> {
        let not_finite = rows.iter().filter(|weight| !weight.is_finite()).count();
        if rows.len() != MEL_BANDS * SPECTRUM_BINS || not_finite > 0 {
            return Err(MelMatrixError { found: rows.len(), not_finite });
        }
        Ok(Self::of_finite_rows(rows))
    }

    fn of_finite_rows(rows: &[f32]) -> Self {
        let mut matrix = Self { bands: Vec::with_capacity(MEL_BANDS), weights: Vec::new() };
        for row in rows.chunks_exact(SPECTRUM_BINS) {
            let first = row.iter().position(|weight| *weight != 0.0).unwrap_or(0);
            let end = row.iter().rposition(|weight| *weight != 0.0).map_or(first, |last| last + 1);
            let band = Band { bin: first, weight: matrix.weights.len(), length: (end - first).next_multiple_of(LANES) };
            matrix.bands.push(band);
            matrix.weights.extend_from_slice(&row[first..end]);
            matrix.weights.resize(band.weight + band.length, 0.0);
        }
        matrix
    }

    /// All 64 × 257 weights, band by band.
    #[must_use]
    pub fn to_rows(&self) -> Vec<f32> {
        let mut rows = vec![0.0; MEL_BANDS * SPECTRUM_BINS];
        for (band, row) in self.bands.iter().zip(rows.chunks_exact_mut(SPECTRUM_BINS)) {
            let weights = &self.weights[band.weight..band.weight + band.length];
            for (place, weight) in row[band.bin..].iter_mut().zip(weights) {
                *place = *weight;
            }
        }
        rows
    }

    fn apply(&self, magnitudes: &[f32; PADDED_BINS], bands: &mut [f32; MEL_BANDS]) {
        for (band, sum) in self.bands.iter().zip(bands) {
            let weights = &self.weights[band.weight..band.weight + band.length];
            let bins = &magnitudes[band.bin..band.bin + band.length];
            let mut lanes = [0.0; LANES];
            for (weights, bins) in weights.chunks_exact(LANES).zip(bins.chunks_exact(LANES)) {
                for ((lane, weight), bin) in lanes.iter_mut().zip(weights).zip(bins) {
                    *lane += weight * bin;
                }
            }
            *sum = lanes.iter().sum();
        }
    }
}

/// Frequency in Hz to mel, as HTK and TensorFlow define it.
fn mel(frequency_hz: f64) -> f64 {
    1127.0 * (1.0 + frequency_hz / 700.0).ln()
}

/// Computes frames; keeps the FFT plan and the buffers.
pub struct LogMel {
    matrix: MelMatrix,
    hann: [f32; FRAME_SAMPLES],
    fft: Arc<dyn RealToComplex<f32>>,
    input: Vec<f32>,
    spectrum: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
}

impl LogMel {
    /// Frames by that matrix; [`MelMatrix::yamnet`] where the model brings none.
    #[must_use]
    pub fn new(matrix: MelMatrix) -> Self {
        let fft = RealFftPlanner::new().plan_fft_forward(FFT_LENGTH);
        Self {
            matrix,
            hann: periodic_hann(),
            input: fft.make_input_vec(),
            spectrum: fft.make_output_vec(),
            scratch: fft.make_scratch_vec(),
            fft,
        }
    }

    /// Appends to `frames` the frame of every whole window of 400 samples, 160 apart, the first one
    /// beginning at `samples[0]`: 64 values each. Returns how many samples at the front no later frame
    /// needs (160 for each frame).
    pub fn extend(&mut self, samples: &[f32], frames: &mut Vec<f32>) -> usize {
        let mut start = 0;
        while let Some(window) = samples[start..].first_chunk::<FRAME_SAMPLES>() {
            frames.extend_from_slice(&self.frame(window));
            start += FRAME_HOP_SAMPLES;
        }
        start
    }

    /// The 64 log-mel values of one window.
    pub fn frame(&mut self, window: &[f32; FRAME_SAMPLES]) -> [f32; MEL_BANDS] {
        let (head, padding) = self.input.split_at_mut(FRAME_SAMPLES);
        for ((value, sample), weight) in head.iter_mut().zip(window).zip(&self.hann) {
            *value = sample * weight;
        }
        padding.fill(0.0);
        let done = self.fft.process_with_scratch(&mut self.input, &mut self.spectrum, &mut self.scratch);
        debug_assert!(done.is_ok(), "the buffers come from the plan itself");

        let mut magnitudes = [0.0; PADDED_BINS];
        for (magnitude, bin) in magnitudes.iter_mut().zip(&self.spectrum) {
            *magnitude = (bin.re * bin.re + bin.im * bin.im).sqrt();
        }
        let mut bands = [0.0; MEL_BANDS];
        self.matrix.apply(&magnitudes, &mut bands);
        for band in &mut bands {
            *band = ln(*band + LOG_OFFSET);
        }
        bands
    }
}

impl std::fmt::Debug for LogMel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LogMel").finish_non_exhaustive()
    }
}

/// `0.5 − 0.5 cos(2πn/400)`.
#[expect(clippy::cast_precision_loss, reason = "n is below 400")]
#[expect(clippy::cast_possible_truncation, reason = "the window is stored as f32")]
fn periodic_hann() -> [f32; FRAME_SAMPLES] {
    std::array::from_fn(|n| (0.5 - 0.5 * (2.0 * PI * n as f64 / FRAME_SAMPLES as f64).cos()) as f32)
}

/// Natural logarithm of a positive, normal, finite number, within 2e-7 relative or absolute.
///
/// Branch-free, so that the compiler computes several at once (the library's `ln` is a call per value
/// and was the largest part of a frame). Coefficients and splitting of `ln 2` are those of `logf` in
/// the Cephes library.
fn ln(x: f32) -> f32 {
    const COEFFICIENTS: [f32; 9] = [
        7.037_683_6e-2,
        -1.151_461e-1,
        1.167_699_9e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_8e-1,
        2.000_071_5e-1,
        -2.499_999_4e-1,
        3.333_333e-1,
    ];
    // x = mantissa · 2^exponent with the mantissa in [√½, √2).
    let offset = x.to_bits().wrapping_sub(std::f32::consts::FRAC_1_SQRT_2.to_bits());
    let exponent = (offset.cast_signed() >> 23) as f32;
    let mantissa = f32::from_bits((offset & 0x007f_ffff) + std::f32::consts::FRAC_1_SQRT_2.to_bits());
    let m = mantissa - 1.0;
    let square = m * m;
    let polynomial = COEFFICIENTS.iter().fold(0.0, |sum, coefficient| sum * m + coefficient);
    m + (polynomial * m * square - 0.5 * square + exponent * -2.121_944_4e-4) + exponent * 0.693_359_4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_equals_the_librarys() {
        let mut x = 0.001_f32;
        while x < 1e4 {
            assert!((ln(x) - x.ln()).abs() <= 1e-6_f32.max(2e-7 * x.ln().abs()), "{x}: {} against {}", ln(x), x.ln());
            x *= 1.000_37;
        }
    }

    #[test]
    fn a_matrix_survives_its_rows_and_other_sizes_are_refused() {
        let matrix = MelMatrix::yamnet();

        assert_eq!(MelMatrix::from_rows(&matrix.to_rows()), Ok(matrix));
        assert_eq!(MelMatrix::from_rows(&[1.0, f32::NAN]), Err(MelMatrixError { found: 2, not_finite: 1 }));
    }

    #[test]
    fn the_frames_do_not_depend_on_where_the_sound_is_cut() {
        let samples: Vec<f32> = (0..5_000_i16).map(|n| (f32::from(n) * 0.37).sin() * 0.5).collect();
        let mut log_mel = LogMel::new(MelMatrix::yamnet());
        let mut whole = Vec::new();
        log_mel.extend(&samples, &mut whole);

        let (mut pieces, mut waiting) = (Vec::new(), Vec::new());
        for chunk in samples.chunks(333) {
            waiting.extend_from_slice(chunk);
            let done = log_mel.extend(&waiting, &mut pieces);
            waiting.drain(..done);
        }

        assert_eq!(whole.len(), 29 * MEL_BANDS);
        assert_eq!(pieces, whole);
    }

    #[test]
    fn a_window_is_96_frames_and_a_hop_half_of_them() {
        assert_eq!((WINDOW_SAMPLES, HOP_SAMPLES), (15_600, 7_680));
    }
}

//! Where in the spectrum a piece of sound lies.
//!
//! In: mono samples at 16 kHz, full scale ±1. Out: the mean square in five half-open bands (20–250,
//! 250–500, 500–2000, 2000–4000, 4000–8000 Hz) and up to five spectral peaks with interpolated frequency.
//!
//! Frames of 1,024 under a periodic Hann window, 512 apart, their power averaged (Welch's method) and
//! scaled so that the bins add up to the mean square. Never: time stamps, classes, I/O.

use crate::domain::observation::sound::BAND_COUNT;
use crate::domain::observation::sound::SpectralPeak;
use crate::domain::observation::sound::dbfs_of_mean_square;
use crate::perception::log_mel::SAMPLE_RATE_HZ;
use realfft::RealFftPlanner;
use realfft::RealToComplex;
use realfft::num_complex::Complex;
use std::f64::consts::PI;
use std::sync::Arc;

/// Samples in a frame.
const FRAME: usize = 1_024;
/// Samples from one frame to the next.
const FRAME_HOP: usize = FRAME / 2;
/// Bins of the one-sided spectrum.
const BINS: usize = FRAME / 2 + 1;
/// Lower edges of the bands and the upper edge of the last, in Hz.
pub const BAND_EDGES_HZ: [f64; BAND_COUNT + 1] = [20.0, 250.0, 500.0, 2_000.0, 4_000.0, 8_000.0];
/// Peaks reported at most.
pub const PEAKS_MAX: usize = 5;
/// Equivalent noise bandwidth of the Hann window in bins: a sine's power over that of its highest bin.
const HANN_NOISE_BANDWIDTH: f64 = 1.5;
/// A peak stands this many times above the median of the spectrum (6 dB).
const PEAK_OVER_MEDIAN: f64 = 4.0;
/// A peak has at least this share of the strongest one's power (40 dB below it).
const PEAK_OF_STRONGEST: f64 = 1e-4;
/// A peak weaker than this (−100 dBFS) is no sound.
const PEAK_POWER_MIN: f64 = 1e-10;

/// What the spectrum of a piece of sound says.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrum {
    /// Mean square in each band, linear.
    pub band_mean_square: [f64; BAND_COUNT],
    /// The peaks, strongest first.
    pub peaks: Vec<SpectralPeak>,
}

/// Analyses pieces of sound; keeps the FFT plan and the buffers.
pub struct Analyzer {
    fft: Arc<dyn RealToComplex<f32>>,
    hann: Vec<f32>,
    input: Vec<f32>,
    output: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
}

impl Analyzer {
    /// An analyser for sound at 16 kHz.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "n is below 1,024")]
    #[expect(clippy::cast_possible_truncation, reason = "the window is stored as f32")]
    pub fn new() -> Self {
        let fft = RealFftPlanner::new().plan_fft_forward(FRAME);
        let hann = (0..FRAME).map(|n| (0.5 - 0.5 * (2.0 * PI * n as f64 / FRAME as f64).cos()) as f32).collect();
        Self { hann, input: fft.make_input_vec(), output: fft.make_output_vec(), scratch: fft.make_scratch_vec(), fft }
    }

    /// Bands and peaks of `samples`: whole frames within it, or one zero-padded frame when it is shorter.
    pub fn analyze(&mut self, samples: &[f32]) -> Spectrum {
        let power = self.power(samples);
        Spectrum { band_mean_square: bands(&power), peaks: peaks(&power) }
    }

    /// Mean square per bin.
    #[expect(clippy::cast_precision_loss, reason = "a number of frames")]
    fn power(&mut self, samples: &[f32]) -> [f64; BINS] {
        let mut power = [0.0; BINS];
        let last_start = samples.len().saturating_sub(FRAME);
        let starts = (0..last_start + 1).step_by(FRAME_HOP);
        let frames = starts.len() as f64;
        for start in starts {
            self.add_frame(&samples[start..samples.len().min(start + FRAME)], &mut power);
        }
        for bin in &mut power {
            *bin /= frames;
        }
        power
    }

    fn add_frame(&mut self, samples: &[f32], power: &mut [f64; BINS]) {
        let mut window_power = 0.0;
        self.input.fill(0.0);
        for ((value, sample), weight) in self.input.iter_mut().zip(samples).zip(&self.hann) {
            *value = sample * weight;
            window_power += f64::from(weight * weight);
        }
        let done = self.fft.process_with_scratch(&mut self.input, &mut self.output, &mut self.scratch);
        debug_assert!(done.is_ok(), "the buffers come from the plan itself");
        if window_power <= 0.0 {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "1,024")]
        let scale = 2.0 / (window_power * FRAME as f64);
        for (sum, bin) in power.iter_mut().zip(&self.output) {
            *sum += f64::from(bin.norm_sqr()) * scale;
        }
    }
}

impl Default for Analyzer {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Analyzer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Analyzer").finish_non_exhaustive()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a bin's number")]
fn frequency_hz(bin: usize) -> f64 {
    bin as f64 * f64::from(SAMPLE_RATE_HZ) / FRAME as f64
}

fn bands(power: &[f64; BINS]) -> [f64; BAND_COUNT] {
    let mut bands = [0.0; BAND_COUNT];
    for (bin, power) in power.iter().enumerate() {
        let frequency_hz = frequency_hz(bin);
        let edges = BAND_EDGES_HZ.windows(2);
        let mut inside =
            bands.iter_mut().zip(edges).filter(|(_, edge)| edge[0] <= frequency_hz && frequency_hz < edge[1]);
        if let Some((band, _)) = inside.next() {
            *band += power;
        }
    }
    bands
}

/// Local maxima well above the rest, strongest first.
fn peaks(power: &[f64; BINS]) -> Vec<SpectralPeak> {
    let mut sorted = *power;
    sorted.sort_by(f64::total_cmp);
    let least = (sorted[BINS / 2] * PEAK_OVER_MEDIAN).max(PEAK_POWER_MIN);
    let mut found: Vec<usize> = (2..BINS - 1)
        .filter(|bin| {
            let here = power[*bin];
            here >= least && here > power[bin - 1] && here >= power[bin + 1]
        })
        .collect();
    found.sort_by(|a, b| power[*b].total_cmp(&power[*a]));
    let strongest = found.first().map_or(0.0, |bin| power[*bin]);
    found.retain(|bin| power[*bin] >= strongest * PEAK_OF_STRONGEST);
    found.truncate(PEAKS_MAX);
    found.into_iter().map(|bin| interpolate(power, bin)).collect()
}

/// Frequency by a parabola through the logarithms of the peak and its two neighbours (the main lobe of a
/// Hann window is close to a Gaussian, whose logarithm is one); level by the shape of that lobe,
/// `sinc(x) / (1 − x²)` at x bins from its centre.
#[expect(clippy::cast_possible_truncation, reason = "frequencies and levels fit f32")]
fn interpolate(power: &[f64; BINS], bin: usize) -> SpectralPeak {
    let log = |bin: usize| power[bin].max(f64::MIN_POSITIVE).ln();
    let (before, here, after) = (log(bin - 1), log(bin), log(bin + 1));
    let curvature = before - 2.0 * here + after;
    let offset = if curvature < 0.0 { (0.5 * (before - after) / curvature).clamp(-0.5, 0.5) } else { 0.0 };
    let sinc = if offset.abs() < 1e-9 { 1.0 } else { (PI * offset).sin() / (PI * offset) };
    let lobe = sinc / (1.0 - offset * offset);
    SpectralPeak {
        frequency_hz: (frequency_hz(bin) + offset * frequency_hz(1)) as f32,
        level_dbfs: dbfs_of_mean_square(power[bin] / (lobe * lobe) * HANN_NOISE_BANDWIDTH) as f32,
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "generated sound and figures to compare it by")]
mod tests {
    use super::*;

    #[test]
    fn a_full_scale_sine_reads_minus_3_db_in_its_band_alone() {
        for (band, tone_hz) in [120.0, 375.0, 1_000.0, 3_000.0, 6_000.0].into_iter().enumerate() {
            let spectrum = Analyzer::new().analyze(&tones(&[(tone_hz, 1.0)]));

            let levels = spectrum.band_mean_square.map(dbfs_of_mean_square);
            assert!((levels[band] + 3.01).abs() < 0.05, "{tone_hz} Hz: {levels:?}");
            let others = levels.iter().enumerate().filter(|(other, _)| *other != band);
            assert!(others.into_iter().all(|(_, level)| *level < -60.0), "{tone_hz} Hz: {levels:?}");
        }
    }

    #[test]
    fn the_bands_of_white_noise_add_up_to_its_mean_square() {
        let mut state = 7_u32;
        let noise: Vec<f32> = (0..160_000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / 8_388_608.0 - 1.0
            })
            .collect();

        let bands = Analyzer::new().analyze(&noise).band_mean_square;

        for (band, edges) in bands.iter().zip(BAND_EDGES_HZ.windows(2)) {
            let share = (edges[1] - edges[0]) / 8_000.0;
            assert!((band / (share / 3.0) - 1.0).abs() < 0.1, "{edges:?}: {band}");
        }
    }

    #[test]
    fn a_peak_is_found_within_a_fraction_of_a_bin() {
        for tone_hz in [63.0, 440.0, 1_000.0, 1_007.8, 4_321.0, 7_777.0] {
            let peaks = Analyzer::new().analyze(&tones(&[(tone_hz, 0.5)])).peaks;

            assert!((f64::from(peaks[0].frequency_hz) - tone_hz).abs() < 0.8, "{tone_hz} Hz: {peaks:?}");
            assert!((peaks[0].level_dbfs + 9.03).abs() < 0.1, "{tone_hz} Hz: {peaks:?}");
        }
    }

    #[test]
    fn the_strongest_five_peaks_come_first() {
        let tones =
            tones(&[(300.0, 0.05), (900.0, 0.2), (1_500.0, 0.1), (2_500.0, 0.02), (5_000.0, 0.3), (7_000.0, 0.01)]);

        let peaks = Analyzer::new().analyze(&tones).peaks;

        let found: Vec<i32> = peaks.iter().map(|peak| (peak.frequency_hz / 10.0).round() as i32 * 10).collect();
        assert_eq!(found, [5_000, 900, 1_500, 300, 2_500]);
    }

    #[test]
    fn silence_and_a_constant_have_no_peak() {
        for samples in [vec![0.0; 7_680], vec![0.2; 7_680], Vec::new(), vec![0.1]] {
            let spectrum = Analyzer::new().analyze(&samples);

            assert_eq!(spectrum.peaks, []);
            assert!(spectrum.band_mean_square.iter().all(|band| *band < 1e-9), "{spectrum:?}");
        }
    }

    fn tones(tones: &[(f64, f64)]) -> Vec<f32> {
        let at = |n: u32| {
            tones.iter().map(move |(hz, amplitude)| amplitude * (2.0 * PI * hz * f64::from(n) / 16_000.0).sin())
        };
        (0..7_680).map(|n| at(n).sum::<f64>() as f32).collect()
    }
}

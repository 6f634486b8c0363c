//! How loud a piece of sound is.
//!
//! In: mono samples, full scale ±1. Out: mean square without the mean, and the greatest absolute value.
//! [`crate::domain::observation::sound::dbfs_of_mean_square`] turns the first into dBFS.
//! Never: windows, classes, I/O.

/// Level of a piece of sound, linear.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Level {
    /// Mean of the squares after the mean was taken off (full-scale sine 0.5), 0 for no sample.
    pub mean_square: f64,
    /// Greatest absolute value, a constant offset included.
    pub peak: f32,
}

/// Measures all of `samples`.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a number of samples")]
pub fn measure(samples: &[f32]) -> Level {
    if samples.is_empty() {
        return Level::default();
    }
    let count = samples.len() as f64;
    let mean = samples.iter().copied().map(f64::from).sum::<f64>() / count;
    let squares = samples.iter().map(|sample| (f64::from(*sample) - mean).powi(2)).sum::<f64>();
    let peak = samples.iter().fold(0.0, |peak: f32, sample| peak.max(sample.abs()));
    Level { mean_square: squares / count, peak }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::observation::sound::LEVEL_FLOOR_DB;
    use crate::domain::observation::sound::dbfs_of_mean_square;

    #[test]
    fn a_full_scale_sine_reads_minus_3_dbfs_and_half_of_it_minus_9() {
        for (amplitude, wanted) in [(1.0, -3.0103), (0.5, -9.0309)] {
            let level = measure(&sine(amplitude, 0.0));

            assert!((dbfs_of_mean_square(level.mean_square) - wanted).abs() < 0.001);
            assert!((level.peak - amplitude).abs() < 1e-4);
        }
    }

    #[test]
    fn a_constant_offset_is_no_sound() {
        assert!((dbfs_of_mean_square(measure(&sine(0.1, 0.5)).mean_square) + 23.0103).abs() < 0.001);
        assert!(dbfs_of_mean_square(measure(&[0.2; 500]).mean_square) <= LEVEL_FLOOR_DB);
    }

    #[test]
    fn silence_and_nothing_read_the_floor() {
        for samples in [&[0.0; 100][..], &[]] {
            let level = measure(samples);

            assert!((dbfs_of_mean_square(level.mean_square) - LEVEL_FLOOR_DB).abs() < f64::EPSILON);
        }
    }

    fn sine(amplitude: f32, offset: f32) -> Vec<f32> {
        (0..16_000_u16).map(|n| offset + amplitude * (f32::from(n % 16) * std::f32::consts::TAU / 16.0).sin()).collect()
    }
}

//! Any sample rate to 16 kHz.
//!
//! In: mono sound of one rate, in chunks of any size. Out: the same sound at 16 kHz, whatever the
//! chunks were: value k belongs to the time k / 16,000 s after the first value taken in. Everything
//! above 8 kHz is gone before it could fold down (rubato's synchronous FFT resampler, squared
//! Blackman-Harris window, stop band below −120 dB).
//!
//! At 16 kHz the sound passes through bit for bit. Never: channels, time stamps, I/O.

use crate::perception::log_mel::SAMPLE_RATE_HZ;
use rubato::Fft;
use rubato::FixedSync;
use rubato::Resampler as _;
use rubato::WindowFunction;
use rubato::audioadapter_buffers::direct::InterleavedSlice;

/// Output frames a block of the FFT should have: the filter is that long (64 ms), which puts its
/// pass band's end at 7.9 kHz and its latency, made up for here, at half of it.
const BLOCK_FRAMES_OUT: usize = 1_024;
/// The highest rate taken, in Hz.
pub const SAMPLE_RATE_HZ_MAX: u32 = 768_000;

/// A rate no device has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a sample rate of {sample_rate_hz} Hz cannot be converted; 1 to {SAMPLE_RATE_HZ_MAX} Hz can")]
pub struct RateError {
    /// The rate asked for.
    pub sample_rate_hz: u32,
}

/// Converts one run of sound. Start another with a new one, or after [`Resampler::finish`].
pub struct Resampler {
    sample_rate_hz: u32,
    conversion: Option<Conversion>,
}

struct Conversion {
    fft: Fft<f32>,
    /// Input that does not fill a block yet.
    waiting: Vec<f32>,
    block: Vec<f32>,
    frames_in: u64,
    /// Frames the resampler put out, its latency included.
    frames_made: u64,
    latency: u64,
}

impl Resampler {
    /// From that rate to 16 kHz.
    ///
    /// # Errors
    /// [`RateError`] for 0 and above 768 kHz.
    pub fn new(sample_rate_hz: u32) -> Result<Self, RateError> {
        let conversion = if sample_rate_hz == SAMPLE_RATE_HZ { None } else { Some(Conversion::new(sample_rate_hz)?) };
        Ok(Self { sample_rate_hz, conversion })
    }

    /// The rate taken in.
    #[must_use]
    pub const fn sample_rate_hz(&self) -> u32 {
        self.sample_rate_hz
    }

    /// Takes `input` in and appends to `output` what can be said already.
    pub fn push(&mut self, input: &[f32], output: &mut Vec<f32>) {
        match &mut self.conversion {
            None => output.extend_from_slice(input),
            Some(conversion) => conversion.push(input, output),
        }
    }

    /// Appends the rest: after it, n frames in have become n · 16,000 / rate frames out, rounded up.
    /// The next [`Resampler::push`] starts a new run.
    pub fn finish(&mut self, output: &mut Vec<f32>) {
        if let Some(conversion) = &mut self.conversion {
            conversion.finish(self.sample_rate_hz, output);
        }
    }
}

impl std::fmt::Debug for Resampler {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Resampler").field("sample_rate_hz", &self.sample_rate_hz).finish_non_exhaustive()
    }
}

impl Conversion {
    fn new(sample_rate_hz: u32) -> Result<Self, RateError> {
        let refused = RateError { sample_rate_hz };
        if sample_rate_hz == 0 || sample_rate_hz > SAMPLE_RATE_HZ_MAX {
            return Err(refused);
        }
        let fft = Fft::new_custom(
            sample_rate_hz as usize,
            SAMPLE_RATE_HZ as usize,
            block_frames_in(sample_rate_hz),
            1,
            1,
            WindowFunction::BlackmanHarris2,
            FixedSync::Both,
        )
        .map_err(|_| refused)?;
        Ok(Self {
            waiting: Vec::with_capacity(fft.input_frames_max()),
            block: vec![0.0; fft.output_frames_max()],
            frames_in: 0,
            frames_made: 0,
            latency: fft.output_delay() as u64,
            fft,
        })
    }

    fn push(&mut self, mut input: &[f32], output: &mut Vec<f32>) {
        self.frames_in += input.len() as u64;
        while !input.is_empty() {
            let room = self.fft.input_frames_next() - self.waiting.len();
            let (now, later) = input.split_at(room.min(input.len()));
            self.waiting.extend_from_slice(now);
            input = later;
            if now.len() == room {
                self.convert(output);
            }
        }
    }

    fn finish(&mut self, sample_rate_hz: u32, output: &mut Vec<f32>) {
        let wanted = (self.frames_in * u64::from(SAMPLE_RATE_HZ)).div_ceil(u64::from(sample_rate_hz));
        while self.frames_made < wanted + self.latency {
            self.waiting.resize(self.fft.input_frames_next(), 0.0);
            self.convert(output);
        }
        let surplus = self.frames_made - self.latency - wanted;
        output.truncate(output.len().saturating_sub(usize::try_from(surplus).unwrap_or(usize::MAX)));
        self.waiting.clear();
        self.fft.reset();
        (self.frames_in, self.frames_made) = (0, 0);
    }

    /// Converts the one block that `waiting` holds.
    fn convert(&mut self, output: &mut Vec<f32>) {
        let frames_in = self.waiting.len();
        let frames_out = self.block.len();
        let input = InterleavedSlice::new(&self.waiting, 1, frames_in);
        let room = InterleavedSlice::new_mut(&mut self.block, 1, frames_out);
        let made = match (input, room) {
            (Ok(input), Ok(mut room)) => self.fft.process_into_buffer(&input, &mut room, None).map_or(0, |done| done.1),
            _ => 0,
        };
        debug_assert_eq!(made, frames_out, "the block has the size the resampler asked for");
        let late = usize::try_from(self.latency.saturating_sub(self.frames_made)).unwrap_or(usize::MAX);
        output.extend_from_slice(&self.block[late.min(made)..made]);
        self.frames_made += made as u64;
        self.waiting.clear();
    }
}

/// Input frames of a block: a whole number of periods of the two rates, and an even one, so that the
/// filter's centre, and with it the latency, falls on a frame.
fn block_frames_in(sample_rate_hz: u32) -> usize {
    let divisor = greatest_common_divisor(sample_rate_hz, SAMPLE_RATE_HZ);
    let (period_in, period_out) = ((sample_rate_hz / divisor) as usize, (SAMPLE_RATE_HZ / divisor) as usize);
    period_in * BLOCK_FRAMES_OUT.div_ceil(period_out).next_multiple_of(2)
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "generated sound and figures to compare it by")]
#[expect(clippy::cast_sign_loss, reason = "lengths are not negative")]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    const RATES_HZ: [u32; 13] =
        [8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 88_200, 96_000, 176_400, 192_000];

    #[test]
    fn a_tone_stays_itself_at_any_rate() {
        for rate_hz in RATES_HZ {
            let output = resample(&tone(rate_hz, 1_000.0, 1.0), rate_hz, usize::MAX);
            let wanted = tone(SAMPLE_RATE_HZ, 1_000.0, 1.0);

            assert_eq!(output.len(), wanted.len(), "{rate_hz} Hz");
            let difference = inner(&output).zip(inner(&wanted)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(difference < 1e-4, "{rate_hz} Hz: value k is not the one at k / 16000 s: {difference}");
        }
    }

    #[test]
    fn a_9_khz_tone_leaves_nothing_below_8_khz() {
        for rate_hz in [44_100, 48_000, 96_000, 192_000] {
            let output = resample(&tone(rate_hz, 9_000.0, 1.0), rate_hz, usize::MAX);

            let mean_square = inner(&output).map(|value| value * value).sum::<f32>() / inner(&output).count() as f32;
            assert!(10.0 * mean_square.log10() < -100.0, "{rate_hz} Hz: {} dB", 10.0 * mean_square.log10());
        }
    }

    #[test]
    fn the_pass_band_is_flat_up_to_7500_hz() {
        for frequency_hz in [20.0, 3_000.0, 7_500.0] {
            let output = resample(&tone(48_000, frequency_hz, 1.0), 48_000, usize::MAX);

            let mean_square = inner(&output).map(|value| value * value).sum::<f32>() / inner(&output).count() as f32;
            assert!((mean_square - 0.5).abs() < 0.005, "{frequency_hz} Hz: {mean_square}");
        }
    }

    #[test]
    fn the_size_of_the_chunks_changes_nothing() {
        let input = tone(44_100, 440.0, 0.37);
        let whole = resample(&input, 44_100, usize::MAX);

        for size in [1, 441, 1_000, 4_096] {
            assert_eq!(resample(&input, 44_100, size), whole, "chunks of {size}");
        }
    }

    #[test]
    fn sound_at_16_khz_passes_bit_for_bit() {
        let input = tone(SAMPLE_RATE_HZ, 333.0, 0.1);

        assert_eq!(resample(&input, SAMPLE_RATE_HZ, 100), input);
    }

    #[test]
    fn a_second_run_starts_afresh() {
        let input = tone(48_000, 700.0, 0.25);
        let mut resampler = Resampler::new(48_000).unwrap();
        let mut runs = [Vec::new(), Vec::new()];

        for run in &mut runs {
            resampler.push(&input, run);
            resampler.finish(run);
        }

        assert_eq!(runs[0], runs[1]);
    }

    #[test]
    fn no_sound_becomes_no_sound_and_impossible_rates_are_refused() {
        assert_eq!(resample(&[], 48_000, usize::MAX).len(), 0);
        assert_eq!(resample(&[0.5], 48_000, usize::MAX).len(), 1);
        for sample_rate_hz in [0, SAMPLE_RATE_HZ_MAX + 1] {
            assert_eq!(Resampler::new(sample_rate_hz).err(), Some(RateError { sample_rate_hz }));
        }
    }

    fn resample(input: &[f32], rate_hz: u32, chunk: usize) -> Vec<f32> {
        let mut resampler = Resampler::new(rate_hz).unwrap();
        let mut output = Vec::new();
        for chunk in input.chunks(chunk) {
            resampler.push(chunk, &mut output);
        }
        resampler.finish(&mut output);
        output
    }

    /// All but the first and last 64 ms, which feel the sudden start and end of a tone.
    fn inner(values: &[f32]) -> impl Iterator<Item = f32> {
        values[1_024..values.len() - 1_024].iter().copied()
    }

    fn tone(rate_hz: u32, frequency_hz: f64, seconds: f64) -> Vec<f32> {
        let length = (f64::from(rate_hz) * seconds) as u32;
        (0..length).map(|n| (2.0 * PI * frequency_hz * f64::from(n) / f64::from(rate_hz)).sin() as f32).collect()
    }
}

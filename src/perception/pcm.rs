//! Any device's samples as mono floating point.
//!
//! In: a [`SoundChunk`] in the device's format and channels. Out: one f32 per frame, full scale ±1, made
//! by a [`ChannelMap`], and the frames in which a value could not be true.
//! Never: resampling, time, I/O.

use crate::domain::disposition::Disposition;
use crate::domain::reading::Samples;
use crate::domain::reading::SoundChunk;

/// Full scale of the integer formats.
const FULL_SCALE_I16: f32 = 32_768.0;
const FULL_SCALE_I24: f32 = 8_388_608.0;
const FULL_SCALE_I32: f32 = 2_147_483_648.0;
/// A float of this size or more is no clipping (a few decibels above 1) but another scale.
const OUT_OF_SCALE: f32 = 16.0;

/// Which channels of a device become the one channel percept works on: the mean of those named (counted
/// from 0; a single one is taken as it is), or of all when none is named.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct ChannelMap(Vec<u16>);

/// A chunk that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PcmError {
    /// The channel map names a channel the device does not have. An operator must change the map or
    /// the device; every chunk of this device will fail.
    #[error(
        "the channel map names channel {wanted}, but the device offers {offered} (channel {})",
        channel_range(*.offered)
    )]
    ChannelMissing {
        /// The channel named.
        wanted: u16,
        /// How many channels the device has.
        offered: u16,
    },
    /// No channels, no sample rate, or values that are no whole number of frames.
    #[error("{values} values are no whole number of frames of {channel_count} channels at {sample_rate_hz} Hz")]
    Malformed {
        /// Values in the chunk.
        values: usize,
        /// Channels it claims.
        channel_count: u16,
        /// Rate it claims.
        sample_rate_hz: u32,
    },
    /// Floating point values on an integer's scale. The recording has to be converted.
    #[error(
        "floating point samples must lie within ±1, but these reach {peak}: they look scaled by {}",
        likely_scale(*.peak)
    )]
    OutOfScale {
        /// The greatest absolute value found, rounded.
        peak: u64,
    },
}

impl PcmError {
    /// What the caller should do.
    #[must_use]
    pub fn disposition(&self) -> Disposition {
        match self {
            Self::ChannelMissing { .. } => Disposition::Degrade,
            Self::Malformed { .. } | Self::OutOfScale { .. } => Disposition::SetAside,
        }
    }
}

fn channel_range(offered: u16) -> String {
    match offered {
        0 | 1 => "0".to_owned(),
        _ => format!("0 to {}", offered - 1),
    }
}

/// The integer scale that floats of this size most likely still have.
fn likely_scale(peak: u64) -> u64 {
    [32_768, 8_388_608].into_iter().find(|scale| peak <= *scale).unwrap_or(2_147_483_648)
}

impl ChannelMap {
    /// The mean of these channels, counted from 0; of all when the list is empty.
    #[must_use]
    pub const fn of(channels: Vec<u16>) -> Self {
        Self(channels)
    }

    /// Checks that a device of `offered` channels has the ones named.
    ///
    /// # Errors
    /// [`PcmError::ChannelMissing`] with the first one it lacks.
    pub fn check(&self, offered: u16) -> Result<(), PcmError> {
        match self.0.iter().find(|channel| **channel >= offered) {
            Some(wanted) => Err(PcmError::ChannelMissing { wanted: *wanted, offered }),
            None => Ok(()),
        }
    }

    fn picked(&self, offered: u16) -> Vec<usize> {
        let all = 0..offered;
        if self.0.is_empty() {
            all.map(usize::from).collect()
        } else {
            self.0.iter().copied().map(usize::from).collect()
        }
    }
}

/// One channel of sound.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mono {
    /// One value per frame, full scale ±1, all finite.
    pub values: Vec<f32>,
    /// The frames in which a value was NaN or infinite and counted as 0, ascending.
    pub invalid_frames: Vec<usize>,
}

/// Replaces what `mono` holds by one value per frame of the chunk.
///
/// NaN and infinite values count as 0. Floats above ±1 are kept, since a float source may clip later; a
/// chunk in which most values lie beyond ±16 is refused, being on an integer's scale.
///
/// # Errors
/// [`PcmError`]; `mono` is empty then.
pub fn to_mono(chunk: &SoundChunk, map: &ChannelMap, mono: &mut Mono) -> Result<(), PcmError> {
    mono.values.clear();
    mono.invalid_frames.clear();
    let channel_count = usize::from(chunk.channel_count);
    if channel_count == 0 || chunk.sample_rate_hz == 0 || !chunk.samples.len().is_multiple_of(channel_count) {
        return Err(PcmError::Malformed {
            values: chunk.samples.len(),
            channel_count: chunk.channel_count,
            sample_rate_hz: chunk.sample_rate_hz,
        });
    }
    map.check(chunk.channel_count)?;
    let mut mixer = Mixer { channel_count, picked: &map.picked(chunk.channel_count), mono };
    match &chunk.samples {
        Samples::I16(values) => mixer.append(values, |value| f32::from(value) / FULL_SCALE_I16),
        Samples::I24(values) => mixer.append(values, |value| int_to_f32(value) / FULL_SCALE_I24),
        Samples::I32(values) => mixer.append(values, |value| int_to_f32(value) / FULL_SCALE_I32),
        Samples::F32(values) => {
            refuse_integer_scale(values)?;
            mixer.append(values, |value| value);
        }
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "24 bits are what f32 holds; the rest is below any converter's noise")]
fn int_to_f32(value: i32) -> f32 {
    value as f32
}

/// Refuses floats of which most finite ones that are not 0 lie beyond ±16.
fn refuse_integer_scale(values: &[f32]) -> Result<(), PcmError> {
    let (mut peak, mut far, mut sounding) = (0.0_f32, 0_usize, 0_usize);
    for value in values.iter().map(|value| value.abs()).filter(|value| value.is_finite() && *value > 0.0) {
        peak = peak.max(value);
        sounding += 1;
        far += usize::from(value >= OUT_OF_SCALE);
    }
    if far * 2 > sounding {
        #[expect(clippy::cast_possible_truncation, reason = "a saturating cast of a figure for the message")]
        #[expect(clippy::cast_sign_loss, reason = "an absolute value")]
        return Err(PcmError::OutOfScale { peak: peak.round() as u64 });
    }
    Ok(())
}

struct Mixer<'a> {
    channel_count: usize,
    picked: &'a [usize],
    mono: &'a mut Mono,
}

impl Mixer<'_> {
    fn append<T: Copy>(&mut self, values: &[T], to_f32: impl Fn(T) -> f32) {
        self.mono.values.reserve(values.len() / self.channel_count);
        #[expect(clippy::cast_precision_loss, reason = "a number of channels")]
        let share = 1.0 / self.picked.len() as f32;
        for (index, frame) in values.chunks_exact(self.channel_count).enumerate() {
            let (mut sum, mut is_valid) = (0.0, true);
            for channel in self.picked {
                let value = to_f32(frame[*channel]);
                if value.is_finite() {
                    sum += value;
                } else {
                    is_valid = false;
                }
            }
            self.mono.values.push(sum * share);
            if !is_valid {
                self.mono.invalid_frames.push(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(channel_count: u16, samples: Samples) -> SoundChunk {
        SoundChunk { sample_rate_hz: 48_000, channel_count, samples }
    }

    fn mono(chunk: &SoundChunk, map: &ChannelMap) -> Vec<f32> {
        let mut mono = Mono::default();
        to_mono(chunk, map, &mut mono).unwrap();
        mono.values
    }

    #[test]
    fn every_format_reads_the_same_half_scale() {
        let all = ChannelMap::default();

        for samples in [
            Samples::I16(vec![16_384, -16_384]),
            Samples::I24(vec![4_194_304, -4_194_304]),
            Samples::I32(vec![1_073_741_824, -1_073_741_824]),
            Samples::F32(vec![0.5, -0.5]),
        ] {
            assert_eq!(mono(&chunk(1, samples), &all), [0.5, -0.5]);
        }
    }

    #[test]
    fn a_map_picks_one_channel_or_mixes_several() {
        let stereo = chunk(2, Samples::F32(vec![0.2, 0.6, 0.4, 0.8]));

        assert_eq!(mono(&stereo, &ChannelMap::of(vec![1])), [0.6, 0.8]);
        assert_eq!(mono(&stereo, &ChannelMap::default()), [0.4, 0.6]);
    }

    #[test]
    fn a_loopback_on_the_last_channels_is_left_out() {
        let frame = [100, 100, 100, 100, 100, 100, 30_000, -30_000];
        let eight = chunk(8, Samples::I16(frame.repeat(4)));

        let values = mono(&eight, &ChannelMap::of(vec![0, 1, 2, 3, 4, 5]));

        assert!(values.iter().all(|value| (value - 100.0 / 32_768.0).abs() < 1e-7), "{values:?}");
    }

    #[test]
    fn a_channel_the_device_lacks_is_named_with_what_it_offers() {
        let one = chunk(1, Samples::I16(vec![0; 4]));
        let map = ChannelMap::of((0..8).collect());

        let error = to_mono(&one, &map, &mut Mono::default()).unwrap_err();

        assert_eq!(error.to_string(), "the channel map names channel 1, but the device offers 1 (channel 0)");
        assert_eq!(error.disposition(), Disposition::Degrade);
    }

    #[test]
    fn nan_and_infinity_become_zero_and_are_counted() {
        let mut mono = Mono::default();
        let broken = chunk(1, Samples::F32(vec![0.5, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.5]));

        to_mono(&broken, &ChannelMap::default(), &mut mono).unwrap();

        assert_eq!(mono.values, [0.5, 0.0, 0.0, 0.0, -0.5]);
        assert_eq!(mono.invalid_frames, [1, 2, 3]);
    }

    #[test]
    fn floats_scaled_by_32768_are_refused_by_name() {
        let scaled: Vec<f32> = (0..400_u16).map(|n| (f32::from(n) * 0.3).sin() * 20_000.0).collect();

        let error = to_mono(&chunk(1, Samples::F32(scaled)), &ChannelMap::default(), &mut Mono::default()).unwrap_err();

        let text = error.to_string();
        assert!(text.contains("scaled by 32768") && text.contains("within ±1"), "{text}");
        assert_eq!(error.disposition(), Disposition::SetAside);
    }

    #[test]
    fn floats_that_clip_are_kept() {
        let clipped = chunk(1, Samples::F32(vec![1.5, -2.0, 0.3]));

        assert_eq!(mono(&clipped, &ChannelMap::default()), [1.5, -2.0, 0.3]);
    }

    #[test]
    fn a_torn_frame_or_no_channel_is_refused() {
        for (channel_count, values) in [(2, 3), (0, 3)] {
            let torn = chunk(channel_count, Samples::I16(vec![0; values]));

            let error = to_mono(&torn, &ChannelMap::default(), &mut Mono::default()).unwrap_err();

            assert!(matches!(error, PcmError::Malformed { .. }), "{error:?}");
        }
    }
}

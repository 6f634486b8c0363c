//! What a device offers, and which of it is taken.
//!
//! In: the device's offers and the config's wish. Out: one choice, or a sentence that says why there is none. No I/O.

use crate::sensors::live::Failure;
use std::collections::BTreeSet;

/// Rates that the rest of the pipeline likes best: it works at 16 kHz, and 48 kHz divides well.
const RATES_LIKED_HZ: [u32; 2] = [16_000, 48_000];

/// Highest rate taken when nothing liked is offered.
const RATE_MAX_HZ: u32 = 768_000;

/// How a value is laid out. Best first: a microphone's own 24 or 32 bits carry what 16 would cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Format {
    /// Signed 32-bit.
    I32,
    /// Signed 24-bit in the low bytes of 32.
    I24,
    /// Floating point.
    F32,
    /// Signed 16-bit.
    I16,
    /// Floating point, 64-bit.
    F64,
    /// Unsigned 32-bit.
    U32,
    /// Unsigned 24-bit in the low bytes of 32.
    U24,
    /// Unsigned 16-bit.
    U16,
    /// Signed 8-bit.
    I8,
    /// Unsigned 8-bit.
    U8,
}

/// One thing a device can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Offer {
    /// The sound system's name to open for it.
    pub pcm: String,
    /// Values in a frame.
    pub channel_count: u16,
    /// Lowest and highest frames per second.
    pub rates_hz: (u32, u32),
    /// Layout of a value.
    pub format: Format,
    /// Smallest and largest buffer in frames, when known.
    pub buffer_frames: Option<(u32, u32)>,
    /// A sound server stands behind it and converts to any rate, often with little care. Most run at 48 kHz.
    pub is_converted: bool,
}

/// What the config wishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wish {
    /// Frames per second; 0: no wish.
    pub sample_rate_hz: u32,
    /// Channels needed; 0: no wish.
    pub channel_count: u16,
    /// Length of a buffer in milliseconds.
    pub buffer_ms: u32,
}

/// What is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    /// The sound system's name.
    pub pcm: String,
    /// Values in a frame.
    pub channel_count: u16,
    /// Frames per second.
    pub sample_rate_hz: u32,
    /// Layout of a value.
    pub format: Format,
    /// Frames in a buffer.
    pub buffer_frames: u32,
}

impl Choice {
    /// For people.
    pub(super) fn describe(&self) -> String {
        format!("{:?}, {} Hz, {} channel(s)", self.format, self.sample_rate_hz, self.channel_count)
    }
}

/// Shortest buffer asked of a sound server, in milliseconds. ALSA's plugin calls a device readable as soon as it has anything, and
/// cpal asks again and again until a buffer is full: measured with PulseAudio and continuous sound, 16 % of a core at
/// 100 ms and 2.5 % at 400 ms.
const SERVER_BUFFER_MS_MIN: u32 = 400;

/// The fewest channels that suffice, then the best rate, then the best format.
///
/// # Errors
/// [`Failure`]: the device has too few channels, or offers nothing that can be used.
pub(super) fn choose(offers: &[Offer], wish: Wish) -> Result<Choice, Failure> {
    let enough = |offer: &&Offer| offer.channel_count >= wish.channel_count.max(1);
    let best = offers.iter().filter(enough).min_by_key(|offer| {
        let rate_hz = rate_of(offer, wish.sample_rate_hz);
        (offer.channel_count, rank(rate_hz, wish.sample_rate_hz), offer.format)
    });
    let Some(offer) = best else { return Err(Failure::unusable(refusal(offers, wish))) };
    let sample_rate_hz = rate_of(offer, wish.sample_rate_hz);
    let least_ms = if offer.is_converted { SERVER_BUFFER_MS_MIN } else { 0 };
    let frames = u64::from(sample_rate_hz) * u64::from(wish.buffer_ms.max(least_ms)) / 1_000;
    let frames = u32::try_from(frames).unwrap_or(u32::MAX).max(1);
    let buffer_frames = offer.buffer_frames.map_or(frames, |(low, high)| frames.clamp(low, high.max(low)));
    Ok(Choice {
        pcm: offer.pcm.clone(),
        channel_count: offer.channel_count,
        sample_rate_hz,
        format: offer.format,
        buffer_frames,
    })
}

fn refusal(offers: &[Offer], wish: Wish) -> String {
    if offers.is_empty() {
        return "the device offers no format that can be used".to_owned();
    }
    format!("{} channels are configured, but the device offers only {}", wish.channel_count, describe(offers))
}

/// The rate that would be taken of this offer.
fn rate_of(offer: &Offer, wished_hz: u32) -> u32 {
    let (low, high) = offer.rates_hz;
    let is_offered = |rate: &u32| (low..=high).contains(rate);
    let [best, second] = RATES_LIKED_HZ;
    let liked = if offer.is_converted { [second, best] } else { [best, second] };
    let taken = [wished_hz].into_iter().filter(|rate| *rate > 0).chain(liked).find(is_offered);
    // Above all liked ones the lowest, below them the highest.
    taken.unwrap_or(if low > best { low } else { high }).clamp(1, RATE_MAX_HZ)
}

/// Smaller is better: wished, liked, above 16 kHz (nearest first), below (nearest first).
fn rank(rate_hz: u32, wished_hz: u32) -> (u8, u32) {
    let lowest_liked = RATES_LIKED_HZ[0];
    match RATES_LIKED_HZ.iter().position(|liked| *liked == rate_hz) {
        _ if rate_hz == wished_hz => (0, 0),
        Some(0) => (1, 0),
        Some(_) => (2, 0),
        None if rate_hz > lowest_liked => (3, rate_hz - lowest_liked),
        None => (4, lowest_liked - rate_hz),
    }
}

/// `1, 2 channels; 16000, 44100-48000 Hz; I16, I32`.
pub(super) fn describe(offers: &[Offer]) -> String {
    let channels: BTreeSet<u16> = offers.iter().map(|offer| offer.channel_count).collect();
    let rates: BTreeSet<(u32, u32)> = offers.iter().map(|offer| offer.rates_hz).collect();
    let formats: BTreeSet<Format> = offers.iter().map(|offer| offer.format).collect();
    if offers.is_empty() {
        return "nothing that can be used".to_owned();
    }
    let is_run = channels.len() > 3;
    let channels = match (channels.first(), channels.last()) {
        (Some(low), Some(high)) if is_run => format!("{low} to {high}"),
        _ => list(channels.iter().map(u16::to_string)),
    };
    let unit = if channels == "1" { "channel" } else { "channels" };
    let rates = list(rates.iter().map(|(low, high)| {
        if low == high { low.to_string() } else { format!("{low} to {}", (*high).min(RATE_MAX_HZ)) }
    }));
    let formats = list(formats.iter().map(|format| format!("{format:?}")));
    format!("{channels} {unit}; {rates} Hz; {formats}")
}

fn list(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_WISH: Wish = Wish { sample_rate_hz: 0, channel_count: 0, buffer_ms: 100 };

    fn offer(channel_count: u16, rates_hz: (u32, u32), format: Format) -> Offer {
        Offer {
            pcm: "hw:CARD=Mic".to_owned(),
            channel_count,
            rates_hz,
            format,
            buffer_frames: None,
            is_converted: false,
        }
    }

    fn chosen(offers: &[Offer], wish: Wish) -> (u16, u32, Format) {
        let choice = choose(offers, wish).unwrap();
        (choice.channel_count, choice.sample_rate_hz, choice.format)
    }

    #[test]
    fn sixteen_kilohertz_is_liked_then_forty_eight_then_the_next_above() {
        let fixed = |rate| offer(1, (rate, rate), Format::I16);

        assert_eq!(chosen(&[fixed(44_100), fixed(48_000), fixed(16_000)], NO_WISH).1, 16_000);
        assert_eq!(chosen(&[fixed(44_100), fixed(48_000), fixed(96_000)], NO_WISH).1, 48_000);
        assert_eq!(chosen(&[fixed(8_000), fixed(96_000), fixed(44_100)], NO_WISH).1, 44_100);
        assert_eq!(chosen(&[fixed(8_000), fixed(11_025)], NO_WISH).1, 11_025);
        assert_eq!(chosen(&[offer(1, (22_050, 44_100), Format::I16)], NO_WISH).1, 22_050);
        assert_eq!(chosen(&[offer(1, (4_000, 12_000), Format::I16)], NO_WISH).1, 12_000);
        let server = Offer { is_converted: true, ..offer(1, (1, u32::MAX), Format::I16) };
        assert_eq!(chosen(std::slice::from_ref(&server), NO_WISH).1, 48_000);
        assert_eq!(chosen(&[server], Wish { sample_rate_hz: 16_000, ..NO_WISH }).1, 16_000);
        let wish = Wish { sample_rate_hz: 44_100, ..NO_WISH };
        assert_eq!(chosen(&[fixed(16_000), fixed(44_100)], wish).1, 44_100);
        assert_eq!(chosen(&[fixed(16_000), fixed(48_000)], wish).1, 16_000);
    }

    #[test]
    fn the_fewest_channels_that_suffice_are_taken_in_the_best_format() {
        let rate = (16_000, 16_000);
        let offers = [
            offer(8, rate, Format::I32),
            offer(6, rate, Format::I16),
            offer(2, rate, Format::U8),
            offer(6, rate, Format::I24),
        ];

        assert_eq!(chosen(&offers, NO_WISH), (2, 16_000, Format::U8));
        assert_eq!(chosen(&offers, Wish { channel_count: 5, ..NO_WISH }), (6, 16_000, Format::I24));
        assert_eq!(chosen(&offers, Wish { channel_count: 8, ..NO_WISH }), (8, 16_000, Format::I32));
    }

    #[test]
    fn a_one_channel_device_for_eight_configured_channels_says_what_it_offers() {
        let offers = [offer(1, (16_000, 16_000), Format::I16), offer(1, (44_100, 48_000), Format::I16)];

        let failure = choose(&offers, Wish { channel_count: 8, ..NO_WISH }).unwrap_err();

        assert_eq!(
            failure,
            Failure::unusable(
                "8 channels are configured, but the device offers only 1 channel; 16000, 44100 to 48000 Hz; I16"
            )
        );
    }

    #[test]
    fn the_buffer_stays_within_what_the_device_can_do() {
        let mut small = offer(1, (16_000, 16_000), Format::I16);
        small.buffer_frames = Some((64, 1_024));

        assert_eq!(choose(&[small.clone()], NO_WISH).unwrap().buffer_frames, 1_024);
        small.buffer_frames = None;
        assert_eq!(choose(&[small.clone()], NO_WISH).unwrap().buffer_frames, 1_600);
        small.is_converted = true;
        assert_eq!(choose(&[small], NO_WISH).unwrap().buffer_frames, 6_400, "a server's buffer is longer");
    }
}

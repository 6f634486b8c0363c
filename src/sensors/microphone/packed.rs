//! USB microphones whose only layout is 24 bits packed in three bytes.
//!
//! cpal does not know that layout; ALSA's `plughw` unpacks it, but offers any rate and any number of channels. In:
//! what the kernel says the device has (`/proc/asound/card1/stream0`). Out: the offers that convert nothing else.

use super::input::CardPcm;
use super::offer::Offer;

/// Without the kernel's word: at most this many channels are believed.
const CHANNELS_BELIEVED: u16 = 2;

/// What a device has in one of its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Native {
    channel_count: u16,
    rates_hz: (u32, u32),
}

/// What the kernel says of a USB device; nothing where it says nothing.
pub(super) fn native(pcm: &CardPcm) -> Vec<Native> {
    let file = format!("/proc/asound/card{}/stream{}", pcm.card, pcm.device);
    std::fs::read_to_string(file).map(|text| parse(&text)).unwrap_or_default()
}

/// The capture half of a `stream0` file.
fn parse(text: &str) -> Vec<Native> {
    let capture = text.split_once("Capture:").map_or("", |(_, capture)| capture);
    let mut natives = Vec::new();
    let mut channel_count = None;
    for line in capture.lines() {
        match line.trim().split_once(": ") {
            Some(("Channels", count)) => channel_count = count.trim().parse().ok(),
            Some(("Rates", rates)) => {
                let native = |rates_hz| Some(Native { channel_count: channel_count?, rates_hz });
                natives.extend(ranges(rates).into_iter().filter_map(native));
            }
            _ => {}
        }
    }
    natives
}

/// `44100, 48000` or `8000 - 48000 (continuous)`.
fn ranges(rates: &str) -> Vec<(u32, u32)> {
    let rates = rates.trim().trim_end_matches("(continuous)");
    let single = |part: &str| part.trim().parse::<u32>().ok().map(|rate| (rate, rate));
    match rates.split_once('-') {
        Some((low, high)) => low.trim().parse().ok().zip(high.trim().parse().ok()).into_iter().collect(),
        None => rates.split(',').filter_map(single).collect(),
    }
}

/// The offers with the device's own channels and rates.
pub(super) fn narrowed(offers: &[Offer], natives: &[Native]) -> Vec<Offer> {
    if natives.is_empty() {
        return offers.iter().filter(|offer| offer.channel_count <= CHANNELS_BELIEVED).cloned().collect();
    }
    let mut narrowed = Vec::new();
    for native in natives {
        let (low, high) = native.rates_hz;
        let fits = |offer: &&Offer| {
            offer.channel_count == native.channel_count && offer.rates_hz.0 <= low && high <= offer.rates_hz.1
        };
        narrowed.extend(offers.iter().filter(fits).map(|offer| Offer { rates_hz: (low, high), ..offer.clone() }));
    }
    narrowed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sensors::microphone::offer::Format;

    const STREAM: &str = "\
USB Microphone at usb-0000:00:14.0-1, full speed : USB Audio

Playback:
  Status: Stop
  Interface 1
    Altset 1
    Format: S16_LE
    Channels: 2
    Endpoint: 0x01 (1 OUT) (ADAPTIVE)
    Rates: 44100, 48000

Capture:
  Status: Stop
  Interface 2
    Altset 1
    Format: S24_3LE
    Channels: 1
    Endpoint: 0x82 (2 IN) (ASYNC)
    Rates: 44100, 48000
    Data packet interval: 1000 us
  Interface 2
    Altset 2
    Format: S24_3LE
    Channels: 4
    Rates: 8000 - 96000 (continuous)
";

    #[test]
    fn the_plug_layer_offers_no_more_than_the_device_has() {
        let any = |channel_count| Offer {
            pcm: "plughw:CARD=1,DEV=0".to_owned(),
            channel_count,
            rates_hz: (4_000, u32::MAX),
            format: Format::I32,
            buffer_frames: None,
            is_converted: false,
        };
        let offers: Vec<Offer> = (1..=8).map(any).collect();
        let short = |offers: Vec<Offer>| offers.iter().map(|o| (o.channel_count, o.rates_hz)).collect::<Vec<_>>();

        let known = short(narrowed(&offers, &parse(STREAM)));
        let unknown = short(narrowed(&offers, &parse("")));

        assert_eq!(known, [(1, (44_100, 44_100)), (1, (48_000, 48_000)), (4, (8_000, 96_000))]);
        assert_eq!(unknown, [(1, (4_000, u32::MAX)), (2, (4_000, u32::MAX))]);
    }
}

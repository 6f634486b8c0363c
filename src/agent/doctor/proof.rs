//! Opens one sensor and asks it to prove itself: does it deliver, and is what it delivers plausible?

use super::Level;
use super::Verdict;
use crate::domain::id::SensorKind;
use crate::domain::reading::GpsReport;
use crate::domain::reading::Payload;
use crate::domain::reading::Samples;
use crate::domain::time::Clock as _;
use crate::domain::time::LiveClock;
use crate::perception::pixels;
use crate::perception::scene::Signature;
use crate::sensors::Poll;
use crate::sensors::Sensor as _;
use crate::sensors::live::LiveSensor;
use std::sync::mpsc;
use std::time::Duration;

/// How long a sensor has, in milliseconds.
const fn patience_ms(kind: SensorKind) -> i64 {
    match kind {
        SensorKind::Microphone => 6_000,
        SensorKind::Camera | SensorKind::Bluetooth => 15_000,
        SensorKind::Gps => 8_000,
    }
}

/// Pause between two looks at a closed device.
const PAUSE: Duration = Duration::from_millis(100);

/// What was seen of a sensor so far.
#[derive(Debug, Default)]
struct Evidence {
    readings: u64,
    sound: Option<SoundRange>,
    verdict: Option<(Level, String)>,
}

/// Smallest and greatest value of the sound so far, full scale ±1.
#[derive(Debug, Clone, Copy)]
struct SoundRange {
    least: f64,
    greatest: f64,
    frames: usize,
}

/// Frames that settle whether a microphone is alive: half a second at 16 kHz.
const FRAMES_MIN: usize = 8_000;

pub(super) fn prove(kind: SensorKind, mut sensor: LiveSensor, clock: &LiveClock) -> Verdict {
    let (_open, never) = mpsc::channel::<()>();
    let mut evidence = Evidence::default();
    let until_ms = clock.monotonic_ms() + patience_ms(kind);
    while evidence.verdict.is_none() && clock.monotonic_ms() < until_ms {
        match sensor.poll(PAUSE) {
            Poll::Reading(reading) => evidence.take(&reading.payload),
            Poll::Pending => drop(never.recv_timeout(PAUSE / 10)),
            Poll::Ended => break,
        }
    }
    let (level, sentence) = evidence.verdict.take().unwrap_or_else(|| {
        let error = sensor.health().get().last_error;
        evidence.at_the_end(kind, error)
    });
    Verdict::new(level, sensor.source().as_str(), sentence)
}

impl Evidence {
    fn take(&mut self, payload: &Payload) {
        match payload {
            Payload::Loss(_) => {}
            Payload::Sound(chunk) => {
                self.readings += 1;
                self.listen(&chunk.samples, chunk.frame_count());
                if let Some(range) = self.sound.filter(|range| range.frames >= FRAMES_MIN) {
                    let rate = chunk.sample_rate_hz;
                    self.verdict = Some(judge_sound(range, rate, chunk.channel_count));
                }
            }
            Payload::Picture(picture) => {
                self.readings += 1;
                self.verdict = match pixels::decode_picture(picture) {
                    // One broken frame is no verdict; the next may be whole.
                    Err(_) if self.readings < 5 => None,
                    Err(error) => Some((Level::Failed, format!("delivers pictures that cannot be read: {error}"))),
                    Ok(image) if Signature::of(&image).is_blank && self.readings < 5 => None,
                    Ok(image) if Signature::of(&image).is_blank => {
                        Some((Level::Warning, "delivers one flat colour: is the lens covered?".to_owned()))
                    }
                    Ok(image) => Some((
                        Level::Ok,
                        format!(
                            "delivers {} by {} pixels as {:?}",
                            image.width_px(),
                            image.height_px(),
                            picture.format
                        ),
                    )),
                };
            }
            Payload::Position(GpsReport::Position(report)) => {
                self.readings += 1;
                if report.mode >= 2 {
                    self.verdict = Some((Level::Ok, "has a fix".to_owned()));
                }
            }
            Payload::Position(_) => {}
            Payload::Advertisement(_) => {
                self.readings += 1;
                self.verdict = Some((Level::Ok, "hears advertisements".to_owned()));
            }
        }
    }

    fn listen(&mut self, samples: &Samples, frames: usize) {
        let mut range = self.sound.unwrap_or(SoundRange { least: f64::MAX, greatest: f64::MIN, frames: 0 });
        let mut take = |value: f64| {
            range.least = range.least.min(value);
            range.greatest = range.greatest.max(value);
        };
        match samples {
            Samples::I16(values) => values.iter().for_each(|value| take(f64::from(*value) / 32_768.0)),
            Samples::I24(values) => values.iter().for_each(|value| take(f64::from(*value) / 8_388_608.0)),
            Samples::I32(values) => values.iter().for_each(|value| take(f64::from(*value) / 2_147_483_648.0)),
            Samples::F32(values) => values.iter().for_each(|value| take(f64::from(*value))),
        }
        range.frames += frames;
        self.sound = Some(range);
    }

    fn at_the_end(&self, kind: SensorKind, error: Option<String>) -> (Level, String) {
        if let Some(error) = error {
            return (Level::Failed, error);
        }
        match (kind, self.readings) {
            (SensorKind::Gps, 1..) => (Level::Warning, "reports, and has no fix: give it a view of the sky".to_owned()),
            (SensorKind::Bluetooth, 0) => (Level::Warning, "listens, and nobody advertises near by".to_owned()),
            (_, 0) => (Level::Failed, format!("delivers nothing within {} s", patience_ms(kind) / 1_000)),
            _ => (Level::Warning, "delivers, but too little to judge".to_owned()),
        }
    }
}

fn judge_sound(range: SoundRange, rate_hz: u32, channels: u16) -> (Level, String) {
    let form = format!("{rate_hz} Hz, {channels} channels");
    if !(range.least.is_finite() && range.greatest.is_finite()) {
        return (Level::Failed, format!("delivers values that are no numbers ({form})"));
    }
    if range.greatest - range.least <= 0.0 {
        let hint = "microphone delivers no signal: one value repeated. Is it switched on?";
        return (Level::Failed, format!("{hint} ({form})"));
    }
    let peak_db = 20.0 * range.greatest.abs().max(range.least.abs()).max(1e-6).log10();
    (Level::Ok, format!("hears sound, peak {peak_db:.0} dBFS ({form})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::reading::SoundChunk;

    #[test]
    fn a_microphone_that_repeats_one_value_fails_and_one_that_hears_does_not() {
        assert_eq!(verdict(Samples::F32(vec![0.2; FRAMES_MIN])).0, Level::Failed);
        assert_eq!(verdict(Samples::I16(vec![0; FRAMES_MIN])).0, Level::Failed);
        assert_eq!(verdict(Samples::F32(vec![f32::NAN; FRAMES_MIN])).0, Level::Failed);

        let heard =
            verdict(Samples::I16((0..FRAMES_MIN).map(|at| if at % 2 == 0 { 16_384 } else { -16_384 }).collect()));

        assert_eq!(heard, (Level::Ok, "hears sound, peak -6 dBFS (16000 Hz, 1 channels)".to_owned()));
    }

    fn verdict(samples: Samples) -> (Level, String) {
        let mut evidence = Evidence::default();
        let chunk = SoundChunk { sample_rate_hz: 16_000, channel_count: 1, samples };
        evidence.take(&Payload::Sound(chunk));
        evidence.verdict.unwrap()
    }
}

//! What happens to microphones in the field, injected below the driver: a sound system of our own and a clock moved by
//! hand. No test waits for time to pass.

use super::input::Attachment;
use super::input::CardPcm;
use super::offer::Choice;
use super::offer::Format;
use super::offer::Offer;
use super::queue::Sink;
use super::*;
use crate::domain::coverage::CoverageReason;
use crate::domain::reading::Payload;
use crate::domain::reading::Reading;
use crate::domain::reading::Samples;
use crate::domain::reading::SoundChunk;
use crate::domain::time::Clock;
use crate::domain::time::Timestamp;
use crate::sensors::Poll;
use crate::sensors::Sensor;
use crate::sensors::live::LiveSensor;
use crate::sensors::live::State;
use std::any::Any;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::channel;

mod faults;
mod finding;
mod lifetime;

/// Length of a test buffer.
const BUFFER_MS: i64 = 100;

#[derive(Default)]
struct HandClock(AtomicI64);

impl Clock for HandClock {
    fn utc(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn monotonic_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A sound system that does as it is told.
#[derive(Default)]
struct Fake {
    inputs: Vec<Input>,
    offers: Vec<Offer>,
    failure: Option<Failure>,
    /// Opening waits here until the other end is dropped.
    hang: Option<Receiver<()>>,
    /// Names opened so far.
    opened: Vec<String>,
    sinks: Vec<Sink>,
    /// Counts the open streams: each holds a clone.
    streams: Arc<()>,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Fake>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Fake> {
        self.0.lock().unwrap()
    }

    fn open_streams(&self) -> usize {
        Arc::strong_count(&self.lock().streams) - 1
    }
}

impl SoundSystem for Shared {
    fn inputs(&self) -> Result<Vec<Input>, Failure> {
        Ok(self.lock().inputs.clone())
    }

    fn offers(&self, input: &Input) -> Result<Vec<Offer>, Failure> {
        let pcm = input.pcm.as_ref().map_or_else(|| input.id.clone(), |pcm| format!("hw:{}", pcm.card));
        Ok(self.lock().offers.iter().map(|offer| Offer { pcm: pcm.clone(), ..offer.clone() }).collect())
    }

    fn open(&self, choice: &Choice, sink: Sink) -> Result<Box<dyn Any>, Failure> {
        let hang = self.lock().hang.take();
        if let Some(hang) = hang {
            let _ = hang.recv();
        }
        let mut fake = self.lock();
        fake.opened.push(choice.pcm.clone());
        match &fake.failure {
            Some(failure) => Err(failure.clone()),
            None => {
                fake.sinks.push(sink);
                Ok(Box::new(fake.streams.clone()))
            }
        }
    }
}

fn offer(channel_count: u16) -> Offer {
    Offer {
        pcm: String::new(),
        channel_count,
        rates_hz: (16_000, 16_000),
        format: Format::I16,
        buffer_frames: None,
        is_converted: false,
    }
}

fn card(id: &str, card: u32) -> Input {
    let attachment = if id.starts_with("usb-") { Attachment::Usb } else { Attachment::Card };
    let pcm = Some(CardPcm { card, card_id: "Device".to_owned(), device: 0 });
    Input { id: id.to_owned(), attachment, pcm, ..Input::server("USB Audio Device") }
}

fn hdmi(number: u32) -> Input {
    Input { refused: Some("HDMI carries no microphone".to_owned()), ..card("card-vc4hdmi", number) }
}

/// A microphone under supervision, above a fake sound system.
struct Bench {
    fake: Shared,
    clock: Arc<HandClock>,
    sensor: LiveSensor,
    frames_lost: Arc<AtomicU64>,
}

const USB: &str = "usb-0d8c:0014-A1";

impl Bench {
    /// The USB microphone is there as card 1, and configured.
    fn new() -> Self {
        Self::with(&Config { device: USB.to_owned(), ..Config::default() }, vec![card(USB, 1)])
    }

    fn with(config: &Config, inputs: Vec<Input>) -> Self {
        let fake = Shared::default();
        fake.lock().inputs = inputs;
        fake.lock().offers = vec![offer(1)];
        let clock = Arc::new(HandClock::default());
        let driver = Microphone::with_system(config, clock.clone(), Arc::new(fake.clone()), WAITS);
        let frames_lost = driver.frames_lost();
        let sensor = LiveSensor::new(Box::new(driver), clock.clone(), LIMITS);
        Self { fake, clock, sensor, frames_lost }
    }

    fn now_ms(&self) -> i64 {
        self.clock.monotonic_ms()
    }

    fn pass(&self, ms: i64) {
        self.clock.0.fetch_add(ms, Ordering::SeqCst);
    }

    fn poll(&mut self) -> Option<Reading> {
        match self.sensor.poll(Duration::ZERO) {
            Poll::Reading(reading) => Some(reading),
            Poll::Pending => None,
            Poll::Ended => panic!("a live sensor never ends"),
        }
    }

    /// Everything that waits, as text.
    fn told(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        let mut idle = 0;
        // Hiccups are Pending too.
        while idle < 200 {
            match self.poll() {
                Some(reading) => told.push(tell(&reading)),
                None => idle += 1,
            }
        }
        told
    }

    fn sink(&self) -> Sink {
        self.fake.lock().sinks.last().cloned().unwrap()
    }

    /// A buffer's time passes and the stream delivers it.
    fn hear(&self) {
        self.pass(BUFFER_MS);
        self.sink().sound(Duration::ZERO, buffer());
    }

    fn state(&self) -> State {
        self.sensor.health().get().state
    }
}

fn buffer() -> SoundChunk {
    SoundChunk { sample_rate_hz: 16_000, channel_count: 1, samples: Samples::I16(vec![1; 1_600]) }
}

fn tell(reading: &Reading) -> String {
    let at = reading.captured_at.monotonic_ms;
    match &reading.payload {
        Payload::Sound(chunk) => format!("{at} sound {}", chunk.frame_count()),
        Payload::Loss(loss) => match loss.length_ms {
            Some(length_ms) => format!("{at} {} for {length_ms}: {}", loss.reason.as_str(), loss.detail),
            None => format!("{at} {}: {}", loss.reason.as_str(), loss.detail),
        },
        other @ (Payload::Picture(_) | Payload::Position(_) | Payload::Advertisement(_)) => panic!("{other:?}"),
    }
}

//! Live microphones through cpal: ALSA devices, and sound servers through ALSA's plugins.
//!
//! ```text
//!  Microphone::open ─► worker thread: find, choose, open ─► cpal's callback ─► queue ─► Capture (Feed) ─► LiveSensor
//!                      (holds the stream, closes it)         never waits       bounded
//! ```
//!
//! In: the settings and the sound system. Out: chunks of sound in the device's own format, and a loss wherever frames
//! were lost. A device is found by its identity (USB vendor, product and serial number, else the card's id), wherever
//! the kernel put it this time. Never: an output or HDMI opened, a sound resampled or mixed, a decision about when to
//! try again ([`crate::sensors::live::LiveSensor`] decides that).

use crate::domain::id::SensorKind;
use crate::domain::id::SourceId;
use crate::sensors::live::Driver;
use crate::sensors::live::Failure;
use crate::sensors::live::Feed;
use crate::sensors::live::Found;
use crate::sensors::live::Limits;
use crate::sensors::live::SharedClock;
use crate::sensors::settings::Microphone as Config;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

mod cards;
mod errors;
mod feed;
mod input;
mod linux;
mod offer;
mod packed;
mod queue;
mod samples;
mod system;
mod timeline;
mod worker;

use input::Input;
use offer::Wish;
use system::SoundSystem;
use worker::Job;
use worker::Worker;

/// A microphone delivers a buffer many times a second; a sound server may need seconds for the first.
pub const LIMITS: Limits = Limits { stall_ms: 2_000, first_ms: 5_000 };

/// Longest wait for a device to be found and opened, and for a stream to close; then the agent goes on without it.
const WAITS: Waits = Waits { open: Duration::from_secs(5), close: Duration::from_secs(1) };

/// Bounds of `buffer_ms`.
const BUFFER_MS: std::ops::RangeInclusive<u32> = 10..=1_000;

/// How long the driver waits for its own thread.
#[derive(Debug, Clone, Copy)]
struct Waits {
    open: Duration,
    close: Duration,
}

/// Finds and opens the configured microphone.
pub struct Microphone {
    system: Arc<dyn SoundSystem>,
    clock: SharedClock,
    wanted: input::Wanted,
    wish: Wish,
    waits: Waits,
    source: SourceId,
    frames_lost: Arc<AtomicU64>,
    /// Every worker thread holds a clone: while an earlier one hangs in the sound system, no other is started.
    alive: Arc<()>,
}

impl Microphone {
    /// The microphone of this machine that `config` names.
    #[must_use]
    pub fn new(config: &Config, clock: SharedClock) -> Self {
        Self::with_system(config, clock, Arc::new(linux::Alsa), WAITS)
    }

    fn with_system(config: &Config, clock: SharedClock, system: Arc<dyn SoundSystem>, waits: Waits) -> Self {
        let wanted = input::Wanted::parse(&config.device);
        Self {
            source: SourceId::of(SensorKind::Microphone, wanted.name().unwrap_or("auto")),
            system,
            clock,
            wanted,
            wish: Wish {
                sample_rate_hz: config.sample_rate_hz,
                channel_count: config.channels,
                buffer_ms: config.buffer_ms.clamp(*BUFFER_MS.start(), *BUFFER_MS.end()),
            },
            waits,
            frames_lost: Arc::default(),
            alive: Arc::new(()),
        }
    }

    /// Frames lost to overruns since the start, for the metrics. An overrun that the sound system reports is counted
    /// by its length in time.
    #[must_use]
    pub fn frames_lost(&self) -> Arc<AtomicU64> {
        self.frames_lost.clone()
    }
}

/// The microphone that `config` names, not opened yet.
///
/// `device` is a source as [`list`] names it, with or without `microphone:`; `usb-VVVV:PPPP` alone takes any serial
/// number; empty, it is the first real capture device, then what a sound server offers. A wished rate that the device
/// does not offer gives way to 16 or 48 kHz, else to what comes next. A device with fewer channels is refused.
#[must_use]
pub fn driver(config: &Config, clock: SharedClock) -> Box<dyn Driver> {
    Box::new(Microphone::new(config, clock))
}

impl Driver for Microphone {
    fn source(&self) -> &SourceId {
        &self.source
    }

    fn open(&mut self) -> Result<Box<dyn Feed>, Failure> {
        if Arc::strong_count(&self.alive) > 1 {
            return Err(Failure::stalled("the sound system hangs in an earlier call; waiting for it"));
        }
        let (sink, queue) = queue::pair(self.clock.clone());
        let job = Job { system: self.system.clone(), wanted: self.wanted.clone(), wish: self.wish, sink };
        let (worker, opened) = Worker::start(job, self.alive.clone(), self.waits)?;
        tracing::info!(
            source = %opened.input,
            "listening to {} ({}): {}",
            opened.name,
            opened.choice.pcm,
            opened.choice.describe()
        );
        if let input::Wanted::Any { before } = &mut self.wanted {
            self.source = SourceId::of(SensorKind::Microphone, &opened.input);
            *before = Some(opened.input);
        }
        Ok(Box::new(feed::Capture::new(queue, worker, self.frames_lost.clone())))
    }
}

/// The microphones of this machine, and the sound devices that percept does not open and why.
///
/// # Errors
/// [`Failure`]: the sound system cannot be asked.
pub fn list() -> Result<Vec<Found>, Failure> {
    list_of(&linux::Alsa)
}

fn list_of(system: &dyn SoundSystem) -> Result<Vec<Found>, Failure> {
    Ok(system.inputs()?.into_iter().map(|input| found(system, input)).collect())
}

fn found(system: &dyn SoundSystem, input: Input) -> Found {
    let detail = match (&input.refused, system.offers(&input)) {
        (Some(_), _) => input.place(),
        (None, Ok(offers)) => format!("{}: {}", input.place(), offer::describe(&offers)),
        (None, Err(failure)) => format!("{}: {}", input.place(), failure.detail),
    };
    Found { source: SourceId::of(SensorKind::Microphone, &input.id), name: input.name, detail, refused: input.refused }
}

#[cfg(test)]
mod tests;

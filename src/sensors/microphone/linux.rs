//! The sound system of Linux: cards from sysfs, streams through cpal's ALSA host.
//!
//! libasound writes what fails to standard error by itself. Here no name is probed to see whether it opens, and each
//! thread that calls it takes its messages into a buffer instead ([`Quiet`]); they end up in the failure's sentence.

use super::cards;
use super::errors;
use super::errors::Meaning;
use super::input::CardPcm;
use super::input::Input;
use super::offer::Choice;
use super::offer::Offer;
use super::packed;
use super::queue::Sink;
use super::samples;
use super::system::SoundSystem;
use crate::domain::reading::SoundChunk;
use crate::sensors::live::Failure;
use cpal::BufferSize;
use cpal::Data;
use cpal::ErrorKind;
use cpal::InputCallbackInfo;
use cpal::StreamConfig;
use cpal::SupportedBufferSize;
use cpal::SupportedStreamConfigRange;
use cpal::traits::DeviceTrait;
use cpal::traits::HostTrait;
use cpal::traits::StreamTrait;
use std::any::Any;
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// Where the kernel lists its sound devices.
const CLASS: &str = "/sys/class/sound";

/// cpal looks after a stream this often even if the device wakes nobody.
const POLL: Duration = Duration::from_millis(500);

/// Names of ALSA's configuration that convert or throw away sound and are no microphone.
const NO_MICROPHONES: [&str; 11] =
    ["null", "lavrate", "samplerate", "speexrate", "speex", "upmix", "vdownmix", "jack", "oss", "usbstream", "a52"];

/// The machine's own sound system.
pub(super) struct Alsa;

impl SoundSystem for Alsa {
    fn inputs(&self) -> Result<Vec<Input>, Failure> {
        let _quiet = Quiet::new();
        let mut inputs = cards::inputs(Path::new(CLASS));
        let names: Vec<String> = devices().iter().filter_map(server_name).collect();
        // cpal knows `default` even where ALSA's configuration does not list it.
        let is_new = |name: &&str| !names.iter().any(|other| other == name);
        inputs.extend(["default"].iter().copied().filter(is_new).map(Input::server));
        inputs.extend(names.iter().map(|name| Input::server(name)));
        Ok(inputs)
    }

    fn offers(&self, input: &Input) -> Result<Vec<Offer>, Failure> {
        permitted(input)?;
        let Some(pcm) = &input.pcm else {
            let converted = |offer| Offer { is_converted: true, ..offer };
            return Ok(offers_of(&input.id)?.into_iter().map(converted).collect());
        };
        let offers = offers_of(&name_of(pcm, "hw"))?;
        if !offers.is_empty() {
            return Ok(offers);
        }
        // Only layouts that cpal does not know (24 bits packed in three bytes): ALSA unpacks them.
        Ok(packed::narrowed(&offers_of(&name_of(pcm, "plughw"))?, &packed::native(pcm)))
    }

    fn open(&self, choice: &Choice, sink: Sink) -> Result<Box<dyn Any>, Failure> {
        let quiet = Quiet::new();
        let device = device(&choice.pcm)?;
        let build = |buffer_size| {
            let config =
                StreamConfig { channels: choice.channel_count, sample_rate: choice.sample_rate_hz, buffer_size };
            build(&device, config, choice, sink.clone())
        };
        let stream = match build(BufferSize::Fixed(choice.buffer_frames)) {
            Err(error) if error.kind() == ErrorKind::UnsupportedConfig => build(BufferSize::Default),
            built => built,
        };
        let stream = stream.map_err(|error| errors::failure(&error, &quiet.said()))?;
        stream.play().map_err(|error| errors::failure(&error, &quiet.said()))?;
        Ok(Box::new(stream))
    }
}

fn build(
    device: &cpal::Device,
    config: StreamConfig,
    choice: &Choice,
    sink: Sink,
) -> Result<cpal::Stream, cpal::Error> {
    let errors = sink.clone();
    let (sample_rate_hz, channel_count) = (config.sample_rate, config.channels);
    let mut is_quiet = false;
    let deliver = move |data: &Data, info: &InputCallbackInfo| {
        if !std::mem::replace(&mut is_quiet, true) {
            Quiet::new();
        }
        let times = info.timestamp();
        let age = times.callback.saturating_duration_since(times.capture);
        if let Some(samples) = samples::samples(data) {
            sink.sound(age, SoundChunk { sample_rate_hz, channel_count, samples });
        }
    };
    let format = samples::cpal_format(choice.format);
    device.build_input_stream_raw(config, format, deliver, move |error| report(&errors, &error), Some(POLL))
}

fn report(sink: &Sink, error: &cpal::Error) {
    // A new buffer for each error, so that it stays small.
    Quiet::new();
    match errors::meaning(error.kind()) {
        Meaning::Xrun => sink.xrun(),
        Meaning::Survived => sink.error(error),
        Meaning::Gone => sink.broken(Failure::unplugged(errors::sentence(error))),
        Meaning::Stale => sink.broken(Failure::stalled(errors::sentence(error))),
        Meaning::Refused => sink.broken(Failure::unusable(errors::sentence(error))),
    }
}

/// Without permission for a card cpal does not list it; the operator should read why.
fn permitted(input: &Input) -> Result<(), Failure> {
    let Some(pcm) = &input.pcm else { return Ok(()) };
    let control = format!("/dev/snd/controlC{}", pcm.card);
    match std::fs::File::open(&control) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(errors::failure(&cpal::Error::new(ErrorKind::PermissionDenied), &control))
        }
        _ => Ok(()),
    }
}

/// Every name cpal knows. Lists, opens nothing.
fn devices() -> Vec<cpal::Device> {
    cpal::default_host().devices().map(Iterator::collect).unwrap_or_default()
}

fn pcm_name(device: &cpal::Device) -> Option<String> {
    device.id().ok().map(|id| id.id().to_owned())
}

/// The name of a device that is no card's and may be an input.
fn server_name(device: &cpal::Device) -> Option<String> {
    let name = pcm_name(device)?;
    let is_plain = !name.contains(':') && !NO_MICROPHONES.contains(&name.as_str());
    (is_plain && device.supports_input()).then_some(name)
}

/// cpal lists every card's devices by number, whatever ALSA's configuration lists.
fn name_of(pcm: &CardPcm, prefix: &str) -> String {
    format!("{prefix}:CARD={},DEV={}", pcm.card, pcm.device)
}

fn device(name: &str) -> Result<cpal::Device, Failure> {
    let found = devices().into_iter().find(|device| pcm_name(device).as_deref() == Some(name));
    let found = found.or_else(|| cpal::default_host().default_input_device().filter(|_| name == "default"));
    found.ok_or_else(|| Failure::unplugged(format!("ALSA does not know {name}")))
}

/// Takes what libasound writes on this thread into a buffer, from here on.
struct Quiet(Option<Rc<RefCell<alsa::Output>>>);

impl Quiet {
    fn new() -> Self {
        Self(alsa::Output::local_error_handler().ok())
    }

    /// The last line it wrote, without the name of the function.
    fn said(&self) -> String {
        let Some(output) = &self.0 else { return String::new() };
        let text = output.borrow().buffer_string(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let last = text.lines().last().unwrap_or_default();
        last.split_once(": ").map_or(last, |(_, said)| said).trim().to_owned()
    }
}

fn offers_of(name: &str) -> Result<Vec<Offer>, Failure> {
    let quiet = Quiet::new();
    let configs = device(name)?.supported_input_configs();
    let configs = configs.map_err(|error| errors::failure(&error, &quiet.said()))?;
    Ok(configs.filter_map(|config| offer(name, &config)).collect())
}

fn offer(name: &str, config: &SupportedStreamConfigRange) -> Option<Offer> {
    let buffer_frames = match *config.buffer_size() {
        SupportedBufferSize::Range { min, max } => Some((min, max)),
        SupportedBufferSize::Unknown => None,
    };
    Some(Offer {
        pcm: name.to_owned(),
        channel_count: config.channels(),
        rates_hz: (config.min_sample_rate(), config.max_sample_rate()),
        format: samples::format_of(config.sample_format())?,
        buffer_frames,
        is_converted: false,
    })
}

//! A program that writes MJPEG on its standard output, as a camera: the way CSI cameras arrive, through rpicam-vid.
//!
//! In: a command line. Out: its pictures at the configured pace; when it dies, how, and what it said last.
//! No shell reads the command. The program gets a process group of its own and nothing to read; the group is killed and
//! the program reaped whenever the feed is dropped, by the one thread that owns it.

mod child;

use crate::domain::id::SensorKind;
use crate::domain::id::SourceId;
use crate::domain::reading::Picture;
use crate::domain::reading::PixelFormat;
use crate::sensors::camera::Config;
use crate::sensors::camera::handover::Crew;
use crate::sensors::camera::handover::Receiver;
use crate::sensors::camera::handover::Sender;
use crate::sensors::camera::pace::Pace;
use crate::sensors::camera::splitter::Damage;
use crate::sensors::camera::splitter::Splitter;
use crate::sensors::live::Driver;
use crate::sensors::live::Failure;
use crate::sensors::live::Fed;
use crate::sensors::live::Feed;
use crate::sensors::live::SharedClock;
use child::Child;
use std::io::PipeReader;
use std::io::PipeWriter;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for the program to start.
const START_WAIT: Duration = Duration::from_secs(5);

/// Starts the program that the config names.
pub struct CommandCamera {
    command: String,
    frames_per_s: f64,
    clock: SharedClock,
    source: SourceId,
    crew: Crew,
}

impl CommandCamera {
    /// A program that was not started yet.
    #[must_use]
    pub fn new(config: &Config, clock: SharedClock) -> Self {
        let words = shell_words::split(&config.command).unwrap_or_default();
        let name = words.first().map_or("command", |program| short(program));
        Self {
            command: config.command.clone(),
            frames_per_s: config.frames_per_s,
            clock,
            source: SourceId::of(SensorKind::Camera, &format!("command-{name}")),
            crew: Crew::default(),
        }
    }

    /// The threads that read.
    #[cfg(test)]
    pub(super) fn crew(&self) -> Crew {
        self.crew.clone()
    }
}

impl Driver for CommandCamera {
    fn source(&self) -> &SourceId {
        &self.source
    }

    fn open(&mut self) -> Result<Box<dyn Feed>, Failure> {
        let words = shell_words::split(&self.command)
            .map_err(|error| Failure::unusable(format!("camera.command cannot be read: {error}")))?;
        let (stop_when_closed, wake) =
            std::io::pipe().map_err(|error| Failure::unusable(format!("no pipe for the camera program: {error}")))?;
        let reader = Reader {
            clock: Arc::clone(&self.clock),
            pace: Pace::new(self.frames_per_s),
            splitter: Splitter::default(),
            told: Damage::default(),
            has_pictures: false,
        };
        let receiver = self.crew.start("camera-command", move |sender| reader.run(sender, &words, stop_when_closed))?;
        let opened = receiver.wait_opened(START_WAIT);
        opened.unwrap_or_else(|| Err(Failure::stalled("the camera program did not start within 5 s")))?;
        Ok(Box::new(CommandFeed { wake: Some(wake), receiver }))
    }
}

/// A program's path as a name.
fn short(program: &str) -> &str {
    Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or("command")
}

struct CommandFeed {
    wake: Option<PipeWriter>,
    receiver: Receiver,
}

impl Feed for CommandFeed {
    fn next(&mut self, timeout: Duration) -> Fed {
        self.receiver.next(timeout)
    }
}

impl Drop for CommandFeed {
    /// Closing the pipe wakes the thread that owns the program; the receiver then waits a little for it.
    fn drop(&mut self) {
        self.wake = None;
    }
}

/// Turns the program's output into pictures.
struct Reader {
    clock: SharedClock,
    pace: Pace,
    splitter: Splitter,
    told: Damage,
    has_pictures: bool,
}

impl Reader {
    fn run(mut self, sender: &Sender, words: &[String], stop: PipeReader) {
        let mut child = match Child::start(words, stop) {
            Ok(child) => child,
            Err(failure) => return sender.opened(Err(failure)),
        };
        sender.opened(Ok(()));
        while let Some(bytes) = child.read() {
            self.splitter.push(bytes);
            self.hand_over(sender);
            self.tell_damage(sender);
        }
        let end = child.end();
        // A program that never gave a picture is set up wrongly; one that did, and went, is a camera that went.
        sender.broke(if self.has_pictures { Failure::unplugged(end) } else { Failure::unusable(end) });
    }

    fn hand_over(&mut self, sender: &Sender) {
        while let Some(image) = self.splitter.next_image() {
            self.has_pictures = true;
            let at = self.clock.stamp();
            if self.pace.takes(at.monotonic_ms) {
                sender.put(at, Picture { format: PixelFormat::Jpeg, size_px: None, bytes: image.into() });
            }
        }
    }

    /// The same sentence each time: it is one burst.
    fn tell_damage(&mut self, sender: &Sender) {
        let damage = self.splitter.damage();
        if damage.images > self.told.images {
            sender.hiccup("the camera program wrote a damaged picture".to_owned());
        } else if damage.bytes > self.told.bytes {
            sender.hiccup("the camera program wrote bytes that are no picture".to_owned());
        }
        if damage != self.told {
            tracing::debug!(images = damage.images, bytes = damage.bytes, "damage in the camera program's output");
        }
        self.told = damage;
    }
}

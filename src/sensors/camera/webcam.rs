//! A webcam as a driver: found by name, opened and read on a thread of its own.
//!
//! In: an [`Edge`] and what is wanted. Out: pictures at the configured pace, and errors in words. Reading errors are
//! tried again a few times, then the camera is given up; a node that is gone is given up at once.

use crate::domain::id::SensorKind;
use crate::domain::id::SourceId;
use crate::sensors::camera::Config;
use crate::sensors::camera::edge::Edge;
use crate::sensors::camera::edge::Frames;
use crate::sensors::camera::edge::Wish;
use crate::sensors::camera::handover::Crew;
use crate::sensors::camera::handover::Sender;
use crate::sensors::camera::node;
use crate::sensors::camera::node::Node;
use crate::sensors::camera::pace::Pace;
use crate::sensors::camera::pixels;
use crate::sensors::live::Driver;
use crate::sensors::live::Failure;
use crate::sensors::live::Feed;
use crate::sensors::live::Found;
use crate::sensors::live::SharedClock;
use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

/// Longest wait for a node to be found and opened.
const OPEN_WAIT: Duration = Duration::from_secs(5);

/// Reading errors in a row after which the camera is opened anew.
const ERRORS_MAX: u32 = 20;

/// Pause after a reading error: a device that fails at once must not keep a core busy.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// Numbers of Linux's errors that say the device is not there (any more).
const GONE: [i32; 3] = [2 /* ENOENT */, 6 /* ENXIO */, 19 /* ENODEV */];
const EBUSY: i32 = 16;

/// Opens the webcam that the config names.
pub struct Webcam {
    edge: Arc<dyn Edge>,
    clock: SharedClock,
    wanted: String,
    wish: Wish,
    error_pause: Duration,
    open_wait: Duration,
    source: SourceId,
    last: Option<SourceId>,
    crew: Crew,
}

impl Webcam {
    /// A camera that was not looked for yet.
    #[must_use]
    pub fn new(config: &Config, edge: Arc<dyn Edge>, clock: SharedClock) -> Self {
        let wanted = config.device.trim().to_owned();
        let name = wanted.strip_prefix("camera:").unwrap_or(&wanted);
        let source = SourceId::of(SensorKind::Camera, if name.is_empty() { "first" } else { name });
        let wish = Wish { size_px: (config.width_px, config.height_px), frames_per_s: config.frames_per_s };
        Self {
            edge,
            clock,
            wanted,
            wish,
            error_pause: ERROR_PAUSE,
            open_wait: OPEN_WAIT,
            source,
            last: None,
            crew: Crew::default(),
        }
    }

    /// The same without pauses, for tests.
    #[cfg(test)]
    pub(super) fn impatient(mut self, open_wait: Duration) -> Self {
        self.error_pause = Duration::ZERO;
        self.open_wait = open_wait;
        self.crew = Crew::patient(Duration::from_millis(20));
        self
    }

    /// The threads that read.
    #[cfg(test)]
    pub(super) fn crew(&self) -> Crew {
        self.crew.clone()
    }
}

impl Driver for Webcam {
    fn source(&self) -> &SourceId {
        &self.source
    }

    fn open(&mut self) -> Result<Box<dyn Feed>, Failure> {
        let (edge, wanted, last, wish) = (Arc::clone(&self.edge), self.wanted.clone(), self.last.clone(), self.wish);
        let (clock, error_pause) = (Arc::clone(&self.clock), self.error_pause);
        let (name_to, name_from) = mpsc::sync_channel(1);
        let receiver = self.crew.start("camera", move |sender| {
            let opened = find_and_open(&*edge, &wanted, last.as_ref(), wish).and_then(|(source, frames)| {
                let told = name_to.try_send(source);
                told.map(|()| frames).map_err(|_| Failure::stalled("the camera opened too late"))
            });
            match opened {
                Ok(mut frames) => {
                    sender.opened(Ok(()));
                    Reader { sender, clock, pace: Pace::new(wish.frames_per_s), error_pause, errors: 0 }
                        .run(&mut *frames);
                }
                Err(failure) => sender.opened(Err(failure)),
            }
        })?;
        let Some(opened) = receiver.wait_opened(self.open_wait) else {
            return Err(Failure::stalled("the camera's driver does not answer: opening it took too long"));
        };
        opened?;
        if let Ok(source) = name_from.try_recv() {
            self.source = source.clone();
            self.last = Some(source);
        }
        Ok(Box::new(receiver))
    }
}

/// All nodes in a list for people.
pub(super) fn list(edge: Arc<dyn Edge>) -> Result<Vec<Found>, Failure> {
    let (to, from) = mpsc::sync_channel(1);
    // The thread is left behind when a driver hangs: whoever lists devices ends soon after.
    std::thread::Builder::new()
        .name("cameras".to_owned())
        .spawn(move || drop(to.try_send(edge.nodes())))
        .map_err(|error| Failure::unusable(format!("no thread for the list of cameras: {error}")))?;
    let nodes = from.recv_timeout(OPEN_WAIT).map_err(|_| Failure::stalled("a camera's driver does not answer"))?;
    nodes.map(|nodes| node::found(&nodes)).map_err(|error| unlisted(&error))
}

fn unlisted(error: &io::Error) -> Failure {
    Failure::unusable(format!("the video nodes cannot be listed: {error}"))
}

fn find_and_open(
    edge: &dyn Edge,
    wanted: &str,
    last: Option<&SourceId>,
    wish: Wish,
) -> Result<(SourceId, Box<dyn Frames>), Failure> {
    let nodes = edge.nodes().map_err(|error| unlisted(&error))?;
    let node = node::choose(&nodes, wanted, last)?;
    let frames = edge.open(node, wish).map_err(|error| unopened(node, &error))?;
    let source = node::source(node, &nodes);
    tracing::debug!(source = %source, node = node.path(), agreed = ?frames.agreed(), "camera opened");
    Ok((source, frames))
}

/// Why a node could not be opened, and what can be done.
fn unopened(node: &Node, error: &io::Error) -> Failure {
    let path = node.path();
    match error.raw_os_error() {
        Some(number) if GONE.contains(&number) => Failure::unplugged(format!("{path} went away: {error}")),
        Some(EBUSY) => Failure::unusable(format!("{path} is in use by another program")),
        _ if error.kind() == io::ErrorKind::PermissionDenied => {
            Failure::unusable(format!("{path} may not be opened: its user has to be in the group video"))
        }
        _ => Failure::unusable(format!("{path} cannot be opened: {error}")),
    }
}

/// Reads one open camera until it breaks or nobody wants it any more.
struct Reader<'a> {
    sender: &'a Sender,
    clock: SharedClock,
    pace: Pace,
    error_pause: Duration,
    errors: u32,
}

impl Reader<'_> {
    fn run(&mut self, frames: &mut dyn Frames) {
        while !self.sender.is_stopped() {
            if let Err(failure) = self.step(frames) {
                self.sender.broke(failure);
                return;
            }
        }
    }

    fn step(&mut self, frames: &mut dyn Frames) -> Result<(), Failure> {
        let agreed = frames.agreed();
        let problem = match frames.next() {
            Ok(None) => return Ok(()),
            Ok(Some(shot)) if shot.is_damaged => "the camera's driver marked a frame as damaged".to_owned(),
            Ok(Some(shot)) => {
                let at = self.clock.stamp();
                if !self.pace.takes(at.monotonic_ms) {
                    self.errors = 0;
                    return Ok(());
                }
                match pixels::picture(&agreed, &shot.bytes) {
                    Ok(picture) => {
                        self.errors = 0;
                        self.sender.put(at, picture);
                        return Ok(());
                    }
                    Err(sentence) => sentence,
                }
            }
            Err(error) if error.raw_os_error().is_some_and(|number| GONE.contains(&number)) => {
                return Err(Failure::unplugged(format!("the camera was unplugged: {error}")));
            }
            Err(error) => format!("the camera's frames cannot be read: {error}"),
        };
        self.survive(problem)
    }

    /// The same sentence whether the error is survived or not: it is one burst, and told once.
    fn survive(&mut self, problem: String) -> Result<(), Failure> {
        self.errors += 1;
        if self.errors >= ERRORS_MAX {
            return Err(Failure::stalled(problem));
        }
        self.sender.hiccup(problem);
        self.sender.pause(self.error_pause);
        Ok(())
    }
}

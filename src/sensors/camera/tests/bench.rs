//! A webcam without hardware: scripted nodes and frames, under a real `LiveSensor`.

use crate::domain::reading::Loss;
use crate::domain::reading::Payload;
use crate::domain::reading::Picture;
use crate::domain::time::Clock;
use crate::domain::time::ClockQuality;
use crate::domain::time::ManualClock;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;
use crate::sensors::Poll;
use crate::sensors::Sensor;
use crate::sensors::camera::Agreed;
use crate::sensors::camera::Config;
use crate::sensors::camera::Edge;
use crate::sensors::camera::FourCc;
use crate::sensors::camera::Frames;
use crate::sensors::camera::LIMITS;
use crate::sensors::camera::Node;
use crate::sensors::camera::Shot;
use crate::sensors::camera::Webcam;
use crate::sensors::camera::Wish;
use crate::sensors::camera::handover::Crew;
use crate::sensors::live::LiveSensor;
use crate::sensors::live::SharedClock;
use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::Duration;

/// A clock shared with the test.
#[derive(Clone)]
pub(super) struct HandClock(Arc<Mutex<ManualClock>>);

impl HandClock {
    pub(super) fn new() -> Self {
        let now = Stamp { monotonic_ms: 0, utc: Timestamp::from_millis(0), quality: ClockQuality::Network };
        Self(Arc::new(Mutex::new(ManualClock { now })))
    }

    pub(super) fn advance(&self, ms: i64) {
        let mut clock = self.0.lock().unwrap();
        clock.now = clock.now.plus_millis(ms);
    }

    pub(super) fn share(&self) -> SharedClock {
        Arc::new(self.clone())
    }
}

impl Clock for HandClock {
    fn utc(&self) -> Timestamp {
        self.0.lock().unwrap().now.utc
    }

    fn monotonic_ms(&self) -> i64 {
        self.0.lock().unwrap().now.monotonic_ms
    }
}

/// What one read does.
pub(super) enum Read {
    Frame(Vec<u8>),
    Fails(i32),
    /// Blocks until the test drops the other end.
    Hangs(mpsc::Receiver<()>),
    Panics,
}

/// What opening does.
pub(super) enum Opening {
    /// Agrees to this.
    Agrees(Agreed),
    Fails(i32),
    Hangs(mpsc::Receiver<()>),
}

/// The scripted system.
pub(super) struct Lab {
    pub(super) nodes: Mutex<Vec<Node>>,
    pub(super) opened: Mutex<Vec<u32>>,
    pub(super) openings: Mutex<Vec<Opening>>,
    /// Every read fails with this number, for ever.
    pub(super) always: Mutex<Option<i32>>,
    reads: Arc<Mutex<mpsc::Receiver<Read>>>,
    to: Mutex<mpsc::Sender<Read>>,
}

struct LabFrames {
    agreed: Agreed,
    always: Option<i32>,
    reads: Arc<Mutex<mpsc::Receiver<Read>>>,
}

const GREY: Agreed = Agreed { fourcc: FourCc(*b"GREY"), size_px: (4, 2), stride_bytes: 4 };

impl Edge for Lab {
    fn nodes(&self) -> io::Result<Vec<Node>> {
        Ok(self.nodes.lock().unwrap().clone())
    }

    fn open(&self, node: &Node, _wish: Wish) -> io::Result<Box<dyn Frames>> {
        self.opened.lock().unwrap().push(node.index);
        let opening = self.openings.lock().unwrap().pop();
        let agreed = match opening.unwrap_or(Opening::Agrees(GREY)) {
            Opening::Agrees(agreed) => agreed,
            Opening::Fails(number) => return Err(io::Error::from_raw_os_error(number)),
            Opening::Hangs(until) => {
                let _ = until.recv();
                GREY
            }
        };
        let always = *self.always.lock().unwrap();
        Ok(Box::new(LabFrames { agreed, always, reads: Arc::clone(&self.reads) }))
    }
}

impl Frames for LabFrames {
    fn agreed(&self) -> Agreed {
        self.agreed
    }

    fn next(&mut self) -> io::Result<Option<Shot<'_>>> {
        if let Some(number) = self.always {
            return Err(io::Error::from_raw_os_error(number));
        }
        let read = self.reads.lock().unwrap().recv_timeout(Duration::from_millis(2));
        match read {
            Ok(Read::Frame(bytes)) => Ok(Some(Shot { bytes: Cow::Owned(bytes), is_damaged: false })),
            Ok(Read::Fails(number)) => Err(io::Error::from_raw_os_error(number)),
            Ok(Read::Hangs(until)) => {
                let _ = until.recv();
                Ok(None)
            }
            Ok(Read::Panics) => panic!("a library lost its mind (this panic is part of a test)"),
            Err(_) => Ok(None),
        }
    }
}

impl Lab {
    pub(super) fn new(nodes: Vec<Node>) -> Arc<Self> {
        let (to, from) = mpsc::channel();
        Arc::new(Self {
            nodes: Mutex::new(nodes),
            opened: Mutex::default(),
            openings: Mutex::default(),
            always: Mutex::default(),
            reads: Arc::new(Mutex::new(from)),
            to: Mutex::new(to),
        })
    }

    pub(super) fn will(&self, read: Read) {
        self.to.lock().unwrap().send(read).unwrap();
    }

    pub(super) fn set_nodes(&self, nodes: Vec<Node>) {
        *self.nodes.lock().unwrap() = nodes;
    }
}

/// A sensor over a [`Lab`].
pub(super) struct Bench {
    pub(super) clock: HandClock,
    pub(super) lab: Arc<Lab>,
    pub(super) sensor: LiveSensor,
    pub(super) crew: Crew,
}

pub(super) fn webcam(lab: &Arc<Lab>, clock: &HandClock) -> Webcam {
    Webcam::new(&Config::default(), Arc::clone(lab) as Arc<dyn Edge>, clock.share()).impatient(PATIENCE)
}

/// Long enough for any thread of a busy machine; only what hangs on purpose waits for it.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn bench(nodes: Vec<Node>) -> Bench {
    let (clock, lab) = (HandClock::new(), Lab::new(nodes));
    let driver = webcam(&lab, &clock);
    let crew = driver.crew();
    let sensor = LiveSensor::new(Box::new(driver), clock.share(), LIMITS);
    Bench { clock, lab, sensor, crew }
}

impl Bench {
    /// The next reading; a second of the hand clock passes before it.
    pub(super) fn next(&mut self) -> Payload {
        self.clock.advance(1_000);
        self.now()
    }

    /// The next reading, without waiting by the hand clock.
    pub(super) fn now(&mut self) -> Payload {
        for _ in 0..2_000 {
            if let Poll::Reading(reading) = self.sensor.poll(Duration::from_millis(10)) {
                return reading.payload;
            }
        }
        panic!("no reading came");
    }

    /// What the next read does, a second of the hand clock later: a frame is due by then, whenever it is read.
    pub(super) fn will(&self, read: Read) {
        self.clock.advance(1_000);
        self.lab.will(read);
    }

    pub(super) fn picture(&mut self) -> Picture {
        let next = self.now();
        let Payload::Picture(picture) = next else { panic!("no picture but {next:?}") };
        picture
    }

    pub(super) fn loss(&mut self) -> Loss {
        let next = self.next();
        let Payload::Loss(loss) = next else { panic!("no loss but {next:?}") };
        loss
    }

    /// Polls until so many errors were survived.
    pub(super) fn hiccups(&mut self, count: u64) {
        for _ in 0..2_000 {
            if self.sensor.health().get().hiccups >= count {
                return;
            }
            assert!(matches!(self.sensor.poll(Duration::from_millis(10)), Poll::Pending));
        }
        panic!("{:?}", self.sensor.health().get());
    }

    /// Whether every reader thread ends.
    pub(super) fn all_readers_end(&self) -> bool {
        for _ in 0..2_000 {
            if self.crew.wait_idle() == 0 {
                return true;
            }
        }
        false
    }
}

#[test]
fn the_hand_clock_stands_still_until_it_is_moved() {
    let clock = HandClock::new();
    clock.advance(5);

    assert_eq!((clock.monotonic_ms(), clock.utc().as_millis()), (5, 5));
    assert_eq!(clock.share().stamp().monotonic_ms, 5);
    assert!(Sensor::source(&bench(Vec::new()).sensor).as_str() == "camera:first");
}

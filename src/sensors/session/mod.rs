//! Recorded sessions as sensors, and the recorder that writes them.
//!
//! In: a folder with `session.toml`, or a single file (WAV, FLAC, JPEG, PNG, an NMEA log, gpsd's JSON
//! lines). Out: one [`Sensor`] for each stream, whose readings cannot be told from live ones, stamped by
//! the session's own virtual clock; and the other way round, a folder from readings ([`SessionWriter`]).
//! `docs/session-format.md` is the format.
//!
//! What a session survives (a bad file, a bad line) is a [`crate::domain::reading::Loss`] reading and a
//! count in [`Problems`]; only what makes the whole of it unusable is a [`SessionError`].
//! Files are streamed: one is open for each stream, a quarter of a second of sound in memory.
//! Never: waiting, the machine's clock, any understanding of what was captured.

use crate::domain::id::SensorKind;
use crate::domain::id::SourceId;
use crate::domain::time::Timestamp;
use crate::sensors::Sensor;
use std::fs::File;
use std::path::Path;
use std::path::PathBuf;

mod absent;
mod advertisement;
mod bare;
mod bluetooth;
mod camera;
mod clock;
mod error;
mod exif_time;
mod fields;
mod flac;
mod folder;
mod gaps;
mod gps;
mod gps_log;
pub mod gpsd_json;
mod header;
mod length;
mod lines;
mod manifest;
mod manifest_text;
mod merge;
mod microphone;
mod nmea_log;
mod problems;
mod sound_file;
mod timed_lines;
mod timing;
mod wav;
mod writer;
mod writer_lines;
mod writer_sound;

pub use clock::SessionClock;
pub use error::SessionError;
pub use header::ClockStep;
pub use header::FORMAT;
pub use header::Gap;
pub use header::SessionHeader;
pub use header::StreamHeader;
pub use merge::Merged;
pub use merge::merge;
pub use problems::Problem;
pub use problems::ProblemKind;
pub use problems::Problems;
pub use writer::RecordOptions;
pub use writer::SessionWriter;
pub use writer::Tokenise;

use absent::AbsentSensor;
use absent::Behind;
use bare::BareFile;
use bare::BareKind;
use bluetooth::RecordedBluetooth;
use camera::RecordedCamera;
use folder::Folder;
use folder::TimedFile;
use folder::TimedFiles;
use gaps::WithGaps;
use gps::RecordedGps;
use gps_log::RecordedGpsLog;
use manifest::ManifestError;
use microphone::RecordedMicrophone;
use timed_lines::TimedLines;

/// The name that stands for the source of a stream that `session.toml` does not declare.
const UNDECLARED: &str = "recorded";
/// Largest `session.toml`.
const MANIFEST_BYTES_MAX: u64 = 1024 * 1024;
/// The file that makes a folder a session.
const MANIFEST: &str = "session.toml";

/// How a session is to be opened.
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions {
    /// When a bare file began, if the user says so. A folder has its own start and refuses this one.
    pub started_at: Option<Timestamp>,
    /// No recording is from later than this: bounds which times inside bare files are believed.
    pub assumed_now: Timestamp,
}

/// An open session.
#[derive(Debug, Clone)]
pub struct Session {
    header: SessionHeader,
    content: Content,
    length_ms: Option<i64>,
    bytes: u64,
    problems: Problems,
}

#[derive(Debug, Clone)]
enum Content {
    Folder(Folder),
    Bare(BareFile),
}

impl Session {
    /// Opens a session folder or a bare file and reads what it says about itself, but no reading.
    ///
    /// # Errors
    /// [`SessionError`] when nothing of it can be used; the message names the file and the cause.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, SessionError> {
        let metadata = std::fs::metadata(path).map_err(SessionError::read(path))?;
        if metadata.is_dir() {
            return Self::open_folder(path, options);
        }
        if !metadata.is_file() {
            let found = "neither a folder nor a regular file".to_owned();
            return Err(SessionError::UnknownKind { path: path.to_owned(), found });
        }
        let problems = Problems::default();
        let bare = bare::open(path, &metadata, options, &problems)?;
        Ok(Self {
            header: bare.header,
            content: Content::Bare(bare.file),
            length_ms: bare.length_ms,
            bytes: bare.bytes,
            problems,
        })
    }

    fn open_folder(path: &Path, options: &OpenOptions) -> Result<Self, SessionError> {
        let mut header = read_manifest(path)?;
        if options.started_at.is_some() {
            return Err(SessionError::StartGiven { path: path.to_owned() });
        }
        let folder = Folder::list(path).map_err(SessionError::read(path))?;
        let problems = Problems::default();
        for name in &folder.unknown {
            let detail = format!("{name} is no part of a session and is left out");
            problems.count(ProblemKind::UnknownEntry, &detail);
        }
        header.streams = SensorKind::ALL
            .into_iter()
            .filter(|&kind| folder.has(kind) || header.stream(kind).is_some())
            .map(|kind| header.stream(kind).cloned().unwrap_or_else(|| StreamHeader::plain(kind, UNDECLARED)))
            .collect();
        let length_ms = length::of_folder(&folder, &header);
        Ok(Self { bytes: folder.bytes, header, content: Content::Folder(folder), length_ms, problems })
    }

    /// What the session says about itself.
    #[must_use]
    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    /// Its virtual clock.
    #[must_use]
    pub fn clock(&self) -> SessionClock {
        SessionClock::new(self.header.started, &self.header.clock_steps)
    }

    /// When the recorder's wall clock was set during the session, in order.
    #[must_use]
    pub fn clock_steps(&self) -> &[ClockStep] {
        &self.header.clock_steps
    }

    /// The offset at which the last reading ends, as far as that is known without reading everything: for progress.
    #[must_use]
    pub fn length_ms(&self) -> Option<i64> {
        self.length_ms
    }

    /// The size of all streams together.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What was wrong with it so far. The sensors go on counting here.
    #[must_use]
    pub fn problems(&self) -> &Problems {
        &self.problems
    }

    /// One sensor for each stream, in the order of the header, each from its first reading.
    #[must_use]
    pub fn sensors(&self) -> Vec<Box<dyn Sensor>> {
        self.header.streams.iter().map(|stream| self.sensor(stream)).collect()
    }

    fn sensor(&self, stream: &StreamHeader) -> Box<dyn Sensor> {
        let clock = self.clock();
        let sensor = match &self.content {
            Content::Bare(file) => self.bare_sensor(file, stream),
            Content::Folder(folder) => match stream.kind {
                SensorKind::Microphone => self.files(stream, folder.microphone.as_ref()),
                SensorKind::Camera => self.files(stream, folder.camera.as_ref()),
                SensorKind::Gps => self.lines(stream, folder.gps.as_ref()),
                SensorKind::Bluetooth => self.lines(stream, folder.bluetooth.as_ref()),
            },
        };
        Box::new(WithGaps::new(sensor, &stream.gaps, &clock))
    }

    fn bare_sensor(&self, file: &BareFile, stream: &StreamHeader) -> Box<dyn Sensor> {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let timed = || vec![TimedFile { offset_ms: 0, path: file.path.clone(), name: name.clone() }];
        let (source, clock, problems) = (stream.source.clone(), self.clock(), self.problems.clone());
        match file.kind {
            BareKind::Sound => Box::new(RecordedMicrophone::new(stream, timed(), clock, problems)),
            BareKind::Picture => Box::new(RecordedCamera::new(source, timed(), clock, problems)),
            BareKind::Log(kind) => {
                let log = RecordedGpsLog::open(source, &file.path, kind, file.plausible, clock, problems);
                log.map_or_else(
                    |error| self.absent(stream, format!("{name} is left out: it cannot be read: {error}")),
                    |log| Box::new(log) as Box<dyn Sensor>,
                )
            }
        }
    }

    /// The stream of a folder of files named by offset.
    fn files(&self, stream: &StreamHeader, files: Option<&TimedFiles>) -> Box<dyn Sensor> {
        let kind = stream.kind.as_str();
        let Some(files) = files else {
            return self.absent(stream, format!("session.toml declares a {kind} and there is no folder {kind}/"));
        };
        let misnamed: Vec<_> = files
            .misnamed
            .iter()
            .map(|name| format!("{name} is left out: its name is not its offset in milliseconds (like {kind}/60000.*)"))
            .collect();
        for detail in &misnamed {
            self.problems.count(ProblemKind::MisnamedFile, detail);
        }
        let (list, clock, problems) = (files.files.clone(), self.clock(), self.problems.clone());
        if stream.kind == SensorKind::Camera {
            let camera = RecordedCamera::new(stream.source.clone(), list, clock.clone(), problems);
            return Box::new(Behind::new(&misnamed, camera, &clock));
        }
        let microphone = RecordedMicrophone::new(stream, list, clock.clone(), problems);
        Box::new(Behind::new(&misnamed, microphone, &clock))
    }

    /// The stream of a file of JSON lines.
    fn lines(&self, stream: &StreamHeader, path: Option<&PathBuf>) -> Box<dyn Sensor> {
        let kind = stream.kind.as_str();
        let Some(path) = path else {
            return self.absent(stream, format!("session.toml declares {kind} and there is no {kind}.jsonl"));
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = match open_regular(path) {
            Ok(file) => file,
            Err(cause) => {
                let detail = format!("{name} is left out: {cause}");
                self.problems.count(ProblemKind::UnreadableFile, &detail);
                return self.absent(stream, detail);
            }
        };
        let (source, lines) = (stream.source.clone(), TimedLines::new(file));
        let (clock, problems) = (self.clock(), self.problems.clone());
        match stream.kind {
            SensorKind::Gps => Box::new(RecordedGps::new(source, lines, name, clock, problems)),
            SensorKind::Bluetooth | SensorKind::Microphone | SensorKind::Camera => {
                Box::new(RecordedBluetooth::new(source, lines, name, clock, problems))
            }
        }
    }

    fn absent(&self, stream: &StreamHeader, detail: String) -> Box<dyn Sensor> {
        let source: SourceId = stream.source.clone();
        Box::new(AbsentSensor::new(source, self.length_ms, detail, &self.clock()))
    }
}

/// Opens a file that is no pipe, which would wait, and no folder. The error is a clause for the operator.
fn open_regular(path: &Path) -> Result<File, String> {
    let metadata = std::fs::metadata(path).map_err(|error| format!("it cannot be read: {error}"))?;
    match metadata.is_file() {
        true => File::open(path).map_err(|error| format!("it cannot be read: {error}")),
        false => Err("it is no regular file".to_owned()),
    }
}

fn read_manifest(folder: &Path) -> Result<SessionHeader, SessionError> {
    let file = folder.join(MANIFEST);
    let refused = |mistake: String| SessionError::Manifest { file: file.clone(), mistakes: vec![mistake] };
    let metadata = match std::fs::metadata(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(SessionError::NoManifest { path: folder.to_owned() });
        }
        other => other.map_err(SessionError::read(&file))?,
    };
    if !metadata.is_file() || metadata.len() > MANIFEST_BYTES_MAX {
        return Err(refused("it is no regular file of at most 1 MiB".to_owned()));
    }
    let bytes = std::fs::read(&file).map_err(SessionError::read(&file))?;
    let text = String::from_utf8(bytes).map_err(|_| refused("it is no UTF-8 text".to_owned()))?;
    manifest::parse(&text).map_err(|error| match error {
        ManifestError::Newer(found) => SessionError::NewerFormat { file: file.clone(), found, known: FORMAT },
        ManifestError::Mistakes(mistakes) => SessionError::Manifest { file: file.clone(), mistakes },
    })
}

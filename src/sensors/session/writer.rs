//! Records readings into a session folder.
//!
//! In: readings in the order they were captured, of at most one source of each kind. Out: the folder of
//! `docs/session-format.md`. `session.toml` is written first, and a file that is still being written
//! ends in `.prog`, so that a recording that was killed opens like any other.
//!
//! Bluetooth addresses are written only when the caller asks for it (`raw`); then the folder is
//! readable by its owner alone. Otherwise a token stands for the address, and names and manufacturer
//! data, which often repeat it, are left out.
//! Never: a clock, a decision about what is worth keeping.

use super::MANIFEST;
use super::advertisement::to_json;
use super::error::SessionError;
use super::folder::UNFINISHED;
use super::header::Gap;
use super::header::SessionHeader;
use super::header::StreamHeader;
use super::manifest;
use super::manifest_text::render;
use super::writer_lines::LineRecorder;
use super::writer_lines::gpsd_words;
use super::writer_sound::SoundRecorder;
use super::writer_sound::finish;
use crate::domain::id::SensorKind;
use crate::domain::id::SourceId;
use crate::domain::reading::AddressType;
use crate::domain::reading::Advertisement;
use crate::domain::reading::Loss;
use crate::domain::reading::Payload;
use crate::domain::reading::Picture;
use crate::domain::reading::PixelFormat;
use crate::domain::reading::Reading;
use crate::domain::reading::Sender;
use std::fs::DirBuilder;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::path::PathBuf;

/// Most gaps of one stream; further ones lengthen the last.
const GAPS_MAX: usize = 10_000;

/// Makes the pseudonym that stands for an address.
pub type Tokenise = Box<dyn Fn(&[u8; 6], AddressType) -> String + Send>;

/// How a session is to be recorded.
pub struct RecordOptions {
    /// Writes Bluetooth addresses, names and manufacturer data as they were heard, for the owner's eyes only.
    pub raw: bool,
    /// Makes tokens of addresses when `raw` is false.
    pub tokenise: Tokenise,
    /// A sound file is closed and the next one begun after this long.
    pub segment_ms: i64,
}

/// A session being recorded.
pub struct SessionWriter {
    path: PathBuf,
    header: SessionHeader,
    options: RecordOptions,
    sound: SoundRecorder,
    gps: LineRecorder,
    bluetooth: LineRecorder,
    /// Offsets up to here are taken by pictures.
    picture_ms: i64,
    /// Streams whose last gap ends with their next reading.
    open_gaps: Vec<SensorKind>,
    last_ms: i64,
    manifest_is_stale: bool,
}

impl SessionWriter {
    /// Creates the folder, which must not be there yet, and writes what is known so far.
    /// Offsets are counted from `header.started`.
    ///
    /// # Errors
    /// [`SessionError::Write`] when the system refuses.
    pub fn create(path: &Path, header: SessionHeader, options: RecordOptions) -> Result<Self, SessionError> {
        let (folder_mode, file_mode) = if options.raw { (0o700, 0o600) } else { (0o777, 0o666) };
        DirBuilder::new().mode(folder_mode).create(path).map_err(SessionError::write(path))?;
        let mut writer = Self {
            sound: SoundRecorder::new(path.join("microphone"), options.segment_ms),
            gps: LineRecorder::new(path.join("gps.jsonl"), file_mode),
            bluetooth: LineRecorder::new(path.join("bluetooth.jsonl"), file_mode),
            path: path.to_owned(),
            header,
            options,
            picture_ms: -1,
            open_gaps: Vec::new(),
            last_ms: 0,
            manifest_is_stale: true,
        };
        writer.write_manifest()?;
        Ok(writer)
    }

    /// Records a reading.
    ///
    /// # Errors
    /// [`SessionError::Unwritable`] for what the format cannot hold: an unknown kind of source, a second
    /// source of one kind, a time before the start, an uncompressed picture.
    /// [`SessionError::Write`] when the system refuses.
    pub fn write(&mut self, reading: &Reading) -> Result<(), SessionError> {
        let offset_ms = self.offset_of(reading)?;
        let kind = self.stream_of(&reading.source)?;
        self.last_ms = self.last_ms.max(offset_ms);
        self.end_gap(kind, offset_ms);
        let written = match &reading.payload {
            Payload::Sound(chunk) if chunk.samples.is_empty() => Ok(()),
            Payload::Sound(chunk) => self.sound.write(offset_ms, chunk),
            Payload::Picture(picture) => return self.write_picture(offset_ms, picture),
            Payload::Position(report) => match gpsd_words(report) {
                Some(words) => self.gps.write(&serde_json::json!({"at_ms": offset_ms, "report": words})),
                None => Ok(()),
            },
            Payload::Advertisement(advertisement) => {
                let line = to_json(offset_ms, &self.veiled(advertisement));
                self.bluetooth.write(&line)
            }
            Payload::Loss(loss) => {
                self.begin_gap(kind, offset_ms, loss);
                Ok(())
            }
        };
        written.map_err(SessionError::write(&self.path))
    }

    /// Notes that the wall clock was set.
    pub fn clock_was_set(&mut self, step: super::header::ClockStep) {
        self.header.clock_steps.push(step);
        self.manifest_is_stale = true;
    }

    /// Brings everything written so far to the disk. What comes after it may be lost in a power cut.
    ///
    /// # Errors
    /// [`SessionError::Write`] when the system refuses.
    pub fn sync(&mut self) -> Result<(), SessionError> {
        let synced = self.sound.sync().and_then(|()| self.gps.sync()).and_then(|()| self.bluetooth.sync());
        synced.map_err(SessionError::write(&self.path))?;
        self.write_manifest()
    }

    /// Finishes all files.
    ///
    /// # Errors
    /// [`SessionError::Write`] when the system refuses; what was written before stays readable.
    pub fn close(mut self) -> Result<(), SessionError> {
        for kind in SensorKind::ALL {
            self.end_gap(kind, self.last_ms);
        }
        let closed = self.sound.close().and_then(|()| self.gps.close()).and_then(|()| self.bluetooth.close());
        closed.map_err(SessionError::write(&self.path))?;
        self.write_manifest()
    }

    fn unwritable(&self, cause: String) -> SessionError {
        SessionError::Unwritable { path: self.path.clone(), cause }
    }

    fn offset_of(&self, reading: &Reading) -> Result<i64, SessionError> {
        let offset_ms = reading.captured_at.millis_since(self.header.started);
        match (0..=manifest::OFFSET_MS_MAX).contains(&offset_ms) {
            true => Ok(offset_ms),
            false => Err(self.unwritable(format!("a reading {offset_ms} ms from the start of the session"))),
        }
    }

    /// The kind of a source, which becomes a stream when it is new.
    fn stream_of(&mut self, source: &SourceId) -> Result<SensorKind, SessionError> {
        let kind = source.kind().ok_or_else(|| self.unwritable(format!("a source called {source}")))?;
        match self.header.stream(kind) {
            Some(stream) if stream.source == *source => {}
            Some(stream) => {
                return Err(self.unwritable(format!(
                    "{source} beside {}: a session has one {}",
                    stream.source,
                    kind.as_str()
                )));
            }
            None => {
                let stream = StreamHeader { kind, source: source.clone(), channel_map: None, gaps: Vec::new() };
                self.header.streams.push(stream);
                self.header.streams.sort_by_key(|stream| stream.kind);
                self.manifest_is_stale = true;
            }
        }
        Ok(kind)
    }

    fn gaps_of(&mut self, kind: SensorKind) -> Option<&mut Vec<Gap>> {
        self.header.streams.iter_mut().find(|stream| stream.kind == kind).map(|stream| &mut stream.gaps)
    }

    /// A loss of no length marks a break and no gap: there is nothing to write.
    fn begin_gap(&mut self, kind: SensorKind, from_ms: i64, loss: &Loss) {
        let length_ms = loss.length_ms.unwrap_or(1).min(manifest::OFFSET_MS_MAX - from_ms);
        let Some(gaps) = self.gaps_of(kind).filter(|_| length_ms > 0) else { return };
        let to_ms = from_ms + length_ms;
        let is_full = gaps.len() >= GAPS_MAX;
        match gaps.last_mut() {
            Some(last) if gaps_touch(last, from_ms, loss) => last.to_ms = last.to_ms.max(to_ms),
            Some(last) if is_full => last.to_ms = last.to_ms.max(to_ms),
            _ => gaps.push(Gap { from_ms, to_ms, reason: loss.reason, note: Some(loss.detail.clone()) }),
        }
        if loss.length_ms.is_none() {
            self.open_gaps.push(kind);
        }
        self.manifest_is_stale = true;
    }

    fn end_gap(&mut self, kind: SensorKind, at_ms: i64) {
        if !self.open_gaps.contains(&kind) {
            return;
        }
        self.open_gaps.retain(|&open| open != kind);
        if let Some(gap) = self.gaps_of(kind).and_then(|gaps| gaps.last_mut()) {
            gap.to_ms = gap.to_ms.max(at_ms);
        }
        self.manifest_is_stale = true;
    }

    fn veiled(&self, advertisement: &Advertisement) -> Advertisement {
        if self.options.raw {
            return advertisement.clone();
        }
        let sender = match &advertisement.sender {
            Sender::Address(address, kind) => Sender::Token((self.options.tokenise)(address, *kind)),
            other @ (Sender::Token(_) | Sender::Person(_)) => other.clone(),
        };
        Advertisement { sender, name: None, manufacturer_data: Vec::new(), ..advertisement.clone() }
    }

    fn write_picture(&mut self, offset_ms: i64, picture: &Picture) -> Result<(), SessionError> {
        let extension = match picture.format {
            PixelFormat::Jpeg => "jpg",
            PixelFormat::Png => "png",
            PixelFormat::Rgb8 | PixelFormat::Grey8 | PixelFormat::Yuyv | PixelFormat::Nv12 => {
                let cause =
                    format!("an uncompressed {:?} picture: pictures are recorded as JPEG or PNG", picture.format);
                return Err(self.unwritable(cause));
            }
        };
        let offset_ms = offset_ms.max(self.picture_ms + 1);
        let folder = self.path.join("camera");
        let path = folder.join(format!("{offset_ms}.{extension}{UNFINISHED}"));
        std::fs::create_dir_all(&folder)
            .and_then(|()| File::options().write(true).create_new(true).open(&path))
            .and_then(|mut file| file.write_all(&picture.bytes))
            .and_then(|()| finish(&path))
            .map_err(SessionError::write(&path))?;
        self.picture_ms = offset_ms;
        Ok(())
    }

    /// Replaces `session.toml` in one step, so that there is a whole one at any time.
    fn write_manifest(&mut self) -> Result<(), SessionError> {
        if !self.manifest_is_stale {
            return Ok(());
        }
        let path = self.path.join(format!("{MANIFEST}{UNFINISHED}"));
        let mode = if self.options.raw { 0o600 } else { 0o666 };
        File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(mode)
            .open(&path)
            .and_then(|mut file| file.write_all(render(&self.header).as_bytes()))
            .and_then(|()| finish(&path))
            .map_err(SessionError::write(&path))?;
        self.manifest_is_stale = false;
        Ok(())
    }
}

fn gaps_touch(last: &Gap, from_ms: i64, loss: &Loss) -> bool {
    last.to_ms >= from_ms && last.reason == loss.reason && last.note.as_deref() == Some(loss.detail.as_str())
}

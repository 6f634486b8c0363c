//! Writes what a run captures as a session that `percept replay` plays.
//!
//! In: readings in order, as the pipeline gets them. Out: a session folder. Uncompressed pictures become PNG, which loses
//! nothing. Addresses become tokens unless the owner asked for `raw`.
//! A reading that cannot be written is told once and costs the recording, never the capture.

use crate::agent::identity::Capture;
use crate::domain::reading::Advertisement;
use crate::domain::reading::Payload;
use crate::domain::reading::Picture;
use crate::domain::reading::PixelFormat;
use crate::domain::reading::Reading;
use crate::domain::reading::Sender;
use crate::domain::time::Stamp;
use crate::perception::identity::KnownPeople;
use crate::perception::pixels;
use crate::sensors::session::ClockStep;
use crate::sensors::session::RecordOptions;
use crate::sensors::session::SessionError;
use crate::sensors::session::SessionHeader;
use crate::sensors::session::SessionWriter;
use std::path::Path;

/// How often a recording is brought to the disk, in milliseconds.
const SYNC_MS: i64 = 5_000;

/// A sound file's length, in milliseconds.
const SEGMENT_MS: i64 = 600_000;

/// A session being recorded.
pub struct Recording {
    writer: SessionWriter,
    /// Who is written by name where addresses are not; `None` when they are.
    known: Option<KnownPeople>,
    started: Stamp,
    last: Option<Stamp>,
    synced_ms: i64,
    readings: u64,
    refused: u64,
    first_error: Option<String>,
}

impl Recording {
    /// Creates the folder. Offsets count from `started`.
    ///
    /// # Errors
    /// [`SessionError`] when the folder is there already or cannot be made.
    pub fn create(
        path: &Path,
        capture: &Capture,
        started: Stamp,
        known: KnownPeople,
        raw: bool,
    ) -> Result<Self, SessionError> {
        let header = SessionHeader {
            session_id: capture.session_id.clone(),
            device_id: Some(capture.device_id.clone()),
            boot_id: capture.boot_id.clone(),
            started,
            start_is_known: true,
            note: None,
            streams: Vec::new(),
            clock_steps: Vec::new(),
        };
        let key = blake3::hash(uuid::Uuid::new_v4().as_bytes());
        let tokenise = Box::new(move |address: &[u8; 6], _| {
            blake3::keyed_hash(key.as_bytes(), address).to_hex().as_str()[..16].to_owned()
        });
        let writer = SessionWriter::create(path, header, RecordOptions { raw, tokenise, segment_ms: SEGMENT_MS })?;
        Ok(Self {
            writer,
            known: (!raw).then_some(known),
            started,
            last: None,
            synced_ms: started.monotonic_ms,
            readings: 0,
            refused: 0,
            first_error: None,
        })
    }

    /// Records a reading, stamped as captured.
    pub fn write(&mut self, reading: &Reading) {
        let at = reading.captured_at;
        // What was captured before the recording began is no part of it.
        if at.monotonic_ms < self.started.monotonic_ms {
            return;
        }
        self.note_step(at);
        let changed = compressed(reading).or_else(|| self.named(reading));
        match self.writer.write(changed.as_ref().unwrap_or(reading)) {
            Ok(()) => self.readings += 1,
            Err(error) => {
                if self.first_error.is_none() {
                    tracing::warn!(%error, "a reading could not be recorded");
                    self.first_error = Some(error.to_string());
                }
                self.refused += 1;
            }
        }
        if at.monotonic_ms - self.synced_ms >= SYNC_MS {
            self.synced_ms = at.monotonic_ms;
            if let Err(error) = self.writer.sync() {
                self.first_error.get_or_insert(error.to_string());
            }
        }
    }

    fn note_step(&mut self, at: Stamp) {
        let Some(last) = self.last.filter(|last| last.monotonic_ms <= at.monotonic_ms) else {
            self.last.get_or_insert(at);
            return;
        };
        self.last = Some(at);
        let step_ms = at.utc.millis_since(last.utc) - at.millis_since(last);
        if step_ms != 0 || at.quality != last.quality {
            let at_ms = at.millis_since(self.started);
            self.writer.clock_was_set(ClockStep { at_ms, step_ms, quality: at.quality });
        }
    }

    /// A known person's advertisement carries the name instead of the address, so that a replay meets them too.
    fn named(&self, reading: &Reading) -> Option<Reading> {
        let Payload::Advertisement(advertisement) = &reading.payload else { return None };
        let name = self.known.as_ref()?.recognise(&advertisement.sender)?.to_owned();
        let advertisement = Advertisement { sender: Sender::Person(name), ..advertisement.clone() };
        Some(Reading { payload: Payload::Advertisement(advertisement), ..reading.clone() })
    }

    /// Readings recorded.
    #[must_use]
    pub fn readings(&self) -> u64 {
        self.readings
    }

    /// Finishes the files. Returns how many readings were recorded.
    ///
    /// # Errors
    /// The first sentence about what could not be written.
    pub fn close(self) -> anyhow::Result<u64> {
        self.writer.close()?;
        match self.first_error {
            None => Ok(self.readings),
            Some(error) => anyhow::bail!("{} readings could not be recorded; the first: {error}", self.refused),
        }
    }
}

/// The same reading with its picture as a file; `None` when it is one already, or cannot be decoded.
fn compressed(reading: &Reading) -> Option<Reading> {
    let Payload::Picture(picture) = &reading.payload else { return None };
    if matches!(picture.format, PixelFormat::Jpeg | PixelFormat::Png) {
        return None;
    }
    let image = pixels::decode_picture(picture).ok()?;
    let bytes = pixels::encode_png(&image)?;
    let picture = Picture { format: PixelFormat::Png, size_px: None, bytes: bytes.into() };
    Some(Reading { payload: Payload::Picture(picture), ..reading.clone() })
}

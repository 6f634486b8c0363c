//! Writes sound into WAV files named by their offset, a new one every so often.
//!
//! A file that is still open ends in `.prog`. Its header is brought up to date at every
//! [`SoundRecorder::sync`], so a power cut costs what came after the last one, and the reader
//! rebuilds the length even of that.

use super::folder::UNFINISHED;
use crate::domain::reading::Samples;
use crate::domain::reading::SoundChunk;
use hound::SampleFormat;
use hound::WavSpec;
use hound::WavWriter;
use std::fs::File;
use std::io;
use std::io::BufWriter;
use std::path::Path;
use std::path::PathBuf;

/// A chunk this far from where the sound before it ends begins a new file.
const SLACK_MS: i64 = 50;
/// A file is closed before it grows past this, far below the 4 GiB that a WAV header can say.
const SEGMENT_BYTES_MAX: u64 = 1024 * 1024 * 1024;

struct Segment {
    writer: WavWriter<BufWriter<File>>,
    spec: WavSpec,
    path: PathBuf,
    offset_ms: i64,
    frames: u64,
}

impl Segment {
    fn length_ms(&self) -> i64 {
        let millis = u128::from(self.frames) * 1_000 / u128::from(self.spec.sample_rate.max(1));
        i64::try_from(millis).unwrap_or(i64::MAX)
    }

    fn bytes(&self) -> u64 {
        self.frames * u64::from(self.spec.channels) * u64::from(self.spec.bits_per_sample / 8)
    }
}

/// The sound files of a recording.
pub(super) struct SoundRecorder {
    folder: PathBuf,
    segment_ms: i64,
    open: Option<Segment>,
    /// Offsets up to here are taken.
    used_ms: i64,
}

impl SoundRecorder {
    pub(super) fn new(folder: PathBuf, segment_ms: i64) -> Self {
        Self { folder, segment_ms, open: None, used_ms: -1 }
    }

    /// Appends a chunk captured at `offset_ms`.
    pub(super) fn write(&mut self, offset_ms: i64, chunk: &SoundChunk) -> io::Result<()> {
        let spec = spec_of(chunk);
        let fits = self.open.as_ref().is_some_and(|open| {
            open.spec == spec
                && (offset_ms - open.offset_ms - open.length_ms()).abs() <= SLACK_MS
                && open.length_ms() < self.segment_ms
                && open.bytes() < SEGMENT_BYTES_MAX
        });
        if !fits {
            self.close()?;
        }
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.create(offset_ms, spec)?,
        };
        let written = write_samples(&mut open.writer, &chunk.samples);
        open.frames += u64::try_from(chunk.frame_count()).unwrap_or(u64::MAX);
        self.open = Some(open);
        written.map_err(io_error)
    }

    fn create(&mut self, offset_ms: i64, spec: WavSpec) -> io::Result<Segment> {
        std::fs::create_dir_all(&self.folder)?;
        let offset_ms = offset_ms.max(self.used_ms + 1);
        let path = self.folder.join(format!("{offset_ms}.wav{UNFINISHED}"));
        let file = File::options().write(true).create_new(true).open(&path)?;
        let writer = WavWriter::new(BufWriter::new(file), spec).map_err(io_error)?;
        self.used_ms = offset_ms;
        Ok(Segment { writer, spec, path, offset_ms, frames: 0 })
    }

    /// Brings what is written so far to the disk, header included.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        open.writer.flush().map_err(io_error)?;
        File::open(&open.path)?.sync_data()
    }

    /// Finishes the open file and gives it its final name.
    pub(super) fn close(&mut self) -> io::Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        open.writer.finalize().map_err(io_error)?;
        finish(&open.path)
    }
}

/// Brings a complete file to the disk and takes the `.prog` from its name, in this order: a file with
/// its final name is whole.
pub(super) fn finish(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()?;
    let name = path.to_string_lossy();
    std::fs::rename(path, name.strip_suffix(UNFINISHED).unwrap_or(&name))?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

fn spec_of(chunk: &SoundChunk) -> WavSpec {
    let (bits_per_sample, sample_format) = match chunk.samples {
        Samples::I16(_) => (16, SampleFormat::Int),
        Samples::I24(_) => (24, SampleFormat::Int),
        Samples::I32(_) => (32, SampleFormat::Int),
        Samples::F32(_) => (32, SampleFormat::Float),
    };
    WavSpec { channels: chunk.channel_count, sample_rate: chunk.sample_rate_hz, bits_per_sample, sample_format }
}

fn write_samples(writer: &mut WavWriter<BufWriter<File>>, samples: &Samples) -> hound::Result<()> {
    match samples {
        Samples::I16(values) => values.iter().try_for_each(|&value| writer.write_sample(value)),
        Samples::I24(values) => {
            values.iter().try_for_each(|&value| writer.write_sample(value.clamp(-8_388_608, 8_388_607)))
        }
        Samples::I32(values) => values.iter().try_for_each(|&value| writer.write_sample(value)),
        Samples::F32(values) => values.iter().try_for_each(|&value| writer.write_sample(value)),
    }
}

fn io_error(error: hound::Error) -> io::Error {
    match error {
        hound::Error::IoError(error) => error,
        other @ (hound::Error::FormatError(_)
        | hound::Error::TooWide
        | hound::Error::UnfinishedSample
        | hound::Error::Unsupported
        | hound::Error::InvalidSampleFormat) => io::Error::other(other.to_string()),
    }
}

//! One sound file of either kind, told by its content and read in chunks.

use super::flac::FlacStream;
use super::wav::WavReader;
use crate::domain::reading::Samples;
use crate::domain::reading::SoundChunk;
use std::fs::File;
use std::io::BufReader;
use std::io::Read;
use std::io::Seek;
use std::path::Path;

/// Chunks are a quarter of a second at most.
const CHUNKS_PER_S: u32 = 4;

enum Decoder {
    Wav(WavReader<BufReader<File>>),
    Flac(FlacStream<File>),
}

/// An open sound file.
pub(super) struct SoundFile {
    decoder: Decoder,
    /// Frames per second.
    pub(super) sample_rate_hz: u32,
    /// Values in a frame.
    pub(super) channel_count: u16,
    /// Frames handed out or passed over so far.
    pub(super) position: u64,
}

impl SoundFile {
    /// Opens a file and reads its header. The error is a clause for the operator.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let metadata = std::fs::metadata(path).map_err(|error| format!("it cannot be read: {error}"))?;
        if !metadata.is_file() {
            return Err("it is no regular file".to_owned());
        }
        if metadata.len() == 0 {
            return Err("it is empty".to_owned());
        }
        let mut file = File::open(path).map_err(|error| format!("it cannot be read: {error}"))?;
        let mut head = [0; 4];
        file.read_exact(&mut head).map_err(|_| "it is too short for a sound file".to_owned())?;
        file.rewind().map_err(|error| error.to_string())?;
        let decoder = match &head {
            b"fLaC" => Decoder::Flac(FlacStream::open(file)?),
            b"RIFF" | b"RF64" | b"BW64" | b"RIFX" => Decoder::Wav(WavReader::open(BufReader::new(file))?),
            _ => return Err("it is neither WAV nor FLAC".to_owned()),
        };
        let (sample_rate_hz, channel_count) = match &decoder {
            Decoder::Wav(wav) => (wav.sample_rate_hz, wav.channel_count),
            Decoder::Flac(flac) => (flac.sample_rate_hz, flac.channel_count),
        };
        Ok(Self { decoder, sample_rate_hz, channel_count, position: 0 })
    }

    /// The next quarter of a second or less; `None` at the end. The error is a clause for the operator.
    pub(super) fn next_chunk(&mut self) -> Result<Option<SoundChunk>, String> {
        let frames_max = u64::from((self.sample_rate_hz / CHUNKS_PER_S).max(1));
        let samples = self.read(frames_max)?;
        let chunk = SoundChunk { sample_rate_hz: self.sample_rate_hz, channel_count: self.channel_count, samples };
        Ok((!chunk.samples.is_empty()).then_some(chunk))
    }

    /// Passes over `frames` frames, or all that there are.
    pub(super) fn skip(&mut self, frames: u64) -> Result<(), String> {
        let end = self.position.saturating_add(frames);
        if let Decoder::Wav(wav) = &mut self.decoder {
            wav.skip(frames).map_err(|error| error.to_string())?;
            self.position = end;
        }
        while self.position < end {
            if self.read(end - self.position)?.is_empty() {
                break;
            }
        }
        Ok(())
    }

    fn read(&mut self, frames_max: u64) -> Result<Samples, String> {
        let samples = match &mut self.decoder {
            Decoder::Wav(wav) => wav.read(frames_max).map_err(|error| error.to_string())?,
            Decoder::Flac(flac) => flac.read(frames_max)?,
        };
        let frames = samples.len() / usize::from(self.channel_count);
        self.position += u64::try_from(frames).unwrap_or(u64::MAX);
        Ok(samples)
    }

    /// Why the length in the header was not believed, when it was not.
    pub(super) fn rebuilt(&self) -> Option<&'static str> {
        match &self.decoder {
            Decoder::Wav(wav) => wav.rebuilt,
            Decoder::Flac(_) => None,
        }
    }

    /// Frames that the header promises and that have not been handed out.
    pub(super) fn frames_owed(&self) -> u64 {
        match &self.decoder {
            Decoder::Wav(wav) => (wav.frame_count + wav.frames_missing).saturating_sub(self.position),
            Decoder::Flac(flac) => flac.frame_count.unwrap_or(0).saturating_sub(self.position),
        }
    }

    /// Milliseconds that `frames` frames take, rounded down.
    pub(super) fn millis(&self, frames: u64) -> i64 {
        let millis = u128::from(frames) * 1_000 / u128::from(self.sample_rate_hz);
        i64::try_from(millis).unwrap_or(i64::MAX)
    }

    /// Frames in `millis` milliseconds, rounded up.
    pub(super) fn frames(&self, millis: i64) -> u64 {
        (u64::try_from(millis).unwrap_or(0)).saturating_mul(u64::from(self.sample_rate_hz)).div_ceil(1_000)
    }

    /// How long the file says or shows itself to be, when that is known without decoding it.
    pub(super) fn length_ms(&self) -> Option<i64> {
        match &self.decoder {
            Decoder::Wav(wav) => Some(self.millis(wav.frame_count)),
            Decoder::Flac(flac) => flac.frame_count.map(|frames| self.millis(frames)),
        }
    }
}

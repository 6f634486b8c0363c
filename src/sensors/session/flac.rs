//! Reads FLAC files block by block, through claxon.
//!
//! In: a file. Out: its format and frames. Never: more than one FLAC block (65,535 frames) in memory.

use crate::domain::reading::Samples;
use claxon::FlacReader;
use claxon::FlacReaderOptions;
use std::io::Read;

/// A FLAC file, read from its first frame to its last.
pub(super) struct FlacStream<R: Read> {
    reader: FlacReader<R>,
    bits: u32,
    /// Frames per second.
    pub(super) sample_rate_hz: u32,
    /// 1 to 8.
    pub(super) channel_count: u16,
    /// Frames that the header promises; `None` when it does not say.
    pub(super) frame_count: Option<u64>,
    /// Interleaved values of the block at hand, from `used` on not yet handed out.
    block: Vec<i32>,
    used: usize,
}

impl<R: Read> FlacStream<R> {
    /// Reads the header. The error is a clause for the operator.
    pub(super) fn open(reader: R) -> Result<Self, String> {
        let options = FlacReaderOptions { metadata_only: false, read_vorbis_comment: false };
        let reader =
            FlacReader::new_ext(reader, options).map_err(|error| format!("it is no sound FLAC file ({error})"))?;
        let info = reader.streaminfo();
        let channel_count = u16::try_from(info.channels).unwrap_or(0);
        if channel_count == 0 || info.sample_rate == 0 || !(4..=32).contains(&info.bits_per_sample) {
            return Err(format!(
                "its FLAC header says {} channels of {} bits at {} Hz",
                info.channels, info.bits_per_sample, info.sample_rate
            ));
        }
        Ok(Self {
            reader,
            bits: info.bits_per_sample,
            sample_rate_hz: info.sample_rate,
            channel_count,
            frame_count: info.samples.filter(|&frames| frames > 0),
            block: Vec::new(),
            used: 0,
        })
    }

    /// The next `frames_max` frames or fewer; empty at the end.
    pub(super) fn read(&mut self, frames_max: u64) -> Result<Samples, String> {
        if self.used >= self.block.len() && !self.next_block()? {
            return Ok(Samples::I16(Vec::new()));
        }
        let wanted = frames_max.saturating_mul(u64::from(self.channel_count));
        let end = self.used.saturating_add(usize::try_from(wanted).unwrap_or(usize::MAX)).min(self.block.len());
        let values = self.block.get(self.used..end).unwrap_or_default();
        let samples = scaled(values, self.bits);
        self.used = end;
        Ok(samples)
    }

    fn next_block(&mut self) -> Result<bool, String> {
        let channels = u32::from(self.channel_count);
        match self.reader.blocks().read_next_or_eof(std::mem::take(&mut self.block)) {
            Ok(Some(block)) if block.channels() == channels && block.duration() > 0 => {
                self.block.clear();
                let mut interleaved = Vec::with_capacity(usize::try_from(block.len()).unwrap_or_default());
                for frame in 0..block.duration() {
                    interleaved.extend((0..channels).map(|channel| block.sample(channel, frame)));
                }
                self.block = interleaved;
                self.used = 0;
                Ok(true)
            }
            Ok(Some(_)) => Err("a FLAC block does not fit the header".to_owned()),
            Ok(None) => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Values of `bits` bits, moved up to the next format that a reading has.
fn scaled(values: &[i32], bits: u32) -> Samples {
    match bits {
        // A value of at most 16 bits that a damaged block made too large is held at full scale.
        0..=16 => Samples::I16(values.iter().map(|&value| saturate(i64::from(value) << (16 - bits))).collect()),
        17..=24 => {
            Samples::I24(values.iter().map(|&value| (value << (24 - bits)).clamp(-8_388_608, 8_388_607)).collect())
        }
        _ => Samples::I32(values.iter().map(|&value| value << (32 - bits.min(32))).collect()),
    }
}

fn saturate(value: i64) -> i16 {
    i16::try_from(value).unwrap_or(if value < 0 { i16::MIN } else { i16::MAX })
}

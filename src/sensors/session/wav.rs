//! Reads WAV files, and those that a crash, a pipe or a copy left wrong.
//!
//! In: a seekable file. Out: its format, and its frames as bytes in chunks.
//! The sizes in the header are believed only where the file bears them out: 0, 0xFFFFFFFF, sizes
//! beyond the end and sizes that stop short of data all give the length that the data has.
//! Never: more than one chunk in memory.

use crate::domain::reading::Samples;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;

/// Frames per second that a reading may have.
pub(super) const SAMPLE_RATE_HZ_MAX: u32 = 768_000;
/// Channels that a reading may have: bounds what one chunk holds.
pub(super) const CHANNELS_MAX: u16 = 64;
/// Data sizes from here on are what programs write that do not know the size yet.
const PLACEHOLDER_MIN: u64 = 0x7FFF_0000;
/// Chunks that are looked at before the search for `fmt ` and `data` is given up.
const CHUNKS_MAX: usize = 1_000;

const FORMAT_PCM: u16 = 1;
const FORMAT_FLOAT: u16 = 3;
const FORMAT_EXTENSIBLE: u16 = 0xFFFE;
/// The last 14 bytes of every `KSDATAFORMAT_SUBTYPE` that stands for a plain format tag.
const SUBFORMAT_TAIL: [u8; 14] = [0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x80, 0x00, 0x00, 0xAA, 0x00, 0x38, 0x9B, 0x71];

/// How values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WavFormat {
    U8,
    I16,
    I24,
    I32,
    F32,
}

impl WavFormat {
    const fn bytes(self) -> u16 {
        match self {
            Self::U8 => 1,
            Self::I16 => 2,
            Self::I24 => 3,
            Self::I32 | Self::F32 => 4,
        }
    }
}

/// A WAV file, read from its first frame to its last.
pub(super) struct WavReader<R> {
    reader: R,
    format: WavFormat,
    /// Frames per second, 1 to [`SAMPLE_RATE_HZ_MAX`].
    pub(super) sample_rate_hz: u32,
    /// 1 to [`CHANNELS_MAX`].
    pub(super) channel_count: u16,
    /// Whole frames that the file holds.
    pub(super) frame_count: u64,
    /// Frames that the header promises and the file does not hold.
    pub(super) frames_missing: u64,
    /// What is wrong with the header, when the length was rebuilt.
    pub(super) rebuilt: Option<&'static str>,
    position: u64,
}

/// The header, as far as it was found.
#[derive(Default)]
struct Layout {
    form: Option<Form>,
    data: Option<(u64, u64)>,
    data_size_64: Option<u64>,
}

#[derive(Clone, Copy)]
struct Form {
    format: WavFormat,
    sample_rate_hz: u32,
    channel_count: u16,
}

impl<R: Read + Seek> WavReader<R> {
    /// Reads the header and stands at the first frame. The error is a clause for the operator.
    pub(super) fn open(mut reader: R) -> Result<Self, String> {
        let file_bytes = reader.seek(SeekFrom::End(0)).map_err(|error| error.to_string())?;
        reader.rewind().map_err(|error| error.to_string())?;
        let riff_bytes = riff_header(&mut reader)?;
        let layout = find_chunks(&mut reader, file_bytes)?;
        let form = layout.form.ok_or("it has no usable fmt chunk")?;
        let (start, size) = layout.data.ok_or("it has no data chunk")?;
        let available = file_bytes.saturating_sub(start);
        let (length, missing, rebuilt) = data_length(&mut reader, riff_bytes, start, size, available)?;
        let block = u64::from(form.format.bytes()) * u64::from(form.channel_count);
        reader.seek(SeekFrom::Start(start)).map_err(|error| error.to_string())?;
        Ok(Self {
            reader,
            format: form.format,
            sample_rate_hz: form.sample_rate_hz,
            channel_count: form.channel_count,
            frame_count: length / block,
            frames_missing: missing / block,
            rebuilt,
            position: 0,
        })
    }

    /// The next `frames_max` frames or fewer; empty at the end.
    pub(super) fn read(&mut self, frames_max: u64) -> io::Result<Samples> {
        let frames = frames_max.min(self.frame_count - self.position);
        let bytes = frames * u64::from(self.format.bytes()) * u64::from(self.channel_count);
        let mut buffer = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
        self.reader.read_exact(&mut buffer)?;
        self.position += frames;
        Ok(samples(self.format, &buffer))
    }

    /// Passes over `frames` frames.
    pub(super) fn skip(&mut self, frames: u64) -> io::Result<()> {
        let frames = frames.min(self.frame_count - self.position);
        let bytes = frames * u64::from(self.format.bytes()) * u64::from(self.channel_count);
        self.reader.seek_relative(i64::try_from(bytes).map_err(io::Error::other)?)?;
        self.position += frames;
        Ok(())
    }
}

/// Checks the 12 bytes at the start and answers with the size they give for the rest.
fn riff_header(reader: &mut impl Read) -> Result<u64, String> {
    let mut head = [0; 12];
    reader.read_exact(&mut head).map_err(|_| "it is too short for a WAV header".to_owned())?;
    let [a, b, c, d, s0, s1, s2, s3, form @ ..] = head;
    match &[a, b, c, d] {
        b"RIFF" | b"RF64" | b"BW64" => {}
        b"RIFX" => return Err("it is a big-endian RIFX file, which percept does not read".to_owned()),
        _ => return Err("it does not begin like a WAV file".to_owned()),
    }
    match &form == b"WAVE" {
        true => Ok(u64::from(u32::from_le_bytes([s0, s1, s2, s3]))),
        false => Err("it is a RIFF file but no WAV".to_owned()),
    }
}

/// Walks over the chunks, in whatever order they stand, until format and data are known.
fn find_chunks<R: Read + Seek>(reader: &mut R, file_bytes: u64) -> Result<Layout, String> {
    let mut layout = Layout::default();
    let mut at = 12;
    for _ in 0..CHUNKS_MAX {
        let Some((id, size)) = chunk_at(reader, at, file_bytes)? else { break };
        let start = at + 8;
        match &id {
            b"fmt " if layout.form.is_none() => layout.form = Some(form(&body::<40, R>(reader, size)?)?),
            b"ds64" => {
                let body = body::<16, R>(reader, size)?;
                layout.data_size_64 = body.get(8..16).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
            }
            b"data" if layout.data.is_none() => {
                let size = match (size, layout.data_size_64) {
                    (0xFFFF_FFFF, Some(size)) => size,
                    (size, _) => u64::from(size),
                };
                layout.data = Some((start, size));
            }
            _ => {}
        }
        if layout.form.is_some() && layout.data.is_some() {
            break;
        }
        let size = match layout.data {
            Some((data, size)) if data == start => size,
            _ => u64::from(size),
        };
        at = start.saturating_add(size).saturating_add(size % 2);
    }
    Ok(layout)
}

fn chunk_at<R: Read + Seek>(reader: &mut R, at: u64, file_bytes: u64) -> Result<Option<([u8; 4], u32)>, String> {
    if at.saturating_add(8) > file_bytes {
        return Ok(None);
    }
    let mut head = [0; 8];
    reader.seek(SeekFrom::Start(at)).and_then(|_| reader.read_exact(&mut head)).map_err(|error| error.to_string())?;
    let [a, b, c, d, size @ ..] = head;
    Ok(Some(([a, b, c, d], u32::from_le_bytes(size))))
}

/// The first bytes of a chunk, at most `N`.
fn body<const N: usize, R: Read>(reader: &mut R, size: u32) -> Result<Vec<u8>, String> {
    let mut body = Vec::with_capacity(N);
    let wanted = u64::from(size).min(u64::try_from(N).unwrap_or(u64::MAX));
    reader.take(wanted).read_to_end(&mut body).map_err(|error| error.to_string())?;
    Ok(body)
}

fn form(body: &[u8]) -> Result<Form, String> {
    let word = |at: usize| Some(u16::from_le_bytes([*body.get(at)?, *body.get(at + 1)?]));
    let short = || "its fmt chunk is too short".to_owned();
    let mut tag = word(0).ok_or_else(short)?;
    let channel_count = word(2).ok_or_else(short)?;
    let sample_rate_hz = u32::from(word(4).ok_or_else(short)?) | (u32::from(word(6).ok_or_else(short)?) << 16);
    let block = word(12).ok_or_else(short)?;
    let bits = word(14).ok_or_else(short)?;
    if tag == FORMAT_EXTENSIBLE {
        tag = word(24).ok_or_else(short)?;
        if body.get(26..40) != Some(&SUBFORMAT_TAIL[..]) {
            return Err("its extensible format is none that percept knows".to_owned());
        }
    }
    if channel_count == 0 || channel_count > CHANNELS_MAX {
        return Err(format!("it has {channel_count} channels and percept takes 1 to {CHANNELS_MAX}"));
    }
    if sample_rate_hz == 0 || sample_rate_hz > SAMPLE_RATE_HZ_MAX {
        return Err(format!("its sample rate is {sample_rate_hz} Hz and percept takes 1 to {SAMPLE_RATE_HZ_MAX}"));
    }
    let format = format_of(tag, bits)?;
    let expected = format.bytes() * channel_count;
    if block != 0 && block != expected {
        return Err(format!(
            "its fmt chunk contradicts itself ({channel_count} channels of {bits} bits in blocks of {block} bytes)"
        ));
    }
    Ok(Form { format, sample_rate_hz, channel_count })
}

fn format_of(tag: u16, bits: u16) -> Result<WavFormat, String> {
    match (tag, bits) {
        (FORMAT_PCM, 1..=8) => Ok(WavFormat::U8),
        (FORMAT_PCM, 9..=16) => Ok(WavFormat::I16),
        (FORMAT_PCM, 17..=24) => Ok(WavFormat::I24),
        (FORMAT_PCM, 25..=32) => Ok(WavFormat::I32),
        (FORMAT_FLOAT, 32) => Ok(WavFormat::F32),
        (FORMAT_PCM, _) => Err(format!("its samples are whole numbers of {bits} bits, which percept does not read")),
        (FORMAT_FLOAT, _) => {
            Err(format!("its samples are {bits}-bit floating point; percept reads 32-bit floating point (f32)"))
        }
        _ => Err(format!("its samples are {}, which percept does not read", tag_name(tag))),
    }
}

fn tag_name(tag: u16) -> String {
    match tag {
        0x0002 => "Microsoft ADPCM".to_owned(),
        0x0006 => "A-law".to_owned(),
        0x0007 => "µ-law".to_owned(),
        0x0011 => "IMA ADPCM".to_owned(),
        0x0031 => "GSM 6.10".to_owned(),
        0x0050 => "MPEG".to_owned(),
        0x0055 => "MP3".to_owned(),
        _ => format!("of format 0x{tag:04x}"),
    }
}

/// How many bytes of sound there are, how many are missing, and why the header was not believed.
fn data_length<R: Read + Seek>(
    reader: &mut R,
    riff_bytes: u64,
    start: u64,
    size: u64,
    available: u64,
) -> Result<(u64, u64, Option<&'static str>), String> {
    let file_bytes = start + available;
    if size == 0 && available > 0 {
        let honest = riff_bytes + 8 == file_bytes && is_chunk_list(reader, start, file_bytes)?;
        return Ok(if honest { (0, 0, None) } else { (available, 0, Some("its header was never finalised")) });
    }
    if size > available {
        // RF64 sizes are 64 bits wide, so a large one there may be meant.
        let unknown =
            (PLACEHOLDER_MIN..=0xFFFF_FFFF).contains(&size) || riff_bytes == 0 || riff_bytes >= PLACEHOLDER_MIN;
        return Ok(match unknown {
            true => (available, 0, Some("its header was never finalised")),
            false => (available, size - available, None),
        });
    }
    let end = start + size;
    let rest = file_bytes - end;
    if rest > 1 && !is_chunk_list(reader, end + size % 2, file_bytes)? && !is_chunk_list(reader, end, file_bytes)? {
        return Ok((available, 0, Some("its header stops short of its data")));
    }
    Ok((size, 0, None))
}

/// Whether the bytes from `at` to the end are chunks, or a tag that music programs append.
fn is_chunk_list<R: Read + Seek>(reader: &mut R, mut at: u64, file_bytes: u64) -> Result<bool, String> {
    for _ in 0..CHUNKS_MAX {
        let Some((id, size)) = chunk_at(reader, at, file_bytes)? else { return Ok(true) };
        if id.starts_with(b"TAG") || id.starts_with(b"ID3") {
            return Ok(true);
        }
        let next = at + 8 + u64::from(size);
        if !id.iter().all(|byte| (0x20..0x7F).contains(byte)) || next > file_bytes {
            return Ok(false);
        }
        at = next + u64::from(size % 2);
    }
    Ok(false)
}

fn samples(format: WavFormat, bytes: &[u8]) -> Samples {
    match format {
        // Unsigned, 128 is silence.
        WavFormat::U8 => Samples::I16(bytes.iter().map(|&byte| (i16::from(byte) - 128) << 8).collect()),
        WavFormat::I16 => Samples::I16(bytes.as_chunks().0.iter().map(|&value| i16::from_le_bytes(value)).collect()),
        WavFormat::I24 => Samples::I24(
            bytes.as_chunks().0.iter().map(|&[low, mid, high]| i32::from_le_bytes([0, low, mid, high]) >> 8).collect(),
        ),
        WavFormat::I32 => Samples::I32(bytes.as_chunks().0.iter().map(|&value| i32::from_le_bytes(value)).collect()),
        WavFormat::F32 => Samples::F32(bytes.as_chunks().0.iter().map(|&value| f32::from_le_bytes(value)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// A mono 16-bit file at 8 kHz with `frames` frames and the given sizes in its header.
    fn wav(riff: u32, data: u32, frames: usize, tail: &[u8]) -> Vec<u8> {
        let mut bytes = b"RIFF".to_vec();
        bytes.extend(riff.to_le_bytes());
        bytes.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
        bytes.extend(8_000_u32.to_le_bytes());
        bytes.extend(16_000_u32.to_le_bytes());
        bytes.extend(b"\x02\0\x10\0data");
        bytes.extend(data.to_le_bytes());
        bytes.extend((0..frames * 2).map(|index| u8::try_from(index % 251).unwrap() | 0x80));
        bytes.extend(tail);
        bytes
    }

    fn open(bytes: Vec<u8>) -> WavReader<Cursor<Vec<u8>>> {
        WavReader::open(Cursor::new(bytes)).unwrap()
    }

    #[test]
    fn the_length_is_rebuilt_when_the_header_was_never_finalised() {
        for (riff, data) in [(0, 0), (u32::MAX, u32::MAX), (0x7FFF_FFFF, 0x7FFF_FFFF - 36), (36, 0), (0, 4_000)] {
            let reader = open(wav(riff, data, 1_000, &[]));

            assert_eq!((reader.frame_count, reader.frames_missing), (1_000, 0), "{riff} {data}");
            assert!(reader.rebuilt.is_some(), "{riff} {data}");
        }
    }

    #[test]
    fn a_header_that_stops_short_of_its_data_is_not_believed() {
        let reader = open(wav(36 + 200, 200, 1_000, &[]));

        assert_eq!(reader.frame_count, 1_000);
        assert_eq!(reader.rebuilt, Some("its header stops short of its data"));
    }

    #[test]
    fn a_file_cut_short_says_how_much_is_missing() {
        let reader = open(wav(36 + 3_000, 3_000, 1_000, b"x"));

        assert_eq!((reader.frame_count, reader.frames_missing, reader.rebuilt), (1_000, 499, None));
    }

    #[test]
    fn chunks_behind_the_data_are_no_sound() {
        let reader = open(wav(36 + 2_000 + 12, 2_000, 1_000, b"LIST\x04\0\0\0INFO"));

        assert_eq!((reader.frame_count, reader.rebuilt), (1_000, None));
    }

    #[test]
    fn an_empty_data_chunk_of_a_finished_file_is_empty() {
        let reader = open(wav(36, 0, 0, &[]));
        let with_list = open(wav(48, 0, 0, b"LIST\x04\0\0\0INFO"));

        assert_eq!((reader.frame_count, with_list.frame_count), (0, 0));
    }

    #[test]
    fn data_before_fmt_and_odd_unknown_chunks_are_read() {
        let plain = wav(0, 0, 0, &[]);
        let (fmt, mut bytes) = (plain[12..36].to_vec(), b"RIFF\0\0\0\0WAVE".to_vec());
        bytes.extend(b"junk\x03\0\0\0abc\0data\x04\0\0\0\x01\0\x02\0");
        bytes.extend(fmt);

        let mut reader = open(bytes);

        assert!(matches!(reader.read(100).unwrap(), Samples::I16(values) if values == [1, 2]));
    }

    #[test]
    fn formats_that_are_not_read_are_named() {
        for (tag, bits, name) in [(3, 64, "64-bit floating point"), (7, 8, "µ-law"), (1, 64, "64 bits")] {
            let mut bytes = wav(0, 0, 8, &[]);
            bytes[20] = tag;
            bytes[34] = bits;

            let error = WavReader::open(Cursor::new(bytes)).err().unwrap();

            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn packed_24_bit_values_keep_their_sign() {
        let values = samples(WavFormat::I24, &[0xFF, 0xFF, 0x7F, 0x00, 0x00, 0x80, 0xFF, 0xFF, 0xFF]);

        assert!(matches!(values, Samples::I24(values) if values == [8_388_607, -8_388_608, -1]));
    }
}

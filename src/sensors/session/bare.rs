//! A single file as a session of one sensor: what kind it is, its id, its start and its length.
//!
//! In: a file of any content. Out: a [`SessionHeader`] whose session id is the BLAKE3 of the bytes.
//! The start comes from the caller, else from a time inside the file that can be believed, else from
//! the modification time, which proves nothing: its quality is unset and it is no part of ids.

use super::OpenOptions;
use super::camera::format_of;
use super::error::SessionError;
use super::gps_log::LogKind;
use super::gps_log::summarise;
use super::header::SessionHeader;
use super::header::StreamHeader;
use super::nmea_log::is_sentence;
use super::problems::ProblemKind;
use super::problems::Problems;
use super::sound_file::SoundFile;
use super::timing::Plausible;
use crate::domain::id::BootId;
use crate::domain::id::SensorKind;
use crate::domain::id::SessionId;
use crate::domain::reading::PixelFormat;
use crate::domain::time::ClockQuality;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;
use crate::domain::time::from_system_time;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;

/// How much of a file is looked at to tell its kind.
const HEAD_BYTES: u64 = 64 * 1024;

/// The kinds of file that are a session by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BareKind {
    Sound,
    Picture,
    Log(LogKind),
}

impl BareKind {
    pub(super) const fn sensor(self) -> SensorKind {
        match self {
            Self::Sound => SensorKind::Microphone,
            Self::Picture => SensorKind::Camera,
            Self::Log(_) => SensorKind::Gps,
        }
    }
}

/// A file that is a session by itself.
#[derive(Debug, Clone)]
pub(super) struct BareFile {
    pub(super) path: PathBuf,
    pub(super) kind: BareKind,
    pub(super) plausible: Plausible,
}

/// What opening a bare file finds out.
pub(super) struct OpenedBare {
    pub(super) header: SessionHeader,
    pub(super) file: BareFile,
    pub(super) length_ms: Option<i64>,
    pub(super) bytes: u64,
}

/// Opens a file whose metadata is at hand.
pub(super) fn open(
    path: &Path,
    metadata: &std::fs::Metadata,
    options: &OpenOptions,
    problems: &Problems,
) -> Result<OpenedBare, SessionError> {
    if metadata.len() == 0 {
        return Err(SessionError::Unusable { path: path.to_owned(), cause: "it is empty".to_owned() });
    }
    let mut head = Vec::new();
    File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head)).map_err(SessionError::read(path))?;
    let kind = kind_of(&head).ok_or_else(|| unknown(path, &head))?;
    let written = metadata.modified().map(from_system_time).map_err(SessionError::read(path))?;
    let plausible = Plausible { now: options.assumed_now, written };
    let (inside, length_ms) = look_inside(path, kind, plausible, problems)?;
    let started = |utc, quality| Stamp { monotonic_ms: 0, utc, quality };
    let (started, start_is_known) = match (options.started_at, inside) {
        (Some(given), _) => (started(given, ClockQuality::Network), true),
        (None, Some((found, quality))) => (started(found, quality), true),
        (None, None) => (started(written, ClockQuality::Unset), false),
    };
    let digest = digest(path)?;
    let header = SessionHeader {
        session_id: SessionId::new(&digest),
        device_id: None,
        boot_id: BootId::new(&digest),
        started,
        start_is_known,
        note: None,
        clock_steps: Vec::new(),
        streams: vec![StreamHeader::plain(kind.sensor(), "file")],
    };
    let file = BareFile { path: path.to_owned(), kind, plausible };
    Ok(OpenedBare { header, file, length_ms, bytes: metadata.len() })
}

/// A time found inside a file, and how far it can be trusted.
type TimeInside = (Timestamp, ClockQuality);

/// The time inside a file, how far it can be trusted, and how long the file is.
fn look_inside(
    path: &Path,
    kind: BareKind,
    plausible: Plausible,
    problems: &Problems,
) -> Result<(Option<TimeInside>, Option<i64>), SessionError> {
    match kind {
        BareKind::Sound => {
            let sound =
                SoundFile::open(path).map_err(|cause| SessionError::Unusable { path: path.to_owned(), cause })?;
            Ok((None, sound.length_ms()))
        }
        BareKind::Picture => Ok((super::exif_time::time_in(path, plausible), Some(0))),
        BareKind::Log(kind) => {
            let summary = summarise(path, kind, plausible).map_err(SessionError::read(path))?;
            if summary.leaps > 0 {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let detail =
                    format!("{name}: its times leap {} times; offsets go on from where they were", summary.leaps);
                problems.count(ProblemKind::TimeLeap, &detail);
            }
            Ok((summary.start.map(|start| (start, ClockQuality::Gps)), Some(summary.length_ms)))
        }
    }
}

/// Tells a file's kind by its beginning.
pub(super) fn kind_of(head: &[u8]) -> Option<BareKind> {
    if head.starts_with(b"fLaC") || matches!(head.get(..4), Some(b"RIFF" | b"RF64" | b"BW64" | b"RIFX")) {
        return Some(BareKind::Sound);
    }
    if matches!(format_of(head), Some(PixelFormat::Jpeg | PixelFormat::Png)) {
        return Some(BareKind::Picture);
    }
    let lines = || head.split(|&byte| byte == b'\n');
    let first = lines()
        .map(|line| line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii())
        .find(|line| !line.is_empty() && !line.starts_with(b"#"))?;
    if first.starts_with(b"{") && (has(first, b"\"class\"") || (has(first, b"\"at_ms\"") && has(first, b"\"report\"")))
    {
        return Some(BareKind::Log(LogKind::Gpsd));
    }
    lines().any(is_sentence).then_some(BareKind::Log(LogKind::Nmea))
}

fn has(line: &[u8], wanted: &[u8]) -> bool {
    line.windows(wanted.len()).any(|window| window == wanted)
}

fn unknown(path: &Path, head: &[u8]) -> SessionError {
    let is_text = std::str::from_utf8(head.get(..256).unwrap_or(head)).is_ok_and(|text| !text.contains('\0'));
    let found = match head.get(..4) {
        Some(b"OggS") => "an Ogg file",
        Some(b"PK\x03\x04") => "a zip archive",
        Some(b"%PDF") => "a PDF file",
        _ if head.starts_with(b"ID3") => "an MP3 file, or one with an ID3 tag in front",
        _ if head.starts_with(b"\x1F\x8B") => "a gzip file",
        _ if head.get(4..8) == Some(b"ftyp") => "an MP4 or QuickTime file",
        _ if is_text => "a text without a single valid NMEA sentence or gpsd report at its beginning",
        _ => "a file of unknown content",
    };
    SessionError::UnknownKind { path: path.to_owned(), found: found.to_owned() }
}

/// BLAKE3 of the file's bytes, in hex.
fn digest(path: &Path) -> Result<String, SessionError> {
    let mut hasher = blake3::Hasher::new();
    let file = File::open(path).map_err(SessionError::read(path))?;
    hasher.update_reader(file).map_err(SessionError::read(path))?;
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_told_by_content() {
        let nmea = b"# Name: x\n\n$GPGGA,,,,,,0,,,,,,,,*66\r\n";

        assert_eq!(kind_of(b"RIFF\0\0\0\0WAVE"), Some(BareKind::Sound));
        assert_eq!(kind_of(b"fLaC"), Some(BareKind::Sound));
        assert_eq!(kind_of(b"\xFF\xD8\xFF\xE0"), Some(BareKind::Picture));
        assert_eq!(kind_of(nmea), Some(BareKind::Log(LogKind::Nmea)));
        assert_eq!(kind_of(b"\xEF\xBB\xBF{\"class\":\"VERSION\"}\n"), Some(BareKind::Log(LogKind::Gpsd)));
        assert_eq!(kind_of(b"{\"at_ms\":0,\"report\":{}}"), Some(BareKind::Log(LogKind::Gpsd)));
        for wrong in [&b"hello"[..], b"", b"\xA0\xA2\0\0$GP", b"{\"a\":1}", b"$GPGGA,,,,,,0,,,,,,,,*00"] {
            assert_eq!(kind_of(wrong), None, "{wrong:?}");
        }
    }
}

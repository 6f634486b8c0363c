//! What lies in a session folder: files named by their offset, in order, and what does not belong there.

use super::manifest::OFFSET_MS_MAX;
use crate::domain::id::SensorKind;
use std::io;
use std::path::Path;
use std::path::PathBuf;

/// A file named by its offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TimedFile {
    /// Milliseconds since the start of the session.
    pub(super) offset_ms: i64,
    /// Where it is.
    pub(super) path: PathBuf,
    /// How it is called in messages: relative to the session.
    pub(super) name: String,
}

/// The files of one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TimedFiles {
    /// By offset, those of one offset by name.
    pub(super) files: Vec<TimedFile>,
    /// What is not named by an offset, as it is called in messages.
    pub(super) misnamed: Vec<String>,
    /// Bytes of all files together.
    pub(super) bytes: u64,
}

/// Everything in a session folder.
#[derive(Debug, Clone, Default)]
pub(super) struct Folder {
    pub(super) microphone: Option<TimedFiles>,
    pub(super) camera: Option<TimedFiles>,
    pub(super) gps: Option<PathBuf>,
    pub(super) bluetooth: Option<PathBuf>,
    /// Names that are no part of the format.
    pub(super) unknown: Vec<String>,
    /// Bytes of all streams together.
    pub(super) bytes: u64,
}

/// What a file that is still being written ends in; after a crash it is read like any other.
pub(super) const UNFINISHED: &str = ".prog";

impl Folder {
    /// Lists the folder at `path`.
    pub(super) fn list(path: &Path) -> io::Result<Self> {
        let mut folder = Self::default();
        let mut names: Vec<_> =
            std::fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
        names.sort();
        for name in names {
            let name = name.to_string_lossy().into_owned();
            let entry = path.join(&name);
            match name.strip_suffix(UNFINISHED).unwrap_or(&name) {
                "session.toml" => {}
                "microphone" if entry.is_dir() => {
                    folder.microphone = Some(list_timed(&entry, &name, &["wav", "flac"])?)
                }
                "camera" if entry.is_dir() => folder.camera = Some(list_timed(&entry, &name, &["jpg", "jpeg", "png"])?),
                // Names are sorted, so a finished file stands before an unfinished one and wins.
                "gps.jsonl" => folder.gps = folder.gps.or(Some(entry)),
                "bluetooth.jsonl" => folder.bluetooth = folder.bluetooth.or(Some(entry)),
                _ if name.starts_with('.') => {}
                _ => folder.unknown.push(name),
            }
        }
        let size = |path: &Option<PathBuf>| {
            path.as_ref().and_then(|path| path.metadata().ok()).map_or(0, |metadata| metadata.len())
        };
        folder.bytes = [&folder.microphone, &folder.camera].into_iter().flatten().map(|files| files.bytes).sum::<u64>()
            + size(&folder.gps)
            + size(&folder.bluetooth);
        Ok(folder)
    }

    /// Whether anything of this kind of sensor is there.
    pub(super) fn has(&self, kind: SensorKind) -> bool {
        match kind {
            SensorKind::Microphone => self.microphone.is_some(),
            SensorKind::Camera => self.camera.is_some(),
            SensorKind::Gps => self.gps.is_some(),
            SensorKind::Bluetooth => self.bluetooth.is_some(),
        }
    }
}

/// Lists a stream's folder; hidden files are passed over in silence.
fn list_timed(path: &Path, folder: &str, extensions: &[&str]) -> io::Result<TimedFiles> {
    let mut timed = TimedFiles::default();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let shown = format!("{folder}/{name}");
        match offset_of(&name, extensions) {
            Some(offset_ms) => {
                timed.bytes += entry.metadata().map_or(0, |metadata| metadata.len());
                timed.files.push(TimedFile { offset_ms, path: entry.path(), name: shown });
            }
            None => timed.misnamed.push(shown),
        }
    }
    timed.files.sort_by(|a, b| (a.offset_ms, &a.name).cmp(&(b.offset_ms, &b.name)));
    timed.misnamed.sort();
    Ok(timed)
}

/// The offset in `<offset_ms>.<extension>`, finished or not.
fn offset_of(name: &str, extensions: &[&str]) -> Option<i64> {
    let name = name.strip_suffix(UNFINISHED).unwrap_or(name);
    let (stem, extension) = name.rsplit_once('.')?;
    let known = extensions.iter().any(|known| known.eq_ignore_ascii_case(extension));
    let digits = !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_digit());
    stem.parse().ok().filter(|offset| known && digits && (0..=OFFSET_MS_MAX).contains(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_digits_and_nothing_else() {
        let sound = ["wav", "flac"];

        assert_eq!(offset_of("60000.wav", &sound), Some(60_000));
        assert_eq!(offset_of("0.WAV.prog", &sound), Some(0));
        for wrong in ["abc.wav", "-5.wav", "+5.wav", "5", ".wav", "5.mp3", "1e3.wav", "99999999999999999999.wav"] {
            assert_eq!(offset_of(wrong, &sound), None, "{wrong}");
        }
    }
}

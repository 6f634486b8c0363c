//! How long a session folder is, found without reading it: for progress and for losses that last to its end.

use super::folder::Folder;
use super::header::SessionHeader;
use super::sound_file::SoundFile;
use serde_json::Value;
use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::path::Path;

/// How much of the end of a file of lines is looked at.
const TAIL_BYTES: u64 = 64 * 1024;

/// The offset at which the last stream ends, by the last file or line of each and by the gaps.
pub(super) fn of_folder(folder: &Folder, header: &SessionHeader) -> Option<i64> {
    let sound = folder.microphone.as_ref().and_then(|files| files.files.last()).map(|last| {
        let length_ms = SoundFile::open(&last.path).ok().and_then(|sound| sound.length_ms()).unwrap_or(0);
        last.offset_ms.saturating_add(length_ms)
    });
    let picture = folder.camera.as_ref().and_then(|files| files.files.last()).map(|last| last.offset_ms);
    let lines =
        [&folder.gps, &folder.bluetooth].into_iter().flatten().filter_map(|path| last_at_ms(path).ok().flatten());
    let gaps = header.streams.iter().flat_map(|stream| stream.gaps.iter().map(|gap| gap.to_ms));
    sound.into_iter().chain(picture).chain(lines).chain(gaps).max()
}

/// The time of the last line that has one.
fn last_at_ms(path: &Path) -> io::Result<Option<i64>> {
    if !std::fs::metadata(path)?.is_file() {
        return Ok(None);
    }
    let mut file = File::open(path)?;
    let end = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(end.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    let at_ms = |line: &[u8]| serde_json::from_slice::<Value>(line).ok()?.get("at_ms")?.as_i64();
    Ok(tail.rsplit(|&byte| byte == b'\n').find_map(at_ms))
}

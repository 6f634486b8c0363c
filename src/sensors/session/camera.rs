//! The pictures of a session, as the bytes of their files.
//!
//! In: files by offset. Out: JPEG and PNG pictures, told by their first bytes, and a [`Loss`] for each
//! file that is neither. Whether a picture decodes is found out by perception.

use super::clock::SessionClock;
use super::folder::TimedFile;
use super::problems::ProblemKind;
use super::problems::Problems;
use crate::domain::coverage::CoverageReason;
use crate::domain::id::SourceId;
use crate::domain::reading::Loss;
use crate::domain::reading::Payload;
use crate::domain::reading::Picture;
use crate::domain::reading::PixelFormat;
use crate::domain::reading::Reading;
use crate::sensors::Poll;
use crate::sensors::Sensor;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// Largest picture file that is read.
pub(super) const PICTURE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Recorded pictures.
pub(super) struct RecordedCamera {
    source: SourceId,
    files: VecDeque<TimedFile>,
    clock: SessionClock,
    problems: Problems,
}

impl RecordedCamera {
    pub(super) fn new(source: SourceId, files: Vec<TimedFile>, clock: SessionClock, problems: Problems) -> Self {
        Self { source, files: files.into(), clock, problems }
    }
}

impl Sensor for RecordedCamera {
    fn source(&self) -> &SourceId {
        &self.source
    }

    fn poll(&mut self, _timeout: Duration) -> Poll {
        let Some(file) = self.files.pop_front() else { return Poll::Ended };
        let payload = match read_picture(&file.path) {
            Ok(picture) => Payload::Picture(picture),
            Err(cause) => {
                let detail = format!("{} is left out: {cause}", file.name);
                self.problems.count(ProblemKind::UnreadableFile, &detail);
                Payload::Loss(Loss { length_ms: Some(0), reason: CoverageReason::Unreadable, detail })
            }
        };
        Poll::Reading(Reading { source: self.source.clone(), captured_at: self.clock.stamp(file.offset_ms), payload })
    }
}

/// How a picture file begins.
pub(super) fn format_of(head: &[u8]) -> Option<PixelFormat> {
    if head.starts_with(b"\xFF\xD8\xFF") {
        return Some(PixelFormat::Jpeg);
    }
    head.starts_with(b"\x89PNG\r\n\x1a\n").then_some(PixelFormat::Png)
}

/// Reads a picture file whole. The error is a clause for the operator.
fn read_picture(path: &Path) -> Result<Picture, String> {
    let unreadable = |error: std::io::Error| format!("it cannot be read: {error}");
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err("it is no regular file".to_owned());
    }
    if metadata.len() > PICTURE_BYTES_MAX {
        return Err(format!("it has {} bytes and percept takes {PICTURE_BYTES_MAX} at most", metadata.len()));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(PICTURE_BYTES_MAX).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.is_empty() {
        return Err("it is empty".to_owned());
    }
    let format = format_of(&bytes).ok_or("it is neither JPEG nor PNG")?;
    Ok(Picture { format, size_px: None, bytes: bytes.into() })
}

//! The sound files of a session as one stream of chunks.
//!
//! In: files by offset. Out: chunks of a quarter of a second or less, and a [`Loss`] wherever a file is
//! unusable, ends early, overlaps the one before, or leaves a hole. One file is open at a time.

use super::clock::SessionClock;
use super::folder::TimedFile;
use super::header::Gap;
use super::header::StreamHeader;
use super::problems::ProblemKind;
use super::problems::Problems;
use super::sound_file::SoundFile;
use crate::domain::coverage::CoverageReason;
use crate::domain::id::SourceId;
use crate::domain::reading::Loss;
use crate::domain::reading::Payload;
use crate::domain::reading::Reading;
use crate::sensors::Poll;
use crate::sensors::Sensor;
use std::collections::VecDeque;
use std::time::Duration;

/// Files may overlap or leave a hole this long without a word: sample clocks drift, offsets are rounded.
const SLACK_MS: i64 = 100;
/// A microphone may take this long to start without a word.
const START_SLACK_MS: i64 = 1_000;

/// Recorded sound.
pub(super) struct RecordedMicrophone {
    source: SourceId,
    files: VecDeque<TimedFile>,
    clock: SessionClock,
    /// Highest channel of the channel map.
    channel_max: Option<u16>,
    /// Stretches that the session itself lists as missing: no hole in them needs telling.
    gaps: Vec<Gap>,
    problems: Problems,
    open: Option<Open>,
    queue: VecDeque<Reading>,
    /// Where the sound so far ends; `None` after a file of unknown length.
    end_ms: Option<i64>,
    /// Start of the last reading: the next may not be before it.
    last_ms: i64,
    any: bool,
}

struct Open {
    sound: SoundFile,
    file: TimedFile,
}

impl RecordedMicrophone {
    pub(super) fn new(stream: &StreamHeader, files: Vec<TimedFile>, clock: SessionClock, problems: Problems) -> Self {
        Self {
            source: stream.source.clone(),
            files: files.into(),
            clock,
            channel_max: stream.channel_map.as_ref().and_then(|map| map.iter().max().copied()),
            gaps: stream.gaps.clone(),
            problems,
            open: None,
            queue: VecDeque::new(),
            end_ms: Some(0),
            last_ms: 0,
            any: false,
        }
    }

    fn reading(&mut self, at_ms: i64, payload: Payload) -> Reading {
        self.last_ms = self.last_ms.max(at_ms);
        Reading { source: self.source.clone(), captured_at: self.clock.stamp(self.last_ms), payload }
    }

    fn lose(&mut self, at_ms: i64, length_ms: Option<i64>, reason: CoverageReason, kind: ProblemKind, detail: String) {
        self.problems.count(kind, &detail);
        let reading = self.reading(at_ms, Payload::Loss(Loss { length_ms, reason, detail }));
        self.queue.push_back(reading);
    }

    /// Opens the next file, and says what is wrong with it or in front of it.
    fn open_next(&mut self, file: TimedFile) {
        let sound = match self.checked(&file) {
            Ok(sound) => sound,
            Err((kind, cause)) => {
                let length = self.files.front().map(|next| next.offset_ms - file.offset_ms);
                let detail = format!("{} is left out: {cause}", file.name);
                self.lose(file.offset_ms, length, CoverageReason::Unreadable, kind, detail);
                self.end_ms = None;
                return;
            }
        };
        if let Some(what) = sound.rebuilt() {
            let detail = format!("{}: {what}, so its length was rebuilt from the data", file.name);
            self.problems.count(ProblemKind::RebuiltHeader, &detail);
        }
        let slack = if self.any { SLACK_MS } else { START_SLACK_MS };
        let is_listed = |from_ms: i64| self.gaps.iter().any(|gap| gap.from_ms < file.offset_ms && gap.to_ms > from_ms);
        if let Some(end_ms) = self.end_ms.filter(|&end_ms| file.offset_ms > end_ms + slack && !is_listed(end_ms)) {
            let length = file.offset_ms - end_ms;
            let detail = format!("no sound was recorded from {end_ms} to {} ms", file.offset_ms);
            self.lose(end_ms, Some(length), CoverageReason::Recorded, ProblemKind::Hole, detail);
        }
        self.any = true;
        let mut open = Open { sound, file };
        if let Some(end_ms) = self.end_ms.filter(|end_ms| open.file.offset_ms + SLACK_MS < *end_ms) {
            self.skip_overlap(&mut open, end_ms);
        }
        self.open = Some(open);
    }

    fn checked(&self, file: &TimedFile) -> Result<SoundFile, (ProblemKind, String)> {
        let sound = SoundFile::open(&file.path).map_err(|cause| (ProblemKind::UnreadableFile, cause))?;
        match self.channel_max {
            Some(channel) if channel >= sound.channel_count => Err((
                ProblemKind::ChannelMap,
                format!(
                    "the channel map in session.toml names channel {channel}, and the file offers {}",
                    offered(sound.channel_count)
                ),
            )),
            _ => Ok(sound),
        }
    }

    fn skip_overlap(&mut self, open: &mut Open, end_ms: i64) {
        let overlap_ms = end_ms - open.file.offset_ms;
        let detail = format!(
            "{} begins {overlap_ms} ms before the sound in front of it ends; that much of it is left out",
            open.file.name
        );
        self.lose(end_ms, Some(0), CoverageReason::Invalid, ProblemKind::OverlappingFile, detail);
        let frames = open.sound.frames(overlap_ms);
        if let Err(cause) = open.sound.skip(frames) {
            let detail = format!("{} breaks off: {cause}", open.file.name);
            self.lose(end_ms, None, CoverageReason::Unreadable, ProblemKind::TruncatedFile, detail);
        }
    }

    fn next_chunk(&mut self, mut open: Open) -> Option<Reading> {
        let at_ms = open.file.offset_ms.saturating_add(open.sound.millis(open.sound.position));
        match open.sound.next_chunk() {
            Ok(Some(chunk)) => {
                self.open = Some(open);
                return Some(self.reading(at_ms, Payload::Sound(chunk)));
            }
            Ok(None) => self.close(&open, at_ms, None),
            Err(cause) => self.close(&open, at_ms, Some(&cause)),
        }
        None
    }

    /// Takes leave of a file that gives no more frames, as it should or not.
    fn close(&mut self, open: &Open, at_ms: i64, cause: Option<&str>) {
        let owed_ms = open.sound.millis(open.sound.frames_owed());
        let name = &open.file.name;
        self.end_ms = Some(self.end_ms.unwrap_or(0).max(at_ms + owed_ms));
        if open.sound.position == 0 && cause.is_none() && owed_ms == 0 {
            let detail = format!("{name} is left out: it holds no sound");
            self.lose(at_ms, Some(0), CoverageReason::Unreadable, ProblemKind::UnreadableFile, detail);
            return;
        }
        let detail = match cause {
            Some(cause) => format!("{name} breaks off {at_ms} ms into the session: {cause}"),
            None if owed_ms > 0 => {
                format!("{name} is cut short: the last {owed_ms} ms that its header promises are not there")
            }
            None => return,
        };
        let length = (owed_ms > 0).then_some(owed_ms);
        if length.is_none() {
            self.end_ms = None;
        }
        self.lose(at_ms, length, CoverageReason::Unreadable, ProblemKind::TruncatedFile, detail);
    }
}

fn offered(channel_count: u16) -> String {
    match channel_count {
        1 => "only channel 0".to_owned(),
        count => format!("channels 0 to {}", count - 1),
    }
}

impl Sensor for RecordedMicrophone {
    fn source(&self) -> &SourceId {
        &self.source
    }

    fn poll(&mut self, _timeout: Duration) -> Poll {
        loop {
            if let Some(reading) = self.queue.pop_front() {
                return Poll::Reading(reading);
            }
            if let Some(open) = self.open.take() {
                if let Some(reading) = self.next_chunk(open) {
                    return Poll::Reading(reading);
                }
            } else if let Some(file) = self.files.pop_front() {
                self.open_next(file);
            } else {
                return Poll::Ended;
            }
        }
    }
}

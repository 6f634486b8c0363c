//! An open microphone: what waits in the queue, as the live frame wants it.
//!
//! In: the queue's items. Out: captures, losses with their length and frames, hiccups, the end. Dropping it closes the
//! stream.

use super::queue::Item;
use super::queue::Lost;
use super::queue::Queue;
use super::queue::length_us;
use super::timeline::Timeline;
use super::worker::Worker;
use crate::domain::coverage::CoverageReason;
use crate::domain::reading::Loss;
use crate::domain::reading::Payload;
use crate::domain::reading::SoundChunk;
use crate::domain::time::Stamp;
use crate::sensors::live::Fed;
use crate::sensors::live::Feed;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The open device.
pub(super) struct Capture {
    queue: Queue,
    timeline: Timeline,
    /// The sound system reported lost frames; how many, the next buffer's time tells.
    is_after_xrun: bool,
    /// A buffer whose loss was told first.
    held: Option<(Stamp, SoundChunk)>,
    frames_lost: Arc<AtomicU64>,
    _worker: Worker,
}

impl Capture {
    pub(super) fn new(queue: Queue, worker: Worker, frames_lost: Arc<AtomicU64>) -> Self {
        Self { queue, timeline: Timeline::default(), is_after_xrun: false, held: None, frames_lost, _worker: worker }
    }

    fn sound(&mut self, at: Stamp, chunk: SoundChunk) -> Fed {
        let missing = self.missing_before(at);
        let Some((length_ms, reason, why)) = missing else {
            let captured_at = self.timeline.follow(at, length_us(&chunk));
            return Fed::Captured(captured_at, Payload::Sound(chunk));
        };
        let frames = u64::from(chunk.sample_rate_hz) * length_ms.unsigned_abs() / 1_000;
        self.held = Some((at, chunk));
        self.timeline.restart_at(at);
        self.lost(at.plus_millis(-length_ms), frames, length_ms, reason, why)
    }

    /// What the times say is missing before a buffer, and why.
    fn missing_before(&mut self, at: Stamp) -> Option<(i64, CoverageReason, &'static str)> {
        if std::mem::take(&mut self.is_after_xrun)
            && let Some(millis) = self.timeline.millis_until(at)
        {
            // What an overrun took is at least a moment, whatever the jitter of the times says.
            return Some((millis.max(1), CoverageReason::Overrun, "the sound system ran over"));
        }
        Some((self.timeline.hole_ms(at)?, CoverageReason::Stalled, "the sound system delivered nothing"))
    }

    fn lost(&mut self, at: Stamp, frames: u64, length_ms: i64, reason: CoverageReason, why: &str) -> Fed {
        self.frames_lost.fetch_add(frames, Ordering::Relaxed);
        let detail = format!("{why}: {frames} frames lost");
        Fed::Captured(at, Payload::Loss(Loss { length_ms: Some(length_ms), reason, detail }))
    }

    fn thrown_away(&mut self, at: Stamp, lost: Lost) -> Fed {
        let length_ms = i64::try_from(lost.length_us / 1_000).unwrap_or_default();
        self.timeline.restart_at(at.plus_millis(length_ms));
        self.lost(at, lost.frames, length_ms, CoverageReason::Overrun, "the agent did not keep up")
    }
}

impl Feed for Capture {
    fn next(&mut self, timeout: Duration) -> Fed {
        if let Some((at, chunk)) = self.held.take() {
            return self.sound(at, chunk);
        }
        match self.queue.take(timeout) {
            None => Fed::Nothing,
            Some(Item::Sound(at, chunk)) => self.sound(at, chunk),
            Some(Item::Lost(at, lost)) => self.thrown_away(at, lost),
            Some(Item::Error(sentence)) => Fed::Hiccup(sentence),
            Some(Item::Xrun) => {
                self.is_after_xrun = true;
                Fed::Hiccup("the sound system ran over".to_owned())
            }
            Some(Item::Broken(failure)) => Fed::Broken(failure),
        }
    }
}

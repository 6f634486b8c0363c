//! One run: chunks that follow each other, as one stretch of sound at 16 kHz with its times.

use crate::domain::id::SourceId;
use crate::domain::observation::sound::Signal;
use crate::domain::time::Stamp;
use crate::perception::hearing::signal::SignalWatch;
use crate::perception::log_mel::FRAME_SAMPLES;
use crate::perception::log_mel::HOP_SAMPLES;
use crate::perception::log_mel::SAMPLE_RATE_HZ;
use crate::perception::log_mel::WINDOW_SAMPLES;
use crate::perception::pcm::Mono;
use crate::perception::resample::RateError;
use crate::perception::resample::Resampler;
use std::borrow::Cow;
use std::collections::VecDeque;

/// A wall clock that moves by more than this against the monotonic one has been set, in milliseconds.
const CLOCK_STEP_MS: i64 = 50;
/// The end of a run shorter than this (25 ms, one frame) is no hop of its own.
const HOP_SAMPLES_MIN: usize = FRAME_SAMPLES;

/// A run.
pub(super) struct Run {
    source: SourceId,
    start: Stamp,
    /// What the wall clock was from a sample on, oldest first; the first entry covers all before the second.
    clock: VecDeque<(u64, Stamp)>,
    resampler: Resampler,
    watch: SignalWatch,
    frames_in: u64,
    /// Sound at 16 kHz from sample `first_sample` of the run on.
    samples: Vec<f32>,
    first_sample: u64,
    hops_taken: u64,
}

/// A hop that is complete.
pub(super) struct Hop {
    /// Its number in the run.
    pub(super) index: u64,
    /// Its first sample.
    pub(super) start: u64,
    /// Whether there is a signal in it.
    pub(super) signal: Signal,
    length: usize,
}

/// The 15,600 samples from the beginning of a hop on.
pub(super) enum Window<'a> {
    /// Not all of them are there.
    Incomplete,
    /// The run is over and has less than half of them.
    TooShort,
    /// The samples, filled up with zeros at the end of a run.
    Samples(Cow<'a, [f32]>),
}

impl Run {
    pub(super) fn start(source: SourceId, start: Stamp, sample_rate_hz: u32) -> Result<Self, RateError> {
        Ok(Self {
            source,
            start,
            clock: VecDeque::from([(0, start)]),
            resampler: Resampler::new(sample_rate_hz)?,
            watch: SignalWatch::new(sample_rate_hz),
            frames_in: 0,
            samples: Vec::new(),
            first_sample: 0,
            hops_taken: 0,
        })
    }

    pub(super) const fn source(&self) -> &SourceId {
        &self.source
    }

    /// Whether a chunk belongs to this run: same source and rate, and begins where the last one ended.
    pub(super) fn is_followed_by(&self, source: &SourceId, at: Stamp, sample_rate_hz: u32, tolerance_ms: i64) -> bool {
        let expected = self.start.plus_millis(millis(self.frames_in, sample_rate_hz.max(1)));
        *source == self.source
            && sample_rate_hz == self.resampler.sample_rate_hz()
            && at.millis_since(expected).abs() <= tolerance_ms
    }

    pub(super) fn push(&mut self, at: Stamp, mono: &Mono) {
        self.note_clock(at);
        self.watch.push(mono);
        self.resampler.push(&mono.values, &mut self.samples);
        self.frames_in += mono.values.len() as u64;
    }

    /// Takes what the resampler still holds.
    pub(super) fn end(&mut self) {
        self.resampler.finish(&mut self.samples);
    }

    /// Remembers from which sample on the wall clock was another.
    fn note_clock(&mut self, at: Stamp) {
        let Some((_, last)) = self.clock.back().copied() else { return };
        let offset_ms = |stamp: Stamp| stamp.utc.as_millis().saturating_sub(stamp.monotonic_ms);
        let has_stepped = offset_ms(at).saturating_sub(offset_ms(last)).saturating_abs() > CLOCK_STEP_MS;
        if has_stepped || at.quality != last.quality {
            let sample = self.frames_in * u64::from(SAMPLE_RATE_HZ) / u64::from(self.resampler.sample_rate_hz());
            let utc = if has_stepped { at.utc } else { last.utc.plus_millis(at.millis_since(last)) };
            self.clock.push_back((sample, Stamp { utc, ..at }));
        }
    }

    /// The time of a sample: that of the run's first one and the samples between, so that no rounding
    /// adds up; on the wall clock that was right then.
    pub(super) fn stamp_at(&self, sample: u64) -> Stamp {
        let monotonic = self.start.plus_millis(millis(sample, SAMPLE_RATE_HZ));
        let known = self.clock.iter().rev().find(|(from, _)| *from <= sample).or_else(|| self.clock.front());
        let Some((_, clock)) = known else { return monotonic };
        clock.plus_millis(monotonic.millis_since(*clock))
    }

    /// The next hop that was not taken, once it is complete; at the end of a run also a shorter one.
    pub(super) fn next_hop(&mut self, is_over: bool) -> Option<Hop> {
        let start = self.hops_taken * HOP_SAMPLES as u64;
        let length = self.from(start).len().min(HOP_SAMPLES);
        let is_complete = length == HOP_SAMPLES || is_over && length >= HOP_SAMPLES_MIN;
        is_complete.then(|| {
            self.hops_taken += 1;
            Hop { index: self.hops_taken - 1, start, signal: self.watch.take(), length }
        })
    }

    pub(super) const fn hops_taken(&self) -> u64 {
        self.hops_taken
    }

    pub(super) fn samples_of(&self, hop: &Hop) -> &[f32] {
        &self.from(hop.start)[..hop.length]
    }

    pub(super) fn window(&self, hop: u64, is_over: bool) -> Window<'_> {
        let samples = self.from(hop * HOP_SAMPLES as u64);
        match samples.get(..WINDOW_SAMPLES) {
            Some(window) => Window::Samples(Cow::Borrowed(window)),
            None if !is_over => Window::Incomplete,
            None if samples.len() < WINDOW_SAMPLES / 2 => Window::TooShort,
            None => {
                let mut padded = samples.to_vec();
                padded.resize(WINDOW_SAMPLES, 0.0);
                Window::Samples(Cow::Owned(padded))
            }
        }
    }

    /// Lets go of the samples and clock steps before that hop.
    pub(super) fn forget_before(&mut self, hop: u64) {
        let first_needed = hop * HOP_SAMPLES as u64;
        let surplus = usize::try_from(first_needed.saturating_sub(self.first_sample)).unwrap_or(usize::MAX);
        let surplus = surplus.min(self.samples.len());
        self.samples.drain(..surplus);
        self.first_sample += surplus as u64;
        while self.clock.get(1).is_some_and(|(from, _)| *from <= first_needed) {
            self.clock.pop_front();
        }
    }

    fn from(&self, sample: u64) -> &[f32] {
        let index = usize::try_from(sample.saturating_sub(self.first_sample)).unwrap_or(usize::MAX);
        self.samples.get(index..).unwrap_or_default()
    }
}

/// Length of `count` samples in milliseconds, rounded to the nearest.
fn millis(count: u64, rate_hz: u32) -> i64 {
    let rate = u64::from(rate_hz);
    i64::try_from((count * 1_000 + rate / 2) / rate).unwrap_or(i64::MAX)
}

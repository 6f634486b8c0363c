//! Tells for each hop whether there is a signal behind its samples, looking at them as the device gave
//! them: after resampling, zeros and constants would no longer be exact.

use crate::domain::observation::sound::Signal;
use crate::perception::log_mel::HOP_SAMPLES;
use crate::perception::log_mel::SAMPLE_RATE_HZ;
use crate::perception::pcm::Mono;
use std::collections::VecDeque;

/// Watches one run.
#[derive(Debug)]
pub(super) struct SignalWatch {
    sample_rate_hz: u32,
    /// Frames seen in this run.
    frames: u64,
    /// Hops finished in this run.
    hops: u64,
    current: Seen,
    finished: VecDeque<Signal>,
}

/// What a hop has shown so far.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    first: Option<f32>,
    varies: bool,
    is_invalid: bool,
}

impl Seen {
    fn signal(self) -> Signal {
        match self {
            Self { is_invalid: true, .. } => Signal::Invalid,
            Self { varies: true, .. } => Signal::Live,
            Self { .. } => Signal::Absent,
        }
    }
}

impl SignalWatch {
    pub(super) fn new(sample_rate_hz: u32) -> Self {
        Self { sample_rate_hz, frames: 0, hops: 0, current: Seen::default(), finished: VecDeque::new() }
    }

    /// Takes the next frames of the run.
    pub(super) fn push(&mut self, mono: &Mono) {
        let mut start = 0;
        let mut invalid = mono.invalid_frames.iter().copied().peekable();
        while start < mono.values.len() {
            let room = usize::try_from(self.hop_end() - self.frames).unwrap_or(usize::MAX);
            let end = mono.values.len().min(start.saturating_add(room));
            self.look(&mono.values[start..end]);
            while invalid.next_if(|frame| *frame < end).is_some() {
                self.current.is_invalid = true;
            }
            self.frames += (end - start) as u64;
            start = end;
            if self.frames == self.hop_end() {
                self.finished.push_back(self.current.signal());
                self.current = Seen::default();
                self.hops += 1;
            }
        }
    }

    /// The signal of the next hop; of the unfinished one when no other is left.
    pub(super) fn take(&mut self) -> Signal {
        self.finished.pop_front().unwrap_or_else(|| self.current.signal())
    }

    fn look(&mut self, values: &[f32]) {
        let Some(first) = self.current.first.or_else(|| values.first().copied()) else { return };
        self.current.first = Some(first);
        self.current.varies = self.current.varies || values.iter().any(|value| value.to_bits() != first.to_bits());
    }

    /// The first input frame that belongs to the next hop.
    fn hop_end(&self) -> u64 {
        let samples = (self.hops + 1) * HOP_SAMPLES as u64;
        (samples * u64::from(self.sample_rate_hz)).div_ceil(u64::from(SAMPLE_RATE_HZ))
    }
}

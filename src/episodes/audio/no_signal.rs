//! Stretches in which a microphone delivered no signal, or values that cannot be true.

use crate::domain::coverage::Coverage;
use crate::domain::coverage::CoverageReason;
use crate::domain::coverage::CoverageState;
use crate::domain::observation::sound::Signal;
use crate::domain::observation::sound::SoundObservation;
use crate::domain::time::Stamp;
use std::collections::VecDeque;

/// Hops of the same kind this close are one stretch, in milliseconds.
const JOIN_WITHIN_MS: i64 = 1_000;
/// A stretch is given out after this long and goes on as another, in milliseconds.
const LENGTH_MAX_MS: i64 = 3_600_000;

/// Gathers them.
#[derive(Debug)]
pub(super) struct SignalLog {
    no_signal_after_ms: i64,
    open: Option<Stretch>,
    ready: VecDeque<Coverage>,
}

#[derive(Debug)]
struct Stretch {
    signal: Signal,
    is_continued: bool,
    coverage: Coverage,
}

impl SignalLog {
    pub(super) const fn new(no_signal_after_ms: i64) -> Self {
        Self { no_signal_after_ms, open: None, ready: VecDeque::new() }
    }

    pub(super) fn handle_observation(&mut self, hop: &SoundObservation) {
        match &mut self.open {
            Some(open) if open.signal == hop.signal && is_next(open.coverage.to, hop.start) => {
                open.coverage.to = hop.end;
                if hop.end.millis_since(open.coverage.from) >= LENGTH_MAX_MS {
                    self.ready.push_back(open.coverage.clone());
                    open.coverage.from = hop.end;
                    open.is_continued = true;
                }
            }
            _ => {
                self.finish();
                self.open = Stretch::beginning_with(hop);
            }
        }
    }

    /// What is wrong with the signal at the moment, once it has lasted long enough to count.
    pub(super) fn complaint(&self) -> Option<&str> {
        let open = self.open.as_ref()?;
        let length_ms = open.coverage.to.millis_since(open.coverage.from);
        let lasts = open.is_continued || length_ms >= self.no_signal_after_ms;
        open.coverage.detail.as_deref().filter(|_| lasts)
    }

    pub(super) fn open_until(&self) -> Option<Stamp> {
        self.open.as_ref().map(|open| open.coverage.to)
    }

    pub(super) fn finish(&mut self) {
        let Some(open) = self.open.take() else { return };
        let length_ms = open.coverage.to.millis_since(open.coverage.from);
        let is_long = open.is_continued || open.signal == Signal::Invalid || length_ms >= self.no_signal_after_ms;
        if is_long && length_ms > 0 {
            self.ready.push_back(open.coverage);
        }
    }

    pub(super) fn poll(&mut self) -> Option<Coverage> {
        self.ready.pop_front()
    }
}

impl Stretch {
    fn beginning_with(hop: &SoundObservation) -> Option<Self> {
        let (state, reason, detail) = match hop.signal {
            Signal::Live => return None,
            Signal::Absent => (CoverageState::Blind, CoverageReason::NoSignal, "the microphone delivers no signal"),
            Signal::Invalid => {
                (CoverageState::Degraded, CoverageReason::Invalid, "NaN or infinite samples were left out")
            }
        };
        let coverage = Coverage {
            source: hop.source.clone(),
            from: hop.start,
            to: hop.end,
            state,
            reason,
            detail: Some(detail.to_owned()),
        };
        Some(Self { signal: hop.signal, is_continued: false, coverage })
    }
}

fn is_next(end: Stamp, start: Stamp) -> bool {
    (-JOIN_WITHIN_MS..=JOIN_WITHIN_MS).contains(&start.millis_since(end))
}

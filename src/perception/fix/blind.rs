//! Keeps the stretches without a fix: one row each, an hour at most, so that a power cut loses no more.
//!
//! In: when there was a fix, a report without one, or a loss. Out: [`Coverage`]. Never: I/O, the clock.
//!
//! A stretch begins at the last fix (or the first report) and counts once it is longer than `stale`.

use crate::domain::coverage::Coverage;
use crate::domain::coverage::CoverageReason;
use crate::domain::coverage::CoverageState;
use crate::domain::id::SourceId;
use crate::domain::time::Stamp;
use std::collections::VecDeque;

/// Longest stretch one row stands for, in milliseconds.
const ROW_MS_MAX: i64 = 3_600_000;

#[derive(Debug)]
pub(super) struct BlindStretch {
    source: SourceId,
    stale_ms: i64,
    /// Since when there has been no fix; `None` before the first report and during a loss.
    since: Option<Stamp>,
    /// How often the receiver spoke since then, and how often it spoke nonsense.
    reports: u64,
    nonsense: u64,
    rows: VecDeque<Coverage>,
}

impl BlindStretch {
    pub(super) const fn new(source: SourceId, stale_ms: i64) -> Self {
        Self { source, stale_ms, since: None, reports: 0, nonsense: 0, rows: VecDeque::new() }
    }

    pub(super) fn handle_fix(&mut self, at: Stamp) {
        self.close(at);
        self.begin(at);
    }

    /// The receiver spoke, but gave no new fix.
    pub(super) fn handle_report(&mut self, at: Stamp, is_nonsense: bool) {
        if self.since.is_none() {
            self.begin(at);
        }
        self.reports += 1;
        self.nonsense += u64::from(is_nonsense);
    }

    /// From here on nothing was captured, for a reason that is recorded elsewhere.
    pub(super) fn handle_loss(&mut self, at: Stamp) {
        self.close(at);
        self.since = None;
    }

    pub(super) fn handle_timeout(&mut self, now: Stamp) {
        while let Some(since) = self.since
            && now.millis_since(since) > ROW_MS_MAX
        {
            let until = since.plus_millis(ROW_MS_MAX);
            self.close(until);
            self.begin(until);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<i64> {
        self.since.map(|since| since.monotonic_ms.saturating_add(ROW_MS_MAX + 1))
    }

    pub(super) fn finish(&mut self, at: Stamp) {
        self.handle_loss(at);
    }

    pub(super) fn poll(&mut self) -> Option<Coverage> {
        self.rows.pop_front()
    }

    fn begin(&mut self, at: Stamp) {
        self.since = Some(at);
        self.reports = 0;
        self.nonsense = 0;
    }

    fn close(&mut self, until: Stamp) {
        let Some(since) = self.since.filter(|since| until.millis_since(*since) > self.stale_ms) else {
            return;
        };
        // A receiver that says nothing at all is another failure than one without a view of the sky.
        let reason = match (self.reports, self.nonsense) {
            (0, _) => CoverageReason::Stalled,
            (reports, nonsense) if nonsense * 2 > reports => CoverageReason::Invalid,
            _ => CoverageReason::NoFix,
        };
        self.rows.push_back(Coverage {
            source: self.source.clone(),
            from: since,
            to: until,
            state: CoverageState::Blind,
            reason,
            detail: None,
        });
    }
}

//! When the scan is started anew: a value, `now` in, what is due out.
//!
//! ```text
//!  Starting ──ok──► Running ──10 min──────────────► renew  ─┐
//!     ▲  └─not ready: 1, 2, 4 s, then given up ─►    │  └──60 s without a signal──► silent ─┤
//!     └───────────────────────── stop, start ◄──────────────────────────────────────────────┘
//! ```

/// A scan is started anew after this long: adapters go silent in long ones.
const RENEW_MS: i64 = 600_000;

/// A scan without any signal for this long is started anew.
const SILENT_MS: i64 = 60_000;

/// Waits after each answer that the adapter is not ready; the next such answer is a failure.
const NOT_READY_WAITS_MS: [i64; 3] = [1_000, 2_000, 4_000];

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Start the scan.
    Start,
    /// Stop and start: it has run for long.
    Renew,
    /// Stop and start: nothing was heard for this long, in milliseconds.
    Silent(i64),
}

/// The life of one scan.
#[derive(Debug, Clone)]
pub(super) struct Scan {
    phase: Phase,
    /// Since when nothing was heard.
    quiet_ms: i64,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Starting { due_ms: i64, refusals: usize },
    Running { since_ms: i64 },
}

impl Scan {
    /// A scan that is due to be started at `now_ms`, monotonic.
    pub(super) fn new(now_ms: i64) -> Self {
        Self { phase: Phase::Starting { due_ms: now_ms, refusals: 0 }, quiet_ms: now_ms }
    }

    /// What is due at `now_ms`.
    pub(super) fn due(&self, now_ms: i64) -> Option<Due> {
        match self.phase {
            Phase::Starting { due_ms, .. } => (now_ms >= due_ms).then_some(Due::Start),
            Phase::Running { .. } if now_ms - self.quiet_ms >= SILENT_MS => Some(Due::Silent(now_ms - self.quiet_ms)),
            Phase::Running { since_ms } => (now_ms - since_ms >= RENEW_MS).then_some(Due::Renew),
        }
    }

    /// When something is due next.
    pub(super) fn poll_timeout(&self) -> i64 {
        match self.phase {
            Phase::Starting { due_ms, .. } => due_ms,
            Phase::Running { since_ms } => (since_ms + RENEW_MS).min(self.quiet_ms + SILENT_MS),
        }
    }

    /// The adapter stopped scanning on our wish: it is due to start.
    pub(super) fn stopped(&mut self, now_ms: i64) {
        self.phase = Phase::Starting { due_ms: now_ms, refusals: 0 };
    }

    /// The adapter scans.
    pub(super) fn started(&mut self, now_ms: i64) {
        self.quiet_ms = now_ms;
        self.phase = Phase::Running { since_ms: now_ms };
    }

    /// The adapter is not ready. Says whether that is worth another attempt.
    pub(super) fn refused(&mut self, now_ms: i64) -> bool {
        let refusals = match self.phase {
            Phase::Starting { refusals, .. } => refusals,
            Phase::Running { .. } => 0,
        };
        let Some(wait_ms) = NOT_READY_WAITS_MS.get(refusals) else { return false };
        self.phase = Phase::Starting { due_ms: now_ms + wait_ms, refusals: refusals + 1 };
        true
    }

    /// Something was heard.
    pub(super) fn heard(&mut self, now_ms: i64) {
        self.quiet_ms = now_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_is_renewed_every_ten_minutes_while_it_hears_something() {
        let mut scan = Scan::new(0);
        assert_eq!(scan.due(0), Some(Due::Start));
        scan.started(0);

        for second in 1..600 {
            scan.heard(second * 1_000);
            assert_eq!(scan.due(second * 1_000), None);
        }

        assert_eq!(scan.due(600_000), Some(Due::Renew));
    }

    #[test]
    fn a_silent_scan_is_started_anew_after_a_minute_and_again_a_minute_later() {
        let mut scan = Scan::new(0);
        scan.started(0);
        scan.heard(5_000);
        assert_eq!((scan.due(64_999), scan.poll_timeout()), (None, 65_000));
        assert_eq!(scan.due(65_000), Some(Due::Silent(60_000)));

        scan.stopped(65_000);
        scan.started(65_000);

        assert_eq!((scan.due(65_000), scan.due(125_000)), (None, Some(Due::Silent(60_000))));
    }

    #[test]
    fn three_refusals_are_waited_for_and_the_fourth_is_a_failure() {
        let mut scan = Scan::new(0);

        let attempts: Vec<_> = (0..4)
            .map(|_| {
                let now_ms = scan.poll_timeout();
                (now_ms, scan.due(now_ms), scan.refused(now_ms))
            })
            .collect();

        let start = Some(Due::Start);
        assert_eq!(attempts, [(0, start, true), (1_000, start, true), (3_000, start, true), (7_000, start, false)]);
    }
}

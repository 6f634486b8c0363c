//! When a device is opened, given up and tried again: a value, `now` in, a verdict out.
//!
//! ```text
//!  closed ──due──► open ──no capture for stall_ms, or too many hiccups──► closed (backoff grows)
//!                    └── captures for healthy_ms ──► backoff forgotten
//! ```

use crate::sensors::live::Failure;

/// First wait before a device is opened again.
const BACKOFF_FIRST_MS: i64 = 500;

/// Longest wait.
const BACKOFF_MAX_MS: i64 = 30_000;

/// No wait is longer than a second, or than this share of the time the device has been lost: one that is plugged in after
/// eight seconds is found a second later, one that is away for weeks costs a look every half minute.
const BACKOFF_LOST_SHARE: i64 = 10;

/// The longest wait of a device that was lost just now.
const BACKOFF_FRESH_MAX_MS: i64 = 1_000;

/// A device that captured for this long is healthy: the next failure starts with the shortest wait.
const HEALTHY_MS: i64 = 10_000;

/// Errors without a capture in between after which a device is opened anew.
const HICCUPS_MAX: u32 = 100;

/// A lost device is told again this often, so that the coverage of a long loss is written while it lasts.
const RETELL_MS: i64 = 600_000;

/// What a kind of device may do before it is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest time without a capture, in milliseconds.
    pub stall_ms: i64,
    /// Longest time from opening to the first capture, in milliseconds.
    pub first_ms: i64,
}

/// What is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: go on as it is.
    Wait,
    /// Open the device.
    Open,
    /// Close the device: it is silent or broken.
    GiveUp(Failure),
    /// The device has been lost for long: say so again.
    StillLost,
}

/// The life of one device.
#[derive(Debug, Clone)]
pub struct Supervision {
    limits: Limits,
    phase: Phase,
    failures: u32,
    lost_since_ms: Option<i64>,
    hiccups: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Closed { due_ms: i64, retell_ms: i64 },
    Open { since_ms: i64, last_ms: Option<i64> },
    Muted { retell_ms: i64 },
}

impl Supervision {
    /// A device that is due to be opened at `now_ms`, monotonic.
    #[must_use]
    pub fn new(limits: Limits, now_ms: i64) -> Self {
        let phase = Phase::Closed { due_ms: now_ms, retell_ms: now_ms + RETELL_MS };
        Self { limits, phase, failures: 0, lost_since_ms: None, hiccups: 0 }
    }

    /// The device was opened.
    pub fn opened(&mut self, now_ms: i64) {
        self.hiccups = 0;
        self.phase = Phase::Open { since_ms: now_ms, last_ms: None };
    }

    /// The device could not be opened, or was closed after a failure.
    pub fn closed(&mut self, now_ms: i64) {
        let lost_ms = now_ms - *self.lost_since_ms.get_or_insert(now_ms);
        let longest_ms = (lost_ms / BACKOFF_LOST_SHARE).clamp(BACKOFF_FRESH_MAX_MS, BACKOFF_MAX_MS);
        let wait_ms = BACKOFF_FIRST_MS.saturating_mul(1 << self.failures.min(10)).min(longest_ms);
        self.failures = self.failures.saturating_add(1);
        self.phase = Phase::Closed { due_ms: now_ms + wait_ms, retell_ms: now_ms + RETELL_MS };
    }

    /// The device delivered.
    pub fn captured(&mut self, now_ms: i64) {
        self.hiccups = 0;
        if let Phase::Open { since_ms, last_ms } = &mut self.phase {
            *last_ms = Some(now_ms);
            if now_ms - *since_ms >= HEALTHY_MS {
                self.failures = 0;
                self.lost_since_ms = None;
            }
        }
    }

    /// The device answered without data: what it was asked for may still come.
    pub fn answered(&mut self, _now_ms: i64) {
        self.hiccups = 0;
    }

    /// The device said why it delivers nothing: this is no stall.
    pub fn explained(&mut self, now_ms: i64) {
        self.hiccups = 0;
        if let Phase::Open { last_ms, .. } = &mut self.phase {
            *last_ms = Some(now_ms);
        }
    }

    /// The device reported an error it survives.
    pub fn hiccup(&mut self) {
        self.hiccups = self.hiccups.saturating_add(1);
    }

    /// Mutes or unmutes; says whether that changed anything. An unmuted device is due at once.
    pub fn set_muted(&mut self, is_muted: bool, now_ms: i64) -> bool {
        let was_muted = matches!(self.phase, Phase::Muted { .. });
        if was_muted == is_muted {
            return false;
        }
        self.failures = 0;
        self.lost_since_ms = None;
        self.phase = if is_muted {
            Phase::Muted { retell_ms: now_ms + RETELL_MS }
        } else {
            Phase::Closed { due_ms: now_ms, retell_ms: now_ms + RETELL_MS }
        };
        true
    }

    /// What is due at `now_ms`.
    pub fn verdict(&mut self, now_ms: i64) -> Verdict {
        match &mut self.phase {
            Phase::Closed { due_ms, .. } if now_ms >= *due_ms => Verdict::Open,
            Phase::Closed { retell_ms, .. } | Phase::Muted { retell_ms } => {
                if now_ms < *retell_ms {
                    return Verdict::Wait;
                }
                *retell_ms = now_ms + RETELL_MS;
                Verdict::StillLost
            }
            Phase::Open { .. } if self.hiccups >= HICCUPS_MAX => {
                Verdict::GiveUp(Failure::stalled(format!("{HICCUPS_MAX} errors in a row and no data: opened anew")))
            }
            Phase::Open { .. } => match self.silent_ms(now_ms) {
                Some(silent_ms) => {
                    let silent_s = silent_ms / 1_000;
                    Verdict::GiveUp(Failure::stalled(format!("nothing arrived for {silent_s} s: opened anew")))
                }
                None => Verdict::Wait,
            },
        }
    }

    /// For how long an open device has been silent, when that is longer than it may.
    pub fn silent_ms(&self, now_ms: i64) -> Option<i64> {
        let Phase::Open { since_ms, last_ms } = self.phase else { return None };
        let (from_ms, allowed_ms) = match last_ms {
            Some(last_ms) => (last_ms, self.limits.stall_ms),
            None => (since_ms, self.limits.first_ms),
        };
        Some(now_ms - from_ms).filter(|silent_ms| *silent_ms >= allowed_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { stall_ms: 2_000, first_ms: 5_000 };

    #[test]
    fn a_device_lost_for_long_is_looked_for_less_and_less_often_and_healthy_seconds_forget_it() {
        let mut device = Supervision::new(LIMITS, 0);
        let mut now_ms = 0;
        let mut looks = Vec::new();
        while now_ms < 3_600_000 {
            if device.verdict(now_ms) == Verdict::Open {
                looks.push(now_ms);
                device.closed(now_ms);
            }
            now_ms += 100;
        }
        assert_eq!(looks[..4], [0, 500, 1_500, 2_500]);
        let longest_ms = looks.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert_eq!(longest_ms, Some(BACKOFF_MAX_MS));
        let first_minute = looks.iter().filter(|at_ms| **at_ms < 60_000).count();
        assert!((20..40).contains(&first_minute), "{first_minute}");

        device.opened(now_ms);
        for second in 0..=10 {
            device.captured(now_ms + second * 1_000);
        }
        device.closed(now_ms + 10_000);

        assert_eq!(device.verdict(now_ms + 10_400), Verdict::Wait);
        assert_eq!(device.verdict(now_ms + 10_500), Verdict::Open);
    }

    #[test]
    fn a_silent_device_is_given_up_after_its_stall_time_and_a_new_one_has_longer() {
        let mut device = Supervision::new(LIMITS, 0);
        device.opened(0);
        assert_eq!(device.verdict(4_999), Verdict::Wait);
        assert!(matches!(device.verdict(5_000), Verdict::GiveUp(_)));

        device.captured(5_000);

        assert_eq!(device.verdict(6_999), Verdict::Wait);
        assert!(matches!(device.verdict(7_000), Verdict::GiveUp(_)));
    }

    #[test]
    fn an_error_with_every_buffer_is_harmless_and_errors_without_a_buffer_are_not() {
        let mut device = Supervision::new(LIMITS, 0);
        device.opened(0);
        for _ in 0..10_000 {
            device.hiccup();
            device.captured(10);
        }
        assert_eq!(device.verdict(20), Verdict::Wait);

        for _ in 0..HICCUPS_MAX {
            device.hiccup();
        }

        assert!(matches!(device.verdict(20), Verdict::GiveUp(_)));
    }

    #[test]
    fn a_muted_device_stays_closed_and_is_opened_at_once_when_unmuted() {
        let mut device = Supervision::new(LIMITS, 0);
        device.opened(0);
        assert!(device.set_muted(true, 100));
        assert!(!device.set_muted(true, 200));
        assert_eq!(device.verdict(60_100), Verdict::Wait);

        device.set_muted(false, 60_100);

        assert_eq!(device.verdict(60_100), Verdict::Open);
    }

    #[test]
    fn a_loss_that_lasts_is_told_again() {
        let mut device = Supervision::new(LIMITS, 0);
        device.set_muted(true, 0);

        assert_eq!(device.verdict(RETELL_MS), Verdict::StillLost);
        assert_eq!(device.verdict(RETELL_MS + 1), Verdict::Wait);
    }
}

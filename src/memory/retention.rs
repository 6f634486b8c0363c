//! What goes first when the store outgrows its budget, and when to say that it is about to.
//!
//! In: a [`Budget`], how much is used, candidates, the time. Out: an order, a level to warn of.
//!
//! ```text
//! media that central has  →  media it lacks  →  episodes it has  →  episodes it lacks  →  the same two of `permanent` ones
//!        oldest first                     lowest importance × recency first
//! ```
//!
//! Never: looks at files, rows or the clock.

use crate::domain::modality::DecayClass;
use crate::domain::time::Timestamp;

/// Over the budget, eviction goes on until only so much of it is used, so that it does not start again with the next row.
pub const TARGET_PERCENT: u64 = 95;

/// Shares of the budget that are worth a warning, in percent.
pub const WARNING_PERCENTS: [u8; 3] = [80, 90, 95];

/// How far usage must fall below a level before reaching it again is worth another warning, in percent of the budget.
const HYSTERESIS_PERCENT: u8 = 3;

/// How much the store may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Used pages of the database and kept media together, in bytes.
    pub bytes: u64,
}

impl Budget {
    /// Where eviction stops.
    #[must_use]
    pub const fn target_bytes(self) -> u64 {
        self.bytes / 100 * TARGET_PERCENT + self.bytes % 100 * TARGET_PERCENT / 100
    }
}

/// How much of the budget is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Used pages of the database and kept media.
    pub used_bytes: u64,
    /// What they may take.
    pub budget_bytes: u64,
}

impl Usage {
    /// The used share in whole percent, rounded down; above 100 when over the budget, and 255 at most.
    #[must_use]
    pub fn percent(self) -> u8 {
        let share = u128::from(self.used_bytes) * 100 / u128::from(self.budget_bytes.max(1));
        u8::try_from(share).unwrap_or(u8::MAX)
    }
}

/// Remembers which level was warned of, so that each crossing is said once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageAlarm {
    warned_percent: u8,
}

impl UsageAlarm {
    /// The level to warn of now: the highest of [`WARNING_PERCENTS`] that usage has risen to and that was not said since it
    /// was last clearly below.
    pub fn observe(&mut self, usage: Usage) -> Option<u8> {
        let percent = usage.percent();
        let reached = |least: u8| WARNING_PERCENTS.into_iter().rev().find(|level| least >= *level).unwrap_or(0);
        if reached(percent) > self.warned_percent {
            self.warned_percent = reached(percent);
            return Some(self.warned_percent);
        }
        let still_held = reached(percent.saturating_add(HYSTERESIS_PERCENT));
        self.warned_percent = self.warned_percent.min(still_held);
        None
    }

    /// The level that is warned of, 0 for none.
    #[must_use]
    pub const fn level_percent(self) -> u8 {
        self.warned_percent
    }
}

/// Episodes that go before others whatever their value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phase {
    /// Those of class `permanent`.
    pub is_permanent: bool,
    /// Those that central has not acknowledged.
    pub is_pending: bool,
}

/// The phases of episodes in their order.
pub const PHASES: [Phase; 4] = [
    Phase { is_permanent: false, is_pending: false },
    Phase { is_permanent: false, is_pending: true },
    Phase { is_permanent: true, is_pending: false },
    Phase { is_permanent: true, is_pending: true },
];

/// The classes a phase is about.
#[must_use]
pub fn classes_of(phase: Phase) -> Vec<DecayClass> {
    DecayClass::ALL.into_iter().filter(|class| (*class == DecayClass::Permanent) == phase.is_permanent).collect()
}

/// An episode that may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its row.
    pub row_id: i64,
    /// 0–10.
    pub importance: u8,
    /// How fast it fades.
    pub decay_class: DecayClass,
    /// When it was captured; `None` while its clock is unset, which says nothing about its age.
    pub captured_at: Option<Timestamp>,
}

/// Importance × recency. An episode of unknown age counts as fresh.
#[must_use]
pub fn value(candidate: &Candidate, now: Timestamp) -> f64 {
    let recency = candidate.captured_at.map_or(1.0, |at| candidate.decay_class.recency(now.millis_since(at)));
    f64::from(candidate.importance) * recency
}

/// Puts the least valuable first; of equal ones the oldest, then the one stored first.
pub fn order(candidates: &mut [Candidate], now: Timestamp) {
    candidates.sort_by(|one, other| {
        let rank = |candidate: &Candidate| (candidate.captured_at.is_none(), candidate.captured_at, candidate.row_id);
        value(one, now).total_cmp(&value(other, now)).then_with(|| rank(one).cmp(&rank(other)))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    fn usage(percent: u64) -> Usage {
        Usage { used_bytes: percent * 100_000, budget_bytes: 10_000_000 }
    }

    #[test]
    fn a_quota_warns_at_80_90_and_95_percent_once_each() {
        let mut alarm = UsageAlarm::default();

        let said: Vec<_> = (0..=100).filter_map(|percent| alarm.observe(usage(percent))).collect();
        let after_eviction = [95, 99, 100, 95, 93].map(|percent| alarm.observe(usage(percent)));
        let after_a_fall = [91, 96, 60, 79, 97].map(|percent| alarm.observe(usage(percent)));

        assert_eq!(said, [80, 90, 95]);
        assert_eq!(after_eviction, [None; 5], "swinging between the target and the budget is not news");
        assert_eq!(after_a_fall, [None, Some(95), None, None, Some(95)]);
        assert_eq!(usage(300).percent(), 255);
        assert_eq!(Usage { used_bytes: 1, budget_bytes: 0 }.percent(), 100);
    }

    #[test]
    fn the_target_is_95_percent_without_overflow() {
        assert_eq!(Budget { bytes: 10_000_050 }.target_bytes(), 9_500_047);
        assert!(Budget { bytes: u64::MAX }.target_bytes() < u64::MAX);
    }

    #[test]
    fn the_least_valuable_goes_first_and_an_unknown_age_counts_as_fresh() {
        let now = Timestamp::from_millis(1_000 * HOUR_MS);
        let row = |row_id, importance, decay_class, hours_ago: Option<i64>| Candidate {
            row_id,
            importance,
            decay_class,
            captured_at: hours_ago.map(|hours| now.plus_millis(-hours * HOUR_MS)),
        };
        let mut rows = [
            row(1, 6, DecayClass::Daily, Some(1)),
            row(2, 6, DecayClass::Daily, Some(24)),
            row(3, 5, DecayClass::Procedural, Some(24)),
            row(4, 1, DecayClass::Procedural, Some(0)),
            row(5, 6, DecayClass::Daily, None),
            row(6, 6, DecayClass::Daily, Some(-5)),
            row(7, 0, DecayClass::Daily, Some(0)),
        ];

        order(&mut rows, now);

        assert_eq!(rows.map(|row| row.row_id), [7, 4, 2, 3, 1, 6, 5]);
    }
}

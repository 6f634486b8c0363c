//! Gathers what sensors missed into few coverage rows.
//!
//! In: [`Coverage`] intervals in any number. Out: at most one per sensor, hour of capture, state and
//! reason: intervals of the same hour grow into one that reaches from the first to the last.
//! While its hour lasts a row is given out again as it grows, with the same start and a later end, so that a power cut
//! costs the last [`EVERY_MS`] of what is known and not an hour.
//! Never: I/O, the clock.

use crate::domain::coverage::Coverage;
use crate::domain::coverage::CoverageReason;
use crate::domain::coverage::CoverageState;
use crate::domain::id::SourceId;
use std::collections::BTreeMap;

const HOUR_MS: i64 = 3_600_000;

/// Open rows kept at once; the oldest hour is given out first when there are more.
const OPEN_ROWS_MAX: usize = 256;

/// How long a row that has grown waits before it is given out (again), in milliseconds.
pub const EVERY_MS: i64 = 30_000;

/// The last part counts the rows of one hour, sensor and reason: more than one only when an interval is told so late that
/// it begins before a row that was given out already.
type Key = (i64, SourceId, CoverageReason, CoverageState, u32);

#[derive(Debug)]
struct Open {
    coverage: Coverage,
    /// Whether it was given out, and so its start is settled.
    is_given: bool,
    /// When what has changed since is to be given out; `None` while nothing has.
    due_ms: Option<i64>,
}

/// Gathers coverage intervals.
#[derive(Debug, Default)]
pub struct CoverageLog {
    open: BTreeMap<Key, Open>,
    rows: u64,
}

impl CoverageLog {
    /// Takes one interval. An interval that crosses full hours is cut there, so that each row tells
    /// truly which hour was blind.
    pub fn handle(&mut self, coverage: Coverage) {
        let mut rest = coverage;
        loop {
            let hour = rest.from.monotonic_ms.div_euclid(HOUR_MS);
            let cut_ms = (hour + 1) * HOUR_MS - rest.from.monotonic_ms;
            if rest.to.millis_since(rest.from) <= cut_ms {
                self.join(hour, rest);
                return;
            }
            let cut = rest.from.plus_millis(cut_ms);
            self.join(hour, Coverage { to: cut, ..rest.clone() });
            rest.from = cut;
        }
    }

    fn join(&mut self, hour: i64, coverage: Coverage) {
        let mut key: Key = (hour, coverage.source.clone(), coverage.reason, coverage.state, 0);
        while self.open.get(&key).is_some_and(|row| row.is_given && coverage.from < row.coverage.from) {
            key.4 += 1;
        }
        let due_ms = coverage.to.monotonic_ms.saturating_add(EVERY_MS);
        let Some(row) = self.open.get_mut(&key) else {
            self.rows += 1;
            self.open.insert(key, Open { coverage, is_given: false, due_ms: Some(due_ms) });
            return;
        };
        let grown = (row.coverage.from.min(coverage.from), row.coverage.to.max(coverage.to));
        if grown != (row.coverage.from, row.coverage.to) {
            (row.coverage.from, row.coverage.to) = grown;
            row.due_ms.get_or_insert(due_ms);
        }
    }

    /// Gives out a row whose hour has ended by `now_ms` (monotonic), or the oldest when too many are open, or one that has
    /// grown a while ago.
    pub fn poll(&mut self, now_ms: i64) -> Option<Coverage> {
        let is_full = self.open.len() > OPEN_ROWS_MAX;
        while let Some(oldest) = self.open.first_entry() {
            let is_over = (oldest.key().0 + 1) * HOUR_MS <= now_ms;
            if !is_over && !is_full {
                break;
            }
            let row = oldest.remove();
            if row.due_ms.is_some() {
                return Some(row.coverage);
            }
        }
        let row = self.open.values_mut().find(|row| row.due_ms.is_some_and(|due_ms| due_ms <= now_ms))?;
        row.due_ms = None;
        row.is_given = true;
        Some(row.coverage.clone())
    }

    /// Rows begun so far, however often each was given out.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Gives out whatever is still open and was not given out as it is, oldest first.
    pub fn finish(&mut self) -> Vec<Coverage> {
        let rows = std::mem::take(&mut self.open).into_values();
        rows.filter(|row| row.due_ms.is_some()).map(|row| row.coverage).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::SensorKind;
    use crate::domain::time::ClockQuality;
    use crate::domain::time::Stamp;
    use crate::domain::time::Timestamp;

    #[test]
    fn many_losses_of_one_reason_make_one_row_an_hour() {
        let mut log = CoverageLog::default();
        for minute in 0..90 {
            log.handle(blind(minute * 60_000, minute * 60_000 + 1_000));
        }

        let rows = log.finish();

        assert_eq!(
            rows.iter().map(span).collect::<Vec<_>>(),
            [(0, 59 * 60_000 + 1_000), (HOUR_MS, HOUR_MS + 1_741_000)]
        );
    }

    #[test]
    fn an_interval_over_full_hours_is_cut_there() {
        let mut log = CoverageLog::default();
        log.handle(blind(HOUR_MS - 5, 2 * HOUR_MS + 7));

        let rows = log.finish();

        assert_eq!(
            rows.iter().map(span).collect::<Vec<_>>(),
            [(HOUR_MS - 5, HOUR_MS), (HOUR_MS, 2 * HOUR_MS), (2 * HOUR_MS, 2 * HOUR_MS + 7)]
        );
    }

    #[test]
    fn a_row_comes_out_when_its_hour_is_over() {
        let mut log = CoverageLog::default();
        log.handle(blind(HOUR_MS - 20, HOUR_MS - 10));

        assert_eq!(log.poll(HOUR_MS - 1), None);
        assert_eq!(log.poll(HOUR_MS).map(|row| span(&row)), Some((HOUR_MS - 20, HOUR_MS - 10)));
        assert_eq!(log.poll(HOUR_MS), None);
    }

    #[test]
    fn a_loss_that_lasts_is_given_out_while_it_lasts() {
        let mut log = CoverageLog::default();
        let mut given = Vec::new();
        for second in 1..=90 {
            log.handle(blind(0, second * 1_000));
            given.extend(std::iter::from_fn(|| log.poll(second * 1_000)).map(|row| span(&row)));
        }
        log.handle(blind(95_000, 99_000));

        assert_eq!(given, [(0, 31_000), (0, 62_000)]);
        assert_eq!(log.finish().iter().map(span).collect::<Vec<_>>(), [(0, 99_000)], "one row, grown");
    }

    #[test]
    fn what_was_given_out_whole_is_not_given_again_and_keeps_its_start() {
        let mut log = CoverageLog::default();
        log.handle(blind(50_000, 60_000));
        assert_eq!(log.poll(90_000).map(|row| span(&row)), Some((50_000, 60_000)));

        log.handle(blind(10_000, 20_000));

        assert_eq!(log.finish().iter().map(span).collect::<Vec<_>>(), [(10_000, 20_000)]);
    }

    fn blind(from_ms: i64, to_ms: i64) -> Coverage {
        let at = |ms: i64| Stamp {
            monotonic_ms: ms,
            utc: Timestamp::from_millis(1_000_000 + ms),
            quality: ClockQuality::Network,
        };
        Coverage {
            source: SourceId::of(SensorKind::Microphone, "front"),
            from: at(from_ms),
            to: at(to_ms),
            state: CoverageState::Blind,
            reason: CoverageReason::NoSignal,
            detail: None,
        }
    }

    fn span(row: &Coverage) -> (i64, i64) {
        (row.from.monotonic_ms, row.to.monotonic_ms)
    }
}

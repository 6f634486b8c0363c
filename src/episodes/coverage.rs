//! Gathers what sensors missed into few coverage rows.
//!
//! In: [`Coverage`] intervals in any number. Out: at most one per sensor, hour of capture, state and
//! reason: intervals of the same hour grow into one that reaches from the first to the last.
//! Never: I/O, the clock.

use crate::domain::coverage::Coverage;
use crate::domain::coverage::CoverageReason;
use crate::domain::coverage::CoverageState;
use crate::domain::id::SourceId;
use std::collections::BTreeMap;

const HOUR_MS: i64 = 3_600_000;

/// Open rows kept at once; the oldest hour is given out first when there are more.
const OPEN_ROWS_MAX: usize = 256;

type Key = (i64, SourceId, CoverageReason, CoverageState);

/// Gathers coverage intervals.
#[derive(Debug, Default)]
pub struct CoverageLog {
    open: BTreeMap<Key, Coverage>,
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
        let key = (hour, coverage.source.clone(), coverage.reason, coverage.state);
        self.open
            .entry(key)
            .and_modify(|row| {
                row.from = row.from.min(coverage.from);
                row.to = row.to.max(coverage.to);
            })
            .or_insert(coverage);
    }

    /// Gives out a row whose hour has ended by `now_ms` (monotonic), or the oldest when too many are open.
    pub fn poll(&mut self, now_ms: i64) -> Option<Coverage> {
        let hour = self.open.first_key_value()?.0.0;
        let is_over = (hour + 1) * HOUR_MS <= now_ms;
        (is_over || self.open.len() > OPEN_ROWS_MAX).then(|| self.open.pop_first()).flatten().map(|(_, row)| row)
    }

    /// Gives out whatever is still open, oldest first.
    pub fn finish(&mut self) -> Vec<Coverage> {
        std::mem::take(&mut self.open).into_values().collect()
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
        log.handle(blind(0, 10));

        assert_eq!(log.poll(HOUR_MS - 1), None);
        assert_eq!(log.poll(HOUR_MS).map(|row| span(&row)), Some((0, 10)));
        assert_eq!(log.poll(HOUR_MS), None);
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

//! The advertisements of a session folder (`bluetooth.jsonl`).
//!
//! In: one JSON object a line. Out: one [`Advertisement`](crate::domain::reading::Advertisement) for each, and one [`Loss`] for each run of lines
//! that are none. Messages name the line and never its content: it may hold an address.

use super::advertisement::parse;
use super::clock::SessionClock;
use super::problems::ProblemKind;
use super::problems::Problems;
use super::timed_lines::BadLine;
use super::timed_lines::TimedLines;
use crate::domain::coverage::CoverageReason;
use crate::domain::id::SourceId;
use crate::domain::reading::Loss;
use crate::domain::reading::Payload;
use crate::domain::reading::Reading;
use crate::sensors::Poll;
use crate::sensors::Sensor;
use std::time::Duration;

/// Recorded advertisements.
pub(super) struct RecordedBluetooth {
    source: SourceId,
    lines: TimedLines,
    name: String,
    clock: SessionClock,
    problems: Problems,
    /// Of the run of bad lines at hand: where it is, its first line's sentence, and how many came behind it.
    bad: Option<(i64, String, u64)>,
    ahead: Option<Reading>,
}

impl RecordedBluetooth {
    pub(super) fn new(
        source: SourceId,
        lines: TimedLines,
        name: String,
        clock: SessionClock,
        problems: Problems,
    ) -> Self {
        Self { source, lines, name, clock, problems, bad: None, ahead: None }
    }

    fn reading(&self, at_ms: i64, payload: Payload) -> Reading {
        Reading { source: self.source.clone(), captured_at: self.clock.stamp(at_ms), payload }
    }

    fn set_aside(&mut self, at_ms: i64, bad: &BadLine) {
        let detail = format!("{}: {}", self.name, bad.detail);
        self.problems.count(bad.kind, &detail);
        match &mut self.bad {
            Some((.., more)) => *more += 1,
            None => self.bad = Some((at_ms, detail, 0)),
        }
    }

    /// The loss of a run of bad lines that is over.
    fn loss(&mut self) -> Option<Reading> {
        let (at_ms, first, more) = self.bad.take()?;
        let detail = match more {
            0 => first,
            more => format!("{first}; and {more} more lines behind it"),
        };
        let loss = Loss { length_ms: Some(0), reason: CoverageReason::Unreadable, detail };
        Some(self.reading(at_ms, Payload::Loss(loss)))
    }
}

impl Sensor for RecordedBluetooth {
    fn source(&self) -> &SourceId {
        &self.source
    }

    fn poll(&mut self, _timeout: Duration) -> Poll {
        if let Some(reading) = self.ahead.take() {
            return Poll::Reading(reading);
        }
        while let Some(line) = self.lines.next() {
            let (number, value) = match line.record {
                Ok(record) => record,
                Err(bad) => {
                    self.set_aside(line.at_ms, &bad);
                    continue;
                }
            };
            match parse(&value) {
                Ok((advertisement, oddity)) => {
                    if let Some(what) = oddity {
                        self.problems
                            .count(ProblemKind::ImpossibleValue, &format!("{}: line {number}: {what}", self.name));
                    }
                    let reading = self.reading(line.at_ms, Payload::Advertisement(advertisement));
                    return match self.loss() {
                        Some(loss) => {
                            self.ahead = Some(reading);
                            Poll::Reading(loss)
                        }
                        None => Poll::Reading(reading),
                    };
                }
                Err(what) => self.set_aside(line.at_ms, &BadLine::new(number, &what)),
            }
        }
        self.loss().map_or(Poll::Ended, Poll::Reading)
    }
}

//! The GPS reports of a session folder (`gps.jsonl`).
//!
//! In: lines `{"at_ms":…,"report":{…}}`, the report in gpsd's words. Out: one reading for each line; a
//! line that is none becomes [`GpsReport::Malformed`] with the line's number, never with its content.

use super::clock::SessionClock;
use super::gpsd_json::report_of;
use super::problems::ProblemKind;
use super::problems::Problems;
use super::timed_lines::TimedLines;
use crate::domain::id::SourceId;
use crate::domain::reading::GpsReport;
use crate::domain::reading::Payload;
use crate::domain::reading::Reading;
use crate::sensors::Poll;
use crate::sensors::Sensor;
use std::time::Duration;

/// Recorded reports.
pub(super) struct RecordedGps {
    source: SourceId,
    lines: TimedLines,
    name: String,
    clock: SessionClock,
    problems: Problems,
}

impl RecordedGps {
    pub(super) fn new(
        source: SourceId,
        lines: TimedLines,
        name: String,
        clock: SessionClock,
        problems: Problems,
    ) -> Self {
        Self { source, lines, name, clock, problems }
    }
}

impl Sensor for RecordedGps {
    fn source(&self) -> &SourceId {
        &self.source
    }

    fn poll(&mut self, _timeout: Duration) -> Poll {
        let Some(line) = self.lines.next() else { return Poll::Ended };
        let report = match line.record {
            Ok((number, value)) => match value.get("report").map(report_of) {
                Some(GpsReport::Malformed(what)) => {
                    Err((ProblemKind::BadLine, format!("line {number} holds no report: {what}")))
                }
                Some(report) => Ok(report),
                None => Err((ProblemKind::BadLine, format!("line {number} has no report"))),
            },
            Err(bad) => Err((bad.kind, bad.detail)),
        };
        let report = report.unwrap_or_else(|(kind, what)| {
            let detail = format!("{}: {what}", self.name);
            self.problems.count(kind, &detail);
            GpsReport::Malformed(detail)
        });
        Poll::Reading(Reading {
            source: self.source.clone(),
            captured_at: self.clock.stamp(line.at_ms),
            payload: Payload::Position(report),
        })
    }
}

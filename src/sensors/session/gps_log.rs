//! A bare receiver log (NMEA sentences, or gpsd's JSON lines) as a stream of reports.
//!
//! In: a file without any time but what the reports say. Out: the same reports with offsets, by the
//! rules of [`super::timing`]. The file is read twice: once when it is opened, to learn when it
//! starts and how long it is, and once as a sensor.

use super::clock::SessionClock;
use super::gpsd_json::report_of;
use super::lines::Lines;
use super::nmea_log::LogReport;
use super::nmea_log::NmeaEpochs;
use super::nmea_log::ReportTime;
use super::problems::ProblemKind;
use super::problems::Problems;
use super::timing::LogPace;
use super::timing::NOMINAL_MS;
use super::timing::Plausible;
use crate::domain::id::SourceId;
use crate::domain::reading::GpsReport;
use crate::domain::reading::Payload;
use crate::domain::reading::Reading;
use crate::domain::time::Timestamp;
use crate::sensors::Poll;
use crate::sensors::Sensor;
use serde_json::Value;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

/// How the lines of a log are to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogKind {
    /// NMEA 0183 sentences.
    Nmea,
    /// gpsd's JSON, one object a line; lines of a `gps.jsonl` too.
    Gpsd,
}

/// The reports of a log with their offsets.
struct LogReader {
    lines: Lines<BufReader<File>>,
    kind: LogKind,
    epochs: NmeaEpochs,
    pace: LogPace,
    queue: VecDeque<(i64, GpsReport)>,
    is_over: bool,
}

impl LogReader {
    fn open(path: &Path, kind: LogKind, plausible: Plausible) -> io::Result<Self> {
        Ok(Self {
            lines: Lines::new(BufReader::new(File::open(path)?)),
            kind,
            epochs: NmeaEpochs::default(),
            pace: LogPace::new(plausible),
            queue: VecDeque::new(),
            is_over: false,
        })
    }

    /// The next report; after a read error, the end.
    fn next(&mut self) -> Option<(i64, GpsReport)> {
        while self.queue.is_empty() && !self.is_over {
            match self.lines.next() {
                Ok(Some(line)) => {
                    let reports = match &line.bytes {
                        Some(bytes) => self.understand(bytes),
                        None => vec![untimed(GpsReport::Malformed("it is longer than 64 KiB".to_owned()))],
                    };
                    self.place(reports, line.number);
                }
                Ok(None) => {
                    self.is_over = true;
                    let rest = self.epochs.finish();
                    self.place(rest, 0);
                }
                Err(error) => {
                    self.is_over = true;
                    let rest = untimed(GpsReport::Malformed(format!("the rest cannot be read ({error})")));
                    self.place(vec![rest], 0);
                }
            }
        }
        self.queue.pop_front()
    }

    fn understand(&mut self, line: &[u8]) -> Vec<LogReport> {
        match self.kind {
            LogKind::Nmea => self.epochs.feed(line),
            LogKind::Gpsd if line.iter().all(u8::is_ascii_whitespace) || line.starts_with(b"#") => Vec::new(),
            // gpspipe and gpsfake can put the receiver's own sentences between gpsd's reports of them.
            LogKind::Gpsd if line.starts_with(b"$") || line.starts_with(b"!") => {
                vec![untimed(GpsReport::Other("NMEA".to_owned()))]
            }
            LogKind::Gpsd => vec![gpsd_report(line)],
        }
    }

    fn place(&mut self, reports: Vec<LogReport>, number: u64) {
        for LogReport { report, time } in reports {
            let offset_ms = match &report {
                // gpsd tells one fix in several parts, the first of them without a time.
                GpsReport::Position(position) if self.kind == LogKind::Gpsd && position.mode >= 2 => {
                    self.pace.place(time, 0)
                }
                GpsReport::Position(_) => self.pace.place(time, NOMINAL_MS),
                GpsReport::Satellites { .. } | GpsReport::Other(_) | GpsReport::Malformed(_) => self.pace.current_ms(),
            };
            let report = match report {
                GpsReport::Malformed(what) => GpsReport::Malformed(format!("line {number}: {what}")),
                told @ (GpsReport::Position(_) | GpsReport::Satellites { .. } | GpsReport::Other(_)) => told,
            };
            self.queue.push_back((offset_ms, report));
        }
    }
}

fn untimed(report: GpsReport) -> LogReport {
    LogReport { report, time: None }
}

/// A line of gpsd's own, or one of a `gps.jsonl`, whose `at_ms` is not needed.
fn gpsd_report(line: &[u8]) -> LogReport {
    let value = match serde_json::from_slice::<Value>(line) {
        Ok(value) => value,
        Err(error) => return untimed(GpsReport::Malformed(format!("it is no JSON ({error})"))),
    };
    let report = report_of(value.get("report").unwrap_or(&value));
    let time = match &report {
        GpsReport::Position(position) => position.time.map(|time| ReportTime {
            millis: time.as_millis(),
            is_dated: true,
            has_fix: position.mode >= 2,
        }),
        GpsReport::Satellites { .. } | GpsReport::Other(_) | GpsReport::Malformed(_) => None,
    };
    LogReport { report, time }
}

/// What a log says about itself as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogSummary {
    /// The instant of offset 0, when a fix with a believable time is in it.
    pub(super) start: Option<Timestamp>,
    /// The offset of its last report.
    pub(super) length_ms: i64,
    /// How often its times leapt.
    pub(super) leaps: u64,
}

/// Reads a log through.
pub(super) fn summarise(path: &Path, kind: LogKind, plausible: Plausible) -> io::Result<LogSummary> {
    let mut reader = LogReader::open(path, kind, plausible)?;
    while reader.next().is_some() {}
    Ok(LogSummary { start: reader.pace.start(), length_ms: reader.pace.current_ms(), leaps: reader.pace.leaps })
}

/// A log as a sensor.
pub(super) struct RecordedGpsLog {
    source: SourceId,
    reader: LogReader,
    name: String,
    clock: SessionClock,
    problems: Problems,
}

impl RecordedGpsLog {
    pub(super) fn open(
        source: SourceId,
        path: &Path,
        kind: LogKind,
        plausible: Plausible,
        clock: SessionClock,
        problems: Problems,
    ) -> io::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { source, reader: LogReader::open(path, kind, plausible)?, name, clock, problems })
    }
}

impl Sensor for RecordedGpsLog {
    fn source(&self) -> &SourceId {
        &self.source
    }

    fn poll(&mut self, _timeout: Duration) -> Poll {
        let Some((offset_ms, report)) = self.reader.next() else { return Poll::Ended };
        let report = match report {
            GpsReport::Malformed(what) => {
                let detail = format!("{} {what}", self.name);
                self.problems.count(ProblemKind::BadLine, &detail);
                GpsReport::Malformed(detail)
            }
            told @ (GpsReport::Position(_) | GpsReport::Satellites { .. } | GpsReport::Other(_)) => told,
        };
        Poll::Reading(Reading {
            source: self.source.clone(),
            captured_at: self.clock.stamp(offset_ms),
            payload: Payload::Position(report),
        })
    }
}

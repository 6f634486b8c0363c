//! An open connection to gpsd: one line at a time becomes a report.
//!
//! In: gpsd's lines. Out: reports for the pipeline; what gpsd says of itself is only a sign of life. gpsd without a
//! receiver is told at once, and again while it lasts; the connection is kept, because gpsd announces a new receiver.

use super::control::Control;
use super::control::Receivers;
use super::lines::Line;
use super::lines::Lines;
use crate::domain::reading::GpsReport;
use crate::domain::reading::Payload;
use crate::sensors::live::Failure;
use crate::sensors::live::Fed;
use crate::sensors::live::Feed;
use crate::sensors::live::SharedClock;
use crate::sensors::session::gpsd_json;
use serde_json::Value;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

/// A missing receiver is told this often: within the stall time, so that the connection is kept.
const BLIND_AGAIN_MS: i64 = 30_000;

/// A gpsd that said nothing for this long is asked anew, even when it said that it has no receiver: the connection may
/// be dead without either side knowing.
const BLIND_SILENT_MAX_MS: i64 = 600_000;

/// Unreadable lines in a row, and no readable one ever, after which what answers is no gpsd.
const STRANGE_LINES_MAX: u32 = 20;

/// A connection that was asked to report.
pub(super) struct GpsFeed {
    stream: TcpStream,
    /// For messages.
    address: String,
    clock: SharedClock,
    lines: Lines,
    receivers: Receivers,
    /// When the missing receiver was last told.
    blind_told_ms: Option<i64>,
    heard_ms: i64,
    strange_lines: u32,
    is_gpsd: bool,
}

impl GpsFeed {
    pub(super) fn new(stream: TcpStream, address: String, clock: SharedClock) -> Self {
        let heard_ms = clock.monotonic_ms();
        Self {
            stream,
            address,
            clock,
            lines: Lines::default(),
            receivers: Receivers::default(),
            blind_told_ms: None,
            heard_ms,
            strange_lines: 0,
            is_gpsd: false,
        }
    }

    fn take(&mut self, line: &Line) -> Fed {
        self.heard_ms = self.clock.monotonic_ms();
        let Line::Whole(bytes) = line else { return self.strange(GpsReport::Malformed("it is too long".to_owned())) };
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
            // Parsed again for the sentence that a recording gives.
            return self.strange(gpsd_json::parse_report(bytes));
        };
        if let Some(control) = Control::read(&value) {
            self.is_gpsd = true;
            self.receivers.handle(&control);
            if !self.receivers.are_none() {
                self.blind_told_ms = None;
            }
            return Fed::Idle;
        }
        match gpsd_json::report_of(&value) {
            report @ GpsReport::Malformed(_) => self.strange(report),
            report @ (GpsReport::Position(_) | GpsReport::Satellites { .. } | GpsReport::Other(_)) => {
                self.is_gpsd = true;
                self.receivers.report_came();
                self.blind_told_ms = None;
                self.captured(report)
            }
        }
    }

    fn captured(&self, report: GpsReport) -> Fed {
        Fed::Captured(self.clock.stamp(), Payload::Position(report))
    }

    fn strange(&mut self, report: GpsReport) -> Fed {
        self.strange_lines = self.strange_lines.saturating_add(1);
        if !self.is_gpsd && self.strange_lines >= STRANGE_LINES_MAX {
            return Fed::Broken(Failure::unusable(format!("what answers at {} is no gpsd", self.address)));
        }
        self.captured(report)
    }

    /// What there is to say while gpsd has no receiver.
    fn blind(&mut self) -> Option<Fed> {
        if !self.receivers.are_none() {
            return None;
        }
        let now_ms = self.clock.monotonic_ms();
        let failure = Failure::unplugged(format!(
            "gpsd at {} has no receiver: plug it in, or name it in DEVICES of /etc/default/gpsd",
            self.address
        ));
        if now_ms - self.heard_ms >= BLIND_SILENT_MAX_MS {
            return Some(Fed::Broken(failure));
        }
        if self.blind_told_ms.is_some_and(|told_ms| now_ms - told_ms < BLIND_AGAIN_MS) {
            return None;
        }
        self.blind_told_ms = Some(now_ms);
        Some(Fed::Blind(failure))
    }

    fn read(&mut self, timeout: Duration) -> Option<Fed> {
        // Zero would mean to wait for ever.
        let timeout = timeout.max(Duration::from_millis(1));
        let read = self.stream.set_read_timeout(Some(timeout)).and_then(|()| self.lines.fill(&mut self.stream));
        match read {
            Ok(0) => Some(Fed::Broken(Failure::unplugged(format!("gpsd at {} closed the connection", self.address)))),
            Ok(_) => None,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) =>
            {
                None
            }
            Err(error) => {
                let detail = format!("the connection to gpsd at {} broke ({error})", self.address);
                Some(Fed::Broken(Failure::unplugged(detail)))
            }
        }
    }
}

impl Feed for GpsFeed {
    /// Reads at most once, so that bytes that trickle in cannot hold it longer than `timeout`.
    fn next(&mut self, timeout: Duration) -> Fed {
        if let Some(line) = self.lines.pop() {
            return self.take(&line);
        }
        if let Some(fed) = self.blind().or_else(|| self.read(timeout)) {
            return fed;
        }
        self.lines.pop().map_or(Fed::Nothing, |line| self.take(&line))
    }
}

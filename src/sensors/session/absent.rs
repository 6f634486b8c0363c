//! Losses that are known when a session is opened, ahead of a stream's readings.

use super::clock::SessionClock;
use crate::domain::coverage::CoverageReason;
use crate::domain::id::SourceId;
use crate::domain::reading::Loss;
use crate::domain::reading::Payload;
use crate::domain::reading::Reading;
use crate::sensors::Poll;
use crate::sensors::Sensor;
use std::collections::VecDeque;
use std::time::Duration;

/// A sensor behind a few losses at offset 0: files that are not named by an offset, a stream that is not there.
pub(super) struct Behind<S> {
    losses: VecDeque<Reading>,
    sensor: S,
}

impl<S: Sensor> Behind<S> {
    /// Each of `details` becomes a loss of length 0 in front of `sensor`'s readings.
    pub(super) fn new(details: &[String], sensor: S, clock: &SessionClock) -> Self {
        let losses = details.iter().map(|detail| Reading {
            source: sensor.source().clone(),
            captured_at: clock.stamp(0),
            payload: Payload::Loss(Loss {
                length_ms: Some(0),
                reason: CoverageReason::Unreadable,
                detail: detail.clone(),
            }),
        });
        Self { losses: losses.collect(), sensor }
    }
}

impl<S: Sensor> Sensor for Behind<S> {
    fn source(&self) -> &SourceId {
        self.sensor.source()
    }

    fn poll(&mut self, timeout: Duration) -> Poll {
        match self.losses.pop_front() {
            Some(reading) => Poll::Reading(reading),
            None => self.sensor.poll(timeout),
        }
    }
}

/// A stream that `session.toml` declares and the folder does not hold: one loss, as long as the session if that is known.
pub(super) struct AbsentSensor {
    source: SourceId,
    loss: Option<Reading>,
}

impl AbsentSensor {
    pub(super) fn new(source: SourceId, length_ms: Option<i64>, detail: String, clock: &SessionClock) -> Self {
        let loss = Reading {
            source: source.clone(),
            captured_at: clock.stamp(0),
            payload: Payload::Loss(Loss { length_ms, reason: CoverageReason::Recorded, detail }),
        };
        Self { source, loss: Some(loss) }
    }
}

impl Sensor for AbsentSensor {
    fn source(&self) -> &SourceId {
        &self.source
    }

    fn poll(&mut self, _timeout: Duration) -> Poll {
        self.loss.take().map_or(Poll::Ended, Poll::Reading)
    }
}

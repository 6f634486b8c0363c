//! Puts the gaps that a session lists between the readings of its streams, in order of time.

use super::clock::SessionClock;
use super::header::Gap;
use crate::domain::id::SourceId;
use crate::domain::reading::Loss;
use crate::domain::reading::Payload;
use crate::domain::reading::Reading;
use crate::sensors::Poll;
use crate::sensors::Sensor;
use std::collections::VecDeque;
use std::time::Duration;

/// A recorded sensor with its listed gaps.
pub(super) struct WithGaps<S> {
    sensor: S,
    gaps: VecDeque<Reading>,
    ahead: Option<Reading>,
}

impl<S: Sensor> WithGaps<S> {
    pub(super) fn new(sensor: S, gaps: &[Gap], clock: &SessionClock) -> Self {
        let source = sensor.source();
        let gaps = gaps.iter().map(|gap| loss(source, gap, clock)).collect();
        Self { sensor, gaps, ahead: None }
    }
}

fn loss(source: &SourceId, gap: &Gap, clock: &SessionClock) -> Reading {
    let detail = gap.note.clone().unwrap_or_else(|| {
        format!("session.toml lists {} to {} ms as missing ({})", gap.from_ms, gap.to_ms, gap.reason.as_str())
    });
    Reading {
        source: source.clone(),
        captured_at: clock.stamp(gap.from_ms),
        payload: Payload::Loss(Loss { length_ms: Some(gap.to_ms - gap.from_ms), reason: gap.reason, detail }),
    }
}

impl<S: Sensor> Sensor for WithGaps<S> {
    fn source(&self) -> &SourceId {
        self.sensor.source()
    }

    fn poll(&mut self, timeout: Duration) -> Poll {
        if self.ahead.is_none()
            && let Poll::Reading(reading) = self.sensor.poll(timeout)
        {
            self.ahead = Some(reading);
        }
        let due = match (self.gaps.front(), &self.ahead) {
            (Some(gap), Some(ahead)) => gap.captured_at.monotonic_ms <= ahead.captured_at.monotonic_ms,
            (Some(_), None) => true,
            (None, _) => false,
        };
        let next = if due { self.gaps.pop_front() } else { self.ahead.take() };
        next.map_or(Poll::Ended, Poll::Reading)
    }
}

impl Sensor for Box<dyn Sensor> {
    fn source(&self) -> &SourceId {
        (**self).source()
    }

    fn poll(&mut self, timeout: Duration) -> Poll {
        (**self).poll(timeout)
    }
}

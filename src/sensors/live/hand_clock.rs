//! A clock for tests of live sensors: shared by the driver and the test, moved by hand.

use crate::domain::time::Clock;
use crate::domain::time::ClockQuality;
use crate::domain::time::ManualClock;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

/// A clock shared with the test. It starts at zero.
#[derive(Clone)]
pub(crate) struct HandClock(Arc<Mutex<ManualClock>>);

impl HandClock {
    pub(crate) fn new() -> Self {
        let now = Stamp { monotonic_ms: 0, utc: Timestamp::from_millis(0), quality: ClockQuality::Network };
        Self(Arc::new(Mutex::new(ManualClock { now })))
    }

    pub(crate) fn pass_ms(&self, ms: i64) {
        let mut clock = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        clock.now = clock.now.plus_millis(ms);
    }
}

impl Clock for HandClock {
    fn utc(&self) -> Timestamp {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).now.utc
    }

    fn monotonic_ms(&self) -> i64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).now.monotonic_ms
    }
}

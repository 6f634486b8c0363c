//! The state of one live sensor, as `percept status`, the watchdog and the metrics see it.

use crate::domain::coverage::CoverageReason;
use crate::domain::id::SourceId;
use crate::domain::time::Stamp;
use crate::sensors::live::Failure;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

/// What a sensor is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Not open yet, or open and nothing captured yet.
    Opening,
    /// Capturing.
    Running,
    /// Gone, silent or unusable; it is tried again.
    Lost,
    /// Muted by the user.
    Muted,
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The sensor.
    pub source: SourceId,
    /// What it is doing.
    pub state: State,
    /// Since when.
    pub since: Stamp,
    /// When it last captured something.
    pub last_capture: Option<Stamp>,
    /// Readings captured since the start.
    pub captures: u64,
    /// Errors it survived.
    pub hiccups: u64,
    /// How often it was lost.
    pub losses: u64,
    /// The latest failure or hiccup, in words.
    pub last_error: Option<String>,
    /// Why it is lost or muted.
    pub reason: Option<CoverageReason>,
}

/// The live state of a sensor, shared.
#[derive(Debug, Clone)]
pub struct HealthCell(Arc<Mutex<Health>>);

impl HealthCell {
    pub(super) fn new(source: SourceId, now: Stamp) -> Self {
        Self(Arc::new(Mutex::new(Health {
            source,
            state: State::Opening,
            since: now,
            last_capture: None,
            captures: 0,
            hiccups: 0,
            losses: 0,
            last_error: None,
            reason: None,
        })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Health) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The state at this moment.
    #[must_use]
    pub fn get(&self) -> Health {
        self.with(|health| health.clone())
    }

    /// An empty name in the config stands for a device that is known once it was opened.
    pub(super) fn set_source(&self, source: &SourceId) {
        self.with(|health| health.source.clone_from(source));
    }

    pub(super) fn set_state(&self, state: State, now: Stamp) {
        self.with(|health| health.enter(state, now));
    }

    pub(super) fn captured(&self, now: Stamp) {
        self.with(|health| {
            health.enter(State::Running, now);
            health.last_capture = Some(now);
            health.captures += 1;
            health.reason = None;
        });
    }

    pub(super) fn hiccup(&self, detail: &str) {
        self.with(|health| {
            health.hiccups += 1;
            health.last_error = Some(detail.to_owned());
        });
    }

    pub(super) fn failed(&self, state: State, failure: &Failure, now: Stamp) {
        self.with(|health| {
            if state == State::Lost && health.state != State::Lost {
                health.losses += 1;
            }
            health.enter(state, now);
            health.reason = Some(failure.reason);
            if !failure.detail.is_empty() {
                health.last_error = Some(failure.detail.clone());
            }
        });
    }

    /// Since when nothing was captured.
    pub(super) fn blind_since(&self) -> Option<Stamp> {
        self.with(|health| health.last_capture)
    }

    pub(super) fn failure(&self) -> Failure {
        self.with(|health| Failure {
            reason: health.reason.unwrap_or(CoverageReason::Stalled),
            detail: health.last_error.clone().filter(|_| health.state == State::Lost).unwrap_or_default(),
        })
    }
}

impl Health {
    fn enter(&mut self, state: State, now: Stamp) {
        if self.state != state {
            self.state = state;
            self.since = now;
        }
    }
}

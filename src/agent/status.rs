//! What the running agent says about itself: for `percept status`, `doctor`, the metrics and the watchdog.
//!
//! Plain data, published once a second by the run and read by the control socket. Names no position and no address.

use crate::domain::coverage::CoverageReason;
use crate::domain::id::SourceId;
use crate::domain::time::ClockQuality;
use crate::domain::time::Timestamp;
use crate::sensors::live::Health;
use crate::sensors::live::State;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

/// The agent at one moment.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Status {
    /// percept's version.
    pub version: String,
    /// The process.
    pub pid: u32,
    /// This device.
    pub device_id: String,
    /// This run.
    pub session_id: String,
    /// When the run began.
    pub started_at: Timestamp,
    /// Milliseconds since then.
    pub uptime_ms: i64,
    /// What the wall clock says, and how far it can be trusted.
    pub clock: ClockStatus,
    /// Each sensor that the config enables.
    pub sensors: Vec<SensorStatus>,
    /// Readings on their way.
    pub queues: Vec<QueueStatus>,
    /// The store.
    pub store: StoreStatus,
    /// The episode written last.
    pub last_episode: Option<LastEpisode>,
    /// Why optional models rest, when they do.
    pub resting: Option<String>,
    /// What the machine says about heat and charge.
    pub power: Vec<String>,
    /// Models that are missing and what that costs.
    pub missing_models: Vec<String>,
    /// Threads that make no progress.
    pub stuck: Vec<String>,
}

/// The wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct ClockStatus {
    /// What it shows.
    pub utc: Timestamp,
    /// How far it can be trusted.
    pub quality: ClockQuality,
}

/// One sensor.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SensorStatus {
    /// Its identity.
    pub source: SourceId,
    /// What it is doing.
    pub state: State,
    /// For how long, in milliseconds.
    pub since_ms: i64,
    /// Milliseconds since it last captured something.
    pub last_capture_ms: Option<i64>,
    /// Readings captured.
    pub captures: u64,
    /// Errors it survived.
    pub hiccups: u64,
    /// How often it was lost.
    pub losses: u64,
    /// Why it is lost or muted.
    pub reason: Option<CoverageReason>,
    /// The latest error, in words.
    pub last_error: Option<String>,
    /// What is wrong with what it delivers, although it delivers.
    pub complaint: Option<String>,
}

/// Readings of one kind of sensor on their way to the pipeline.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct QueueStatus {
    /// `microphone`, `camera`, `gps`, `bluetooth`.
    pub kind: String,
    /// Waiting.
    pub waiting: usize,
    /// Most that may wait.
    pub bound: usize,
    /// Dropped since the start because it was full.
    pub dropped: u64,
}

/// The store.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct StoreStatus {
    /// Why nothing can be committed at the moment.
    pub trouble: Option<String>,
    /// Episodes written since the start, by modality.
    pub episodes: BTreeMap<String, u64>,
    /// Coverage rows written since the start.
    pub coverage: u64,
    /// Commits since the start.
    pub commits: u64,
    /// Rows given up since the start.
    pub rows_lost: u64,
    /// Products that wait for the store.
    pub waiting: usize,
    /// Products given up while they waited.
    pub dropped: u64,
    /// Used bytes of database and media.
    pub used_bytes: u64,
    /// The budget in bytes; 0: none.
    pub budget_bytes: u64,
}

/// The episode written last.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LastEpisode {
    /// When it began.
    pub at: Timestamp,
    /// Its modality.
    pub modality: String,
    /// Its sentence. Only for the socket's users, never for a log.
    pub content: String,
}

impl SensorStatus {
    /// A sensor's health as of `now_ms`, monotonic.
    #[must_use]
    pub fn of(health: &Health, now_ms: i64) -> Self {
        Self {
            source: health.source.clone(),
            state: health.state,
            since_ms: now_ms - health.since.monotonic_ms,
            last_capture_ms: health.last_capture.map(|at| now_ms - at.monotonic_ms),
            captures: health.captures,
            hiccups: health.hiccups,
            losses: health.losses,
            reason: health.reason,
            last_error: health.last_error.clone(),
            complaint: None,
        }
    }
}

/// The status, shared between the run and whoever asks.
#[derive(Debug, Clone, Default)]
pub struct StatusCell(Arc<Mutex<Status>>);

impl StatusCell {
    /// Publishes.
    pub fn set(&self, status: Status) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    /// The latest.
    #[must_use]
    pub fn get(&self) -> Status {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

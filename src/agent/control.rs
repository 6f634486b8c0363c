//! The control socket of the running agent: HTTP and JSON on `percept.sock` in its runtime directory.
//!
//! ```text
//!  percept mute ──HTTP──► server (its own thread) ──Order──► the run's loop ──answer──►
//! ```
//!
//! In: requests of local users (mode 0660: the user, and the group `percept` where it exists). Out: the status at once,
//! orders to the run's loop with its answer. Loopback metrics and health come from the same server when configured.
//! Never: a change of anything by itself; the loop is the one that acts.

use crate::agent::forget::Phase;
use crate::agent::gists::AskedGist;
use crate::domain::id::SensorKind;
use crate::memory::forget;
use std::path::Path;
use std::path::PathBuf;
use tokio::sync::oneshot;

pub mod client;
mod metrics;
mod server;
mod socket;

pub use server::Server;
pub use server::ServerOptions;

/// The socket's name in the runtime directory.
pub const SOCKET: &str = "percept.sock";

/// The runtime directory of the system's service.
pub const SERVICE_DIR: &str = "/run/percept";

/// Orders that wait for the loop at most; a further one is answered with 503.
pub const ORDERS_MAX: usize = 16;

/// What the loop is asked to do, with where the answer goes.
#[derive(Debug)]
pub struct Order {
    /// What.
    pub action: Action,
    /// A JSON value for the asker, or a sentence that says why not.
    pub reply: oneshot::Sender<Result<serde_json::Value, String>>,
}

/// The actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Close these sensors, all of them when none is named, for so long.
    Mute(Mute),
    /// Open them again.
    Unmute(Mute),
    /// Make a moment now.
    Capture(Capture),
    /// Take in lines that another program hands in: the body of `POST /v1/ingest`.
    Ingest(Vec<u8>),
    /// Make a gist and write it.
    Gist(AskedGist),
    /// Forget a person, a place, a span or episodes, a piece at a time.
    Forget(Box<Forget>),
    /// Remove `session` rows that have expired.
    Prune,
    /// Mend what documents, rows and media disagree on.
    Reconcile,
    /// Read the config again.
    Reload,
}

/// Body of `POST /v1/forget`. The answer is a [`crate::agent::forget::Report`]; while its `next_phase` is not null, the same
/// order is to be sent again with that in `phase`: captures go on in between.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forget {
    /// What.
    pub order: forget::Order,
    /// Where to go on; none: from the beginning.
    #[serde(default)]
    pub phase: Option<Phase>,
}

/// Body of `POST /v1/mute` and `/v1/unmute`.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mute {
    /// Which sensors; none: all.
    #[serde(default)]
    pub sensors: Vec<SensorKind>,
    /// For how long, in milliseconds; none: until unmuted.
    #[serde(default)]
    pub for_ms: Option<i64>,
}

/// Body of `POST /v1/capture`.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// A person who was met.
    #[serde(default)]
    pub person: Option<String>,
    /// What was said.
    #[serde(default)]
    pub transcript: Option<String>,
    /// Names of recognised faces.
    #[serde(default)]
    pub faces: Vec<String>,
    /// A note.
    #[serde(default)]
    pub text: Option<String>,
}

impl Mute {
    /// The kinds meant.
    #[must_use]
    pub fn kinds(&self) -> Vec<SensorKind> {
        if self.sensors.is_empty() { SensorKind::ALL.to_vec() } else { self.sensors.clone() }
    }
}

/// The folder of the socket.
#[must_use]
pub fn runtime_dir(configured: &str, data_dir: &Path) -> PathBuf {
    if !configured.is_empty() {
        return PathBuf::from(configured);
    }
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // A client is not started by systemd: it looks where the service's socket stands.
    let service = PathBuf::from(SERVICE_DIR);
    var("RUNTIME_DIRECTORY")
        .or_else(|| data_dir.starts_with("/var/lib/percept").then_some(service))
        .or_else(|| var("XDG_RUNTIME_DIR").map(|dir| dir.join("percept")).filter(|_| is_default(data_dir)))
        .unwrap_or_else(|| data_dir.to_owned())
}

/// Agents of other data directories keep their sockets there.
fn is_default(data_dir: &Path) -> bool {
    let home = std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share")));
    home.is_some_and(|home| home.join("percept") == data_dir)
}

//! `percept run`: the resident process.
//!
//! ```text
//!  sensor threads ─► queue ─► loop: pipeline ─► recorder ─► store's writer
//!                              ▲  │
//!            control, signals ─┘  └─► status, watchdog, mute, power, disk budget
//! ```
//!
//! In: the config, live sensors, signals, orders. Out: rows, a status, and how it ended. The loop ([`crate::agent::run`]'s
//! `segment`) runs with one config from start to end; a reload ends one segment and begins the next in the same process.
//! Never: stops because a sensor, a model or the disk failed.

use crate::agent::control;
use crate::agent::control::Order;
use crate::agent::control::Server;
use crate::agent::control::ServerOptions;
use crate::agent::machine;
use crate::agent::moments;
use crate::agent::moments::MomentFolder;
use crate::agent::run::segment::Segment;
use crate::agent::search::Desk;
use crate::agent::status::StatusCell;
use crate::config::Loaded;
use crate::domain::id::DeviceId;
use crate::domain::time::Clock as _;
use crate::domain::time::LiveClock;
use crate::memory::store::Store;
use crate::memory::writer::Writer;
use anyhow::Context as _;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;

mod gist_work;
mod housekeeping;
mod housework;
mod orders;
mod power_wait;
mod room;
mod segment;
mod signals;
mod sources;

pub use signals::Signals;
pub use sources::LiveSources;
pub use sources::Sources;

/// What a run is asked for.
pub struct Options {
    /// Ends by itself after this long, in milliseconds.
    pub for_ms: Option<i64>,
    /// Records everything it captures into this folder, too.
    pub record: Option<Record>,
    /// Reads the config again, for SIGHUP and `reload`.
    pub reload: Box<dyn Fn() -> anyhow::Result<Loaded> + Send>,
    /// Where the readings come from.
    pub sources: Box<dyn Sources + Send>,
}

/// A recording beside the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The folder, which must not be there yet.
    pub dir: PathBuf,
    /// Whether Bluetooth addresses are written as they are.
    pub raw: bool,
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It was told to (a signal, or the time it was given is over).
    Told,
    /// The battery is nearly empty.
    PowerCritical,
}

/// What stays from the first segment to the last.
struct Resident<'a> {
    clock: Arc<LiveClock>,
    writer: &'a Writer,
    folder: &'a MomentFolder,
    data_dir: &'a Path,
    device_id: DeviceId,
    boot_id: String,
    status: StatusCell,
    desk: Arc<Desk>,
    orders: mpsc::Receiver<Order>,
    signals: &'a Signals,
    options: &'a Options,
    started_ms: i64,
}

/// How a segment ended.
enum SegmentEnd {
    Over(End),
    Reload(Box<Loaded>),
}

/// Runs until told to stop. `tell` gets sentences for the operator.
///
/// A damaged store is set aside and what can be read of it goes on in a new one.
///
/// # Errors
/// When the store or the control socket cannot be had, or what was captured last could not be committed.
pub fn run(loaded: Loaded, options: Options, signals: &Signals, tell: &mut dyn FnMut(&str)) -> anyhow::Result<End> {
    let clock = Arc::new(LiveClock::new());
    clock.set_quality(crate::agent::clock_source::quality(clock.wall()));
    let open = loaded.open_options("percept run");
    let (store, salvage) = Store::open_or_salvage(&loaded.data_dir, &open, clock.utc())?;
    if let Some(salvage) = &salvage {
        tell(&salvage.sentence());
    }
    let device_id = store.identity().device_id.clone();
    let writer = Writer::spawn(store, Box::new(SharedLiveClock(Arc::clone(&clock))))?;
    let folder = MomentFolder::new(&loaded.data_dir);
    moments::reconcile(&folder, &writer)?;
    let status = StatusCell::default();
    let runtime_dir = control::runtime_dir(&loaded.config.agent.runtime_dir, &loaded.data_dir);
    let metrics = loaded.config.agent.metrics.parse().ok();
    let socket = runtime_dir.join(control::SOCKET);
    let desk = Arc::new(Desk::new(&loaded.data_dir, writer.raiser(), Arc::clone(&clock)));
    let control = ServerOptions { socket, metrics, status: status.clone(), desk: Arc::clone(&desk) };
    let (server, orders) = Server::start(control)?;
    let data_dir = loaded.data_dir.clone();
    let resident = Resident {
        started_ms: clock.monotonic_ms(),
        clock,
        writer: &writer,
        folder: &folder,
        data_dir: &data_dir,
        device_id,
        boot_id: machine::boot_id(),
        status,
        desk,
        orders,
        signals,
        options: &options,
    };
    let ended = run_segments(loaded, &resident, tell);
    drop(server);
    let closed = writer.close().context("close the store");
    let end = ended?;
    closed?;
    Ok(end)
}

fn run_segments(loaded: Loaded, resident: &Resident<'_>, tell: &mut dyn FnMut(&str)) -> anyhow::Result<End> {
    let mut loaded = loaded;
    if !power_wait::until_charged(&loaded.config.power, resident, tell) {
        return Ok(End::Told);
    }
    loop {
        let segment = Segment::start(&loaded, resident, tell)?;
        match segment.run()? {
            SegmentEnd::Over(end) => return Ok(end),
            SegmentEnd::Reload(next) => {
                tell("the config was read again: capture goes on with it");
                loaded = *next;
            }
        }
    }
}

/// The writer's thread owns its clock.
struct SharedLiveClock(Arc<LiveClock>);

impl crate::domain::time::Clock for SharedLiveClock {
    fn utc(&self) -> crate::domain::time::Timestamp {
        self.0.utc()
    }

    fn monotonic_ms(&self) -> i64 {
        self.0.monotonic_ms()
    }
}

//! The command line: arguments become a command, a command becomes an exit code.
//!
//! In: arguments, the environment, the clock. Out: text, and 0 done, 1 failed, 2 usage.
//! One file per command; this file holds the grammar they share.

use crate::cli::output::Format;
use crate::config::Loaded;
use crate::domain::time::Clock;
use clap::Parser as _;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

pub mod agent;
pub mod capture;
pub mod config;
pub mod context;
pub mod devices;
pub mod doctor;
pub mod episodes;
pub mod facts;
pub mod filter;
pub mod forget;
pub mod gist;
pub mod ingest;
pub mod mcp;
pub mod models;
pub mod mute;
pub mod output;
pub mod progress;
pub mod prune;
pub mod recall;
pub mod reconcile;
pub mod record;
pub mod replay;
pub mod run;
pub mod search;
pub mod show;
pub mod stats;
pub mod status;
pub mod when;

/// What a command talks to.
pub struct Io<'a> {
    /// Results.
    pub out: &'a mut dyn Write,
    /// Progress, warnings, errors.
    pub err: &'a mut dyn Write,
    /// Whether a person is looking at `out`.
    pub out_is_terminal: bool,
    /// Whether a person is looking at `err`.
    pub err_is_terminal: bool,
    /// The time.
    pub clock: &'a dyn Clock,
}

#[derive(Debug, clap::Parser)]
#[command(name = "percept", version, about, long_about = LONG_ABOUT, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: Command,
}

const LONG_ABOUT: &str = "percept listens, looks, locates and notices who is near, understands it on the device, and \
remembers it as episodes.\n\nTry: percept doctor; percept run; percept replay SESSION; percept episodes --since yesterday; \
percept search \"a dog barks\"; percept show ID";

/// Options of every command.
#[derive(Debug, Clone, clap::Args)]
pub struct Shared {
    /// Config file [default: $PERCEPT_CONFIG, ./percept.toml, ~/.config/percept/percept.toml, /etc/percept/percept.toml, else built-in values]
    #[arg(long, global = true, value_name = "FILE", env = "PERCEPT_CONFIG")]
    pub config: Option<PathBuf>,
    /// Folder of memory.db [default: `store.data_dir` of the config]
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// How to print results
    #[arg(long, global = true, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Capture, understand and remember until told to stop
    Run(run::Args),
    /// Show what the running agent is doing
    Status,
    /// List the sensors of this machine, by the names that the config takes
    Devices,
    /// Check sensors, models, clock, power, disk, store and config: one verdict a line
    Doctor(doctor::Args),
    /// Record raw readings as a session, without understanding them
    Record(record::Args),
    /// Make a moment of what is noticed now
    Capture(capture::CaptureArgs),
    /// Make a moment about a person who was met now
    Meet(capture::MeetArgs),
    /// Close sensors of the running agent
    Mute(mute::MuteArgs),
    /// Open them again
    Unmute(mute::UnmuteArgs),
    /// Play recorded sessions into the store: sound, pictures, GPS and Bluetooth become episodes
    Replay(replay::Args),
    /// Take in tool results and notes of other programs: lines of JSON
    Ingest(ingest::Args),
    /// Print what is worth knowing now, for another program's prompt
    Context(context::Args),
    /// Serve the Model Context Protocol on standard input and output, for language model clients
    Mcp,
    /// List what is remembered
    Episodes(episodes::Args),
    /// Find episodes by words, by likeness, and by what is known of them; the best first
    Search(search::Args),
    /// Bring back what comes to mind: names lead on to what is connected, time words limit the time
    Recall(recall::Args),
    /// List who was where, what was heard and seen where, and what was told, as of any instant
    Facts(facts::Args),
    /// Tell of a day, a place or a person in a few sentences, and remember that
    Gist(gist::Args),
    /// Show one episode with everything that belongs to it
    Show(show::Args),
    /// Count what the store holds
    Stats,
    /// Forget a person, a place, a span of time or episodes, for good
    Forget(forget::Args),
    /// Remove rows of class `session` that are older than three hours
    Prune,
    /// Find, and with --mend end, what documents, rows and media disagree on
    Reconcile(reconcile::Args),
    /// Check the config file, or print the built-in one
    #[command(subcommand)]
    Config(config::Command),
    /// List, fetch and verify the model files
    #[command(subcommand)]
    Models(models::Command),
}

impl Shared {
    /// Reads and checks the config.
    ///
    /// # Errors
    /// All mistakes of the file in one message.
    pub fn load_config(&self) -> anyhow::Result<Loaded> {
        let mut loaded = crate::config::load(self.config.as_deref())?;
        if let Some(dir) = &self.data_dir {
            loaded.data_dir.clone_from(dir);
        }
        Ok(loaded)
    }
}

/// Runs one command line and returns its exit code.
pub fn run(args: impl IntoIterator<Item = OsString>, io: &mut Io<'_>) -> u8 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, io),
    };
    crate::telemetry::start(io.err_is_terminal);
    match dispatch(&cli, io) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => 0,
        Err(error) => {
            let _ = writeln!(io.err, "percept: {error:#}");
            1
        }
    }
}

fn dispatch(cli: &Cli, io: &mut Io<'_>) -> anyhow::Result<u8> {
    match &cli.command {
        Command::Run(args) => run::run(args, &cli.shared, io),
        Command::Status => status::run(&cli.shared, io),
        Command::Devices => devices::run(&cli.shared, io),
        Command::Doctor(args) => doctor::run(args, &cli.shared, io),
        Command::Record(args) => record::run(args, &cli.shared, io),
        Command::Capture(args) => capture::capture(args, &cli.shared, io),
        Command::Meet(args) => capture::meet(args, &cli.shared, io),
        Command::Mute(args) => mute::mute(args, &cli.shared, io),
        Command::Unmute(args) => mute::unmute(args, &cli.shared, io),
        Command::Replay(args) => replay::run(args, &cli.shared, io),
        Command::Ingest(args) => ingest::run(args, &cli.shared, io),
        Command::Context(args) => context::run(args, &cli.shared, io),
        Command::Mcp => mcp::run(&cli.shared),
        Command::Episodes(args) => episodes::run(args, &cli.shared, io),
        Command::Search(args) => search::run(args, &cli.shared, io),
        Command::Recall(args) => recall::run(args, &cli.shared, io),
        Command::Facts(args) => facts::run(args, &cli.shared, io),
        Command::Gist(args) => gist::run(args, &cli.shared, io),
        Command::Show(args) => show::run(args, &cli.shared, io),
        Command::Stats => stats::run(&cli.shared, io),
        Command::Forget(args) => forget::run(args, &cli.shared, io),
        Command::Prune => prune::run(&cli.shared, io),
        Command::Reconcile(args) => reconcile::run(args, &cli.shared, io),
        Command::Config(command) => config::run(command, &cli.shared, io),
        Command::Models(command) => models::run(command, &cli.shared, io),
    }
}

fn usage(error: &clap::Error, io: &mut Io<'_>) -> u8 {
    let text = error.render();
    if error.use_stderr() {
        let _ = if io.err_is_terminal { write!(io.err, "{}", text.ansi()) } else { write!(io.err, "{text}") };
        return 2;
    }
    let _ = if io.out_is_terminal { write!(io.out, "{}", text.ansi()) } else { write!(io.out, "{text}") };
    0
}

/// Somebody closed our output (`percept episodes | head`): that is no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

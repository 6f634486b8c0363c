//! `percept run`: captures, understands and remembers until it is told to stop.

use crate::agent::run::End;
use crate::agent::run::LiveSources;
use crate::agent::run::Options;
use crate::agent::run::Record;
use crate::agent::run::Signals;
use crate::agent::run::run as run_agent;
use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::when;
use std::path::PathBuf;

/// Arguments of `percept run`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Stop by itself after this long: 40s, 15m, 2h
    #[arg(long = "for", value_name = "LENGTH", value_parser = when::parse_length_ms)]
    for_ms: Option<i64>,
    /// Also write what is captured as a session that `percept replay` plays
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Write Bluetooth addresses into that session as they are, for your eyes only
    #[arg(long, requires = "record")]
    raw: bool,
}

/// Runs the command.
///
/// # Errors
/// When the config, the store or the control socket cannot be had, or the last rows could not be committed.
pub fn run(args: &Args, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    if args.raw {
        writeln!(
            io.err,
            "percept: --raw writes the Bluetooth addresses of everybody near by: keep the folder to yourself"
        )?;
    }
    let signals = Signals::listen()?;
    let again = shared.clone();
    let options = Options {
        for_ms: args.for_ms,
        record: args.record.clone().map(|dir| Record { dir, raw: args.raw }),
        reload: Box::new(move || again.load_config()),
        sources: Box::new(LiveSources),
    };
    writeln!(io.err, "percept: capturing into {}; Ctrl-C stops", loaded.data_dir.display())?;
    let err = &mut *io.err;
    let end = run_agent(loaded, options, &signals, &mut |sentence| {
        // Whoever closed our error output does not want to know.
        let _ = writeln!(err, "percept: {sentence}");
    })?;
    match end {
        End::Told => writeln!(io.err, "percept: stopped; everything captured is stored")?,
        End::PowerCritical => writeln!(io.err, "percept: the battery is nearly empty: stopped in order")?,
    }
    Ok(0)
}

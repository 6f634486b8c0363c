//! `percept record --out DIR`: raw readings as a session, without understanding them.

use crate::agent::record;
use crate::agent::run::LiveSources;
use crate::agent::run::Record;
use crate::agent::run::Signals;
use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::agent;
use crate::cli::when;
use std::path::PathBuf;

/// Arguments of `percept record`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The folder to make; it must not be there yet
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Stop by itself after this long: 40s, 15m, 2h
    #[arg(long = "for", value_name = "LENGTH", value_parser = when::parse_length_ms)]
    for_ms: Option<i64>,
    /// Write Bluetooth addresses as they are, for your eyes only
    #[arg(long)]
    raw: bool,
}

/// Runs the command.
///
/// # Errors
/// When an agent holds the sensors, or the folder cannot be made or written.
pub fn run(args: &Args, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    if agent::find(&loaded)?.is_some() {
        anyhow::bail!("an agent has the sensors: stop it, or start it with `percept run --record DIR`");
    }
    if args.raw {
        writeln!(
            io.err,
            "percept: --raw writes the Bluetooth addresses of everybody near by: keep the folder to yourself"
        )?;
    }
    writeln!(io.err, "percept: recording into {}; Ctrl-C stops", args.out.display())?;
    let target = Record { dir: args.out.clone(), raw: args.raw };
    let (is_terminal, err) = (io.err_is_terminal, &mut *io.err);
    let mut told_ms = 0;
    let readings = record::record(&loaded, &target, args.for_ms, &LiveSources, &Signals::listen()?, &mut |progress| {
        let every_ms = if is_terminal { 1_000 } else { 60_000 };
        if progress.length_ms - told_ms < every_ms {
            return;
        }
        told_ms = progress.length_ms;
        let (start, end) = if is_terminal { ("\r", "\x1b[K") } else { ("", "\n") };
        let _ = write!(err, "{start}{}: {}{end}", when::duration(progress.length_ms), progress.words);
        let _ = err.flush();
    })?;
    writeln!(io.err, "{}percept: {readings} readings recorded", if is_terminal { "\n" } else { "" })?;
    Ok(0)
}

//! `percept doctor`: one verdict a line, and the exit code says whether percept can do its work.

use crate::agent::doctor;
use crate::agent::doctor::Level;
use crate::agent::doctor::Verdict;
use crate::agent::status::Status;
use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::agent;
use crate::cli::output;
use crate::cli::output::Format;

/// Arguments of `percept doctor`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Count warnings as failures
    #[arg(long)]
    strict: bool,
}

/// Runs the command. Exit code 1 when something does not work.
///
/// # Errors
/// When the config is wrong, which is then the verdict.
pub fn run(args: &Args, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    let running: Option<Status> = agent::find(&loaded)?.map(|client| client.get("/v1/status")).transpose()?;
    let mut verdicts: Vec<Verdict> = Vec::new();
    let (format, out) = (shared.format, &mut *io.out);
    let mut broken = None;
    doctor::examine(&loaded, running.as_ref(), &mut |verdict| {
        let told = match format {
            Format::Table => tell(out, &verdict),
            Format::Jsonl => output::print_json(out, &verdict),
            Format::Json => Ok(()),
        };
        broken = told.err().or(broken.take());
        verdicts.push(verdict);
    });
    if let Some(error) = broken {
        return Err(error);
    }
    if format == Format::Json {
        output::print_json(io.out, &verdicts)?;
    }
    let worst = verdicts.iter().map(|verdict| verdict.level).max().unwrap_or(Level::Ok);
    let limit = if args.strict { Level::Warning } else { Level::Failed };
    Ok(u8::from(worst >= limit))
}

fn tell(out: &mut dyn std::io::Write, verdict: &Verdict) -> anyhow::Result<()> {
    let mark = match verdict.level {
        Level::Ok => "ok      ",
        Level::Warning => "warning ",
        Level::Failed => "FAILED  ",
    };
    writeln!(out, "{mark} {:<12} {}", verdict.what, verdict.sentence)?;
    out.flush()?;
    Ok(())
}

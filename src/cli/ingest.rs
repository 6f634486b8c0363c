//! `percept ingest FILE|-`: lines of JSON from other programs become episodes.

use crate::agent::control::client::Client;
use crate::agent::ingest;
use crate::agent::ingest::Line;
use crate::agent::ingest::LineReport;
use crate::agent::ingest::Outcome;
use crate::agent::ingest::Sink;
use crate::agent::ingest::Summary;
use crate::agent::models;
use crate::agent::sentences::Sentences;
use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::agent;
use crate::cli::output;
use crate::cli::output::Format;
use crate::cli::progress::ByteBar;
use crate::config::Loaded;
use crate::domain::time::ClockQuality;
use crate::domain::time::Stamp;
use anyhow::Context as _;
use serde_json::json;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Refused lines that `--format json` lists; all of them are told on standard error.
const REFUSALS_LISTED_MAX: usize = 1_000;

/// Arguments of `percept ingest`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// A file of JSON lines (docs/ingest.md), or - for standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Leave out the CLIP vectors of the sentences: much faster, but pictures and words do not find each other
    #[arg(long)]
    without_vectors: bool,
}

/// Runs the command: each line in turn. A wrong one is told with its number and the rest goes in.
///
/// # Errors
/// When the file cannot be read or the store cannot be written.
pub fn run(args: &Args, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    // Before anything is created: a wrong path is told and changes nothing.
    let (input, length) = open(&args.file)?;
    let mut told = Told { summary: Summary::default(), refused: Vec::new(), bar: ByteBar::new(&args.file, length, io) };
    let fed = match agent::find(&loaded)? {
        Some(client) => ingest::feed(input, &mut Remote(client), &mut |report, read| told.take(report, read, io)),
        None => alone(args, &loaded, input, &mut told, io),
    };
    told.bar.end();
    print(&args.file, &told, shared.format, io)?;
    fed?;
    Ok(u8::from(told.summary.refused > 0))
}

fn open(file: &str) -> anyhow::Result<(Box<dyn Read>, Option<u64>)> {
    if file == "-" {
        return Ok((Box::new(std::io::stdin()), None));
    }
    let path = Path::new(file);
    anyhow::ensure!(!path.is_dir(), "{file} is a folder; `percept replay` takes recorded sessions, ingest takes lines");
    let opened = File::open(path).with_context(|| format!("open {file}"))?;
    let metadata = opened.metadata().with_context(|| format!("open {file}"))?;
    let length = metadata.is_file().then_some(metadata.len());
    Ok((Box::new(opened), length))
}

/// Under the exclusive lock, because no agent runs.
fn alone(args: &Args, loaded: &Loaded, input: Box<dyn Read>, told: &mut Told, io: &mut Io<'_>) -> anyhow::Result<()> {
    let now = Stamp { monotonic_ms: io.clock.monotonic_ms(), utc: io.clock.utc(), quality: ClockQuality::Unset };
    let sentences = if args.without_vectors { None } else { sentences(loaded, io)? };
    ingest::alone(loaded, "percept ingest", input, sentences, now, &mut |report, read| {
        told.take(report, read, io);
    })
}

/// What gives the sentences their vectors; what is missing is said once.
fn sentences(loaded: &Loaded, io: &mut Io<'_>) -> anyhow::Result<Option<Sentences>> {
    let memory_bytes = crate::agent::machine::memory_bytes();
    match models::text_tower(&loaded.config, &loaded.models_dir(), memory_bytes) {
        Ok(tower) => Ok(tower.map(Sentences::new)),
        Err(error) => {
            writeln!(io.err, "percept: sentences get no vectors: {error:#}")?;
            Ok(None)
        }
    }
}

/// The running agent is the writer.
pub(super) struct Remote(pub(super) Client);

#[derive(serde::Deserialize)]
struct Answer {
    lines: Vec<LineReport>,
}

impl Sink for Remote {
    fn take(&mut self, batch: Vec<Line>) -> anyhow::Result<Vec<LineReport>> {
        let (mut body, mut numbers) = (Vec::new(), Vec::with_capacity(batch.len()));
        for line in batch {
            body.extend_from_slice(&line.bytes);
            body.push(b'\n');
            numbers.push(line.number);
        }
        let answer: Answer = self.0.post_lines("/v1/ingest", body)?;
        let number = |line: u64| usize::try_from(line).ok().and_then(|line| numbers.get(line.checked_sub(1)?).copied());
        let report = |report: LineReport| Some(LineReport { line: number(report.line)?, ..report });
        Ok(answer.lines.into_iter().filter_map(report).collect())
    }
}

struct Told {
    summary: Summary,
    refused: Vec<LineReport>,
    bar: ByteBar,
}

impl Told {
    fn take(&mut self, report: &LineReport, read: u64, io: &mut Io<'_>) {
        self.summary.count(report.outcome);
        self.bar.advance(read, self.summary.new);
        if report.outcome != Outcome::Refused {
            return;
        }
        let reason = report.reason.as_deref().unwrap_or_default();
        self.bar.aside(|| {
            // Where nobody can be told, the exit code still tells.
            let _ = writeln!(io.err, "percept: line {}: {reason}", report.line);
        });
        if self.refused.len() < REFUSALS_LISTED_MAX {
            self.refused.push(report.clone());
        }
    }
}

fn print(file: &str, told: &Told, format: Format, io: &mut Io<'_>) -> anyhow::Result<()> {
    let Summary { new, known, updated, forgotten, refused } = told.summary;
    if format != Format::Table {
        let lines = told.refused.iter().map(|report| json!({"line": report.line, "reason": report.reason}));
        let object = json!({
            "file": file, "new": new, "known": known, "updated": updated, "forgotten": forgotten, "refused": refused,
            "refusals": lines.collect::<Vec<_>>(),
        });
        return match format {
            Format::Json => output::print_json(io.out, &[object]),
            Format::Jsonl | Format::Table => output::print_json(io.out, &object),
        };
    }
    let mut parts = vec![format!("{new} new"), format!("{known} known"), format!("{updated} updated")];
    if forgotten > 0 {
        parts.push(format!("{forgotten} forgotten before and left out"));
    }
    parts.push(format!("{refused} refused"));
    writeln!(io.out, "{file}: {}", parts.join(", "))?;
    Ok(())
}

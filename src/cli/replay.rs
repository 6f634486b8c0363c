//! `percept replay SESSION…`: recorded sessions become episodes.

use crate::agent::models::Models;
use crate::agent::moments::MomentFolder;
use crate::agent::replay::Report;
use crate::agent::replay::Target;
use crate::agent::replay::replay;
use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::output;
use crate::cli::output::Format;
use crate::cli::progress::Bar;
use crate::cli::when;
use crate::config::Loaded;
use crate::domain::time::ClockQuality;
use crate::domain::time::Stamp;
use crate::domain::time::SystemClock;
use crate::memory::store::Store;
use crate::memory::writer::Writer;
use crate::sensors::session;
use crate::sensors::session::Session;
use anyhow::Context as _;
use std::path::Path;
use std::path::PathBuf;

/// Arguments of `percept replay`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Session folders, or single files: WAV, FLAC, JPEG, PNG, an NMEA log, gpsd's JSON lines
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<PathBuf>,
    /// When a single file began [default: the time inside the file, else its modification time]
    #[arg(long, value_name = "TIME")]
    started_at: Option<String>,
    /// Replace episodes that were made with other settings or models
    #[arg(long)]
    reprocess: bool,
}

/// Runs the command: each session in turn. One that fails is told and the next is played.
///
/// # Errors
/// When the config, the store or the models folder cannot be used at all.
pub fn run(args: &Args, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    let now = io.clock.utc();
    let started_at = match &args.started_at {
        Some(text) => Some(when::parse_when(text, when::Edge::Start, now, &jiff::tz::TimeZone::system())?),
        None => None,
    };
    let options = session::OpenOptions { started_at, assumed_now: now };
    // Before anything is created: a wrong path is told and changes nothing.
    let sessions: Vec<(&Path, anyhow::Result<Session>)> = args
        .sessions
        .iter()
        .map(|path| (path.as_path(), Session::open(path, &options).map_err(anyhow::Error::from)))
        .collect();
    let mut failed = 0;
    for (_, error) in sessions.iter().filter_map(|(path, session)| Some((path, session.as_ref().err()?))) {
        writeln!(io.err, "percept: {error:#}")?;
        failed += 1;
    }
    if failed < sessions.len() {
        failed += play_all(args, &sessions, &loaded, shared.format, io)?;
    }
    Ok(u8::from(failed > 0))
}

fn play_all(
    args: &Args,
    sessions: &[(&Path, anyhow::Result<Session>)],
    loaded: &Loaded,
    format: Format,
    io: &mut Io<'_>,
) -> anyhow::Result<usize> {
    let present = Stamp { monotonic_ms: io.clock.monotonic_ms(), utc: io.clock.utc(), quality: ClockQuality::Unset };
    let store = Store::open(&loaded.data_dir, &loaded.open_options("percept replay"))?;
    let device_id = store.identity().device_id.clone();
    let writer = Writer::spawn(store, Box::new(SystemClock::new()))?;
    let folder = MomentFolder::new(&loaded.data_dir);
    crate::agent::moments::reconcile(&folder, &writer)?;
    let models = Models::load(&loaded.config, &loaded.models_dir(), crate::agent::machine::memory_bytes(), present);
    for sentence in models.missing() {
        writeln!(io.err, "percept: {sentence}")?;
    }
    let target = Target {
        config: &loaded.config,
        models: &models,
        writer: &writer,
        data_dir: &loaded.data_dir,
        folder: &folder,
        device_id: &device_id,
        reprocess: args.reprocess,
    };
    let mut failed = 0;
    for (path, session) in sessions.iter().filter_map(|(path, session)| Some((*path, session.as_ref().ok()?))) {
        let mut bar = Bar::new(path, session.length_ms(), io);
        let result = replay(path, session, &target, &mut |at_ms| bar.advance(at_ms));
        bar.end();
        match result {
            Ok(report) => print_report(path, &report, format, io)?,
            Err(error) => {
                writeln!(io.err, "percept: {error:#}")?;
                failed += 1;
            }
        }
    }
    writer.close().context("close the store")?;
    Ok(failed)
}

fn print_report(path: &Path, report: &Report, format: Format, io: &mut Io<'_>) -> anyhow::Result<()> {
    for problem in &report.problems {
        writeln!(io.err, "percept: {problem}")?;
    }
    if format != Format::Table {
        return output::print_json(io.out, &report_json(path, report));
    }
    let name = path.display();
    if report.was_done {
        writeln!(io.out, "{name}: nothing new; it was replayed before with the same settings and models")?;
        return Ok(());
    }
    let counts: Vec<String> =
        report.episodes.iter().map(|(modality, count)| format!("{count} {}", modality.as_str())).collect();
    let episodes = if counts.is_empty() { "no episodes".to_owned() } else { counts.join(", ") };
    writeln!(
        io.out,
        "{name}: {} of recording: {episodes} ({} new), {} coverage rows",
        when::duration(report.length_ms),
        report.added,
        report.coverage
    )?;
    Ok(())
}

fn report_json(path: &Path, report: &Report) -> serde_json::Value {
    let episodes: serde_json::Map<String, serde_json::Value> =
        report.episodes.iter().map(|(modality, count)| (modality.as_str().to_owned(), (*count).into())).collect();
    serde_json::json!({
        "path": path.display().to_string(),
        "session_id": report.session_id,
        "was_done": report.was_done,
        "length_ms": report.length_ms,
        "readings": report.readings,
        "episodes": episodes,
        "added": report.added,
        "coverage": report.coverage,
        "problems": report.problems,
    })
}

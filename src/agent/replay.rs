//! Plays a recorded session through the stages into the store.
//!
//! In: a session, the config, the models that are there, the store's writer. Out: rows, and a [`Report`].
//! Nothing waits in real time: the session's own clock is the clock of everything.

use crate::agent::digest::digest;
use crate::agent::identity::Capture;
use crate::agent::models::Models;
use crate::agent::moments::MomentFolder;
use crate::agent::pipeline::Pipeline;
use crate::agent::recorder::Recorder;
use crate::config::Config;
use crate::domain::episode::Metadata;
use crate::domain::id::DeviceId;
use crate::domain::id::EpisodeId;
use crate::domain::modality::Modality;
use crate::domain::time::FIRST_BUILD;
use crate::domain::time::Stamp;
use crate::episodes::moment;
use crate::memory::moments::Standing;
use crate::memory::query::EpisodeFilter;
use crate::memory::reader::Reader;
use crate::memory::sessions;
use crate::memory::sessions::Registration;
use crate::memory::writer::Writer;
use crate::sensors::session::Problem;
use crate::sensors::session::Session;
use crate::sensors::session::SessionHeader;
use crate::sensors::session::merge;
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;

/// Where a session is played into.
pub struct Target<'a> {
    /// The settings.
    pub config: &'a Config,
    /// The models that are there.
    pub models: &'a Models,
    /// The store.
    pub writer: &'a Writer,
    /// The folder both stand in.
    pub data_dir: &'a Path,
    /// The documents beside it.
    pub folder: &'a MomentFolder,
    /// The store's own device, for recordings that name none.
    pub device_id: &'a DeviceId,
    /// Whether rows made with other settings or models are replaced.
    pub reprocess: bool,
}

/// What became of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// The session.
    pub session_id: String,
    /// Whether its rows were all there already.
    pub was_done: bool,
    /// Readings taken, by source.
    pub readings: BTreeMap<String, u64>,
    /// Episodes it consists of, by modality.
    pub episodes: BTreeMap<Modality, usize>,
    /// Episodes that were new.
    pub added: u64,
    /// Blind intervals.
    pub coverage: u64,
    /// Length of the recording played.
    pub length_ms: i64,
    /// What could not be read, one sentence each.
    pub problems: Vec<String>,
}

/// How far a replay is: the offset reached, in milliseconds.
pub type Progress<'a> = dyn FnMut(i64) + 'a;

/// Plays one session.
///
/// # Errors
/// When the session cannot be opened, was replayed with other settings, or a row cannot be stored. What was committed
/// stays, and the same replay again completes it.
pub fn replay(
    path: &Path,
    session: &Session,
    target: &Target<'_>,
    progress: &mut Progress<'_>,
) -> anyhow::Result<Report> {
    let header = session.header();
    let capture = capture_of(header, target.device_id);
    let digest = digest(target.config, &target.models.hashes());
    let row = sessions::Session {
        session_id: capture.session_id.clone(),
        device_id: capture.device_id.clone(),
        boot_id: capture.boot_id.clone(),
        digest,
        started_at: header.started.utc,
        clock_quality: header.started.quality,
    };
    let mut report = Report { session_id: header.session_id.to_string(), ..Report::default() };
    let before = target.writer.flush()?.episodes_inserted;
    let (mut replaced, mut held) = (Vec::new(), Vec::new());
    match target.writer.register_session(row.clone())? {
        Registration::New | Registration::Resumed => {}
        Registration::AlreadyDone => {
            report.was_done = true;
            return Ok(report);
        }
        Registration::OtherDigest { .. } if target.reprocess => {
            replaced = moments_of(&row, target)?;
            held = Reader::open(target.data_dir)?.held_back(&row.device_id, &row.session_id)?;
            target.writer.replace_session(row)?;
        }
        Registration::OtherDigest { .. } => anyhow::bail!(
            "{}: session {} was replayed before with other settings or models; --reprocess replaces its episodes",
            path.display(),
            header.session_id
        ),
    }
    let sentences = target.models.sentences();
    let mut recorder = Recorder::new(capture, target.writer, target.folder).with_sentences(sentences).holding(held);
    play(session, target, &mut recorder, &mut report, progress)
        .with_context(|| format!("replay {}", path.display()))?;
    let counts = counts_of(&report);
    let device_id = capture_of(header, target.device_id).device_id;
    let counters = target.writer.finish_session(device_id, header.session_id.clone(), counts)?;
    recorder.settle();
    remove_documents(&replaced, &recorder, target)?;
    report.added = counters.episodes_inserted.saturating_sub(before);
    Ok(report)
}

/// The moments whose rows are about to be replaced.
fn moments_of(session: &sessions::Session, target: &Target<'_>) -> anyhow::Result<Vec<EpisodeId>> {
    let filter = EpisodeFilter {
        session: Some(session.session_id.clone()),
        device: Some(session.device_id.clone()),
        ..EpisodeFilter::default()
    };
    let rows = Reader::open(target.data_dir)?.episodes(&filter)?;
    Ok(rows
        .into_iter()
        .map(|row| row.episode)
        .filter(|row| row.tool_name == moment::TOOL_NAME)
        .map(|row| row.id)
        .collect())
}

/// Removes the documents of moments that the new settings no longer make.
fn remove_documents(replaced: &[EpisodeId], recorder: &Recorder<'_>, target: &Target<'_>) -> anyhow::Result<()> {
    let kept: BTreeSet<EpisodeId> = recorder.moments().collect();
    let reader = Reader::open(target.data_dir)?;
    for id in replaced.iter().filter(|id| !kept.contains(id)) {
        // Rows that may not be replaced stay, and so do their documents.
        if matches!(reader.standing(&id.to_string())?, Standing::Stored | Standing::Redacted) {
            continue;
        }
        if let Err(error) = target.folder.remove(*id) {
            tracing::warn!(%error, "the document of a replaced moment stays behind");
        }
    }
    Ok(())
}

fn capture_of(header: &SessionHeader, own: &DeviceId) -> Capture {
    Capture {
        device_id: header.device_id.clone().unwrap_or_else(|| own.clone()),
        session_id: header.session_id.clone(),
        boot_id: header.boot_id.clone(),
        start_is_known: header.start_is_known,
    }
}

fn play(
    session: &Session,
    target: &Target<'_>,
    recorder: &mut Recorder<'_>,
    report: &mut Report,
    progress: &mut Progress<'_>,
) -> anyhow::Result<()> {
    let header = session.header();
    let earliest = FIRST_BUILD;
    let device = header.device_id.as_ref().unwrap_or(target.device_id);
    let senses = target.models.senses(target.config, header, device, earliest)?;
    let mut pipeline = Pipeline::new(target.config, senses, earliest);
    let mut last: Option<Stamp> = None;
    for reading in merge(session.sensors()) {
        last = Some(reading.captured_at);
        progress(reading.captured_at.monotonic_ms);
        pipeline.handle_reading(reading);
        drain(&mut pipeline, recorder)?;
    }
    // A clock that was set after the last reading still tells when the earlier ones were.
    let last_step_ms = session.clock_steps().last().map_or(0, |step| step.at_ms);
    let end_ms = session.length_ms().unwrap_or(0).max(last.map_or(0, |last| last.monotonic_ms)).max(last_step_ms);
    pipeline.finish(session.clock().stamp(end_ms));
    drain(&mut pipeline, recorder)?;
    while recorder.embed_next(session.clock().stamp(end_ms))? {}
    report.length_ms = end_ms;
    report.readings = pipeline.readings().iter().map(|(source, count)| (source.to_string(), *count)).collect();
    report.episodes = recorder.episode_counts();
    report.coverage = pipeline.coverage_rows();
    report.problems = session.problems().list().into_iter().map(|problem| problem_sentence(&problem)).collect();
    Ok(())
}

fn drain(pipeline: &mut Pipeline, recorder: &mut Recorder<'_>) -> anyhow::Result<()> {
    while let Some(product) = pipeline.poll_product() {
        recorder.write(product, |stamp| pipeline.corrected(stamp))?;
    }
    Ok(())
}

fn problem_sentence(problem: &Problem) -> String {
    match problem.count {
        1 => problem.first.clone(),
        count => format!("{} (and {} more of this kind)", problem.first, count - 1),
    }
}

fn counts_of(report: &Report) -> Metadata {
    let mut counts = Metadata::new();
    for (modality, count) in &report.episodes {
        counts.insert(modality.as_str().to_owned(), (*count).into());
    }
    counts.insert("coverage".to_owned(), report.coverage.into());
    counts.insert("length_ms".to_owned(), report.length_ms.into());
    counts
}

//! `percept models list|fetch|verify`.
//!
//! In: the models folder and the ids that the config needs or the user names. Out: rows on the output, progress on
//! the error stream. Never: decides which bytes are right; the manifest does.

mod bar;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;

use indicatif::DecimalBytes;
use serde_json::Value;
use serde_json::json;

use crate::agent::models::YAMNET;
use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::output::Row;
use crate::cli::output::numbers;
use crate::cli::output::print_rows;
use crate::cli::output::words;
use crate::config::Loaded;
use crate::perception::model::ModelFileError;
use crate::perception::model::fetch::Fetcher;
use crate::perception::model::fetch::Network;
use crate::perception::model::fetch::Options;
use crate::perception::model::fetch::build_yamnet;
use crate::perception::model::locate::Depth;
use crate::perception::model::locate::FileReport;
use crate::perception::model::locate::FileState;
use crate::perception::model::locate::inspect;
use crate::perception::model::manifest::Manifest;
use crate::perception::model::manifest::Model;
use crate::perception::model::manifest::Role;

/// What to do with the model files.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// List the models, which of them the config needs, and whether their files are here
    List,
    /// Fetch model files: those that the config needs, or the named ones
    Fetch(Fetch),
    /// Read model files through and compare their hashes; exit code 1 if one is not right
    Verify {
        /// Models to verify [default: those that the config needs, and those that are here]
        #[arg(value_name = "MODEL")]
        ids: Vec<String>,
    },
}

/// Options of `percept models fetch`.
#[derive(Debug, Clone, clap::Args)]
pub struct Fetch {
    /// Models to fetch [default: those that the config needs]
    #[arg(value_name = "MODEL", conflicts_with = "all")]
    ids: Vec<String>,
    /// Fetch every model that has an address
    #[arg(long)]
    all: bool,
    /// Take the files of a model without address from this folder
    #[arg(long, value_name = "FOLDER", requires = "ids")]
    from: Option<PathBuf>,
    /// Folders to look in before any address, separated by colons
    #[arg(long, value_name = "FOLDERS", env = "PERCEPT_MODEL_MIRROR")]
    mirror: Option<OsString>,
}

/// Runs the command.
///
/// # Errors
/// The config's mistakes, or a writer that fails. What is wrong with model files is printed, with exit code 1.
pub fn run(command: &Command, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    let manifest = Manifest::builtin();
    match command {
        Command::List => list(manifest, &loaded, shared, io),
        Command::Fetch(wanted) => {
            let Some(models) = chosen(manifest, &loaded, &wanted.ids, wanted.all, io)? else { return Ok(2) };
            fetch(manifest, &models, wanted, &loaded.models_dir(), shared, io)
        }
        Command::Verify { ids } => {
            let Some(mut models) = chosen(manifest, &loaded, ids, false, io)? else { return Ok(2) };
            if ids.is_empty() {
                models = needed_or_here(manifest, &loaded);
            }
            verify(&models, &loaded.models_dir(), shared, io)
        }
    }
}

/// The ids of the models that the config needs.
fn needed(loaded: &Loaded) -> BTreeSet<String> {
    let sound = loaded.config.models.yamnet.then(|| YAMNET.to_owned());
    let clip = Some(loaded.config.clip.model.clone()).filter(|id| !id.is_empty());
    sound.into_iter().chain(clip).collect()
}

/// The models that were asked for, in the manifest's order; `None` after telling that one of them is unknown.
fn chosen<'a>(
    manifest: &'a Manifest,
    loaded: &Loaded,
    ids: &[String],
    all: bool,
    io: &mut Io<'_>,
) -> anyhow::Result<Option<Vec<&'a Model>>> {
    if let Some(unknown) = ids.iter().find(|id| manifest.model(id).is_none()) {
        let nearest = manifest.nearest(unknown).map(str::to_owned);
        writeln!(io.err, "percept: {}", ModelFileError::UnknownModel { id: unknown.clone(), nearest })?;
        return Ok(None);
    }
    let needed = needed(loaded);
    let is_chosen = |model: &&Model| match (all, ids.is_empty()) {
        (true, _) => !model.is_local,
        (false, true) => needed.contains(&model.id),
        (false, false) => ids.contains(&model.id),
    };
    Ok(Some(manifest.models().iter().filter(is_chosen).collect()))
}

fn needed_or_here<'a>(manifest: &'a Manifest, loaded: &Loaded) -> Vec<&'a Model> {
    let needed = needed(loaded);
    let is_here = |model: &Model| inspect(&loaded.models_dir(), model, Depth::Size).iter().any(is_there);
    manifest.models().iter().filter(|model| needed.contains(&model.id) || is_here(model)).collect()
}

fn list(manifest: &Manifest, loaded: &Loaded, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let needed = needed(loaded);
    let columns =
        [words("model"), words("state"), words("needed"), numbers("size"), words("licence"), words("purpose")];
    let rows: Vec<Row> = manifest
        .models()
        .iter()
        .map(|model| {
            let reports = inspect(&loaded.models_dir(), model, Depth::Size);
            list_row(model, &reports, needed.contains(&model.id))
        })
        .collect();
    print_rows(io.out, shared.format, &columns, &rows)?;
    Ok(0)
}

fn list_row(model: &Model, reports: &[FileReport], is_needed: bool) -> Row {
    let state = summary(reports);
    let files: Vec<Value> = model
        .files
        .iter()
        .zip(reports)
        .map(|(file, report)| {
            json!({
                "file": file.name,
                "role": file.role,
                "state": word(&report.state),
                "bytes": file.pin().map(|pin| pin.bytes),
                "sha256": file.pin().map(|pin| pin.sha256.as_str()),
                "path": report.path.display().to_string(),
            })
        })
        .collect();
    let size = if model.bytes() == 0 { "?".to_owned() } else { DecimalBytes(model.bytes()).to_string() };
    Row {
        fields: object(&json!({
            "model": model.id,
            "state": state,
            "needed": is_needed,
            "size": model.bytes(),
            "licence": model.licence,
            "purpose": model.purpose,
            "home": model.home,
            "note": model.note,
            "files": files,
        })),
        cells: vec![
            model.id.clone(),
            state.to_owned(),
            if is_needed { "yes" } else { "no" }.to_owned(),
            size,
            model.licence.clone(),
            model.purpose.clone(),
        ],
    }
}

fn fetch(
    manifest: &Manifest,
    models: &[&Model],
    wanted: &Fetch,
    models_dir: &Path,
    shared: &Shared,
    io: &mut Io<'_>,
) -> anyhow::Result<u8> {
    let mirrors = folders(wanted.mirror.as_deref());
    let fetcher = Fetcher::open(Options {
        manifest,
        models_dir,
        mirrors: &mirrors,
        network: Network::default(),
        builder: build_yamnet,
    })?;
    let mut rows = Vec::new();
    let mut all_are_here = true;
    for model in models {
        let mut bar = bar::Bar::new(io.err_is_terminal);
        let fetched = fetcher.fetch(&model.id, wanted.from.as_deref(), &mut |progress| bar.show(&progress, io.err));
        let (state, cause) = match &fetched {
            Ok(()) => ("here", None),
            Err(error) => ("failed", Some(error.to_string())),
        };
        if let Some(cause) = &cause {
            writeln!(io.err, "percept: {cause}")?;
            all_are_here = false;
        }
        let folder = models_dir.join(&model.id).display().to_string();
        rows.push(Row {
            fields: object(&json!({"model": model.id, "state": state, "folder": folder, "cause": cause})),
            cells: vec![model.id.clone(), state.to_owned(), folder],
        });
        if let Err(ModelFileError::DiskFull { .. }) = fetched {
            break;
        }
    }
    print_rows(io.out, shared.format, &[words("model"), words("state"), words("folder")], &rows)?;
    Ok(u8::from(!all_are_here))
}

fn verify(models: &[&Model], models_dir: &Path, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let reports: Vec<FileReport> = models.iter().flat_map(|model| inspect(models_dir, model, Depth::Hash)).collect();
    let rows: Vec<Row> = reports.iter().map(verify_row).collect();
    print_rows(io.out, shared.format, &[words("model"), words("file"), words("state"), words("detail")], &rows)?;
    Ok(u8::from(!reports.iter().all(is_right)))
}

fn verify_row(report: &FileReport) -> Row {
    let FileReport { model, file, state, path, .. } = report;
    let (expected, found) = match state {
        FileState::Good { sha256 } => (json!(sha256), json!(sha256)),
        FileState::WrongHash { expected, found } => (json!(expected), json!(found)),
        FileState::WrongSize { expected, found } => (json!(expected), json!(found)),
        FileState::Present | FileState::Missing | FileState::NotRecorded | FileState::Unreadable { .. } => {
            (Value::Null, Value::Null)
        }
    };
    Row {
        fields: object(&json!({
            "model": model, "file": file, "state": word(state), "detail": detail(report),
            "path": path.display().to_string(), "expected": expected, "found": found,
        })),
        cells: vec![model.clone(), file.clone(), word(state).to_owned(), detail(report)],
    }
}

fn detail(report: &FileReport) -> String {
    let again = format!("`percept models fetch {}`", report.model);
    match &report.state {
        FileState::Good { sha256 } => format!("sha256 {sha256}"),
        FileState::Present => String::new(),
        FileState::Missing if report.role == Role::Source => "only needed to build".to_owned(),
        FileState::Missing => format!("run {again}"),
        FileState::NotRecorded => format!("run {again} to take it in"),
        FileState::WrongSize { expected, found } => format!("{expected} bytes expected, {found} found; run {again}"),
        FileState::WrongHash { expected, found } => format!("sha256 expected {expected}, found {found}; run {again}"),
        FileState::Unreadable { kind } => format!("{}: {kind}", report.path.display()),
    }
}

/// The state of a model in one word; files that only serve to build others do not count.
fn summary(reports: &[FileReport]) -> &'static str {
    let needed: Vec<&FileReport> = reports.iter().filter(|report| report.role != Role::Source).collect();
    let is = |state: &'static str| move |report: &&FileReport| word(&report.state) == state;
    if needed.iter().all(|report| matches!(report.state, FileState::Present | FileState::Good { .. })) {
        return "here";
    }
    if needed.iter().all(is("missing")) {
        return "missing";
    }
    if needed.iter().any(is("damaged")) { "damaged" } else { "incomplete" }
}

fn word(state: &FileState) -> &'static str {
    match state {
        FileState::Good { .. } => "good",
        FileState::Present => "here",
        FileState::Missing => "missing",
        FileState::NotRecorded => "not taken in",
        FileState::WrongSize { .. } | FileState::WrongHash { .. } => "damaged",
        FileState::Unreadable { .. } => "unreadable",
    }
}

fn is_there(report: &FileReport) -> bool {
    report.state != FileState::Missing
}

fn is_right(report: &FileReport) -> bool {
    match report.state {
        FileState::Good { .. } => true,
        FileState::Missing => report.role == Role::Source,
        FileState::Present
        | FileState::NotRecorded
        | FileState::WrongSize { .. }
        | FileState::WrongHash { .. }
        | FileState::Unreadable { .. } => false,
    }
}

fn object(value: &Value) -> serde_json::Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// The folders of a list separated by colons; empty parts name none.
fn folders(list: Option<&OsStr>) -> Vec<PathBuf> {
    let parts = list.map(std::env::split_paths).into_iter().flatten();
    parts.filter(|folder| !folder.as_os_str().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_separated_by_colons() {
        assert_eq!(folders(Some(OsStr::new("/a::b/c:"))), [PathBuf::from("/a"), PathBuf::from("b/c")]);
        assert_eq!(folders(Some(OsStr::new(""))), Vec::<PathBuf>::new());
        assert_eq!(folders(None), Vec::<PathBuf>::new());
    }
}

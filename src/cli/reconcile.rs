//! `percept reconcile`: what documents, rows and media disagree on, and with `--mend` the end of it.

use crate::agent::control::client::Client;
use crate::agent::moments::MomentFolder;
use crate::agent::reconcile;
use crate::agent::reconcile::Findings;
use crate::agent::reconcile::Mended;
use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::agent;
use crate::cli::output;
use crate::cli::output::Format;
use crate::cli::output::Row;
use crate::config::Loaded;
use crate::domain::time::SystemClock;
use crate::memory::media_check::Listed;
use crate::memory::reader::Reader;
use crate::memory::store::Store;
use crate::memory::writer::Writer;
use anyhow::Context as _;
use serde_json::Value;
use serde_json::json;

/// Names shown of each kind.
const EXAMPLES: usize = 5;

/// Arguments of `percept reconcile`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Also mend it
    #[arg(long)]
    mend: bool,
}

/// Runs the command. The exit code is 1 while something disagrees.
///
/// # Errors
/// When the store or a folder cannot be read or mended.
pub fn run(args: &Args, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    let client = agent::find(&loaded)?;
    let found = look(&loaded, client.is_some())?;
    let mended = if args.mend && !found.is_clean() { Some(mend(client.as_ref(), &loaded)?) } else { None };
    let left = match &mended {
        Some(_) => look(&loaded, client.is_some())?,
        None => found.clone(),
    };
    print(&found, mended.as_ref(), &left, shared.format, io)?;
    if mended.is_none() && !found.is_clean() && shared.format == Format::Table {
        writeln!(io.err, "percept: `percept reconcile --mend` mends this")?;
    }
    Ok(u8::from(!left.is_clean()))
}

fn look(loaded: &Loaded, is_live: bool) -> anyhow::Result<Findings> {
    let reader = Reader::open(&loaded.data_dir)?;
    Ok(reconcile::check(&reader, &MomentFolder::new(&loaded.data_dir), is_live)?)
}

/// Through the running agent, which is the one writer; without one under the exclusive lock.
fn mend(client: Option<&Client>, loaded: &Loaded) -> anyhow::Result<Mended> {
    let mut total = Mended::default();
    let Some(client) = client else {
        let options = loaded.open_options("percept reconcile");
        let writer = Writer::spawn(Store::open(&loaded.data_dir, &options)?, Box::new(SystemClock::new()))?;
        let folder = MomentFolder::new(&loaded.data_dir);
        loop {
            total.add(reconcile::mend(&writer, &folder)?);
            if !total.is_more {
                break;
            }
        }
        writer.close().context("close the store")?;
        return Ok(total);
    };
    loop {
        total.add(client.post("/v1/reconcile", &json!({}))?);
        if !total.is_more {
            return Ok(total);
        }
    }
}

fn print(
    found: &Findings,
    mended: Option<&Mended>,
    left: &Findings,
    format: Format,
    io: &mut Io<'_>,
) -> anyhow::Result<()> {
    if format == Format::Json {
        return output::print_json(io.out, &json!({"found": found, "mended": mended, "left": left}));
    }
    if found.is_clean() && format == Format::Table {
        writeln!(io.out, "documents, rows and media agree")?;
        return Ok(());
    }
    let rows: Vec<Row> = lists(found).into_iter().zip(lists(left)).map(|(found, left)| row(found, left.1)).collect();
    let columns =
        [output::words("WHAT"), output::numbers("FOUND"), output::numbers("LEFT"), output::words("FOR EXAMPLE")];
    output::print_rows(io.out, format, &columns, &rows)?;
    for sentence in mended.iter().flat_map(|mended| &mended.left) {
        writeln!(io.err, "percept: not mended: {sentence}")?;
    }
    Ok(())
}

fn lists(findings: &Findings) -> Vec<(&'static str, &Listed)> {
    let media =
        [("media files missing", &findings.media.missing), ("media files without row", &findings.media.orphans)];
    media.into_iter().chain(findings.lists()).collect()
}

fn row((what, found): (&'static str, &Listed), left: &Listed) -> Row {
    let examples: Vec<&str> = found.paths.iter().take(EXAMPLES).map(String::as_str).collect();
    let fields = [
        ("what", Value::from(what)),
        ("found", Value::from(found.count)),
        ("left", Value::from(left.count)),
        ("for_example", Value::from(examples.clone())),
    ];
    Row {
        fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        cells: vec![what.to_owned(), found.count.to_string(), left.count.to_string(), examples.join(" ")],
    }
}

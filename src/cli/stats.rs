//! `percept stats`: what the store holds.

use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::output;
use crate::cli::output::Row;
use crate::cli::when;
use crate::memory::reader::Reader;
use crate::memory::stats::Stats;
use jiff::tz::TimeZone;
use serde_json::Value;

/// Runs the command: one line for each number.
///
/// # Errors
/// When the store cannot be read.
pub fn run(shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    let stats = Reader::open(&loaded.data_dir)?.stats()?;
    let columns = [output::words("WHAT"), output::words("WHICH"), output::numbers("NUMBER"), output::words("")];
    output::print_rows(io.out, shared.format, &columns, &rows(&stats))?;
    Ok(0)
}

fn rows(stats: &Stats) -> Vec<Row> {
    let zone = TimeZone::system();
    let mut rows = vec![row("episodes", "all", stats.episodes, "")];
    let named = |what: &'static str, list: &[(String, u64)]| {
        list.iter().map(|(name, count)| row(what, name, *count, "")).collect::<Vec<_>>()
    };
    rows.extend(named("episodes", &stats.by_modality));
    rows.extend(named("decay class", &stats.by_decay_class));
    rows.extend(
        stats.vectors.iter().map(|((model, kind), count)| row("vectors", &format!("{model} {kind}"), *count, "")),
    );
    rows.extend(stats.coverage.iter().map(|blind| {
        let length = when::duration(i64::try_from(blind.total_ms).unwrap_or(i64::MAX));
        row("coverage", &format!("{} {}", blind.sensor, blind.reason), blind.rows, &length)
    }));
    rows.push(row("graph", "nodes", stats.nodes, ""));
    rows.push(row("graph", "edges", stats.edges, ""));
    rows.extend(named("links", &stats.links));
    rows.push(row("media", "files", stats.media_files, ""));
    rows.push(row("media", "bytes", stats.media_bytes, ""));
    rows.push(row("database", "bytes", stats.database_bytes, ""));
    rows.extend(named("sessions", &stats.sessions));
    rows.push(row("sync", "pending", stats.pending, ""));
    for (name, time) in [("first", stats.first), ("last", stats.last)] {
        if let Some(time) = time {
            rows.push(row("captured", name, time.as_millis().unsigned_abs(), &when::local_time(time, &zone)));
        }
    }
    rows
}

fn row(what: &str, which: &str, number: u64, remark: &str) -> Row {
    let fields = [
        ("what", Value::from(what)),
        ("which", Value::from(which)),
        ("number", Value::from(number)),
        ("remark", Value::from(remark)),
    ];
    Row {
        fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        cells: vec![what.to_owned(), which.to_owned(), number.to_string(), remark.to_owned()],
    }
}

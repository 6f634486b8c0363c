//! `percept devices`: the sensors of this machine, by the names that the config takes.

use crate::agent::drivers;
use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::output;
use crate::cli::output::Row;
use serde_json::Value;

/// Runs the command.
///
/// # Errors
/// When the config is wrong, or the output fails.
pub fn run(shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    let mut rows = Vec::new();
    for (kind, found) in drivers::list(&loaded.config) {
        match found {
            Ok(devices) if devices.is_empty() => writeln!(io.err, "percept: no {} was found", kind.as_str())?,
            Ok(devices) => rows.extend(devices.into_iter().map(|device| {
                let usable = device.refused.as_ref().map_or_else(|| "yes".to_owned(), |why| format!("no, {why}"));
                row(&[
                    ("device", device.source.to_string()),
                    ("name", device.name),
                    ("offers", device.detail),
                    ("usable", usable),
                ])
            })),
            Err(failure) => writeln!(io.err, "percept: {}: {failure}", kind.as_str())?,
        }
    }
    let columns = [output::words("DEVICE"), output::words("NAME"), output::words("OFFERS"), output::words("USABLE")];
    output::print_rows(io.out, shared.format, &columns, &rows)?;
    Ok(0)
}

/// Longest text in the table, in characters; the other formats have all of it.
const CELL_CHARS_MAX: usize = 70;

fn shortened(text: &str) -> String {
    if text.chars().count() <= CELL_CHARS_MAX {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(CELL_CHARS_MAX - 1).collect();
    short.push('…');
    short
}

fn row(fields: &[(&str, String)]) -> Row {
    Row {
        cells: fields.iter().map(|(_, text)| shortened(text)).collect(),
        fields: fields.iter().map(|(name, text)| ((*name).to_owned(), Value::from(text.clone()))).collect(),
    }
}

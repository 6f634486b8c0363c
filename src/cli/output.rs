//! How commands print: a table for people, JSON for programs.
//!
//! In: rows whose fields are named as the columns. Out: text on the command's writer.
//! Never: decides what to show.

use anyhow::Context as _;
use comfy_table::CellAlignment;
use serde_json::Map;
use serde_json::Value;
use std::io::Write;

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// Aligned columns, local time.
    #[default]
    Table,
    /// One array of objects.
    Json,
    /// One object a line.
    Jsonl,
}

/// One line of output: the fields for programs, and the cells of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Named as the columns, complete.
    pub fields: Map<String, Value>,
    /// What the table shows, one cell for each header.
    pub cells: Vec<String>,
}

/// A column of the table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its heading.
    pub header: &'static str,
    /// Whether it holds numbers (aligned right).
    pub is_number: bool,
}

/// A column of words.
#[must_use]
pub const fn words(header: &'static str) -> Column {
    Column { header, is_number: false }
}

/// A column of numbers.
#[must_use]
pub const fn numbers(header: &'static str) -> Column {
    Column { header, is_number: true }
}

/// Prints `rows` in the chosen format.
///
/// # Errors
/// When the writer fails.
pub fn print_rows(out: &mut dyn Write, format: Format, columns: &[Column], rows: &[Row]) -> anyhow::Result<()> {
    match format {
        Format::Table => print_table(out, columns, rows),
        Format::Json => {
            let array: Vec<&Map<String, Value>> = rows.iter().map(|row| &row.fields).collect();
            print_json(out, &array)
        }
        Format::Jsonl => rows.iter().try_for_each(|row| print_json(out, &row.fields)),
    }
}

/// Prints one value as one line of JSON.
///
/// # Errors
/// When the writer fails.
pub fn print_json<T: serde::Serialize + ?Sized>(out: &mut dyn Write, value: &T) -> anyhow::Result<()> {
    let text = serde_json::to_string(value).context("write JSON")?;
    writeln!(out, "{text}")?;
    Ok(())
}

fn print_table(out: &mut dyn Write, columns: &[Column], rows: &[Row]) -> anyhow::Result<()> {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(columns.iter().map(|column| column.header));
    for row in rows {
        table.add_row(&row.cells);
    }
    for (index, column) in columns.iter().enumerate() {
        if let Some(cells) = table.column_mut(index) {
            cells.set_padding((0, 2));
            if column.is_number {
                cells.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

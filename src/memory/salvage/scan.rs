//! Reads a table around pages that cannot be read.
//!
//! In: a connection to a damaged file, a table. Out: each row that can be read, once, and the number of places that cannot.
//!
//! ```text
//! row numbers  |--up-->  x ......... x  <--down--|      what lies between is halved, and each half is tried the same way,
//!              |            halve               |       until single rows are left or the tries are used up
//! ```
//!
//! A table without row numbers is read in stretches of its key, each up from its start and down from its end.
//! Never: takes an error of the damaged file for more than an unreadable place.

use crate::memory::salvage::tables::Order;
use crate::memory::salvage::tables::Table;
use rusqlite::Connection;
use rusqlite::Params;
use rusqlite::Row;
use rusqlite::Statement;
use rusqlite::types::Value;
use rusqlite::types::ValueRef;
use std::collections::VecDeque;

/// Stretches of row numbers tried in one table; what is left then counts as unreadable.
const TRIES_MAX: u64 = 500_000;

/// Most rows a page can hold of any table, for guessing the last row number when it cannot be read.
const ROWS_PER_PAGE_MAX: i64 = 128;

/// Takes a row; `None` for one that was reached and whose values are no values.
pub(super) type Sink<'a> = dyn FnMut(Option<Vec<Value>>) -> rusqlite::Result<()> + 'a;

/// Gives `sink` every row of `columns`. Returns how many places could not be read. An error is the sink's.
pub(super) fn each_row(
    source: &Connection,
    table: &Table,
    columns: &[&str],
    sink: &mut Sink<'_>,
) -> rusqlite::Result<u64> {
    match table.order {
        Order::RowNumber => by_row_number(source, table, columns, sink),
        Order::Key(key) => by_key(source, table, columns, key, sink),
    }
}

fn by_row_number(source: &Connection, table: &Table, columns: &[&str], sink: &mut Sink<'_>) -> rusqlite::Result<u64> {
    let statement = |direction: &str| {
        source.prepare(&format!(
            "SELECT rowid, {} FROM {} NOT INDEXED WHERE rowid BETWEEN ?1 AND ?2 ORDER BY rowid {direction}",
            quoted(columns),
            table.name
        ))
    };
    let (Ok(mut up), Ok(mut down)) = (statement("ASC"), statement("DESC")) else { return Ok(1) };
    let (mut unreadable, mut tries) = (0, 0);
    let mut stretches = VecDeque::from([(i64::MIN, last_row_number(source, table))]);
    while let Some((mut from, mut to)) = stretches.pop_front() {
        tries += 1;
        if tries > TRIES_MAX {
            return Ok(unreadable + 1 + stretches.len() as u64);
        }
        let upward = walk(&mut up, (from, to), true, sink)?;
        if upward.is_whole {
            continue;
        }
        from = upward.last.map_or(from, |last| last.saturating_add(1)).max(from).max(0);
        let downward = walk(&mut down, (from, to), true, sink)?;
        if downward.is_whole {
            continue;
        }
        to = downward.last.map_or(to, |last| last.saturating_sub(1)).min(to);
        if from >= to {
            unreadable += u64::from(from == to);
            continue;
        }
        let middle = from + (to - from) / 2;
        stretches.extend([(from, middle), (middle + 1, to)]);
    }
    Ok(unreadable)
}

fn last_row_number(source: &Connection, table: &Table) -> i64 {
    let read = |sql: &str| source.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
    if let Ok(last) = read(&format!("SELECT max(rowid) FROM {} NOT INDEXED", table.name)) {
        return last.unwrap_or(0);
    }
    let pages = read("PRAGMA page_count").ok().flatten().unwrap_or(0);
    pages.saturating_mul(ROWS_PER_PAGE_MAX)
}

/// Most keys begin with an id in hexadecimal: its first two digits make 256 stretches, and the outer two hold all the rest.
fn by_key(
    source: &Connection,
    table: &Table,
    columns: &[&str],
    key: &[&str],
    sink: &mut Sink<'_>,
) -> rusqlite::Result<u64> {
    let Some(first) = key.first() else { return Ok(0) };
    let statement = |direction: &str| {
        let order: Vec<String> = key.iter().map(|column| format!("{column} {direction}")).collect();
        source.prepare(&format!(
            "SELECT {} FROM {} WHERE {first} >= ?1 AND {first} < ?2 ORDER BY {}",
            quoted(columns),
            table.name,
            order.join(", ")
        ))
    };
    let (Ok(mut up), Ok(mut down)) = (statement("ASC"), statement("DESC")) else { return Ok(1) };
    let mut unreadable = 0;
    for stretch in 0..=u8::MAX {
        let from = if stretch == 0 { String::new() } else { format!("{stretch:02x}") };
        let to = stretch.checked_add(1).map_or_else(|| char::MAX.to_string(), |next| format!("{next:02x}"));
        if !walk(&mut up, (&from, &to), false, sink)?.is_whole {
            unreadable += 1;
            walk(&mut down, (&from, &to), false, sink)?;
        }
    }
    Ok(unreadable)
}

fn quoted(columns: &[&str]) -> String {
    columns.iter().map(|column| format!("\"{column}\"")).collect::<Vec<_>>().join(", ")
}

/// How far a walk came.
struct Walk {
    /// The last row number it read.
    last: Option<i64>,
    /// Whether it came to the end.
    is_whole: bool,
}

fn walk(
    statement: &mut Statement<'_>,
    stretch: impl Params,
    has_row_number: bool,
    sink: &mut Sink<'_>,
) -> rusqlite::Result<Walk> {
    let mut last = None;
    let Ok(mut rows) = statement.query(stretch) else { return Ok(Walk { last, is_whole: false }) };
    loop {
        match rows.next() {
            Ok(Some(row)) => {
                if has_row_number {
                    last = row.get::<_, i64>(0).ok().or(last);
                }
                sink(values_of(row, usize::from(has_row_number)))?;
            }
            Ok(None) => return Ok(Walk { last, is_whole: true }),
            Err(_) => return Ok(Walk { last, is_whole: false }),
        }
    }
}

fn values_of(row: &Row<'_>, skipped: usize) -> Option<Vec<Value>> {
    (skipped..row.as_ref().column_count())
        .map(|column| match row.get_ref(column).ok()? {
            ValueRef::Null => Some(Value::Null),
            ValueRef::Integer(number) => Some(Value::Integer(number)),
            ValueRef::Real(number) => Some(Value::Real(number)),
            ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok().map(|text| Value::Text(text.to_owned())),
            ValueRef::Blob(bytes) => Some(Value::Blob(bytes.to_vec())),
        })
        .collect()
}

//! Writes `session.toml`: the other direction of [`super::manifest`].

use super::header::ClockStep;
use super::header::FORMAT;
use super::header::Gap;
use super::header::SessionHeader;
use super::header::StreamHeader;
use toml::Table;
use toml::Value;

/// The text of `session.toml` for a header; parsing it gives the header back.
pub(super) fn render(header: &SessionHeader) -> String {
    let mut table = Table::new();
    let mut text = |key: &str, value: &str| table.insert(key.to_owned(), Value::from(value));
    text("session_id", header.session_id.as_str());
    if let Some(device_id) = &header.device_id {
        text("device_id", device_id.as_str());
    }
    text("boot_id", header.boot_id.as_str());
    text("started_at", &header.started.utc.to_string());
    text("clock_quality", header.started.quality.as_str());
    if let Some(note) = &header.note {
        text("note", note);
    }
    if !header.clock_steps.is_empty() {
        let steps = header.clock_steps.iter().map(clock_step).collect();
        table.insert("clock_steps".to_owned(), Value::Array(steps));
    }
    for stream in &header.streams {
        table.insert(stream.kind.as_str().to_owned(), Value::Table(self::stream(stream)));
    }
    format!("format = {FORMAT}\n{table}")
}

fn clock_step(step: &ClockStep) -> Value {
    let mut table = Table::new();
    table.insert("at_ms".to_owned(), step.at_ms.into());
    table.insert("step_ms".to_owned(), step.step_ms.into());
    table.insert("quality".to_owned(), step.quality.as_str().into());
    Value::Table(table)
}

fn stream(stream: &StreamHeader) -> Table {
    let mut table = Table::new();
    table.insert("source".to_owned(), stream.source.as_str().into());
    if let Some(map) = &stream.channel_map {
        let channels = map.iter().map(|&channel| Value::from(i64::from(channel))).collect();
        table.insert("channel_map".to_owned(), Value::Array(channels));
    }
    if !stream.gaps.is_empty() {
        table.insert("gaps".to_owned(), Value::Array(stream.gaps.iter().map(gap).collect()));
    }
    table
}

fn gap(gap: &Gap) -> Value {
    let mut table = Table::new();
    table.insert("from_ms".to_owned(), gap.from_ms.into());
    table.insert("to_ms".to_owned(), gap.to_ms.into());
    table.insert("reason".to_owned(), gap.reason.as_str().into());
    if let Some(note) = &gap.note {
        table.insert("note".to_owned(), note.as_str().into());
    }
    Value::Table(table)
}

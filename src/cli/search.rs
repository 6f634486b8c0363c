//! `percept search`: what fits best, by words, by likeness, and by what is known of it.

use crate::agent::search;
use crate::agent::search::Answer;
use crate::agent::search::Request;
use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::agent;
use crate::cli::episodes;
use crate::cli::filter::FilterArgs;
use crate::cli::output;
use crate::cli::output::Column;
use crate::cli::output::Format;
use crate::cli::output::Row;
use crate::cli::when;
use crate::domain::episode::Metadata;
use crate::domain::modality::Modality;
use crate::domain::time::Timestamp;
use crate::memory::search::LIMIT_MAX;
use clap::ArgGroup;
use jiff::tz::TimeZone;
use serde_json::Value;
use std::path::PathBuf;

/// Arguments of `percept search`. At least one of those that say what is wanted must be there.
#[derive(Debug, Clone, clap::Args)]
#[command(group = ArgGroup::new("wanted").required(true).multiple(true).args([
    "text", "image", "like", "modality", "since", "until", "session", "device", "place", "person", "sound_class", "rms_min",
    "rms_max", "meta", "decay_class",
]))]
pub struct Args {
    /// Words: any of them finds, more and rarer ones rank higher. With a filter they may be left out
    #[arg(value_name = "TEXT", value_parser = parse_text)]
    text: Vec<String>,
    /// What looks or is worded like this JPEG or PNG picture
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
    /// What is like this episode: its id, or the beginning of one
    #[arg(long, value_name = "ID")]
    like: Option<String>,
    #[command(flatten)]
    filter: FilterArgs,
    /// The best N
    #[arg(long, value_name = "N", default_value_t = search::LIMIT_DEFAULT, value_parser = parse_limit)]
    limit: usize,
    /// Show what each score is made of: recency + importance + 2 × relevance + strength
    #[arg(long)]
    explain: bool,
    /// Leave no trace: else what is returned grows stronger and ranks higher the next time
    #[arg(long)]
    peek: bool,
}

fn parse_text(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() { Err("the text is empty".to_owned()) } else { Ok(text.to_owned()) }
}

fn parse_limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
    limit.ok_or_else(|| format!("a limit is a number from 1 to {LIMIT_MAX}"))
}

/// Runs the command.
///
/// # Errors
/// When a time, an id or a picture is wrong, or the store cannot be read.
pub fn run(args: &Args, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    let zone = TimeZone::system();
    let now = io.clock.stamp();
    let filter = args.filter.filter(now.utc, &zone)?;
    let picture = args.image.as_deref().map(|file| search::vector_of(file, &loaded)).transpose()?;
    let request = Request {
        text: (!args.text.is_empty()).then(|| args.text.join(" ")),
        vectors: picture.into_iter().collect(),
        like: args.like.clone(),
        filter,
        limit: args.limit,
        peek: args.peek,
    };
    let answer: Answer = match agent::find(&loaded)? {
        Some(client) => client.post("/v1/search", &request)?,
        None => search::alone(&request, &loaded, "percept search", now)?,
    };
    for note in &answer.notes {
        writeln!(io.err, "percept: {note}")?;
    }
    if answer.episodes.is_empty() && shared.format == Format::Table {
        writeln!(io.err, "nothing was found")?;
        return Ok(0);
    }
    let rows: Vec<Row> = answer.episodes.into_iter().map(|fields| row(fields, args.explain, &zone)).collect();
    output::print_rows(io.out, shared.format, &columns(args.explain), &rows)?;
    Ok(0)
}

fn columns(explain: bool) -> Vec<Column> {
    let mut columns = vec![output::numbers("SCORE")];
    if explain {
        let parts = ["RECENCY", "IMPORTANCE", "RELEVANCE", "STRENGTH"];
        columns.extend(parts.map(output::numbers));
        columns.push(output::words("BY"));
    }
    columns.extend(["TIME", "MODALITY", "EPISODE", "ID"].map(output::words));
    columns
}

/// Parts of the score that `--explain` shows, in the order of the columns.
const PARTS: [&str; 4] = ["recency", "importance", "relevance", "strength"];

fn row(fields: Metadata, explain: bool, zone: &TimeZone) -> Row {
    let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
    let number = |value: Option<&Value>| format!("{:.2}", value.and_then(Value::as_f64).unwrap_or_default());
    let modality = text("modality");
    let timestamp = fields.get("timestamp").and_then(Value::as_i64).unwrap_or_default();
    let mut cells = vec![number(fields.get("score"))];
    if explain {
        let parts = fields.get("score_parts");
        cells.extend(PARTS.map(|part| number(parts.and_then(|parts| parts.get(part)))));
        let by = parts.and_then(|parts| parts.get("relevant_by")).and_then(Value::as_str);
        cells.push(by.unwrap_or("-").to_owned());
    }
    cells.extend([
        when::local_time(Timestamp::from_millis(timestamp), zone),
        format!("{} {modality}", Modality::parse(modality).map_or("", episodes::icon)),
        episodes::shortened(text("content"), episodes::CONTENT_WIDTH),
        episodes::short_id(text("id")),
    ]);
    Row { cells, fields }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found() -> Metadata {
        let parts =
            json!({"recency": 0.5, "importance": 0.6, "relevance": 1.0, "relevant_by": "words", "strength": 0.0});
        let object = json!({
            "id": "01234567-89ab-5def-8123-456789abcdef", "timestamp": 0, "modality": "audio", "content": "A dog\nbarks",
            "score": 3.1, "score_parts": parts,
        });
        object.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn a_table_has_a_cell_for_each_column_with_and_without_the_parts_of_the_score() {
        let plain = row(found(), false, &TimeZone::UTC);
        let explained = row(found(), true, &TimeZone::UTC);

        assert_eq!(plain.cells, ["3.10", "1970-01-01 00:00:00", "🔊 audio", "A dog barks", "01234567"]);
        assert_eq!(explained.cells[..6], ["3.10", "0.50", "0.60", "1.00", "0.00", "words"]);
        assert_eq!((plain.cells.len(), explained.cells.len()), (columns(false).len(), columns(true).len()));
        assert_eq!(plain.fields, explained.fields, "programs always get everything");
    }

    #[test]
    fn an_empty_text_and_a_limit_out_of_bounds_are_refused_in_words() {
        assert!(parse_text("  ").unwrap_err().contains("empty"));
        assert_eq!(parse_text(" a dog "), Ok("a dog".to_owned()));
        for text in ["0", "1001", "-1", "many"] {
            assert!(parse_limit(text).unwrap_err().contains("1 to 1000"), "{text}");
        }
    }
}

//! `percept episodes`: the timeline.

use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::output;
use crate::cli::output::Row;
use crate::cli::when;
use crate::cli::when::Edge;
use crate::domain::modality::Modality;
use crate::memory::query::EpisodeFilter;
use crate::memory::query::Order;
use crate::memory::query::StoredEpisode;
use crate::memory::reader::Reader;
use jiff::tz::TimeZone;
use serde_json::json;

/// Columns that a terminal of usual width has for the sentence.
const CONTENT_WIDTH: usize = 76;

/// Arguments of `percept episodes`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Only this kind [visual, audio, social, spatial, code, tool_result, text, gist]; may be repeated
    #[arg(long, value_name = "M", value_parser = parse_modality)]
    modality: Vec<Modality>,
    /// Only what began at or after: RFC 3339, a local date, an age such as 2h, today, yesterday
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only what began before: as --since; a date includes that day
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only this run or recorded session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// The newest N
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

fn parse_modality(name: &str) -> Result<Modality, String> {
    let names = || Modality::ALL.map(Modality::as_str).join(", ");
    Modality::parse(name).ok_or_else(|| format!("known are {}", names()))
}

/// Runs the command: the newest episodes that fit, oldest first.
///
/// # Errors
/// When a time cannot be understood or the store cannot be read.
pub fn run(args: &Args, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    let zone = TimeZone::system();
    let now = io.clock.utc();
    let edge =
        |text: &Option<String>, edge| text.as_deref().map(|text| when::parse_when(text, edge, now, &zone)).transpose();
    let filter = EpisodeFilter {
        modalities: args.modality.clone(),
        since: edge(&args.since, Edge::Start)?,
        until: edge(&args.until, Edge::End)?,
        session: args.session.clone().map(crate::domain::id::SessionId::new),
        order: Order::NewestFirst,
        limit: Some(args.limit),
        ..EpisodeFilter::default()
    };
    let mut episodes = Reader::open(&loaded.data_dir)?.episodes(&filter)?;
    episodes.reverse();
    let rows: Vec<Row> = episodes.iter().map(|stored| row(stored, &zone)).collect();
    let columns = [
        output::words("TIME"),
        output::numbers("LENGTH"),
        output::words("MODALITY"),
        output::words("EPISODE"),
        output::words("ID"),
    ];
    output::print_rows(io.out, shared.format, &columns, &rows)?;
    Ok(0)
}

/// A picture for each modality.
#[must_use]
pub fn icon(modality: Modality) -> &'static str {
    match modality {
        Modality::Visual => "📷",
        Modality::Audio => "🔊",
        Modality::Social => "👤",
        Modality::Spatial => "📍",
        Modality::Code => "💻",
        Modality::ToolResult => "🔧",
        Modality::Text => "📝",
        Modality::Gist => "💡",
    }
}

fn row(stored: &StoredEpisode, zone: &TimeZone) -> Row {
    let episode = &stored.episode;
    let id = episode.id.to_string();
    let short_id = id.split('-').next().unwrap_or_default().to_owned();
    Row {
        cells: vec![
            when::local_time(episode.timestamp, zone),
            when::duration(episode.ended_at.millis_since(episode.timestamp)),
            format!("{} {}", icon(episode.modality), episode.modality.as_str()),
            shortened(&episode.content, CONTENT_WIDTH),
            short_id,
        ],
        fields: fields(stored),
    }
}

/// All columns of an episode, for programs.
#[must_use]
pub fn fields(stored: &StoredEpisode) -> serde_json::Map<String, serde_json::Value> {
    let episode = &stored.episode;
    let object = json!({
        "id": episode.id.to_string(),
        "external_id": episode.external_id.as_ref().map(|id| id.as_str()),
        "device_id": episode.device_id.as_str(),
        "store_id": stored.store_id.as_str(),
        "session_id": episode.session_id.as_str(),
        "source": episode.source.as_str(),
        "timestamp": episode.timestamp.as_millis(),
        "time": episode.timestamp.to_string(),
        "ended_at": episode.ended_at.as_millis(),
        "boot_id": episode.boot_id.as_str(),
        "monotonic_ms": episode.monotonic_ms,
        "clock_quality": episode.clock_quality.as_str(),
        "stored_at": stored.stored_at.as_millis(),
        "modality": episode.modality.as_str(),
        "tool_name": episode.tool_name,
        "content": episode.content,
        "importance": episode.importance,
        "decay_class": episode.decay_class.as_str(),
        "strength": stored.strength,
        "metadata": episode.metadata,
    });
    object.as_object().cloned().unwrap_or_default()
}

fn shortened(text: &str, width: usize) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= width {
        return line;
    }
    let mut short: String = line.chars().take(width - 1).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_sentence_is_cut_between_characters_and_lines_are_joined() {
        assert_eq!(shortened("a\n b", 10), "a b");
        assert_eq!(shortened("äöüäöü", 4), "äöü…");
    }

    #[test]
    fn an_unknown_modality_names_the_known_ones() {
        assert!(parse_modality("sound").unwrap_err().contains("audio"));
    }
}

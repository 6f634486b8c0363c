//! `percept episodes`: the timeline.

use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::filter::FilterArgs;
use crate::cli::output;
use crate::cli::output::Row;
use crate::cli::when;
use crate::domain::modality::Modality;
use crate::memory::query::EpisodeFilter;
use crate::memory::query::Order;
use crate::memory::query::StoredEpisode;
use crate::memory::reader::Reader;
use jiff::tz::TimeZone;

/// Columns that a terminal of usual width has for the sentence.
pub(super) const CONTENT_WIDTH: usize = 76;

/// Arguments of `percept episodes`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(flatten)]
    filter: FilterArgs,
    /// The newest N
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

/// Runs the command: the newest episodes that fit, oldest first.
///
/// # Errors
/// When a time cannot be understood or the store cannot be read.
pub fn run(args: &Args, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    let zone = TimeZone::system();
    let filter = EpisodeFilter {
        order: Order::NewestFirst,
        limit: Some(args.limit),
        ..args.filter.filter(io.clock.utc(), &zone)?
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
    Row {
        cells: vec![
            when::local_time(episode.timestamp, zone),
            when::duration(episode.ended_at.millis_since(episode.timestamp)),
            format!("{} {}", icon(episode.modality), episode.modality.as_str()),
            shortened(&episode.content, CONTENT_WIDTH),
            short_id(&episode.id.to_string()),
        ],
        fields: stored.fields(),
    }
}

/// As much of an id as commands need to know it by.
pub(super) fn short_id(id: &str) -> String {
    id.split('-').next().unwrap_or_default().to_owned()
}

/// One line of at most `width` characters.
pub(super) fn shortened(text: &str, width: usize) -> String {
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
}

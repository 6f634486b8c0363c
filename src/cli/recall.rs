//! `percept recall TEXT`: what comes to mind.

use crate::agent::recall;
use crate::agent::recall::Question;
use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::episodes;
use crate::cli::filter;
use crate::cli::output;
use crate::cli::output::Format;
use crate::cli::output::Row;
use crate::cli::when;
use crate::memory::reader::Reader;
use crate::memory::recall::LIMIT_MAX;
use crate::memory::recall::Recalled;
use crate::memory::recall::Recollection;
use crate::recall::pagerank::DAMPING_MAX;
use crate::recall::seeds::Why;
use jiff::tz::TimeZone;
use serde_json::json;

/// Arguments of `percept recall`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// A question or a cue in plain language
    #[arg(required = true, num_args = 1.., value_name = "TEXT")]
    text: Vec<String>,
    #[command(flatten)]
    filter: filter::FilterArgs,
    /// At most N
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = parse_limit)]
    limit: usize,
    /// How far thoughts wander from what the question names: 0 (not at all) to 0.99
    #[arg(long, value_name = "D", default_value_t = recall::DAMPING, value_parser = parse_damping)]
    damping: f64,
    /// Show what was understood and where the walk began
    #[arg(long)]
    explain: bool,
}

const AFTER_HELP: &str = "\
Names of people, places and things lead on to what is connected with them; time words (yesterday, on Monday, last week, in
the morning, two days ago) limit the time, in local time; \"who did I meet\", \"where was I\", \"what did I hear\", \"what did I
see\" ask for one kind of episode. What is recalled does not become stronger.

  percept recall \"Who did I meet yesterday?\"
  percept recall \"Alice at the harbour\" --explain";

fn parse_limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
    limit.ok_or_else(|| format!("a limit is a number from 1 to {LIMIT_MAX}"))
}

fn parse_damping(text: &str) -> Result<f64, String> {
    let damping = text.parse().ok().filter(|damping| (0.0..=DAMPING_MAX).contains(damping));
    damping.ok_or_else(|| format!("a damping is a number from 0 to {DAMPING_MAX}"))
}

/// Runs the command.
///
/// # Errors
/// When a time cannot be understood or the store cannot be read.
pub fn run(args: &Args, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    let zone = TimeZone::system();
    let now = io.clock.stamp();
    let question = Question {
        text: args.text.join(" "),
        filter: args.filter.filter(now.utc, &zone)?,
        limit: args.limit,
        damping: args.damping,
    };
    let (recollection, notes) = recall::recall(question, &Reader::open(&loaded.data_dir)?, &loaded, now)?;
    for note in notes {
        writeln!(io.err, "percept: {note}")?;
    }
    if args.explain {
        explain(&recollection, io, &zone)?;
    }
    if recollection.found.is_empty() && shared.format == Format::Table {
        writeln!(io.err, "nothing comes to mind")?;
        return Ok(0);
    }
    let columns = [
        output::numbers("SCORE"),
        output::words("TIME"),
        output::words("MODALITY"),
        output::words("EPISODE"),
        output::words("ID"),
    ];
    let rows: Vec<Row> = recollection.found.iter().map(|recalled| row(recalled, &zone)).collect();
    output::print_rows(io.out, shared.format, &columns, &rows)?;
    Ok(0)
}

fn explain(recollection: &Recollection, io: &mut Io<'_>, zone: &TimeZone) -> anyhow::Result<()> {
    for span in &recollection.spans {
        let (start, end) = (when::local_time(span.start, zone), when::local_time(span.end, zone));
        writeln!(io.err, "time     {start} to {end} ({})", recollection.time_words.join(", "))?;
    }
    if let Some(modality) = recollection.modality {
        writeln!(io.err, "kind     {}", modality.as_str())?;
    }
    for seed in &recollection.seeds {
        let why = match &seed.why {
            Why::Named(name) => format!("{name:?} is named"),
            Why::Words => "an episode whose words fit".to_owned(),
            Why::Vector => "an episode that is alike".to_owned(),
        };
        writeln!(io.err, "seed     {:.3}  {why}", seed.weight)?;
    }
    let extent = if recollection.is_whole { "all of what is connected" } else { "the part nearest to the seeds" };
    writeln!(io.err, "walked   {} nodes, {} edges: {extent}", recollection.places, recollection.edges)?;
    Ok(())
}

fn row(recalled: &Recalled, zone: &TimeZone) -> Row {
    let episode = &recalled.episode.episode;
    let mut fields = recalled.episode.fields();
    fields.insert("score".to_owned(), recalled.score.into());
    fields.insert("score_parts".to_owned(), json!({"rank": recalled.rank, "words": recalled.words}));
    let modality = episode.modality;
    let cells = vec![
        format!("{:.4}", recalled.score),
        when::local_time(episode.timestamp, zone),
        format!("{} {}", episodes::icon(modality), modality.as_str()),
        episodes::shortened(&episode.content, episodes::CONTENT_WIDTH),
        episodes::short_id(&episode.id.to_string()),
    ];
    Row { cells, fields }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_bounds_are_refused_in_words() {
        assert!(parse_limit("0").unwrap_err().contains("1 to 1000"));
        assert!(parse_damping("1").unwrap_err().contains("from 0 to"));
        assert!(parse_damping("NaN").is_err());
        assert_eq!(parse_damping("0.85"), Ok(0.85));
    }
}

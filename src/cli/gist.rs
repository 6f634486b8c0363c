//! `percept gist`: a day, a place or a person in a few sentences, written as an episode.

use crate::agent::gists;
use crate::agent::gists::AskedGist;
use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::agent;
use crate::cli::output;
use crate::cli::output::Format;
use crate::cli::when;
use crate::cli::when::Edge;
use crate::config::Loaded;
use crate::domain::fact::NodeKind;
use crate::domain::time::Timestamp;
use crate::memory::reader::Reader;
use crate::recall::gist::Subject;
use anyhow::Context as _;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::Value;

/// Columns of a paragraph.
const WIDTH: usize = 96;

/// Arguments of `percept gist`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// A local day: 2026-11-30, today, yesterday [default: yesterday and today]
    #[arg(long, value_name = "DATE", conflicts_with_all = ["place", "person", "since", "until"])]
    day: Option<String>,
    /// A place, or a part of its name
    #[arg(long, value_name = "P", conflicts_with = "person")]
    place: Option<String>,
    /// A person, or a part of the name
    #[arg(long, value_name = "N")]
    person: Option<String>,
    /// First local day, for a place or a person [default: the first of this month]
    #[arg(long, value_name = "DATE")]
    since: Option<String>,
    /// Last local day, for a place or a person [default: the last of this month]
    #[arg(long, value_name = "DATE")]
    until: Option<String>,
    /// Only print: write nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
///
/// # Errors
/// When a date cannot be understood, nobody of that name is known, or the store cannot be had.
pub fn run(args: &Args, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    let zone = TimeZone::system();
    let asked = asked(args, &loaded, io.clock.utc(), &zone)?;
    let answers = if args.dry_run {
        let reader = Reader::open(&loaded.data_dir)?;
        let make = |asked: &AskedGist| anyhow::Ok(gists::make(&reader, &asked.frame(&zone)?)?.answer());
        asked.iter().map(make).collect::<anyhow::Result<Vec<Value>>>()?
    } else {
        written(&asked, &loaded, &zone)?
    };
    let told: Vec<&Value> = answers.iter().filter(|answer| answer["content"].is_string()).collect();
    match shared.format {
        Format::Json => output::print_json(io.out, &told)?,
        Format::Jsonl => told.iter().try_for_each(|answer| output::print_json(io.out, answer))?,
        Format::Table => told.iter().try_for_each(|answer| print(answer, io))?,
    }
    if told.is_empty() {
        writeln!(io.err, "percept: nothing is remembered that could be told of {}", words(&asked))?;
    }
    Ok(0)
}

/// Through the running agent, which is the one writer; without one under the store's lock.
fn written(asked: &[AskedGist], loaded: &Loaded, zone: &TimeZone) -> anyhow::Result<Vec<Value>> {
    match agent::find(loaded)? {
        Some(client) => asked.iter().map(|asked| client.post("/v1/gist", asked)).collect(),
        None => {
            // Only a store that is there has anything to tell: none is made for this.
            Reader::open(&loaded.data_dir)?;
            let frames = asked.iter().map(|asked| asked.frame(zone)).collect::<anyhow::Result<Vec<_>>>()?;
            gists::store(&frames, &loaded.data_dir, &loaded.open_options("percept gist"))
        }
    }
}

fn asked(args: &Args, loaded: &Loaded, now: Timestamp, zone: &TimeZone) -> anyhow::Result<Vec<AskedGist>> {
    let date =
        |text: &str| -> anyhow::Result<Date> { Ok(local_date(when::parse_when(text, Edge::Start, now, zone)?, zone)) };
    let today = local_date(now, zone);
    let of = |subject: Subject, first: Date, last: Date| AskedGist {
        subject,
        first: first.to_string(),
        last: last.to_string(),
    };
    let subject = match (&args.place, &args.person) {
        (Some(place), _) => Subject::Place(known(loaded, &NodeKind::Location, place)?),
        (None, Some(person)) => Subject::Person(known(loaded, &NodeKind::Person, person)?),
        (None, None) => {
            anyhow::ensure!(
                args.since.is_none() && args.until.is_none(),
                "--since and --until belong to --place or --person; a day is chosen with --day"
            );
            let days = match &args.day {
                Some(day) => vec![date(day)?],
                None => today.yesterday().into_iter().chain([today]).collect(),
            };
            return Ok(days.into_iter().map(|day| of(Subject::Day, day, day)).collect());
        }
    };
    let first = args.since.as_deref().map(date).transpose()?.unwrap_or_else(|| today.first_of_month());
    let last = args.until.as_deref().map(date).transpose()?.unwrap_or_else(|| today.last_of_month());
    Ok(vec![of(subject, first, last)])
}

fn local_date(at: Timestamp, zone: &TimeZone) -> Date {
    jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or_default().to_zoned_datetime(zone.clone()).date()
}

/// The one known name that fits.
fn known(loaded: &Loaded, kind: &NodeKind, wanted: &str) -> anyhow::Result<String> {
    let names = Reader::open(&loaded.data_dir)?.names(kind, wanted)?;
    match names.fitting() {
        [name] => Ok(name.clone()),
        [] => {
            let hint = match names.suggestions().as_slice() {
                [] => "`percept facts` lists what is".to_owned(),
                alike => format!("did you mean {}?", alike.join(", ")),
            };
            anyhow::bail!("no {} {wanted:?} is known; {hint}", kind.as_str())
        }
        many => anyhow::bail!("{wanted:?} fits {}: name one of them", many.join(", ")),
    }
}

fn words(asked: &[AskedGist]) -> String {
    let word = |asked: &AskedGist| match asked.subject.kind_and_name() {
        ("day", _) => asked.first.clone(),
        (_, name) => format!("{name} from {} to {}", asked.first, asked.last),
    };
    asked.iter().map(word).collect::<Vec<_>>().join(" and ")
}

fn print(answer: &Value, io: &mut Io<'_>) -> anyhow::Result<()> {
    let text = |key: &str| answer[key].as_str().unwrap_or_default();
    let content = text("content");
    let id = text("id").split('-').next().context("an id has parts")?;
    for line in wrapped(content, WIDTH) {
        writeln!(io.out, "{line}")?;
    }
    let episodes = &answer["metadata"]["episodes"];
    writeln!(io.out, "  {id}, out of {episodes} episode{}", if episodes == 1 { "" } else { "s" })?;
    Ok(())
}

/// Lines of at most `width` letters, broken at blanks.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_blanks_and_a_long_word_stands_alone() {
        assert_eq!(wrapped("one two three four", 9), ["one two", "three", "four"]);
        assert_eq!(wrapped("ab abcdefghijkl ab", 5), ["ab", "abcdefghijkl", "ab"]);
        assert_eq!(wrapped("", 5), Vec::<String>::new());
    }
}

//! `percept forget`: a person, a place, a span of time or single episodes, for good.

use crate::agent::control::Forget;
use crate::agent::forget;
use crate::agent::forget::Phase;
use crate::agent::forget::Report;
use crate::agent::moments;
use crate::agent::moments::MomentFolder;
use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::agent;
use crate::cli::output;
use crate::cli::output::Format;
use crate::cli::when;
use crate::cli::when::Edge;
use crate::config::Loaded;
use crate::domain::id::EpisodeId;
use crate::domain::time::SystemClock;
use crate::domain::time::Timestamp;
use crate::memory::forget::Order;
use crate::memory::forget::Round;
use crate::memory::forget::Subject;
use crate::memory::reader::Reader;
use crate::memory::store::Store;
use crate::memory::writer::Writer;
use anyhow::Context as _;
use jiff::tz::TimeZone;
use serde_json::json;
use std::io::BufRead as _;
use std::io::IsTerminal as _;
use std::sync::Arc;

/// Arguments of `percept forget`.
#[derive(Debug, Clone, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["person", "place", "since", "until", "id"]))]
pub struct Args {
    /// Everything about this person, and the name in the rows of others: whole words, any letter case
    #[arg(long, value_name = "NAME", conflicts_with_all = ["place", "since", "until", "id"])]
    person: Option<String>,
    /// Stays at this place, and its name and position in other rows
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["since", "until", "id"])]
    place: Option<String>,
    /// Everything from here on: RFC 3339, a local date, an age such as 2h, today, yesterday [default: the beginning]
    #[arg(long, value_name = "TIME", conflicts_with = "id")]
    since: Option<String>,
    /// Everything up to here: as --since; a date includes that day [default: now]
    #[arg(long, value_name = "TIME", conflicts_with = "id")]
    until: Option<String>,
    /// This episode, by its id or the beginning of it; may be repeated
    #[arg(long, value_name = "ID")]
    id: Vec<String>,
    /// A phrase in which the name means something else, such as "Port Alice"; may be repeated
    #[arg(long, value_name = "PHRASE")]
    keep: Vec<String>,
    /// Only say what would be forgotten
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// Runs the command: says what goes, asks, forgets, says what went.
///
/// # Errors
/// When the order cannot be understood, nobody agreed to it, or a step failed: the same order again goes on with it.
pub fn run(args: &Args, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    let reader = Reader::open(&loaded.data_dir)?;
    let order = order(args, &loaded, &reader, io)?;
    let survey = forget::survey(&order, &reader)?;
    drop(reader);
    let mentions = forget::config_mentions(&loaded, &order);
    if args.dry_run {
        print_survey(&survey, &mentions, shared.format, io)?;
        return Ok(0);
    }
    if !args.yes {
        print_survey(&survey, &mentions, Format::Table, io)?;
        if !agreed(io)? {
            writeln!(io.err, "percept: nothing was forgotten")?;
            return Ok(1);
        }
    }
    let report = carry_out(order, &loaded)?;
    print_report(&report, &mentions, shared.format, io)?;
    Ok(u8::from(!report.store.left.is_empty()))
}

fn order(args: &Args, loaded: &Loaded, reader: &Reader, io: &Io<'_>) -> anyhow::Result<Order> {
    let subject = if let Some(name) = &args.person {
        Subject::Person(name.trim().to_owned())
    } else if let Some(name) = &args.place {
        Subject::Place(name.trim().to_owned())
    } else if args.id.is_empty() {
        span(args, io)?
    } else {
        let resolve = |text: &String| -> anyhow::Result<EpisodeId> {
            reader.resolve(text)?.with_context(|| format!("no episode has an id that begins with {text}"))
        };
        Subject::Ids(args.id.iter().map(resolve).collect::<anyhow::Result<_>>()?)
    };
    let known = loaded.config.people.iter().map(|person| person.name.clone()).collect();
    let order = Order { subject, keep: args.keep.clone(), known };
    order.check().map_err(anyhow::Error::msg)?;
    Ok(order)
}

fn span(args: &Args, io: &Io<'_>) -> anyhow::Result<Subject> {
    let (now, zone) = (io.clock.utc(), TimeZone::system());
    let edge =
        |text: &Option<String>, edge| text.as_deref().map(|text| when::parse_when(text, edge, now, &zone)).transpose();
    let since = edge(&args.since, Edge::Start)?.unwrap_or(Timestamp::from_millis(i64::MIN));
    // What is still to come is nothing to forget.
    let until = edge(&args.until, Edge::End)?.map_or(now, |until| until.min(now));
    Ok(Subject::Span { since, until })
}

/// Asks on the terminal; where nobody can answer, nobody agreed.
fn agreed(io: &mut Io<'_>) -> anyhow::Result<bool> {
    let stdin = std::io::stdin();
    anyhow::ensure!(
        io.err_is_terminal && stdin.is_terminal(),
        "nobody is there to be asked: give --yes to forget this for good, or --dry-run to only look"
    );
    write!(io.err, "Forget this for good? It cannot be brought back. [y/N] ")?;
    io.err.flush()?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer).context("read the answer")?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Through the running agent, which is the one writer; without one under the exclusive lock.
fn carry_out(order: Order, loaded: &Loaded) -> anyhow::Result<Report> {
    let Some(client) = agent::find(loaded)? else {
        return alone(order, loaded);
    };
    let (mut total, mut next) = (Report::default(), Some(Phase::FIRST));
    while let Some(phase) = next {
        let body = Forget { order: order.clone(), phase: Some(phase) };
        let report: Report = client.post("/v1/forget", &body)?;
        next = report.next_phase.clone();
        total.add(report);
    }
    Ok(total)
}

fn alone(order: Order, loaded: &Loaded) -> anyhow::Result<Report> {
    let options = loaded.open_options("percept forget");
    let writer = Writer::spawn(Store::open(&loaded.data_dir, &options)?, Box::new(SystemClock::new()))?;
    let folder = MomentFolder::new(&loaded.data_dir);
    moments::reconcile(&folder, &writer)?;
    let report = forget::forget(&Arc::new(order), &writer, &folder)?;
    writer.close().context("close the store")?;
    Ok(report)
}

fn print_survey(round: &Round, mentions: &[String], format: Format, io: &mut Io<'_>) -> anyhow::Result<()> {
    if format != Format::Table {
        return output::print_json(
            io.out,
            &json!({
                "would_remove": round.episodes_removed,
                "would_redact": round.episodes_redacted,
                "examples": round.examples,
                "config": mentions,
            }),
        );
    }
    writeln!(
        io.out,
        "would go: {} episodes; would stay without the name: {} episodes",
        round.episodes_removed, round.episodes_redacted
    )?;
    for example in &round.examples {
        let deed = if example.goes { "goes" } else { "redacted" };
        writeln!(io.out, "  {deed:8}  {}  {}", &example.id[..8.min(example.id.len())], example.content)?;
    }
    print_mentions(mentions, io)
}

fn print_mentions(mentions: &[String], io: &mut Io<'_>) -> anyhow::Result<()> {
    for mention in mentions {
        writeln!(io.err, "percept: the name still stands in the config, {mention}: percept does not edit it")?;
    }
    Ok(())
}

fn print_report(report: &Report, mentions: &[String], format: Format, io: &mut Io<'_>) -> anyhow::Result<()> {
    let counts = counts(report);
    if format != Format::Table {
        let mut object: serde_json::Map<String, serde_json::Value> =
            counts.iter().map(|(key, _, count)| ((*key).to_owned(), (*count).into())).collect();
        object.insert("left".to_owned(), report.store.left.clone().into());
        object.insert("config".to_owned(), mentions.into());
        return output::print_json(io.out, &object);
    }
    let said: Vec<String> =
        counts.iter().filter(|(_, _, count)| *count > 0).map(|(_, words, count)| format!("{words}: {count}")).collect();
    if said.is_empty() {
        writeln!(io.out, "there was nothing to forget")?;
    }
    for line in said {
        writeln!(io.out, "{line}")?;
    }
    for place in &report.store.left {
        writeln!(io.err, "percept: something is left in {place}")?;
    }
    print_mentions(mentions, io)
}

/// Each number with its name for programs and for people.
fn counts(report: &Report) -> [(&'static str, &'static str, u64); 13] {
    let store = &report.store;
    [
        ("episodes_removed", "episodes gone", store.episodes_removed),
        ("episodes_redacted", "episodes redacted", store.episodes_redacted),
        ("gists_removed", "summaries gone, to be made again", store.gists_removed),
        ("facts_removed", "facts gone", store.facts_removed),
        ("vectors_removed", "vectors gone", store.vectors_removed),
        ("links_removed", "links gone", store.links_removed),
        ("media_removed", "pictures and recordings gone", store.media_removed),
        ("documents_removed", "documents of moments gone", report.documents_removed),
        ("documents_redacted", "documents of moments redacted", report.documents_redacted),
        ("coverage_redacted", "coverage rows redacted", store.coverage_redacted),
        ("sessions_renamed", "sessions that lost their own name", store.sessions_renamed),
        ("files_removed", "set-aside files gone", store.files_removed),
        ("bytes_scrubbed", "bytes of old copies overwritten", store.bytes_scrubbed),
    ]
}

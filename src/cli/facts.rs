//! `percept facts`: who was where, what was heard and seen where, and what was told, as of any instant.

use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::output;
use crate::cli::output::Column;
use crate::cli::output::Row;
use crate::cli::when;
use crate::cli::when::Edge;
use crate::domain::time::Timestamp;
use crate::memory::facts::FactQuery;
use crate::memory::facts::Found;
use crate::memory::facts::StoredFact;
use crate::memory::facts::When;
use crate::memory::reader::Reader;
use jiff::tz::TimeZone;
use serde_json::json;

/// Arguments of `percept facts`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// A person, place, sound, thing or device, or a part of its name [default: all]
    #[arg(value_name = "ENTITY")]
    entity: Option<String>,
    /// What held then: RFC 3339, a local date (its end), an age such as 2h, yesterday [default: now]
    #[arg(long, value_name = "TIME", conflicts_with = "history")]
    as_of: Option<String>,
    /// Only this relation, such as located_at, appears_in, heard_at, seen_at
    #[arg(long, value_name = "R")]
    relation: Option<String>,
    /// Every statement with its interval, ended ones too
    #[arg(long)]
    history: bool,
    /// The latest N
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

/// Runs the command: the latest facts that fit, oldest first.
///
/// # Errors
/// When a time cannot be understood, no entity fits, or the store cannot be read.
pub fn run(args: &Args, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    let zone = TimeZone::system();
    let now = io.clock.utc();
    let when = match &args.as_of {
        _ if args.history => When::Ever,
        Some(text) => When::At(as_of(text, now, &zone)?),
        None => When::At(now),
    };
    let query = FactQuery { entity: args.entity.clone(), relation: args.relation.clone(), when, limit: args.limit };
    let mut found = Reader::open(&loaded.data_dir)?.find_facts(&query)?;
    if let Some(entity) = &args.entity {
        check_fit(entity, &found, io)?;
    }
    found.facts.reverse();
    let rows: Vec<Row> = found.facts.iter().map(|fact| row(fact, when, &zone)).collect();
    output::print_rows(io.out, shared.format, &columns(when), &rows)?;
    Ok(0)
}

/// A date stands for its last moment: all that was told on that day counts.
fn as_of(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, when::WhenError> {
    let start = when::parse_when(text, Edge::Start, now, zone)?;
    let end = when::parse_when(text, Edge::End, now, zone)?;
    Ok(if start == end { start } else { end.plus_millis(-1) })
}

fn check_fit(entity: &str, found: &Found, io: &mut Io<'_>) -> anyhow::Result<()> {
    if found.entities.is_empty() {
        let hint = match found.suggestions.as_slice() {
            [] => "`percept facts` without a name lists what is".to_owned(),
            names => format!("did you mean {}?", names.join(", ")),
        };
        anyhow::bail!("nothing is known of {entity:?}; {hint}");
    }
    let shown = found.entities.len();
    if found.entities_total > shown {
        let total = found.entities_total;
        writeln!(io.err, "percept: {entity:?} fits {total} names; these are facts of the first {shown}")?;
    }
    Ok(())
}

fn columns(when: When) -> Vec<Column> {
    let mut columns = vec![output::words("SINCE"), output::words("UNTIL"), output::words("FACT")];
    if when != When::Ever {
        columns.push(output::numbers("TIMES"));
    }
    columns.extend([output::words("RELATION"), output::words("EPISODE")]);
    columns
}

fn row(fact: &StoredFact, when: When, zone: &TimeZone) -> Row {
    let id = fact.source_episode_id.to_string();
    let mut cells = vec![
        when::local_time(fact.valid_from, zone),
        fact.valid_to.map_or_else(|| "–".to_owned(), |end| when::local_time(end, zone)),
        fact.fact.clone(),
    ];
    if when != When::Ever {
        cells.push(fact.times.to_string());
    }
    cells.extend([fact.relation.clone(), id.split('-').next().unwrap_or_default().to_owned()]);
    Row { cells, fields: fields(fact) }
}

/// All columns of a fact, for programs.
#[must_use]
pub fn fields(fact: &StoredFact) -> serde_json::Map<String, serde_json::Value> {
    let object = json!({
        "subject": fact.subject.text,
        "subject_type": fact.subject.kind.as_str(),
        "relation": fact.relation,
        "object": fact.object.text,
        "object_type": fact.object.kind.as_str(),
        "fact": fact.fact,
        "valid_from": fact.valid_from.as_millis(),
        "valid_to": fact.valid_to.map(Timestamp::as_millis),
        "since": fact.valid_from.to_string(),
        "until": fact.valid_to.map(|end| end.to_string()),
        "last_from": fact.last_from.as_millis(),
        "times": fact.times,
        "source_episode_id": fact.source_episode_id.to_string(),
    });
    object.as_object().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_its_last_moment_and_an_instant_itself() {
        let now = Timestamp::parse("2026-05-02T10:00:00Z").unwrap();
        let cases = [
            ("yesterday", "2026-05-01T23:59:59.999Z"),
            ("2026-04-30", "2026-04-30T23:59:59.999Z"),
            ("2h", "2026-05-02T08:00:00.000Z"),
            ("2026-05-01T09:30:00+02:00", "2026-05-01T07:30:00.000Z"),
        ];

        for (text, expected) in cases {
            assert_eq!(as_of(text, now, &TimeZone::UTC).unwrap().to_string(), expected, "{text}");
        }
    }
}

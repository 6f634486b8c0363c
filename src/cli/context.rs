//! `percept context`: what is worth knowing now, for another program's prompt.

use crate::agent::context;
use crate::agent::context::Windows;
use crate::agent::recall;
use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::output;
use crate::cli::when;
use crate::memory::reader::Reader;
use crate::recall::context::TOKENS_DEFAULT;
use crate::recall::context::TOKENS_MAX;
use crate::recall::context::TOKENS_MIN;
use crate::recall::context::assemble;
use jiff::tz::TimeZone;

/// Arguments of `percept context`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Most tokens of the answer, estimated on the safe side
    #[arg(long, value_name = "N", default_value_t = TOKENS_DEFAULT, value_parser = parse_tokens)]
    tokens: usize,
    /// What to recall; without it, whatever who is here and the place bring back
    #[arg(long, value_name = "TEXT")]
    about: Option<String>,
    /// How long ago counts as just heard, seen, met or left
    #[arg(long, value_name = "LENGTH", default_value = "15m", value_parser = when::parse_length_ms)]
    recent: i64,
    /// How long ago somebody who has not left may have come
    #[arg(long, value_name = "LENGTH", default_value = "12h", value_parser = when::parse_length_ms)]
    people_within: i64,
    /// How long ago the last stay or trip may have begun
    #[arg(long, value_name = "LENGTH", default_value = "1d", value_parser = when::parse_length_ms)]
    place_within: i64,
}

fn parse_tokens(text: &str) -> Result<usize, String> {
    let tokens = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    if (TOKENS_MIN..=TOKENS_MAX).contains(&tokens) {
        return Ok(tokens);
    }
    Err(format!("a budget is {TOKENS_MIN} to {TOKENS_MAX} tokens"))
}

/// Runs the command: one JSON object on one line, whatever the format.
///
/// # Errors
/// When the store cannot be read.
pub fn run(args: &Args, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    let windows = Windows { recent_ms: args.recent, people_ms: args.people_within, place_ms: args.place_within };
    let reader = Reader::open(&loaded.data_dir)?;
    let now = io.clock.utc();
    let about = args.about.as_deref().map(str::trim).filter(|about| !about.is_empty());
    let stamp = io.clock.stamp();
    let mut recall = |reader: &Reader, cue: &str, limit| recall::episodes(cue, limit, reader, &loaded, stamp);
    let situation = context::look(&reader, now, &windows, about, &mut recall)?;
    output::print_json(io.out, &assemble(&situation, now, &TimeZone::system(), args.tokens, about.is_some()))?;
    Ok(0)
}

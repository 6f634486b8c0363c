//! `percept prune`: removes `session` rows that have expired.

use crate::agent::clock_source;
use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::agent;
use crate::cli::output;
use crate::cli::output::Format;
use crate::config::Loaded;
use crate::domain::time::ClockQuality;
use crate::domain::time::SystemClock;
use crate::domain::time::Timestamp;
use crate::memory::removal::PRUNE_ROWS_MAX;
use crate::memory::store::Store;
use crate::memory::writer::Writer;
use anyhow::Context as _;
use serde_json::Value;
use serde_json::json;

/// Runs the command.
///
/// # Errors
/// When the clock is not set, or the rows could not be removed.
pub fn run(shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    let now = io.clock.utc();
    let quality = io.clock.quality().max(clock_source::quality(now));
    anyhow::ensure!(
        quality > ClockQuality::Unset,
        "the clock is not set, so that nobody knows how old a row is: set it, or wait for NTP or GPS"
    );
    let removed = match agent::find(&loaded)? {
        Some(client) => {
            let mut removed = 0;
            loop {
                let answer: Value = client.post("/v1/prune", &json!({}))?;
                removed += answer["removed"].as_u64().unwrap_or(0);
                if answer["is_more"] != Value::Bool(true) {
                    break removed;
                }
            }
        }
        None => alone(&loaded, now)?,
    };
    if shared.format != Format::Table {
        output::print_json(io.out, &json!({"removed": removed}))?;
    } else if removed == 0 {
        writeln!(io.out, "no session row is older than three hours")?;
    } else {
        writeln!(io.out, "session rows gone: {removed}")?;
    }
    Ok(0)
}

fn alone(loaded: &Loaded, now: Timestamp) -> anyhow::Result<u64> {
    crate::memory::reader::Reader::open(&loaded.data_dir)?;
    let options = loaded.open_options("percept prune");
    let writer = Writer::spawn(Store::open(&loaded.data_dir, &options)?, Box::new(SystemClock::new()))?;
    let mut removed = 0;
    loop {
        let count = writer.prune_expired(now)?;
        removed += count as u64;
        if count < PRUNE_ROWS_MAX {
            break;
        }
    }
    writer.close().context("close the store")?;
    Ok(removed)
}

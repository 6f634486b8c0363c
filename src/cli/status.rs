//! `percept status`: what the running agent is doing.

use crate::agent::status::SensorStatus;
use crate::agent::status::Status;
use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::agent;
use crate::cli::output;
use crate::cli::output::Format;
use crate::cli::output::Row;
use crate::cli::when;
use crate::sensors::live::State;
use jiff::tz::TimeZone;
use std::io::Write;

/// Runs the command.
///
/// # Errors
/// When no agent runs, or it does not answer.
pub fn run(shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    let status: Status = agent::need(&loaded)?.get("/v1/status")?;
    match shared.format {
        Format::Table => print(io.out, &status)?,
        Format::Json => output::print_json(io.out, &[&status])?,
        Format::Jsonl => output::print_json(io.out, &status)?,
    }
    Ok(0)
}

fn print(out: &mut dyn Write, status: &Status) -> anyhow::Result<()> {
    let zone = TimeZone::system();
    writeln!(
        out,
        "running for {} (process {}, percept {})",
        when::duration(status.uptime_ms),
        status.pid,
        status.version
    )?;
    let time = when::local_time(status.clock.utc, &zone);
    writeln!(out, "clock    {time}, {}", clock_words(status))?;
    let columns = [
        output::words("SENSOR"),
        output::words("STATE"),
        output::words("FOR"),
        output::numbers("READINGS"),
        output::words(""),
    ];
    let rows: Vec<Row> = status.sensors.iter().map(sensor_row).collect();
    output::print_rows(out, Format::Table, &columns, &rows)?;
    if status.sensors.is_empty() {
        writeln!(out, "no sensor is enabled in the config")?;
    }
    let waiting: Vec<String> = status
        .queues
        .iter()
        .filter(|queue| queue.waiting > 0 || queue.dropped > 0)
        .map(|queue| format!("{} {} of {} ({} dropped)", queue.kind, queue.waiting, queue.bound, queue.dropped))
        .collect();
    writeln!(out, "waiting  {}", if waiting.is_empty() { "nothing".to_owned() } else { waiting.join(", ") })?;
    print_store(out, status)?;
    if let Some(last) = &status.last_episode {
        writeln!(out, "last     {} {}: {}", when::local_time(last.at, &zone), last.modality, last.content)?;
    }
    for (label, sentences) in [("models", &status.missing_models), ("power", &status.power), ("stuck", &status.stuck)] {
        for sentence in sentences {
            writeln!(out, "{label:<8} {sentence}")?;
        }
    }
    if let Some(why) = &status.resting {
        writeln!(out, "resting  optional models rest: {why}")?;
    }
    Ok(())
}

fn clock_words(status: &Status) -> &'static str {
    use crate::domain::time::ClockQuality;
    match status.clock.quality {
        ClockQuality::Unset => "not set: rows are corrected once GPS or the network tells the time",
        ClockQuality::Rtc => "from the battery-backed clock",
        ClockQuality::Network => "set by the network",
        ClockQuality::Gps => "set by GPS",
    }
}

fn print_store(out: &mut dyn Write, status: &Status) -> anyhow::Result<()> {
    let store = &status.store;
    let counts: Vec<String> = store.episodes.iter().map(|(modality, count)| format!("{count} {modality}")).collect();
    let counts = if counts.is_empty() { "no episodes yet".to_owned() } else { counts.join(", ") };
    writeln!(out, "stored   {counts}, {} coverage rows, {} lost", store.coverage, store.rows_lost + store.dropped)?;
    if store.budget_bytes > 0 && store.used_bytes > 0 {
        let percent = store.used_bytes * 100 / store.budget_bytes;
        writeln!(out, "room     {} of {} MiB used ({percent} %)", store.used_bytes >> 20, store.budget_bytes >> 20)?;
    }
    if let Some(trouble) = &store.trouble {
        writeln!(out, "TROUBLE  {trouble}; {} rows wait", store.waiting)?;
    }
    Ok(())
}

fn sensor_row(sensor: &SensorStatus) -> Row {
    let state = match sensor.state {
        State::Opening => "opening",
        State::Running => "running",
        State::Lost => "lost",
        State::Muted => "muted",
    };
    let remark = match (&sensor.last_error, sensor.state) {
        (_, State::Running) if sensor.complaint.is_some() => sensor.complaint.clone().unwrap_or_default(),
        (Some(error), State::Lost | State::Opening) => error.clone(),
        _ if sensor.losses > 0 => format!("lost {} times", sensor.losses),
        _ => String::new(),
    };
    let fields = serde_json::to_value(sensor).ok().and_then(|value| value.as_object().cloned());
    Row {
        fields: fields.unwrap_or_default(),
        cells: vec![
            sensor.source.to_string(),
            state.to_owned(),
            when::duration(sensor.since_ms.max(0)),
            sensor.captures.to_string(),
            remark,
        ],
    }
}

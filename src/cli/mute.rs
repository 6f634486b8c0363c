//! `percept mute` and `percept unmute`: closes and opens sensors of the running agent.

use crate::agent::control::Mute;
use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::agent;
use crate::cli::output;
use crate::cli::output::Format;
use crate::cli::when;
use crate::domain::id::SensorKind;

/// Arguments of `percept mute`.
#[derive(Debug, Clone, clap::Args)]
pub struct MuteArgs {
    /// microphone, camera, gps, bluetooth [default: all]
    #[arg(value_name = "SENSOR", value_parser = parse_kind)]
    sensors: Vec<SensorKind>,
    /// Open them again by itself after this long: 30m, 1h
    #[arg(long = "for", value_name = "LENGTH", value_parser = when::parse_length_ms)]
    for_ms: Option<i64>,
}

/// Arguments of `percept unmute`.
#[derive(Debug, Clone, clap::Args)]
pub struct UnmuteArgs {
    /// microphone, camera, gps, bluetooth [default: all]
    #[arg(value_name = "SENSOR", value_parser = parse_kind)]
    sensors: Vec<SensorKind>,
}

fn parse_kind(text: &str) -> Result<SensorKind, String> {
    SensorKind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == text)
        .ok_or_else(|| "known are microphone, camera, gps and bluetooth".to_owned())
}

/// Runs `percept mute`.
///
/// # Errors
/// When no agent runs, or it does not answer.
pub fn mute(args: &MuteArgs, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    order("/v1/mute", &Mute { sensors: args.sensors.clone(), for_ms: args.for_ms }, shared, io)
}

/// Runs `percept unmute`.
///
/// # Errors
/// When no agent runs, or it does not answer.
pub fn unmute(args: &UnmuteArgs, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    order("/v1/unmute", &Mute { sensors: args.sensors.clone(), for_ms: None }, shared, io)
}

fn order(path: &str, body: &Mute, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    let answer: serde_json::Value = agent::need(&loaded)?.post(path, body)?;
    if shared.format != Format::Table {
        output::print_json(io.out, &answer)?;
        return Ok(0);
    }
    let muted: Vec<&str> =
        answer["muted"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_str).collect();
    if muted.is_empty() {
        writeln!(io.out, "nothing is muted")?;
    } else {
        writeln!(io.out, "muted: {}", muted.join(", "))?;
    }
    Ok(0)
}

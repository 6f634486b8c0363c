//! `percept capture` and `percept meet NAME`: a moment, made now.

use crate::agent::asked;
use crate::agent::control::Capture;
use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::agent;
use crate::cli::output;
use crate::cli::output::Format;

/// Arguments of `percept capture`.
#[derive(Debug, Clone, clap::Args)]
pub struct CaptureArgs {
    /// What was said
    #[arg(long, value_name = "TEXT")]
    transcript: Option<String>,
    /// A face that was recognised; may be given more than once
    #[arg(long = "face", value_name = "NAME")]
    faces: Vec<String>,
    /// A note
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

/// Arguments of `percept meet`.
#[derive(Debug, Clone, clap::Args)]
pub struct MeetArgs {
    /// Who was met
    #[arg(value_name = "NAME")]
    name: String,
    /// What was said
    #[arg(long, value_name = "TEXT")]
    transcript: Option<String>,
}

/// Runs `percept capture`.
///
/// # Errors
/// When the moment could not be stored.
pub fn capture(args: &CaptureArgs, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let (transcript, faces, text) = (args.transcript.clone(), args.faces.clone(), args.note.clone());
    make(Capture { person: None, transcript, faces, text }, shared, io)
}

/// Runs `percept meet`.
///
/// # Errors
/// When the name is empty or the moment could not be stored.
pub fn meet(args: &MeetArgs, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let name = args.name.trim();
    anyhow::ensure!(!name.is_empty(), "who was met? The name is empty");
    make(
        Capture { person: Some(name.to_owned()), transcript: args.transcript.clone(), ..Capture::default() },
        shared,
        io,
    )
}

/// Through the running agent, which knows what its sensors notice; without one the moment holds what was given.
fn make(capture: Capture, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    let answer: serde_json::Value = match agent::find(&loaded)? {
        Some(client) => client.post("/v1/capture", &capture)?,
        None => asked::store(capture, &loaded)?,
    };
    if shared.format != Format::Table {
        output::print_json(io.out, &answer)?;
        return Ok(0);
    }
    let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
    writeln!(io.out, "{}  {}  ({})", text("id"), text("content"), text("modality"))?;
    Ok(0)
}

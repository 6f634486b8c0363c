//! `percept show ID`: one episode with everything that belongs to it.

use crate::cli::Io;
use crate::cli::Shared;
use crate::cli::episodes;
use crate::cli::output;
use crate::cli::output::Format;
use crate::cli::when;
use crate::memory::detail::EpisodeDetail;
use crate::memory::reader::Reader;
use jiff::tz::TimeZone;
use serde_json::Value;
use serde_json::json;
use std::io::Write;

/// Arguments of `percept show`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The episode's id, or its first characters
    id: String,
}

/// Runs the command.
///
/// # Errors
/// When no episode, or more than one, has that id.
pub fn run(args: &Args, shared: &Shared, io: &mut Io<'_>) -> anyhow::Result<u8> {
    let loaded = shared.load_config()?;
    let reader = Reader::open(&loaded.data_dir)?;
    let id = reader.resolve(&args.id)?;
    let detail = id.map(|id| reader.episode(id)).transpose()?.flatten();
    let Some(detail) = detail else {
        anyhow::bail!("no episode has the id {:?}; `percept episodes` lists them", args.id);
    };
    let object = object(&detail);
    match shared.format {
        Format::Json => output::print_json(io.out, &[object])?,
        Format::Jsonl => output::print_json(io.out, &object)?,
        Format::Table => print(io.out, &detail)?,
    }
    Ok(0)
}

fn object(detail: &EpisodeDetail) -> Value {
    let mut fields = detail.stored.fields();
    let embeddings = detail.embeddings.iter().map(|embedding| {
        json!({"model_id": embedding.model_id.as_str(), "kind": embedding.kind.as_str(), "dims": embedding.dims})
    });
    let edges = detail.edges.iter().map(|edge| {
        json!({
            "subject": edge.subject.0, "subject_type": edge.subject.1, "relation": edge.relation,
            "object": edge.object.0, "object_type": edge.object.1, "fact": edge.fact,
            "valid_from": edge.valid_from.as_millis(), "valid_to": edge.valid_to.map(|time| time.as_millis()),
        })
    });
    let links = detail
        .links
        .iter()
        .map(|link| json!({"other": link.other.to_string(), "reason": link.reason, "score": link.score}));
    let media = detail.media.iter().map(
        |media| json!({"hash": media.hash, "path": media.path, "bytes": media.bytes, "kind": media.kind.as_str()}),
    );
    fields.insert("embeddings".to_owned(), embeddings.collect());
    fields.insert("facts".to_owned(), edges.collect());
    fields.insert("links".to_owned(), links.collect());
    fields.insert("media".to_owned(), media.collect());
    Value::Object(fields)
}

fn print(out: &mut dyn Write, detail: &EpisodeDetail) -> anyhow::Result<()> {
    let episode = &detail.stored.episode;
    let zone = TimeZone::system();
    let length = when::duration(episode.ended_at.millis_since(episode.timestamp));
    writeln!(out, "{} {}", episodes::icon(episode.modality), episode.content)?;
    let strength = detail.stored.strength.to_string();
    let lines = [
        ("id", episode.id.to_string()),
        ("time", format!("{} for {length}", when::local_time(episode.timestamp, &zone))),
        ("clock", episode.clock_quality.as_str().to_owned()),
        ("modality", format!("{}, by {}", episode.modality.as_str(), episode.tool_name)),
        ("importance", format!("{}, decay {}", episode.importance, episode.decay_class.as_str())),
        ("strength", strength),
        ("source", episode.source.to_string()),
        ("session", format!("{} of device {}", episode.session_id, episode.device_id)),
    ];
    for (name, value) in lines {
        writeln!(out, "  {name:<11} {value}")?;
    }
    for (key, value) in &episode.metadata {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        writeln!(out, "  {key:<11} {text}")?;
    }
    for embedding in &detail.embeddings {
        writeln!(
            out,
            "  {:<11} {} numbers from {} ({})",
            "vector",
            embedding.dims,
            embedding.model_id,
            embedding.kind.as_str()
        )?;
    }
    for edge in &detail.edges {
        writeln!(out, "  {:<11} {} ({} → {} → {})", "fact", edge.fact, edge.subject.0, edge.relation, edge.object.0)?;
    }
    for link in &detail.links {
        writeln!(out, "  {:<11} {} ({} {:.2})", "link", link.other, link.reason, link.score)?;
    }
    for media in &detail.media {
        writeln!(out, "  {:<11} {} ({} bytes)", "file", media.path, media.bytes)?;
    }
    Ok(())
}

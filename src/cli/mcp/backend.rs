//! Answers the tools of MCP: through the running agent, which alone may write while it runs, else from the store itself.
//!
//! In: the tools' arguments. Out: objects a model can read. Each call looks for the agent and opens the store anew, so a
//! server that lives for days sees agents come and go.

use crate::agent::asked;
use crate::agent::context;
use crate::agent::context::Windows;
use crate::agent::control::Capture;
use crate::agent::ingest;
use crate::agent::ingest::LineReport;
use crate::agent::ingest::Outcome;
use crate::agent::machine;
use crate::agent::models;
use crate::agent::recall;
use crate::agent::recall::Question;
use crate::agent::search;
use crate::agent::search::Request;
use crate::agent::sentences::Sentences;
use crate::cli::agent;
use crate::cli::ingest::Remote;
use crate::cli::when;
use crate::cli::when::Edge;
use crate::config::Loaded;
use crate::domain::id::SessionId;
use crate::domain::modality::Modality;
use crate::domain::time::Clock as _;
use crate::domain::time::SystemClock;
use crate::domain::time::Timestamp;
use crate::integrations::mcp::Answer;
use crate::integrations::mcp::Backend;
use crate::integrations::mcp::params;
use crate::memory::facts::FactQuery;
use crate::memory::facts::StoredFact;
use crate::memory::facts::When;
use crate::memory::query::EpisodeFilter;
use crate::memory::reader::Reader;
use crate::recall::context::TOKENS_DEFAULT;
use crate::recall::context::assemble;
use anyhow::Context as _;
use jiff::tz::TimeZone;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

/// Longest content told of an episode, in bytes; a model that wants all of it asks for less.
const CONTENT_BYTES_MAX: usize = 2_000;

/// Longest metadata told of an episode, in bytes of JSON; longer ones are left out.
const METADATA_BYTES_MAX: usize = 2_000;

/// What this device remembers, for MCP.
pub(super) struct Memory {
    loaded: Loaded,
    clock: SystemClock,
}

impl Memory {
    /// With that config.
    pub(super) fn new(loaded: Loaded) -> Self {
        Self { loaded, clock: SystemClock::new() }
    }

    fn reader(&self) -> anyhow::Result<Reader> {
        Ok(Reader::open(&self.loaded.data_dir)?)
    }

    fn time(&self, text: Option<&String>, edge: Edge) -> anyhow::Result<Option<Timestamp>> {
        let now = self.clock.utc();
        Ok(text.map(|text| when::parse_when(text, edge, now, &TimeZone::system())).transpose()?)
    }

    fn filter(&self, query: &params::SearchEpisodes) -> anyhow::Result<EpisodeFilter> {
        let modality = |name: &String| {
            let known = || Modality::ALL.map(Modality::as_str).join(", ");
            Modality::parse(name).with_context(|| format!("modality {name:?} is not known; known are {}", known()))
        };
        Ok(EpisodeFilter {
            modalities: query.modality.iter().map(modality).collect::<anyhow::Result<_>>()?,
            since: self.time(query.since.as_ref(), Edge::Start)?,
            until: self.time(query.until.as_ref(), Edge::End)?,
            session: query.session.clone().map(SessionId::new),
            place: query.place.clone(),
            person: query.person.clone(),
            sound_class: query.sound_class.clone(),
            rms_db_min: query.rms_min,
            rms_db_max: query.rms_max,
            ..EpisodeFilter::default()
        })
    }

    fn search_episodes(&self, query: &params::SearchEpisodes) -> anyhow::Result<Value> {
        let request = Request {
            text: query.text.clone(),
            filter: self.filter(query)?,
            limit: params::limit(query.limit),
            peek: query.peek,
            ..Request::default()
        };
        let answer: search::Answer = match agent::find(&self.loaded)? {
            Some(client) => client.post("/v1/search", &request)?,
            None => search::alone(&request, &self.loaded, "percept mcp", self.clock.stamp())?,
        };
        Ok(json!({"episodes": answer.episodes.iter().map(told_episode).collect::<Vec<_>>(), "notes": answer.notes}))
    }

    fn recall_episodes(&self, query: &params::Recall) -> anyhow::Result<Value> {
        anyhow::ensure!(!query.text.trim().is_empty(), "nothing to recall: `text` is empty");
        let question = Question::new(&query.text, params::limit(query.limit));
        let (recollection, notes) = recall::recall(question, &self.reader()?, &self.loaded, self.clock.stamp())?;
        let episodes: Vec<Value> =
            recollection.found.iter().map(|recalled| told_episode(&recalled.episode.fields())).collect();
        Ok(json!({"episodes": episodes, "notes": notes}))
    }

    fn list_facts(&self, query: &params::Facts) -> anyhow::Result<Value> {
        let when = match self.time(query.as_of.as_ref(), Edge::Start)? {
            Some(instant) => When::At(instant),
            None => When::Ever,
        };
        let wanted =
            FactQuery { entity: query.entity.clone(), relation: None, when, limit: params::limit(query.limit) };
        let found = self.reader()?.find_facts(&wanted)?;
        if let Some(entity) = query.entity.as_ref().filter(|_| found.entities.is_empty()) {
            let hint = match found.suggestions.as_slice() {
                [] => "call it without `entity` to see what is".to_owned(),
                names => format!("did you mean {}?", names.join(", ")),
            };
            anyhow::bail!("nothing is known of {entity:?}; {hint}");
        }
        Ok(json!({"facts": found.facts.iter().map(told_fact).collect::<Vec<_>>()}))
    }

    fn look_around(&self, query: &params::Context) -> anyhow::Result<Value> {
        let now = self.clock.utc();
        let about = query.about.as_deref().map(str::trim).filter(|about| !about.is_empty());
        let windows = Windows::default();
        let stamp = self.clock.stamp();
        let mut recall = |reader: &Reader, cue: &str, limit| recall::episodes(cue, limit, reader, &self.loaded, stamp);
        let situation = context::look(&self.reader()?, now, &windows, about, &mut recall)?;
        let tokens = query.tokens.unwrap_or(TOKENS_DEFAULT);
        Ok(assemble(&situation, now, &TimeZone::system(), tokens, about.is_some()))
    }

    fn make_moment(&self, moment: Capture) -> anyhow::Result<Value> {
        match agent::find(&self.loaded)? {
            Some(client) => client.post("/v1/capture", &moment),
            None => asked::store(moment, &self.loaded),
        }
    }

    fn take_in(&self, line: Map<String, Value>) -> anyhow::Result<Value> {
        let line = Value::Object(line).to_string();
        let mut reports: Vec<LineReport> = Vec::new();
        let mut tell = |report: &LineReport, _: u64| reports.push(report.clone());
        match agent::find(&self.loaded)? {
            Some(client) => ingest::feed(line.as_bytes(), &mut Remote(client), &mut tell)?,
            None => {
                ingest::alone(
                    &self.loaded,
                    "percept mcp",
                    line.as_bytes(),
                    self.sentences(),
                    self.clock.stamp(),
                    &mut tell,
                )?;
            }
        }
        let report = reports.pop().context("nothing was handed in")?;
        match report.reason.filter(|_| report.outcome == Outcome::Refused) {
            Some(reason) => anyhow::bail!(reason),
            None => Ok(json!({"id": report.id, "outcome": report.outcome})),
        }
    }

    /// The text tower is loaded for one line and let go again: without an agent this is rare, and memory is dear.
    fn sentences(&self) -> Option<Sentences> {
        let loaded = &self.loaded;
        match models::text_tower(&loaded.config, &loaded.models_dir(), machine::memory_bytes()) {
            Ok(tower) => tower.map(Sentences::new),
            Err(error) => {
                tracing::warn!("sentences get no vectors: {error:#}");
                None
            }
        }
    }
}

impl Backend for Memory {
    fn search(&self, query: params::SearchEpisodes) -> Answer {
        told(self.search_episodes(&query))
    }

    fn recall(&self, query: params::Recall) -> Answer {
        told(self.recall_episodes(&query))
    }

    fn facts(&self, query: params::Facts) -> Answer {
        told(self.list_facts(&query))
    }

    fn context(&self, query: params::Context) -> Answer {
        told(self.look_around(&query))
    }

    fn meet(&self, person: params::MeetPerson) -> Answer {
        let name = person.name.trim().to_owned();
        if name.is_empty() {
            return Err("who was met? `name` is empty".to_owned());
        }
        told(self.make_moment(Capture { person: Some(name), transcript: person.transcript, ..Capture::default() }))
    }

    fn capture(&self, moment: params::CaptureMoment) -> Answer {
        let params::CaptureMoment { note, transcript, faces } = moment;
        told(self.make_moment(Capture { person: None, transcript, faces, text: note }))
    }

    fn ingest(&self, line: Map<String, Value>) -> Answer {
        told(self.take_in(line))
    }
}

fn told(result: anyhow::Result<Value>) -> Answer {
    result.map_err(|error| format!("{error:#}"))
}

/// What a model needs of an episode that came as its columns.
fn told_episode(columns: &Map<String, Value>) -> Value {
    let column = |name: &str| columns.get(name).cloned().unwrap_or_default();
    let content = column("content");
    let mut object = json!({
        "id": column("id"),
        "time": column("time"),
        "modality": column("modality"),
        "tool_name": column("tool_name"),
        "content": cut(content.as_str().unwrap_or_default(), CONTENT_BYTES_MAX),
        "importance": column("importance"),
    });
    let end = column("ended_at").as_i64().filter(|end| Some(*end) > column("timestamp").as_i64());
    if let Some(end) = end {
        object["ended_at"] = Timestamp::from_millis(end).to_string().into();
    }
    let metadata = column("metadata");
    let has_some = metadata.as_object().is_some_and(|metadata| !metadata.is_empty());
    if has_some && metadata.to_string().len() <= METADATA_BYTES_MAX {
        object["metadata"] = metadata;
    }
    object
}

fn told_fact(fact: &StoredFact) -> Value {
    json!({
        "fact": fact.fact,
        "subject": fact.subject.text,
        "subject_type": fact.subject.kind.as_str(),
        "relation": fact.relation,
        "object": fact.object.text,
        "object_type": fact.object.kind.as_str(),
        "valid_from": fact.valid_from.to_string(),
        "valid_to": fact.valid_to.map(|end| end.to_string()),
    })
}

/// At most that many bytes, ended between two characters, with a sign that more followed.
fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(cut("wörd", 10), "wörd");
        assert_eq!(cut("wörd", 2), "w…");
        assert_eq!(cut("", 0), "");
    }
}

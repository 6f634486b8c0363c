//! The arguments of the tools, with the schemas and words that clients show to their models.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Map;
use serde_json::Value;

/// Most episodes or facts of one answer.
pub const LIMIT_MAX: usize = 100;

/// Episodes or facts when the caller names no number.
pub const LIMIT_DEFAULT: usize = 10;

/// Arguments of `search_episodes`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub struct SearchEpisodes {
    /// Words to look for, in plain language. May be left out when a filter is given.
    pub text: Option<String>,
    /// Only episodes of these modalities: visual, audio, social, spatial, code, tool_result, text, gist.
    pub modality: Vec<String>,
    /// Only episodes that began at or after this time: RFC 3339 (2026-05-01T09:30:00+02:00), a local date (2026-05-01), an
    /// age (90s, 15m, 2h, 3d, 1w), today or yesterday.
    pub since: Option<String>,
    /// Only episodes that began before this time, in the same forms; a date includes that day.
    pub until: Option<String>,
    /// Only episodes about this person, by the exact name.
    pub person: Option<String>,
    /// Only episodes at this place, by the exact name.
    pub place: Option<String>,
    /// Only episodes with this top class of sound, such as Speech or Dog.
    pub sound_class: Option<String>,
    /// Only sounds at least this loud, in dBFS (0 is full scale, -30 is loud, -60 is quiet).
    pub rms_min: Option<f64>,
    /// Only sounds at most this loud, in dBFS.
    pub rms_max: Option<f64>,
    /// Only episodes of this run or recorded session.
    pub session: Option<String>,
    /// Most episodes to return, 1 to 100 [default: 10].
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<usize>,
    /// Leave no trace: without it, returned episodes grow stronger and are found more easily next time.
    pub peek: bool,
}

/// Arguments of `recall`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Recall {
    /// A question or a cue in plain language. Names of people, places and things lead on to what is connected with them;
    /// time words (yesterday, last week, in the morning) limit the time, in local time.
    pub text: String,
    /// Most episodes to return, 1 to 100 [default: 10].
    #[serde(default)]
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<usize>,
}

/// Arguments of `facts`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub struct Facts {
    /// The person, place or thing; without it, facts about anything.
    pub entity: Option<String>,
    /// What was true at this time: RFC 3339, a local date, an age (2h, 3d), today or yesterday; without it, every fact with
    /// the time it held.
    pub as_of: Option<String>,
    /// Most facts to return, 1 to 100 [default: 10].
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<usize>,
}

/// Arguments of `context`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub struct Context {
    /// Most tokens of the answer, 64 to 32000 [default: 1000].
    #[schemars(range(min = 64, max = 32000))]
    pub tokens: Option<usize>,
    /// What to recall; without it, whatever who is here and the place bring back.
    pub about: Option<String>,
}

/// Arguments of `meet_person`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct MeetPerson {
    /// Who is met now.
    #[schemars(length(min = 1))]
    pub name: String,
    /// What was said.
    #[serde(default)]
    pub transcript: Option<String>,
}

/// Arguments of `capture_moment`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub struct CaptureMoment {
    /// A note.
    pub note: Option<String>,
    /// What was said.
    pub transcript: Option<String>,
    /// Names of recognised faces.
    pub faces: Vec<String>,
}

/// Arguments of `ingest_episode`: one line of `percept ingest`. Only the schema is taken from here; the arguments go on as
/// they are, and the ingest says what is wrong with them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
pub struct IngestEpisode {
    /// The name of the tool that produced it, or "note". It decides the modality unless one is given.
    tool_name: String,
    /// What is to be remembered, in a sentence or two.
    content: String,
    /// When it happened: milliseconds since 1970, in UTC. The `context` tool tells the present time.
    timestamp: i64,
    /// The caller's own id: the same id again updates the episode. Without one the same content is stored once.
    #[serde(default)]
    id: Option<String>,
    /// The caller's session.
    #[serde(default)]
    session_id: Option<String>,
    /// visual, audio, social, spatial, code, tool_result, text or gist.
    #[serde(default)]
    modality: Option<String>,
    /// 0 (noise) to 10 (never to be lost).
    #[serde(default)]
    #[schemars(range(min = 0, max = 10))]
    importance: Option<u8>,
    /// session (an hour), daily, procedural (a month) or permanent.
    #[serde(default)]
    decay_class: Option<String>,
    /// Measured values and labels.
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
    /// Vectors of the caller's own models.
    #[serde(default)]
    embeddings: Option<Vec<Vector>>,
    /// Facts that it states.
    #[serde(default)]
    facts: Option<Vec<Statement>>,
    /// What was said.
    #[serde(default)]
    transcript: Option<String>,
    /// Names of recognised faces.
    #[serde(default)]
    faces: Option<Vec<String>>,
}

/// A vector of `ingest_episode`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
struct Vector {
    /// The model that made it. Vectors of different models are never compared.
    model_id: String,
    /// image, text or audio: what it was made from.
    kind: String,
    /// The values, finite.
    vector: Vec<f64>,
}

/// A fact of `ingest_episode`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
struct Statement {
    /// Who or what.
    subject: String,
    /// person, location, sound, object, device, or a word of the caller's.
    #[serde(default)]
    subject_type: Option<String>,
    /// Such as located_at, knows, works_for.
    relation: String,
    /// Whom or what.
    object: String,
    /// As subject_type.
    #[serde(default)]
    object_type: Option<String>,
    /// From when it holds: milliseconds since 1970; without it, from the episode's time on.
    #[serde(default)]
    valid_from: Option<i64>,
    /// Until when it holds, if it ended.
    #[serde(default)]
    valid_to: Option<i64>,
}

/// The caller's limit, within bounds.
#[must_use]
pub fn limit(given: Option<usize>) -> usize {
    given.unwrap_or(LIMIT_DEFAULT).clamp(1, LIMIT_MAX)
}

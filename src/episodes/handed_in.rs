//! A line that another program hands in, understood: a tool's result or a note becomes an episode (DESIGN 3.1 to 3.4).
//!
//! In: one JSON object (docs/ingest.md shows each kind). Out: a [`HandedIn`], and with the device's id its
//! [`EpisodeRecord`]; or a [`LineError`] that names the field and says what would be right.
//!
//! An explicit value beats what the tables say; an unknown key is refused, because a misspelt one would be lost in
//! silence. What must not be stored (NaN, a vector without length, an importance of 11) is refused here, so that the
//! caller can name the line. Never: the store, I/O, the clock: the capture time is the caller's to give.

mod audio_output;
mod fields;
mod moment_parts;
mod statements;
mod vectors;

#[cfg(test)]
mod tests;

pub use fields::LineError;

use crate::domain::episode::Embedding;
use crate::domain::episode::Episode;
use crate::domain::episode::EpisodeRecord;
use crate::domain::episode::Metadata;
use crate::domain::fact::Fact;
use crate::domain::id::BootId;
use crate::domain::id::DeviceId;
use crate::domain::id::EpisodeId;
use crate::domain::id::ExternalId;
use crate::domain::id::SessionId;
use crate::domain::id::SourceId;
use crate::domain::id::derive_uuid;
use crate::domain::modality::DecayClass;
use crate::domain::modality::Modality;
use crate::domain::time::ClockQuality;
use crate::domain::time::Timestamp;
use crate::domain::tool;
use crate::episodes::moment;
use crate::episodes::moment::Moment;
use fields::Fields;
use serde_json::Value;

/// Longest line that is looked at, in bytes: 16 vectors of 8,192 values and the longest content fit.
pub const LINE_BYTES_MAX: usize = 4 << 20;

/// Longest content, in bytes. An episode's content is a sentence or two; this leaves room for a tool's whole output, and
/// none for a file.
pub const CONTENT_BYTES_MAX: usize = 256 << 10;

/// Longest metadata, in bytes of JSON.
pub const METADATA_BYTES_MAX: usize = 256 << 10;

/// Longest id, tool name, session id, model id or name of a face, in bytes.
pub const NAME_BYTES_MAX: usize = 512;

/// Most faces of one line.
const FACES_MAX: usize = 64;

/// The session of a line that names none.
pub const SESSION: &str = "handed-in";

/// The boot of every line: they come from no boot of this device, so no correction of its clock moves them.
const BOOT: &str = "handed-in";

/// Unix seconds of the years 1985 to 2100: as milliseconds all of them lie in the first weeks of 1970, which nobody means.
const LOOKS_LIKE_SECONDS: std::ops::Range<i64> = 473_000_000..4_102_444_800;

/// 2200-01-01T00:00:00Z: what lies beyond was given in microseconds or nanoseconds.
const TIMESTAMP_END_MS: i64 = 7_258_118_400_000;

/// Every key a line may have.
const KEYS: [&str; 13] = [
    "id",
    "tool_name",
    "content",
    "timestamp",
    "session_id",
    "modality",
    "importance",
    "decay_class",
    "metadata",
    "embeddings",
    "facts",
    "transcript",
    "faces",
];

/// One line, understood and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct HandedIn {
    /// The caller's id; without one, derived from tool, time, session and content, so that a repeat is the same episode.
    pub external_id: ExternalId,
    /// The caller's session.
    pub session_id: Option<SessionId>,
    /// The tool.
    pub tool_name: String,
    /// What the episode says.
    pub content: String,
    /// Capture time.
    pub timestamp: Timestamp,
    /// As given; else for a moment by its content (3.4); else by the tool (3.2).
    pub modality: Modality,
    /// As given, else that of the modality.
    pub importance: u8,
    /// As given, else that of the modality.
    pub decay_class: DecayClass,
    /// As given, with what was found in an audio tool's output, the transcript and the faces.
    pub metadata: Metadata,
    /// Unit length.
    pub embeddings: Vec<Embedding>,
    /// The caller's, those of the faces, those of a moment.
    pub facts: Vec<Fact>,
    /// What a `multimodal_memory` line binds, for the document beside its row.
    pub moment: Option<Moment>,
}

impl HandedIn {
    /// Understands one line.
    ///
    /// # Errors
    /// [`LineError`] with the first field that is wrong.
    pub fn parse(line: &[u8]) -> Result<Self, LineError> {
        let mut fields = Fields::of_line(line, &KEYS)?;
        let tool_name = fields.name("tool_name")?.ok_or_else(|| LineError::missing("tool_name"))?;
        let timestamp = timestamp_of(&mut fields)?;
        let session_id = fields.name("session_id")?.map(SessionId::new);
        let given_id = fields.id("id")?.map(ExternalId::new);
        let told = Told::take(&mut fields)?;
        let embeddings = vectors::take(&mut fields)?;
        let mut facts = statements::take(&mut fields, timestamp)?;
        let given_modality = fields.known("modality", Modality::parse, &Modality::ALL.map(Modality::as_str))?;
        let importance = fields.whole_number("importance", 0..=10)?;
        let decay_class = fields.known("decay_class", DecayClass::parse, &DecayClass::ALL.map(DecayClass::as_str))?;

        let by_tool = tool::modality_of(&tool_name);
        let mut metadata = told.metadata_with_parts();
        if by_tool == Modality::Audio || given_modality == Some(Modality::Audio) {
            audio_output::describe(told.content.as_deref().unwrap_or_default(), &mut metadata);
        }
        let moment = (tool_name == moment::TOOL_NAME).then(|| moment_parts::moment(&told, &metadata, &embeddings));
        if let Some(moment) = &moment {
            moment_parts::describe(moment, &mut metadata);
            facts.extend(moment.facts(timestamp));
        }
        facts.extend(statements::of_faces(&told.faces, &metadata, &tool_name, timestamp));
        let modality = given_modality
            .or_else(|| moment_parts::modality(moment.as_ref()?, &metadata, told.content.as_deref()))
            .unwrap_or(by_tool);
        let content = told.sentence(moment.as_ref())?;
        let external_id = given_id.unwrap_or_else(|| derived_id(&tool_name, timestamp, session_id.as_ref(), &content));
        Ok(Self {
            external_id,
            session_id,
            tool_name,
            content,
            timestamp,
            modality,
            importance: importance.unwrap_or(modality.default_importance()),
            decay_class: decay_class.unwrap_or(modality.default_decay()),
            metadata,
            embeddings,
            facts,
            moment,
        })
    }

    /// The record of this line on the device. The clock is called `network`: the caller vouches for its time, and no
    /// correction of the device's own clock may move it.
    #[must_use]
    pub fn record(self, device_id: &DeviceId) -> EpisodeRecord {
        let id = EpisodeId::of_external(device_id, &self.external_id);
        let mut metadata = self.metadata;
        if self.moment.is_some() && !metadata.contains_key("multimodal_episode_id") {
            metadata.insert("multimodal_episode_id".to_owned(), id.to_string().into());
        }
        let episode = Episode {
            id,
            external_id: Some(self.external_id),
            device_id: device_id.clone(),
            session_id: self.session_id.unwrap_or_else(|| SessionId::new(SESSION)),
            source: SourceId::new(format!("tool:{}", self.tool_name)),
            timestamp: self.timestamp,
            ended_at: self.timestamp,
            boot_id: BootId::new(BOOT),
            // Later than any uptime: corrections reach what was captured before them on a boot's own clock.
            monotonic_ms: self.timestamp.as_millis(),
            clock_quality: ClockQuality::Network,
            modality: self.modality,
            tool_name: self.tool_name,
            content: self.content,
            importance: self.importance,
            decay_class: self.decay_class,
            metadata,
        };
        EpisodeRecord { episode, embeddings: self.embeddings, facts: self.facts, media: Vec::new() }
    }
}

/// What the line says in words.
#[derive(Debug, Clone, Default)]
struct Told {
    content: Option<String>,
    metadata: Metadata,
    transcript: Option<String>,
    faces: Vec<String>,
}

impl Told {
    fn take(fields: &mut Fields) -> Result<Self, LineError> {
        let content = fields.text("content", CONTENT_BYTES_MAX)?.filter(|content| !content.trim().is_empty());
        let metadata = fields.object("metadata", METADATA_BYTES_MAX)?.unwrap_or_default();
        let transcript = fields.text("transcript", CONTENT_BYTES_MAX)?.filter(|words| !words.trim().is_empty());
        let faces = faces_of(fields)?;
        Ok(Self { content, metadata, transcript, faces })
    }

    /// The caller's metadata, which nothing overwrites, with the transcript and the faces.
    fn metadata_with_parts(&self) -> Metadata {
        let mut metadata = self.metadata.clone();
        if let Some(words) = &self.transcript {
            metadata.entry("transcript").or_insert_with(|| words.as_str().into());
        }
        if !self.faces.is_empty() {
            metadata.entry("faces").or_insert_with(|| self.faces.clone().into());
            metadata.entry("has_face").or_insert(Value::Bool(true));
        }
        metadata
    }

    /// The content, with the transcript and the faces that it does not name already, so that they are found by words;
    /// without content the moment's sentence.
    fn sentence(&self, moment: Option<&Moment>) -> Result<String, LineError> {
        let parts = Moment {
            transcript: self.transcript.clone().filter(|words| !self.says(words)),
            faces: self.faces.iter().filter(|name| !self.says(name)).cloned().collect(),
            ..Moment::default()
        };
        let has_parts = parts.transcript.is_some() || !parts.faces.is_empty();
        let sentence = match (&self.content, moment) {
            (Some(content), _) if has_parts => {
                format!("{}. {}", content.trim_end().trim_end_matches('.'), parts.content())
            }
            (Some(content), _) => content.clone(),
            (None, Some(moment)) => moment.content(),
            (None, None) if has_parts => parts.content(),
            (None, None) => return Err(LineError::missing("content")),
        };
        if sentence.len() > CONTENT_BYTES_MAX {
            return Err(LineError::too_long("content with its transcript", sentence.len(), CONTENT_BYTES_MAX));
        }
        Ok(sentence)
    }

    fn says(&self, words: &str) -> bool {
        self.content.as_ref().is_some_and(|content| content.contains(words))
    }
}

/// Milliseconds since 1970, in UTC. Mandatory: a time of arrival in its place would be a lie that nobody notices.
fn timestamp_of(fields: &mut Fields) -> Result<Timestamp, LineError> {
    let key = "timestamp";
    let millis = fields.millis(key)?.ok_or_else(|| LineError::missing(key))?;
    let wrong = |hint: &str| Err(LineError::new(key, format!("{millis} {hint}")));
    if millis < 0 {
        return wrong("is before 1970; capture times are milliseconds since then");
    }
    if LOOKS_LIKE_SECONDS.contains(&millis) {
        return wrong("looks like seconds; give milliseconds since 1970");
    }
    if millis >= TIMESTAMP_END_MS {
        return wrong("is after the year 2199; give milliseconds since 1970, not micro- or nanoseconds");
    }
    Ok(Timestamp::from_millis(millis))
}

/// Names, or objects with a `name`; each once.
fn faces_of(fields: &mut Fields) -> Result<Vec<String>, LineError> {
    let list = fields.list("faces", FACES_MAX)?;
    let mut faces: Vec<String> = Vec::new();
    for (index, face) in list.iter().enumerate() {
        let name = face.as_str().or_else(|| face.get("name")?.as_str()).map(str::trim).unwrap_or_default();
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let sentence = format!("a face is a name of 1 to {NAME_BYTES_MAX} bytes, or an object with a `name`");
            return Err(LineError::new(&format!("faces[{index}]"), sentence));
        }
        if !faces.iter().any(|known| known == name) {
            faces.push(name.to_owned());
        }
    }
    Ok(faces)
}

/// The same tool saying the same at the same time is the same episode.
fn derived_id(tool_name: &str, timestamp: Timestamp, session_id: Option<&SessionId>, content: &str) -> ExternalId {
    let session = session_id.map_or("", SessionId::as_str);
    let time = timestamp.as_millis().to_string();
    ExternalId::new(format!("content:{}", derive_uuid(&["handed in", tool_name, &time, session, content])))
}

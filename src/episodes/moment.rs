//! A moment binds what several sensors noticed at one time (DESIGN 3.4).
//!
//! In: the parts observed. Out: the sentence, the modality, the edges, the JSON document and the draft
//! of its row. Never: I/O, the clock; `agent` writes the document and the row.

use crate::domain::episode::Draft;
use crate::domain::episode::Embedding;
use crate::domain::episode::Metadata;
use crate::domain::fact::Fact;
use crate::domain::fact::Node;
use crate::domain::fact::NodeKind;
use crate::domain::id::EpisodeId;
use crate::domain::id::SessionId;
use crate::domain::id::SourceId;
use crate::domain::modality::Modality;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;
use serde_json::Value;
use serde_json::json;

/// The tool name of every moment.
pub const TOOL_NAME: &str = "multimodal_memory";

/// How the parts of the sentence begin, in their order.
const LABELS: [&str; 6] = ["Met ", "Said: \"", "Sound: ", "Faces: ", "Objects: ", "Location: "];

/// The sentence of a moment of which nothing can be told.
const NOTHING_TOLD: &str = "Multimodal capture";

/// What was observed at one time; absent parts stay absent everywhere.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Moment {
    /// The person met.
    pub person: Option<String>,
    /// What was said, handed in from outside.
    pub transcript: Option<String>,
    /// The class of sound heard.
    pub sound_class: Option<String>,
    /// A kept recording, relative to the data directory.
    pub recording_path: Option<String>,
    /// Whether a picture was seen, kept as a file or not.
    pub has_image: bool,
    /// A kept picture, relative to the data directory.
    pub image_path: Option<String>,
    /// Names of recognised faces, handed in from outside.
    pub faces: Vec<String>,
    /// What the picture shows.
    pub objects: Vec<String>,
    /// The picture's CLIP vector, computed when the picture was looked at.
    pub image_embedding: Option<Embedding>,
    /// The name of the place.
    pub location: Option<String>,
    /// Degrees north and east.
    pub position_deg: Option<(f64, f64)>,
    /// Free words, used when nothing else was observed.
    pub text: Option<String>,
}

impl Moment {
    /// The parts in their fixed order, joined by ". "; else the text; else `Multimodal capture`.
    #[must_use]
    pub fn content(&self) -> String {
        let list =
            |label: &str, names: &[String]| (!names.is_empty()).then(|| format!("{label}: {}", names.join(", ")));
        let parts: Vec<String> = [
            self.person.as_ref().map(|name| format!("Met {name}")),
            self.transcript.as_ref().map(|words| format!("Said: \"{words}\"")),
            self.sound_class.as_ref().map(|class| format!("Sound: {class}")),
            list("Faces", &self.faces),
            list("Objects", &self.objects),
            self.location.as_ref().map(|place| format!("Location: {place}")),
        ]
        .into_iter()
        .flatten()
        .collect();
        if parts.is_empty() {
            return self.text.clone().unwrap_or_else(|| NOTHING_TOLD.to_owned());
        }
        parts.join(". ")
    }

    /// Person → social; image → visual; sound → audio; position → spatial; else text.
    #[must_use]
    pub fn modality(&self) -> Modality {
        if self.person.is_some() {
            Modality::Social
        } else if self.has_image || !self.objects.is_empty() || !self.faces.is_empty() {
            Modality::Visual
        } else if self.sound_class.is_some() || self.transcript.is_some() || self.recording_path.is_some() {
            Modality::Audio
        } else if self.location.is_some() || self.position_deg.is_some() {
            Modality::Spatial
        } else {
            Modality::Text
        }
    }

    /// The person's own edge and where they were seen.
    #[must_use]
    pub fn facts(&self, at: Timestamp) -> Vec<Fact> {
        let Some(name) = &self.person else { return Vec::new() };
        let person = Node::new(NodeKind::Person, name);
        let met = format!("Met {name} via multimodal capture");
        let mut facts = vec![Fact::triple(person.clone(), "discovered_during", person.clone(), met, at)];
        if let Some(place) = &self.location {
            let seen = format!("{name} seen at {place}");
            facts.push(Fact::triple(person, "appears_in", Node::new(NodeKind::Location, place), seen, at));
        }
        facts
    }

    /// `episode.json`, absent parts left out.
    #[must_use]
    pub fn document(&self, id: EpisodeId, session_id: &SessionId, timestamp: Timestamp) -> Value {
        let mut document = json!({
            "id": id.to_string(),
            "sessionId": session_id.as_str(),
            "timestamp": timestamp.as_millis(),
        });
        let parts = [
            ("social", present([("personName", self.person.clone().map(Value::from))])),
            ("audio", self.audio_part()),
            ("visual", self.visual_part()),
            ("spatial", self.spatial_part()),
            ("text", present([("content", self.text.clone().map(Value::from))])),
        ];
        for (name, part) in parts {
            if let Some(part) = part {
                document[name] = part;
            }
        }
        document
    }

    /// The moment that a document tells of, as far as it can be read. Its vector is left out: the document does not say
    /// which model it is of.
    #[must_use]
    pub fn of_document(document: &Value) -> Self {
        let text = |part: &str, key: &str| document.get(part)?.get(key)?.as_str().map(str::to_owned);
        let list = |part: &str, key: &str| -> Vec<String> {
            let values = document.get(part).and_then(|part| part.get(key)?.as_array());
            values.into_iter().flatten().filter_map(|value| value.as_str().map(str::to_owned)).collect()
        };
        let degrees = |key: &str| document.get("spatial")?.get("gps")?.get(key)?.as_f64();
        let image_path = text("visual", "imagePath");
        Self {
            person: text("social", "personName"),
            transcript: text("audio", "transcript"),
            sound_class: text("audio", "soundClass"),
            recording_path: text("audio", "recordingPath"),
            has_image: image_path.is_some()
                || document.get("visual").is_some_and(|part| part.get("clipEmbedding").is_some()),
            image_path,
            faces: list("visual", "faceNames"),
            objects: list("visual", "objects"),
            image_embedding: None,
            location: text("spatial", "locationLabel"),
            position_deg: degrees("latitude").zip(degrees("longitude")),
            text: text("text", "content"),
        }
    }

    /// The moment that a row's sentence tells of: [`Self::content`] read backwards.
    #[must_use]
    pub fn of_content(content: &str) -> Self {
        let mut found: [Option<&str>; LABELS.len()] = [None; LABELS.len()];
        let (mut rest, mut from) = (content, 0);
        while let Some(place) = (from..LABELS.len()).find(|place| rest.starts_with(LABELS[*place])) {
            let value = &rest[LABELS[place].len()..];
            let ends = (place + 1..LABELS.len()).filter_map(|next| value.find(&format!(". {}", LABELS[next])));
            let end = ends.min().unwrap_or(value.len());
            found[place] = Some(&value[..end]);
            rest = value.get(end + 2..).unwrap_or_default();
            from = place + 1;
        }
        let owned = |place: usize| found[place].map(str::to_owned);
        let list = |place: usize| -> Vec<String> {
            found[place].into_iter().flat_map(|names| names.split(", ")).map(str::to_owned).collect()
        };
        let is_told = found.iter().any(Option::is_some);
        Self {
            person: owned(0),
            transcript: found[1].map(|words| words.trim_end_matches('"').to_owned()),
            sound_class: owned(2),
            faces: list(3),
            objects: list(4),
            location: owned(5),
            text: (!is_told && content != NOTHING_TOLD).then(|| content.to_owned()),
            ..Self::default()
        }
    }

    fn audio_part(&self) -> Option<Value> {
        present([
            ("transcript", self.transcript.clone().map(Value::from)),
            ("soundClass", self.sound_class.clone().map(Value::from)),
            ("recordingPath", self.recording_path.clone().map(Value::from)),
        ])
    }

    fn visual_part(&self) -> Option<Value> {
        let list = |names: &[String]| (!names.is_empty()).then(|| json!(names));
        present([
            ("imagePath", self.image_path.clone().map(Value::from)),
            ("faceNames", list(&self.faces)),
            ("objects", list(&self.objects)),
            ("clipEmbedding", self.image_embedding.as_ref().map(|embedding| json!(embedding.vector.as_ref()))),
        ])
    }

    fn spatial_part(&self) -> Option<Value> {
        present([
            ("locationLabel", self.location.clone().map(Value::from)),
            (
                "gps",
                self.position_deg.map(|(latitude, longitude)| json!({"latitude": latitude, "longitude": longitude})),
            ),
        ])
    }

    /// The row of this moment. `more` is metadata of its own (a meeting's arrival and departure).
    #[must_use]
    pub fn draft(&self, source: SourceId, start: Stamp, end: Stamp, ordinal: u32, more: Metadata) -> Draft {
        let mut metadata = more;
        metadata.insert("has_face".to_owned(), (!self.faces.is_empty()).into());
        metadata.insert("has_audio".to_owned(), self.audio_part().is_some().into());
        metadata.insert("has_gps".to_owned(), self.position_deg.is_some().into());
        let named = [("person", &self.person), ("sound_class", &self.sound_class), ("place", &self.location)];
        for (key, value) in named {
            if let Some(value) = value {
                metadata.insert(key.to_owned(), value.as_str().into());
            }
        }
        Draft {
            modality: self.modality(),
            source,
            start,
            end,
            ordinal,
            tool_name: TOOL_NAME,
            content: self.content(),
            metadata,
            embeddings: self.image_embedding.iter().cloned().collect(),
            facts: self.facts(start.utc),
            media: Vec::new(),
        }
    }
}

/// An object of the fields that are there; `None` when none is.
fn present<const N: usize>(fields: [(&str, Option<Value>); N]) -> Option<Value> {
    let object: serde_json::Map<String, Value> =
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    (!object.is_empty()).then_some(Value::Object(object))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::SensorKind;
    use crate::domain::time::ClockQuality;

    #[test]
    fn the_sentence_names_the_parts_in_their_fixed_order() {
        let moment = Moment {
            person: Some("Alice".into()),
            transcript: Some("hello".into()),
            sound_class: Some("Speech".into()),
            faces: vec!["Alice".into(), "Bob".into()],
            objects: vec!["table".into(), "lamp".into()],
            location: Some("Kitchen".into()),
            text: Some("unused".into()),
            ..Moment::default()
        };

        assert_eq!(
            moment.content(),
            "Met Alice. Said: \"hello\". Sound: Speech. Faces: Alice, Bob. Objects: table, lamp. Location: Kitchen"
        );
    }

    #[test]
    fn a_moment_is_read_back_from_its_sentence_and_from_its_document() {
        let all = Moment {
            person: Some("Dr. Alice".into()),
            transcript: Some("One. Two. \"Three\" Sound: four".into()),
            sound_class: Some("Speech".into()),
            faces: vec!["Alice".into(), "Bob".into()],
            objects: vec!["table".into()],
            location: Some("St. Mary's".into()),
            ..Moment::default()
        };
        let moments = [
            all.clone(),
            Moment { faces: vec!["Bob".into()], ..Moment::default() },
            Moment { location: Some("Kitchen".into()), person: Some("Alice".into()), ..Moment::default() },
            Moment { text: Some("a note. Location: unknown".into()), ..Moment::default() },
            Moment::default(),
        ];

        for moment in &moments {
            assert_eq!(&Moment::of_content(&moment.content()), moment);
        }
        let full = Moment {
            position_deg: Some((1.5, 2.5)),
            text: Some("note".into()),
            image_path: Some("media/a.jpg".into()),
            has_image: true,
            recording_path: Some("media/a.wav".into()),
            ..all
        };
        let id = EpisodeId::parse("6f2a7d3e-4a0c-5b1a-9d58-0c3a3b8d7f10").unwrap();
        let document = full.document(id, &SessionId::new("s"), Timestamp::from_millis(5));
        assert_eq!(Moment::of_document(&document), full);
        assert_eq!(Moment::of_document(&json!({"social": 3, "visual": {"faceNames": [1, null]}})), Moment::default());
    }

    #[test]
    fn without_parts_the_words_speak_and_without_words_it_is_a_capture() {
        assert_eq!(Moment { text: Some("a note".into()), ..Moment::default() }.content(), "a note");
        assert_eq!(Moment::default().content(), "Multimodal capture");
    }

    #[test]
    fn the_modality_follows_what_was_observed() {
        let position = Moment { position_deg: Some((1.0, 2.0)), ..Moment::default() };
        let sound = Moment { sound_class: Some("Dog".into()), ..position.clone() };
        let image = Moment { has_image: true, ..sound.clone() };
        let person = Moment { person: Some("Alice".into()), ..image.clone() };

        let modalities = [&person, &image, &sound, &position, &Moment::default()].map(Moment::modality);

        assert_eq!(
            modalities,
            [Modality::Social, Modality::Visual, Modality::Audio, Modality::Spatial, Modality::Text]
        );
    }

    #[test]
    fn a_met_person_gets_a_self_edge_and_an_edge_to_the_place() {
        let moment = Moment { person: Some("Alice".into()), location: Some("Kitchen".into()), ..Moment::default() };

        let facts = moment.facts(Timestamp::from_millis(5));

        let told: Vec<_> = facts.iter().map(|fact| (fact.relation.as_str(), fact.fact.as_str())).collect();
        assert_eq!(
            told,
            [("discovered_during", "Met Alice via multimodal capture"), ("appears_in", "Alice seen at Kitchen")]
        );
        assert_eq!(facts[0].subject, facts[0].object);
        assert_eq!(facts[0].edge_type, "triple");
    }

    #[test]
    fn the_document_leaves_absent_parts_out() {
        let moment = Moment { sound_class: Some("Dog".into()), ..Moment::default() };
        let id =
            EpisodeId::of_external(&crate::domain::id::DeviceId::new("d"), &crate::domain::id::ExternalId::new("x"));

        let document = moment.document(id, &SessionId::new("s"), Timestamp::from_millis(7));

        assert_eq!(
            document,
            json!({"id": id.to_string(), "sessionId": "s", "timestamp": 7, "audio": {"soundClass": "Dog"}})
        );
    }

    #[test]
    fn the_row_says_which_parts_it_has() {
        let at = Stamp { monotonic_ms: 0, utc: Timestamp::from_millis(9), quality: ClockQuality::Gps };
        let moment = Moment { position_deg: Some((1.0, 2.0)), person: Some("Alice".into()), ..Moment::default() };

        let draft = moment.draft(SourceId::of(SensorKind::Bluetooth, "hci0"), at, at, 0, Metadata::new());

        assert_eq!(draft.modality, Modality::Social);
        assert_eq!(draft.metadata["has_gps"], json!(true));
        assert_eq!(draft.metadata["has_audio"], json!(false));
        assert_eq!(draft.metadata["person"], json!("Alice"));
    }
}

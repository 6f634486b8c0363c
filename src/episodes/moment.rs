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
            return self.text.clone().unwrap_or_else(|| "Multimodal capture".to_owned());
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

//! What a `multimodal_memory` line binds: a moment made elsewhere (DESIGN 3.4).
//!
//! In: the line's words, metadata and vectors. Out: the [`Moment`], what it adds to the metadata, and its modality.
//! The parts may stand in the metadata, flat or in the shape of `episode.json`, or only in the content, in the words that
//! 3.4 gives them (`Met Alice. Sound: Speech`). Never: a person made of a sentence that only begins with "Met".

use super::Told;
use crate::domain::episode::Embedding;
use crate::domain::episode::EmbeddingKind;
use crate::domain::episode::Metadata;
use crate::domain::modality::Modality;
use crate::episodes::moment::Moment;
use serde_json::Value;

/// Most words of a name that is taken from the content.
const NAME_WORDS_MAX: usize = 4;

/// How the parts begin in the content, in their order.
const LABELS: [&str; 6] = ["Met ", "Said: ", "Sound: ", "Faces: ", "Objects: ", "Location: "];

/// The moment of the line.
pub(super) fn moment(told: &Told, metadata: &Metadata, embeddings: &[Embedding]) -> Moment {
    let parts = Parts { metadata, sections: sections(told.content.as_deref().unwrap_or_default()) };
    let image_embedding = embeddings.iter().find(|embedding| embedding.kind == EmbeddingKind::Image).cloned();
    let image_path = parts.text(&["/image_path", "/imagePath", "/visual/imagePath"], None);
    let has_image = image_path.is_some() || image_embedding.is_some() || parts.says("/has_image");
    let mut faces = told.faces.clone();
    if faces.is_empty() {
        faces = parts.list(&["/faces", "/faceNames", "/visual/faceNames"], "Faces: ");
    }
    Moment {
        person: parts
            .text(&["/person", "/personName", "/social/personName"], None)
            .or_else(|| parts.section("Met ").filter(|name| is_name(name)).map(str::to_owned)),
        transcript: told.transcript.clone().or_else(|| {
            let words = parts.text(&["/transcript", "/audio/transcript"], Some("Said: "))?;
            Some(words.trim_matches('"').to_owned())
        }),
        sound_class: parts.text(&["/sound_class", "/soundClass", "/audio/soundClass"], Some("Sound: ")),
        recording_path: parts.text(&["/recording_path", "/recordingPath", "/audio/recordingPath"], None),
        has_image,
        image_path,
        faces,
        objects: parts.list(&["/objects", "/visual/objects"], "Objects: "),
        image_embedding,
        location: parts.text(&["/place", "/locationLabel", "/spatial/locationLabel"], Some("Location: ")),
        position_deg: parts.position(),
        // A sentence made of the parts is no note beside them.
        text: told.content.clone().filter(|_| parts.sections.is_empty()),
    }
}

/// The modality of what was observed; `None` when the line does not say, and the tool decides.
pub(super) fn modality(moment: &Moment, metadata: &Metadata, content: Option<&str>) -> Option<Modality> {
    let is_set = |key: &str| metadata.get(key) == Some(&Value::Bool(true));
    // Somebody was met, even when the sentence does not tell the name from the rest.
    if content.is_some_and(|content| content.starts_with("Met ")) {
        return Some(Modality::Social);
    }
    let by_parts = Some(moment.modality()).filter(|modality| *modality != Modality::Text);
    let by_flags = [("has_face", Modality::Visual), ("has_audio", Modality::Audio), ("has_gps", Modality::Spatial)];
    by_parts.or_else(|| by_flags.into_iter().find(|(key, _)| is_set(key)).map(|(_, modality)| modality))
}

/// The metadata every moment has; what the caller gave stays.
pub(super) fn describe(moment: &Moment, metadata: &mut Metadata) {
    let has_audio = moment.transcript.is_some() || moment.sound_class.is_some() || moment.recording_path.is_some();
    let flags =
        [("has_face", !moment.faces.is_empty()), ("has_audio", has_audio), ("has_gps", moment.position_deg.is_some())];
    for (key, is_set) in flags {
        metadata.entry(key).or_insert(Value::Bool(is_set));
    }
    let named = [("person", &moment.person), ("sound_class", &moment.sound_class), ("place", &moment.location)];
    for (key, value) in named {
        if let Some(value) = value {
            metadata.entry(key).or_insert_with(|| value.as_str().into());
        }
    }
}

struct Parts<'a> {
    metadata: &'a Metadata,
    sections: Vec<(&'static str, &'a str)>,
}

impl Parts<'_> {
    /// The value at a path of keys.
    fn value(&self, path: &str) -> Option<&Value> {
        let mut keys = path.trim_start_matches('/').split('/');
        let first = self.metadata.get(keys.next()?)?;
        keys.try_fold(first, |value, key| value.get(key))
    }

    fn section(&self, label: &str) -> Option<&str> {
        self.sections.iter().find(|(known, _)| *known == label).map(|(_, text)| *text)
    }

    fn text(&self, paths: &[&str], label: Option<&str>) -> Option<String> {
        let given = paths.iter().find_map(|path| self.value(path)?.as_str());
        let text = given.or_else(|| self.section(label?))?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn list(&self, paths: &[&str], label: &str) -> Vec<String> {
        let names = |value: &Value| -> Option<Vec<String>> {
            let names = value.as_array()?.iter().filter_map(Value::as_str);
            Some(names.map(str::to_owned).collect())
        };
        let given = paths.iter().find_map(|path| names(self.value(path)?)).filter(|names| !names.is_empty());
        given.unwrap_or_else(|| {
            let text = self.section(label).unwrap_or_default();
            text.split(", ").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
        })
    }

    fn says(&self, path: &str) -> bool {
        self.value(path) == Some(&Value::Bool(true))
    }

    fn position(&self) -> Option<(f64, f64)> {
        let number = |paths: [&str; 3]| paths.iter().find_map(|path| self.value(path)?.as_f64());
        let latitude = number(["/latitude_deg", "/latitude", "/spatial/gps/latitude"])?;
        let longitude = number(["/longitude_deg", "/longitude", "/spatial/gps/longitude"])?;
        let is_on_earth = latitude.abs() <= 90.0 && longitude.abs() <= 180.0;
        is_on_earth.then_some((latitude, longitude))
    }
}

/// The labelled parts at the beginning of the content; none when it begins with another word.
fn sections(content: &str) -> Vec<(&'static str, &str)> {
    let mut found = Vec::new();
    let mut rest = content;
    for (index, label) in LABELS.iter().enumerate() {
        let Some(body) = rest.strip_prefix(label) else { continue };
        let ends = LABELS[index + 1..].iter().filter_map(|next| body.find(&format!(". {next}")));
        let end = ends.min().unwrap_or(body.len());
        found.push((*label, body[..end].trim().trim_end_matches('.')));
        rest = body[end..].trim_start_matches(". ");
    }
    found
}

/// A few words that all begin like names: `Alice`, `Dr. Bob Smith`, not `Alice at the market`.
fn is_name(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let begins_low = |word: &&str| word.chars().next().is_some_and(char::is_lowercase);
    (1..=NAME_WORDS_MAX).contains(&words.len()) && !words.iter().any(begins_low)
}

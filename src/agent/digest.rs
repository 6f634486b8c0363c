//! Tells whether a session was replayed with the same settings and models before.
//!
//! In: the settings that reach into episodes, and the hashes of the models that ran. Out: one digest.
//! Never: files; where the store and the model files stand changes no episode.

use crate::config::Config;

type Sections = serde_json::Map<String, serde_json::Value>;

/// Raised whenever the same input may give other episodes than the version before.
const PERCEPTION_VERSION: u32 = 1;

/// BLAKE3 (hex) over the settings and models. `models` holds (model id, hash of its file) of each that is there.
#[must_use]
pub fn digest(config: &Config, models: &[(String, String)]) -> String {
    let mut settings = serde_json::to_value(config).unwrap_or_default();
    if let Some(sections) = settings.as_object_mut() {
        for section in ["store", "agent", "mute", "power", "disk", "bluetooth"] {
            sections.remove(section);
        }
        without_capture(sections, "microphone", &crate::sensors::settings::Microphone::default());
        without_capture(sections, "camera", &crate::sensors::settings::Camera::default());
        without_capture(sections, "gps", &crate::sensors::gps::Config::default());
        if let Some(models) = sections.get_mut("models").and_then(serde_json::Value::as_object_mut) {
            models.remove("dir");
        }
    }
    let whole = serde_json::json!({"version": PERCEPTION_VERSION, "settings": settings, "models": models});
    blake3::hash(whole.to_string().as_bytes()).to_hex().to_string()
}

/// How a sensor is captured changes no recording of it.
fn without_capture(sections: &mut Sections, name: &str, capture: &impl serde::Serialize) {
    let keys = serde_json::to_value(capture).unwrap_or_default();
    let section = sections.get_mut(name).and_then(serde_json::Value::as_object_mut);
    if let (Some(section), Some(keys)) = (section, keys.as_object()) {
        section.retain(|key, _| !keys.contains_key(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_store_stands_changes_nothing_and_what_reaches_into_episodes_does() {
        let mut moved = Config::default();
        moved.store.data_dir = "elsewhere".to_owned();
        moved.models.dir = "elsewhere".to_owned();
        moved.microphone.capture.device = "microphone:usb-0d8c:0014".to_owned();
        moved.agent.metrics = "127.0.0.1:9464".to_owned();
        let mut other = Config::default();
        other.moments.together_s += 1;
        let models = [("yamnet".to_owned(), "00".to_owned())];

        assert_eq!(digest(&Config::default(), &models), digest(&moved, &models));
        assert_ne!(digest(&Config::default(), &models), digest(&other, &models));
        assert_ne!(digest(&Config::default(), &models), digest(&Config::default(), &[]));
    }
}

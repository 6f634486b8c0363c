//! The models of one command: loaded once, shared by its sessions; what is missing is said once.
//!
//! In: the config, the folder of the model files. Out: senses that use what is there. A model that is missing or damaged
//! costs its observation, never the capture.

use crate::agent::people::People;
use crate::agent::places::Places;
use crate::agent::senses::Senses;
use crate::agent::sentences::Sentences;
use crate::agent::sentences::SharedText;
use crate::agent::sights::SharedVision;
use crate::agent::sights::Sights;
use crate::agent::sounds::SharedClassifier;
use crate::agent::sounds::Sounds;
use crate::config::Config;
use crate::domain::id::DeviceId;
use crate::domain::id::ModelId;
use crate::domain::id::SensorKind;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;
use crate::perception::camera::Vision;
use crate::perception::clip;
use crate::perception::clip::ClipError;
use crate::perception::clip::Loader;
use crate::perception::image::ImageTower;
use crate::perception::labels::Vocabulary;
use crate::perception::model::TractRuntime;
use crate::perception::model::locate;
use crate::perception::model::locate::ModelFiles;
use crate::perception::model::manifest::Role;
use crate::perception::model::runtime::Runtime as _;
use crate::perception::presence::Salt;
use crate::perception::sound::SoundClassifier;
use crate::perception::text::TextTower;
use crate::sensors::session::SessionHeader;
use anyhow::Context as _;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;

/// The manifest's name of the sound classifier.
pub const YAMNET: &str = "yamnet";

/// Pixels on a side of the pictures that the CLIP models of the manifest take.
const CLIP_SIDE_PX: u32 = 224;

/// The models that are there.
#[derive(Default)]
pub struct Models {
    classifier: Option<SharedClassifier>,
    vision: Option<SharedVision>,
    text: Option<SharedText>,
    hashes: Vec<(String, String)>,
    missing: Vec<String>,
}

impl Models {
    /// Loads what the config asks for from `dir`. `memory_bytes` is what the machine has.
    #[must_use]
    pub fn load(config: &Config, dir: &Path, memory_bytes: u64, now: Stamp) -> Self {
        let mut models = Self::default();
        if config.models.yamnet {
            match load_classifier(dir) {
                Ok((classifier, hash)) => {
                    models.classifier = Some(Arc::new(Mutex::new(classifier)));
                    models.hashes.push((YAMNET.to_owned(), hash));
                }
                Err(error) => models.missing.push(format!("sounds get no class: {error:#}")),
            }
        }
        if !config.clip.model.is_empty() {
            match load_vision(&config.clip, dir, memory_bytes, now) {
                Ok((vision, text, hash)) => {
                    models.vision = Some(Arc::new(Mutex::new(vision)));
                    models.text = Some(Arc::new(Mutex::new(text)));
                    models.hashes.push((config.clip.model.clone(), hash));
                }
                Err(error) => models.missing.push(format!("pictures get no labels and no vectors: {error:#}")),
            }
        }
        models
    }

    /// The same with a CLIP that stands elsewhere, under the hash given.
    #[must_use]
    pub fn with_vision(mut self, vision: Vision, hash: &str) -> Self {
        let id = vision.tower.model_id().to_string();
        self.vision = Some(Arc::new(Mutex::new(vision)));
        self.hashes.push((id, hash.to_owned()));
        self
    }

    /// The same with a text tower that stands elsewhere.
    #[must_use]
    pub fn with_text(mut self, text: TextTower) -> Self {
        self.text = Some(Arc::new(Mutex::new(text)));
        self
    }

    /// What gives sentences their vectors, when CLIP is there.
    #[must_use]
    pub fn sentences(&self) -> Option<Sentences> {
        self.text.clone().map(Sentences::new)
    }

    /// The text tower, when CLIP is there.
    #[must_use]
    pub fn text(&self) -> Option<SharedText> {
        self.text.clone()
    }

    /// (model id, digest of its files) of each model that is there.
    #[must_use]
    pub fn hashes(&self) -> Vec<(String, String)> {
        self.hashes.clone()
    }

    /// One sentence for each model that is not there: what it costs, why, and what to do.
    #[must_use]
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Senses for one session. The same recording counts unknown devices the same way each time.
    ///
    /// # Errors
    /// When a person's key file cannot be read or holds no key.
    pub fn senses(
        &self,
        config: &Config,
        header: &SessionHeader,
        device: &DeviceId,
        earliest: Timestamp,
    ) -> anyhow::Result<Senses> {
        let channel_map = header.stream(SensorKind::Microphone).and_then(|stream| stream.channel_map.clone());
        self.make_senses(config, channel_map, device, Salt::of_session(header.session_id.as_str()), earliest)
    }

    /// Senses for a live run. Nobody can guess its salt.
    ///
    /// # Errors
    /// When a person's key file cannot be read or holds no key.
    pub fn live_senses(
        &self,
        config: &Config,
        device: &DeviceId,
        salt: Salt,
        earliest: Timestamp,
    ) -> anyhow::Result<Senses> {
        self.make_senses(config, None, device, salt, earliest)
    }

    fn make_senses(
        &self,
        config: &Config,
        channel_map: Option<Vec<u16>>,
        device: &DeviceId,
        salt: Salt,
        earliest: Timestamp,
    ) -> anyhow::Result<Senses> {
        let known = crate::agent::people::known_people(&config.people)?;
        let (fixes, places) = (config.gps.fix.clone(), config.place_config());
        Ok(Senses {
            sounds: Sounds::new(config, channel_map, self.classifier.clone()),
            sights: Sights::new(config.camera.sight, config.visual, self.vision.clone()),
            places: Places::new(fixes, places, &config.spatial, device.as_str(), earliest),
            people: People::new(config.presence_config(), known, salt),
        })
    }
}

/// CLIP's text tower alone, for sentences; `None` when the config names no model. Takes no memory until it is used.
///
/// # Errors
/// When the model is not admitted on this machine or its files are not there.
pub fn text_tower(config: &Config, dir: &Path, memory_bytes: u64) -> anyhow::Result<Option<SharedText>> {
    let clip = &config.clip;
    if clip.model.is_empty() {
        return Ok(None);
    }
    let id = ModelId::new(clip.model.clone());
    clip::admit(&id, memory_bytes, clip.force)?;
    let files = locate::locate(dir, &clip.model)?;
    let tower = TextTower::new(id, clip.text_idle_s, loader(files.path(Role::Text).map(Path::to_owned)));
    Ok(Some(Arc::new(Mutex::new(tower))))
}

/// CLIP's image tower alone, loaded.
///
/// # Errors
/// When the config names no model, it is not admitted on this machine, or its files are not there.
pub fn image_tower(config: &Config, dir: &Path, memory_bytes: u64) -> anyhow::Result<ImageTower> {
    let clip = &config.clip;
    anyhow::ensure!(!clip.model.is_empty(), "no CLIP model is configured");
    let id = ModelId::new(clip.model.clone());
    clip::admit(&id, memory_bytes, clip.force)?;
    let files = locate::locate(dir, &clip.model)?;
    Ok(ImageTower::load(id, CLIP_SIDE_PX, &loader(files.path(Role::Image).map(Path::to_owned)))?)
}

fn load_classifier(dir: &Path) -> anyhow::Result<(SoundClassifier, String)> {
    let files = locate::locate(dir, YAMNET)?;
    let graph = files.path(Role::Sound).context("the manifest names no graph of YAMNet")?;
    Ok((SoundClassifier::open(graph)?, files.digest()))
}

fn load_vision(
    config: &clip::Config,
    dir: &Path,
    memory_bytes: u64,
    now: Stamp,
) -> anyhow::Result<(Vision, TextTower, String)> {
    let id = ModelId::new(config.model.clone());
    clip::admit(&id, memory_bytes, config.force)?;
    let files = locate::locate(dir, &config.model)?;
    let vision = open_vision(config, id.clone(), CLIP_SIDE_PX, &files, now)?;
    // Takes no memory until it is asked for a sentence.
    let text = TextTower::new(id, config.text_idle_s, loader(files.path(Role::Text).map(Path::to_owned)));
    Ok((vision, text, files.digest()))
}

fn open_vision(
    config: &clip::Config,
    id: ModelId,
    side_px: u32,
    files: &ModelFiles,
    now: Stamp,
) -> Result<Vision, ClipError> {
    let image = loader(files.path(Role::Image).map(Path::to_owned));
    let text = loader(files.path(Role::Text).map(Path::to_owned));
    vision(config, id, side_px, &image, text, now)
}

/// CLIP from wherever its towers come.
///
/// # Errors
/// [`ClipError`] when a tower cannot be loaded or run.
pub fn vision(
    config: &clip::Config,
    id: ModelId,
    side_px: u32,
    image: &Loader,
    text: Loader,
    now: Stamp,
) -> Result<Vision, ClipError> {
    let mut text = TextTower::new(id.clone(), config.text_idle_s, text);
    let vocabulary = Vocabulary::embed(config, &mut text, now)?;
    // The text tower goes before the image tower comes: never both in memory at start.
    drop(text);
    Ok(Vision { tower: ImageTower::load(id, side_px, image)?, vocabulary })
}

/// Loads a tower from that file.
#[must_use]
pub fn loader(file: Option<PathBuf>) -> Loader {
    Box::new(move |spec| TractRuntime.load(file.as_deref().unwrap_or_else(|| Path::new("")), spec))
}

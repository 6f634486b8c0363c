//! Cameras: from pictures to scenes.
//!
//! In: readings of cameras. Out: drafts, coverage, what is seen right now. Never: I/O.

use crate::agent::surroundings::Surroundings;
use crate::domain::coverage::Coverage;
use crate::domain::episode::Draft;
use crate::domain::id::ModelId;
use crate::domain::id::SourceId;
use crate::domain::observation::scene::SceneObservation;
use crate::domain::reading::Payload;
use crate::domain::reading::Reading;
use crate::domain::time::Stamp;
use crate::episodes::visual;
use crate::episodes::visual::VisualBuilder;
use crate::perception::camera;
use crate::perception::camera::Camera;
use crate::perception::camera::Vision;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

/// CLIP, shared by the sessions of one command.
pub type SharedVision = Arc<Mutex<Vision>>;

/// The cameras of one device.
pub struct Sights {
    config: camera::Config,
    vision: Option<SharedVision>,
    cameras: BTreeMap<SourceId, Camera>,
    builder: VisualBuilder,
    latest: Option<SceneObservation>,
    is_resting: bool,
}

impl Sights {
    /// No camera has delivered yet. Without `vision` scenes have no labels and no vectors.
    #[must_use]
    pub fn new(config: camera::Config, visual_config: visual::Config, vision: Option<SharedVision>) -> Self {
        let model = vision.as_ref().map(model_of);
        let builder = VisualBuilder::new(visual_config, model);
        Self { config, vision, cameras: BTreeMap::new(), builder, latest: None, is_resting: false }
    }

    /// The model of the image vectors.
    #[must_use]
    pub fn clip_model(&self) -> Option<ModelId> {
        self.vision.as_ref().map(model_of)
    }

    /// Takes a reading of a camera.
    pub fn handle_reading(&mut self, reading: &Reading) {
        let source = &reading.source;
        let at = reading.captured_at;
        let Payload::Picture(picture) = &reading.payload else { return };
        let camera = self.cameras.entry(source.clone()).or_insert_with(|| Camera::new(source.clone(), self.config));
        let mut vision = self
            .vision
            .as_ref()
            .filter(|_| !self.is_resting)
            .map(|vision| vision.lock().unwrap_or_else(PoisonError::into_inner));
        match camera.handle_picture(picture, at, vision.as_deref_mut()) {
            Ok(observation) => {
                self.latest = Some(observation.clone());
                self.builder.handle_observation(observation);
            }
            Err(error) => self.builder.handle_unreadable(source, at, error.to_string()),
        }
        if let Some(error) = camera.poll_clip_error() {
            tracing::warn!(%source, %error, "a picture went without labels");
        }
    }

    /// Whether CLIP rests: scenes begin and end as ever, without labels and vectors.
    pub fn set_resting(&mut self, is_resting: bool) {
        self.is_resting = is_resting;
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Stamp) {
        self.builder.handle_timeout(now);
    }

    /// When [`Self::handle_timeout`] has something to do, monotonic.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        self.builder.poll_timeout()
    }

    /// There will be no more readings.
    pub fn finish(&mut self) {
        self.builder.finish();
    }

    /// The next draft.
    pub fn poll_draft(&mut self) -> Option<Draft> {
        self.builder.poll_draft()
    }

    /// The next blind interval.
    pub fn poll_coverage(&mut self) -> Option<Coverage> {
        self.builder.poll_coverage()
    }

    /// Says what is seen right now.
    pub fn describe(&mut self, surroundings: &mut Surroundings) {
        if let Some(observation) = self.latest.take() {
            surroundings.saw(&observation);
        }
    }
}

fn model_of(vision: &SharedVision) -> ModelId {
    vision.lock().unwrap_or_else(PoisonError::into_inner).tower.model_id().clone()
}

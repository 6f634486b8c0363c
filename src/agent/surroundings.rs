//! What is noticed right now, over all sensors: the parts of a moment.
//!
//! In: observations and drafts as they pass. Out: a [`Moment`] of what was noticed at a given time.
//! Never: I/O, the clock.

use crate::domain::episode::Embedding;
use crate::domain::episode::EmbeddingKind;
use crate::domain::id::ModelId;
use crate::domain::observation::scene::SceneObservation;
use crate::domain::time::Stamp;
use crate::episodes::moment::Moment;

/// What was last heard counts for this long after it ended.
const SOUND_FRESH_MS: i64 = 10_000;

/// A picture counts for this long.
const PICTURE_FRESH_MS: i64 = 60_000;

/// The latest of each sensor.
#[derive(Debug, Default)]
pub struct Surroundings {
    clip_model: Option<ModelId>,
    sound: Option<(Stamp, String)>,
    picture: Option<(Stamp, Seen)>,
    place: Option<String>,
    position: Option<(f64, f64)>,
}

#[derive(Debug, Default, Clone)]
struct Seen {
    objects: Vec<String>,
    embedding: Option<Embedding>,
}

impl Surroundings {
    /// Nothing noticed yet; image vectors come from `clip_model`.
    #[must_use]
    pub fn new(clip_model: Option<ModelId>) -> Self {
        Self { clip_model, ..Self::default() }
    }

    /// A class of sound was heard until `at`.
    pub fn heard(&mut self, at: Stamp, class: &str) {
        self.sound = Some((at, class.to_owned()));
    }

    /// A picture was looked at. One without labels keeps what an earlier one of the same scene showed.
    pub fn saw(&mut self, observation: &SceneObservation) {
        if observation.is_blank {
            self.picture = None;
            return;
        }
        let mut seen = match (&self.picture, observation.starts_scene) {
            (Some((_, seen)), false) => seen.clone(),
            _ => Seen::default(),
        };
        if let (Some(vector), Some(model_id)) = (&observation.embedding, &self.clip_model) {
            let embedding =
                Embedding { model_id: model_id.clone(), kind: EmbeddingKind::Image, vector: vector.clone() };
            seen.embedding = Some(embedding);
            seen.objects = observation.labels.iter().map(|label| label.label.clone()).collect();
        }
        self.picture = Some((observation.at, seen));
    }

    /// Where the device is: the place, and degrees north and east.
    pub fn is_at(&mut self, place: Option<&str>, position_deg: Option<(f64, f64)>) {
        self.place = place.map(str::to_owned);
        self.position = position_deg;
    }

    /// The place the device is staying at.
    #[must_use]
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// What is noticed at `now`.
    #[must_use]
    pub fn moment(&self, now: Stamp) -> Moment {
        let sound = self.sound.as_ref().filter(|(at, _)| now.millis_since(*at) <= SOUND_FRESH_MS);
        let picture = self.picture.as_ref().filter(|(at, _)| now.millis_since(*at) <= PICTURE_FRESH_MS);
        Moment {
            sound_class: sound.map(|(_, class)| class.clone()),
            has_image: picture.is_some(),
            objects: picture.map(|(_, seen)| seen.objects.clone()).unwrap_or_default(),
            image_embedding: picture.and_then(|(_, seen)| seen.embedding.clone()),
            location: self.place.clone(),
            position_deg: self.position,
            ..Moment::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::SensorKind;
    use crate::domain::id::SourceId;
    use crate::domain::observation::scene::LabelScore;
    use crate::domain::time::ClockQuality;
    use crate::domain::time::Timestamp;

    #[test]
    fn a_later_picture_of_the_scene_keeps_its_labels_and_a_new_scene_does_not() {
        let mut surroundings = Surroundings::new(Some(ModelId::new("clip")));
        let mut first = scene(0, true);
        first.embedding = Some([1.0].as_slice().into());
        first.labels = vec![LabelScore { label: "a dog".into(), score: 0.9 }];
        surroundings.saw(&first);
        surroundings.saw(&scene(1, false));
        assert_eq!(surroundings.moment(at(2)).objects, ["a dog"]);

        surroundings.saw(&scene(3, true));

        assert_eq!(surroundings.moment(at(4)).objects, Vec::<String>::new());
        assert!(surroundings.moment(at(4)).has_image);
    }

    #[test]
    fn what_was_noticed_long_ago_is_not_part_of_the_moment() {
        let mut surroundings = Surroundings::new(None);
        surroundings.heard(at(0), "Dog");
        surroundings.saw(&scene(0, true));
        surroundings.is_at(Some("Kitchen"), Some((1.0, 2.0)));

        let moment = surroundings.moment(at(100));

        assert_eq!((moment.sound_class, moment.has_image), (None, false));
        assert_eq!(moment.location.as_deref(), Some("Kitchen"));
    }

    fn at(second: i64) -> Stamp {
        Stamp {
            monotonic_ms: second * 1_000,
            utc: Timestamp::from_millis(second * 1_000),
            quality: ClockQuality::Network,
        }
    }

    fn scene(second: i64, starts_scene: bool) -> SceneObservation {
        SceneObservation {
            source: SourceId::of(SensorKind::Camera, "front"),
            at: at(second),
            starts_scene,
            brightness: 0.5,
            is_blank: false,
            labels: Vec::new(),
            embedding: None,
            key_frame: None,
        }
    }
}

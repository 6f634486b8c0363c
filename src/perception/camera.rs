//! One camera, from its frames to what is seen in them.
//!
//! In: pictures in any format with their time, and CLIP when there is one. Out: a [`SceneObservation`] for each frame that
//! could be decoded, a [`PixelError`] for each that could not; CLIP runs where a scene begins or is due for another look.
//! No file, no clock; a frame is decoded, judged and forgotten.

use std::io::Cursor;
use std::sync::Arc;

use crate::domain::episode::Media;
use crate::domain::episode::MediaKind;
use crate::domain::id::SourceId;
use crate::domain::observation::scene::SceneObservation;
use crate::domain::reading::Picture;
use crate::domain::reading::PixelFormat;
use crate::domain::time::Stamp;
use crate::perception::clip::ClipError;
use crate::perception::image::ImageTower;
use crate::perception::labels::Vocabulary;
use crate::perception::pixels;
use crate::perception::pixels::PixelError;
use crate::perception::pixels::RgbImage;
use crate::perception::scene;
use crate::perception::scene::Decision;
use crate::perception::scene::SceneTracker;
use crate::perception::scene::Signature;

/// Quality (1–100) of key frames that come uncompressed from the camera.
const KEY_FRAME_QUALITY: u8 = 85;

/// What is done with pictures.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Config {
    /// Keep the first picture of each scene as a file.
    pub keep_key_frames: bool,
    /// When a scene begins.
    pub scene: scene::Config,
}

/// CLIP as the cameras use it: one for all of them.
#[derive(Debug)]
pub struct Vision {
    /// The image tower.
    pub tower: ImageTower,
    /// The labels to choose from; may be empty.
    pub vocabulary: Vocabulary,
}

/// Follows one camera.
#[derive(Debug)]
pub struct Camera {
    source: SourceId,
    config: Config,
    tracker: SceneTracker,
    refused_count: u64,
    clip_error: Option<ClipError>,
}

impl Camera {
    /// A camera that has shown nothing yet.
    #[must_use]
    pub fn new(source: SourceId, config: Config) -> Self {
        Self { source, config, tracker: SceneTracker::new(config.scene), refused_count: 0, clip_error: None }
    }

    /// Looks at one picture. A blank one (black, or one flat colour) is only marked: it neither begins a scene nor reaches CLIP.
    ///
    /// # Errors
    /// [`PixelError`] when the picture is not whole: it is counted, and the next one may be good.
    pub fn handle_picture(
        &mut self,
        picture: &Picture,
        at: Stamp,
        vision: Option<&mut Vision>,
    ) -> Result<SceneObservation, PixelError> {
        let image = pixels::decode_picture(picture).inspect_err(|_| self.refused_count += 1)?;
        let signature = Signature::of(&image);
        let mut observation = SceneObservation {
            source: self.source.clone(),
            at,
            starts_scene: false,
            brightness: signature.brightness,
            is_blank: signature.is_blank,
            labels: Vec::new(),
            embedding: None,
            key_frame: None,
        };
        if signature.is_blank {
            return Ok(observation);
        }
        let decision = self.tracker.handle_frame(signature, at);
        observation.starts_scene = decision == Decision::Start;
        if matches!(decision, Decision::Start | Decision::Refresh) {
            self.recognise(&image, vision, &mut observation);
        }
        if observation.starts_scene && self.config.keep_key_frames {
            observation.key_frame = key_frame(picture, &image);
        }
        Ok(observation)
    }

    /// Pictures that were refused because they were not whole.
    #[must_use]
    pub fn refused_count(&self) -> u64 {
        self.refused_count
    }

    /// Frames that differed from their scene but could not begin one because of the limit per minute.
    #[must_use]
    pub fn limited_count(&self) -> u64 {
        self.tracker.limited_count()
    }

    /// The last failure of CLIP, once: the picture it concerned went without vector and labels.
    pub fn poll_clip_error(&mut self) -> Option<ClipError> {
        self.clip_error.take()
    }

    fn recognise(&mut self, image: &RgbImage, vision: Option<&mut Vision>, observation: &mut SceneObservation) {
        let Some(vision) = vision else { return };
        match vision.tower.embed(image) {
            Ok(vector) => {
                observation.labels = vision.vocabulary.scores(&vector);
                observation.embedding = Some(vector);
            }
            Err(error) => self.clip_error = Some(error),
        }
    }
}

/// The picture as a file: its own bytes where it came as one, else a JPEG made from it.
fn key_frame(picture: &Picture, image: &RgbImage) -> Option<Media> {
    let kind = if picture.format == PixelFormat::Png { MediaKind::Png } else { MediaKind::Jpeg };
    let bytes = match picture.format {
        PixelFormat::Jpeg | PixelFormat::Png => Arc::clone(&picture.bytes),
        PixelFormat::Rgb8 | PixelFormat::Grey8 | PixelFormat::Yuyv | PixelFormat::Nv12 => encode_jpeg(image)?,
    };
    Some(Media { kind, bytes })
}

fn encode_jpeg(image: &RgbImage) -> Option<Arc<[u8]>> {
    let mut bytes = Cursor::new(Vec::new());
    let mut encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(&mut bytes, KEY_FRAME_QUALITY);
    let (width, height) = (image.width_px(), image.height_px());
    encoder.encode(image.pixels(), width, height, image::ExtendedColorType::Rgb8).ok()?;
    Some(bytes.into_inner().into())
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "test pictures are made of small numbers"
    )]

    use super::*;
    use crate::domain::id::ModelId;
    use crate::domain::id::SensorKind;
    use crate::domain::time::ClockQuality;
    use crate::domain::time::Timestamp;
    use crate::perception::clip::Loader;
    use crate::perception::model::ModelError;
    use crate::perception::model::runtime::Model;
    use crate::perception::model::runtime::Output;
    use crate::perception::model::runtime::Values;

    #[test]
    fn clip_runs_on_scene_starts_and_refreshes_only() {
        let mut camera = camera(false);
        let mut vision = vision(&[0.0, 3.0]);

        let embedded: Vec<i64> = (0..700)
            .filter(|second| {
                let seen = camera.handle_picture(&grey(0), at(second * 1000), Some(&mut vision)).unwrap();
                seen.embedding.is_some()
            })
            .collect();

        assert_eq!(embedded, [0, 300, 600]);
    }

    #[test]
    fn a_vector_is_scaled_to_unit_length() {
        let seen = camera(false).handle_picture(&grey(0), at(0), Some(&mut vision(&[0.0, 3.0]))).unwrap();

        assert_eq!(seen.embedding.as_deref(), Some(&[0.0, 1.0][..]));
        assert!(seen.starts_scene && !seen.is_blank && seen.key_frame.is_none());
    }

    #[test]
    fn a_failure_of_clip_costs_the_vector_and_not_the_scene() {
        let mut camera = camera(false);

        let seen = camera.handle_picture(&grey(0), at(0), Some(&mut vision(&[f32::NAN, 1.0]))).unwrap();

        assert!(seen.starts_scene && seen.embedding.is_none());
        assert!(matches!(camera.poll_clip_error(), Some(ClipError::NoVector { .. })));
        assert!(camera.poll_clip_error().is_none());
    }

    #[test]
    fn a_blank_picture_is_marked_and_begins_no_scene() {
        let mut camera = camera(false);
        let blank = Picture { bytes: vec![0; 160 * 90].into(), ..grey(0) };

        let seen = camera.handle_picture(&blank, at(0), Some(&mut vision(&[1.0]))).unwrap();

        assert!(seen.is_blank && !seen.starts_scene && seen.embedding.is_none());
    }

    #[test]
    fn a_bad_frame_is_counted_and_the_next_is_used() {
        let mut camera = camera(false);
        let bad = Picture { bytes: vec![7; 100].into(), ..grey(0) };

        assert!(camera.handle_picture(&bad, at(0), None).is_err());

        assert!(camera.handle_picture(&grey(0), at(1000), None).unwrap().starts_scene);
        assert_eq!(camera.refused_count(), 1);
    }

    #[test]
    fn a_key_frame_is_kept_as_a_jpeg_only_if_the_config_says_so() {
        let seen = camera(true).handle_picture(&grey(0), at(0), None).unwrap();

        let media = seen.key_frame.unwrap();
        assert_eq!(media.kind, MediaKind::Jpeg);
        assert!(pixels::decode(PixelFormat::Jpeg, 0, 0, &media.bytes).is_ok());
    }

    struct Constant(Vec<f32>);

    impl Model for Constant {
        fn run(&mut self, inputs: &[Values<'_>]) -> Result<Vec<Output>, ModelError> {
            assert!(matches!(inputs, [Values::F32(values)] if values.len() == 3 * 224 * 224));
            Ok(vec![Output { shape: vec![1, self.0.len()], values: self.0.clone() }])
        }
    }

    fn vision(vector: &[f32]) -> Vision {
        let vector = vector.to_vec();
        let loader: Loader = Box::new(move |_| Ok(Box::new(Constant(vector.clone()))));
        let tower = ImageTower::load(ModelId::new("constant"), 224, &loader).unwrap();
        Vision { tower, vocabulary: Vocabulary::default() }
    }

    fn camera(keep_key_frames: bool) -> Camera {
        let config = Config { keep_key_frames, ..Config::default() };
        Camera::new(SourceId::of(SensorKind::Camera, "front"), config)
    }

    fn grey(shift: u32) -> Picture {
        let bytes: Vec<u8> = (0..160 * 90).map(|at: u32| ((at % 160) + (at / 160) + shift) as u8).collect();
        Picture { format: PixelFormat::Grey8, size_px: Some((160, 90)), bytes: bytes.into() }
    }

    fn at(ms: i64) -> Stamp {
        Stamp { monotonic_ms: ms, utc: Timestamp::from_millis(ms), quality: ClockQuality::Network }
    }
}

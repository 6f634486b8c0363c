//! Camera rows of the field scenarios: bad frames, odd formats, static and flickering views, from bytes to episodes.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "test pictures are made of small numbers")]

use percept::domain::coverage::Coverage;
use percept::domain::coverage::CoverageReason;
use percept::domain::episode::Draft;
use percept::domain::episode::EmbeddingKind;
use percept::domain::id::ModelId;
use percept::domain::id::SensorKind;
use percept::domain::id::SourceId;
use percept::domain::reading::Picture;
use percept::domain::reading::PixelFormat;
use percept::domain::time::ClockQuality;
use percept::domain::time::Stamp;
use percept::domain::time::Timestamp;
use percept::episodes::visual;
use percept::episodes::visual::VisualBuilder;
use percept::perception::camera;
use percept::perception::camera::Camera;
use percept::perception::camera::Vision;
use percept::perception::clip::Loader;
use percept::perception::image::ImageTower;
use percept::perception::labels::Vocabulary;
use percept::perception::model::ModelError;
use percept::perception::model::runtime::Model;
use percept::perception::model::runtime::Output;
use percept::perception::model::runtime::Values;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[test]
fn cut_endless_and_random_jpegs_are_skipped_counted_and_never_embedded() {
    let good = photo();
    let cut = good[..good.len() * 2 / 5].to_vec();
    let without_end = good[..good.len() - 2].to_vec();
    let random: Vec<u8> = (0..5000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut line = Line::new();

    for (second, bytes) in [cut, without_end, random, good].into_iter().enumerate() {
        line.feed(jpeg(bytes), second as i64 * 1000);
    }
    let (episodes, coverage) = line.end();

    assert_eq!(line.camera.refused_count(), 3);
    assert_eq!(episodes.len(), 1);
    assert_eq!(episodes[0].start, at(3000));
    assert_eq!(episodes[0].embeddings.len(), 1);
    let rows: Vec<_> = coverage.iter().map(|row| (row.from, row.to, row.reason)).collect();
    assert_eq!(rows, [(at(0), at(3000), CoverageReason::Unreadable)]);
}

#[test]
fn a_grey_frame_becomes_rgb_and_clip_runs() {
    let mut line = Line::new();
    let bytes: Vec<u8> = (0..640 * 360_u32).map(|at| (at % 640 / 3) as u8).collect();

    line.feed(Picture { format: PixelFormat::Grey8, size_px: Some((640, 360)), bytes: bytes.into() }, 0);
    let (episodes, coverage) = line.end();

    let vector = &episodes[0].embeddings[0];
    assert_eq!((vector.kind, vector.model_id.as_str()), (EmbeddingKind::Image, "fixture"));
    let length: f32 = vector.vector.iter().map(|value| value * value).sum();
    assert!((length - 1.0).abs() < 1e-5);
    assert!(coverage.is_empty());
}

#[test]
fn a_hundred_equal_pictures_are_one_episode() {
    let mut line = Line::new();
    for second in 0..100 {
        line.feed(jpeg(photo()), second * 1000);
    }

    let (episodes, _) = line.end();

    assert_eq!(episodes.len(), 1);
    assert_eq!((episodes[0].start, episodes[0].end), (at(0), at(99_000)));
}

#[test]
fn a_static_view_with_flicker_starts_at_most_four_scenes_a_minute() {
    let mut line = Line::new();
    for tick in 0..600 {
        let light = if tick % 3 == 0 { 40 } else { 0 };
        let bytes: Vec<u8> = (0..320 * 240_u32)
            .map(|at| {
                let noise = at.wrapping_mul(2_654_435_761).wrapping_add(tick * 97) >> 28;
                ((at % 320 / 2) * (100 + light * 2) / 100 + noise + light) as u8
            })
            .collect();
        let picture = Picture { format: PixelFormat::Grey8, size_px: Some((320, 240)), bytes: bytes.into() };
        line.feed(picture, i64::from(tick) * 500);
    }

    let (episodes, _) = line.end();

    for minute in 0..5 {
        let starts = episodes.iter().filter(|episode| episode.start.monotonic_ms / 60_000 == minute).count();
        assert!(starts <= 4, "{starts} in minute {minute}");
    }
}

#[test]
fn a_covered_lens_is_a_coverage_row_and_no_episode() {
    let mut line = Line::new();
    let black = || Picture { format: PixelFormat::Rgb8, size_px: Some((64, 48)), bytes: vec![2; 64 * 48 * 3].into() };
    for second in 0..30 {
        line.feed(black(), second * 1000);
    }
    line.feed(jpeg(photo()), 30_000);

    let (episodes, coverage) = line.end();

    assert_eq!(episodes.len(), 1);
    assert_eq!((coverage[0].from, coverage[0].to, coverage[0].reason), (at(0), at(30_000), CoverageReason::NoSignal));
}

/// Answers every picture with one vector: what CLIP makes of a picture is not the matter here.
struct OneVector;

impl Model for OneVector {
    fn run(&mut self, _inputs: &[Values<'_>]) -> Result<Vec<Output>, ModelError> {
        Ok(vec![Output { shape: vec![1, 2], values: vec![3.0, 4.0] }])
    }
}

/// A camera and its builder, joined as the agent joins them.
struct Line {
    camera: Camera,
    vision: Vision,
    builder: VisualBuilder,
}

impl Line {
    fn new() -> Self {
        let loader: Loader = Box::new(|_| Ok(Box::new(OneVector)));
        let tower = ImageTower::load(ModelId::new("fixture"), 64, &loader).unwrap();
        Self {
            camera: Camera::new(source(), camera::Config::default()),
            vision: Vision { tower, vocabulary: Vocabulary::default() },
            builder: VisualBuilder::new(visual::Config::default(), Some(ModelId::new("fixture"))),
        }
    }

    fn feed(&mut self, picture: Picture, ms: i64) {
        match self.camera.handle_picture(&picture, at(ms), Some(&mut self.vision)) {
            Ok(observation) => self.builder.handle_observation(observation),
            Err(error) => self.builder.handle_unreadable(&source(), at(ms), error.to_string()),
        }
    }

    /// The last word on each episode, in the order of their starts, and the coverage.
    fn end(&mut self) -> (Vec<Draft>, Vec<Coverage>) {
        self.builder.finish();
        let drafts = std::iter::from_fn(|| self.builder.poll_draft());
        let rows: BTreeMap<_, _> = drafts.map(|draft| ((draft.start, draft.ordinal), draft)).collect();
        (rows.into_values().collect(), std::iter::from_fn(|| self.builder.poll_coverage()).collect())
    }
}

fn photo() -> Vec<u8> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/clip_parity/photo.jpg");
    std::fs::read(file).unwrap()
}

fn jpeg(bytes: Vec<u8>) -> Picture {
    Picture { format: PixelFormat::Jpeg, size_px: None, bytes: bytes.into() }
}

fn source() -> SourceId {
    SourceId::of(SensorKind::Camera, "front")
}

fn at(ms: i64) -> Stamp {
    Stamp { monotonic_ms: ms, utc: Timestamp::from_millis(ms), quality: ClockQuality::Network }
}

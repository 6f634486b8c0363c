//! A small CLIP that was really trained (models/train_fixture_clip.py): text finds pictures and pictures find text.

use percept::agent::doctor;
use percept::agent::models::Models;
use percept::agent::moments::MomentFolder;
use percept::agent::replay::Target;
use percept::agent::replay::replay;
use percept::agent::status::Status;
use percept::config::Loaded;
use percept::domain::id::ModelId;
use percept::domain::reading::PixelFormat;
use percept::domain::time::ClockQuality;
use percept::domain::time::Stamp;
use percept::domain::time::SystemClock;
use percept::domain::time::Timestamp;
use percept::memory;
use percept::memory::reader::Reader;
use percept::memory::store::Store;
use percept::memory::writer::Writer;
use percept::perception::camera::Vision;
use percept::perception::clip::Config;
use percept::perception::clip::Loader;
use percept::perception::image::ImageTower;
use percept::perception::labels::Vocabulary;
use percept::perception::model::TractRuntime;
use percept::perception::model::runtime::Runtime;
use percept::perception::pixels;
use percept::perception::text::TextTower;
use percept::sensors::session;
use percept::sensors::session::Session;
use std::path::PathBuf;
use std::sync::Arc;

/// The fixture reads squares of this side.
const SIDE_PX: u32 = 64;

#[derive(serde::Deserialize)]
pub struct Pair {
    pub picture: String,
    pub sentence: String,
    text_vector: Vec<f32>,
    image_vector: Vec<f32>,
}

#[test]
fn text_finds_its_picture_and_pictures_find_their_text() {
    let pairs = pairs();
    let (texts, images) = (text_vectors(&pairs), image_vectors(&pairs));

    for index in 0..pairs.len() {
        let of_text: Vec<f32> = images.iter().map(|image| dot(&texts[index], image)).collect();
        let of_image: Vec<f32> = texts.iter().map(|text| dot(&images[index], text)).collect();

        assert_eq!(best(&of_text), index, "{}: {of_text:?}", pairs[index].sentence);
        assert_eq!(best(&of_image), index, "{}: {of_image:?}", pairs[index].picture);
        assert!(of_text[index] > 0.2, "{}: {}", pairs[index].sentence, of_text[index]);
    }
    assert_eq!(pairs.len(), 8);
}

#[test]
fn vectors_equal_those_of_onnx_runtime() {
    let pairs = pairs();

    for (pair, (text, image)) in pairs.iter().zip(text_vectors(&pairs).iter().zip(&image_vectors(&pairs))) {
        assert!(dot(text, &pair.text_vector) > 0.9999, "{}", pair.sentence);
        assert!(dot(image, &pair.image_vector) > 0.9999, "{}", pair.picture);
    }
}

#[test]
fn the_right_label_is_chosen_from_a_vocabulary() {
    let config = Config {
        vocabulary: ["red circle", "green square", "blue triangle", "yellow cross", "purple ring"]
            .map(|label| format!("{label} at the top left"))
            .to_vec(),
        prompt: "a photo of a {}".to_owned(),
        ..Config::default()
    };
    let vocabulary = Vocabulary::embed(&config, &mut text_tower(), at(0)).unwrap();

    let images = image_vectors(&pairs());

    assert_eq!(vocabulary.scores(&images[0])[0].label, "red circle at the top left");
}

/// Ruling 3.3: a picture's episode has the vector of its picture and that of its sentence, in one space. And the field's
/// "ten vectors of model X, then model Y is configured": both are kept, nobody compares them, `doctor` says so.
#[test]
fn a_scene_has_vectors_of_its_picture_and_its_sentence_and_those_of_another_model_are_told_apart() {
    let scene = crate::scene::Scene::new("vectors");
    let picture = image::open(folder().join(&pairs()[0].picture)).unwrap().to_rgb8();
    let scene = scene.picture(0, &picture).picture(1_000, &picture);
    scene.write();
    let mut config = percept::config::Config::default();
    config.models.yamnet = false;
    let models = Models::default().with_vision(vision(), "00").with_text(text_tower());

    replay_with(&scene, &config, &models);

    let reader = Reader::open(&scene.data_dir()).unwrap();
    let stats = reader.stats().unwrap();
    let of = |kind: &str| (("fixture".to_owned(), kind.to_owned()), 1);
    assert_eq!(stats.vectors, [of("image"), of("text")]);
    drop(reader);
    config.clip.model = "another".to_owned();
    let loaded = Loaded { file: None, config, data_dir: scene.data_dir() };
    let mut told = Vec::new();
    doctor::examine(&loaded, Some(&Status::default()), &mut |verdict| told.push(verdict));
    let vectors: Vec<_> = told.iter().filter(|verdict| verdict.what == "vectors").collect();
    assert_eq!(vectors.len(), 2, "{told:?}");
    assert!(vectors.iter().all(|verdict| verdict.sentence.contains("never compared")), "{vectors:?}");
}

fn vision() -> Vision {
    let config = Config { vocabulary: vec!["red circle".to_owned()], ..Config::default() };
    let vocabulary = Vocabulary::embed(&config, &mut text_tower(), at(0)).unwrap();
    Vision { tower: ImageTower::load(ModelId::new("fixture"), SIDE_PX, &loader()).unwrap(), vocabulary }
}

fn replay_with(scene: &crate::scene::Scene, config: &percept::config::Config, models: &Models) {
    let options = session::OpenOptions { started_at: None, assumed_now: Timestamp::from_millis(i64::MAX / 2) };
    let session = Session::open(&scene.session(), &options).unwrap();
    let data_dir = scene.data_dir();
    let store = Store::open(&data_dir, &memory::store::OpenOptions::default()).unwrap();
    let device_id = store.identity().device_id.clone();
    let writer = Writer::spawn(store, Box::new(SystemClock::new())).unwrap();
    let folder = MomentFolder::new(&data_dir);
    let target = Target {
        config,
        models,
        writer: &writer,
        data_dir: &data_dir,
        folder: &folder,
        device_id: &device_id,
        reprocess: false,
    };
    replay(&scene.session(), &session, &target, &mut |_| {}).unwrap();
    writer.close().unwrap();
}

pub fn pairs() -> Vec<Pair> {
    serde_json::from_slice(&std::fs::read(folder().join("pairs.json")).unwrap()).unwrap()
}

pub fn text_vectors(pairs: &[Pair]) -> Vec<Arc<[f32]>> {
    let mut tower = text_tower();
    pairs.iter().map(|pair| tower.embed(&pair.sentence, at(0)).unwrap()).collect()
}

pub fn image_vectors(pairs: &[Pair]) -> Vec<Arc<[f32]>> {
    let mut tower = ImageTower::load(ModelId::new("fixture"), SIDE_PX, &loader()).unwrap();
    pairs
        .iter()
        .map(|pair| {
            let bytes = std::fs::read(folder().join(&pair.picture)).unwrap();
            tower.embed(&pixels::decode(PixelFormat::Png, 0, 0, &bytes).unwrap()).unwrap()
        })
        .collect()
}

pub fn text_tower() -> TextTower {
    TextTower::new(ModelId::new("fixture"), 60, loader())
}

fn loader() -> Loader {
    Box::new(|spec| TractRuntime.load(&folder().join("model.onnx"), spec))
}

fn best(scores: &[f32]) -> usize {
    (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/clip")
}

fn at(ms: i64) -> Stamp {
    Stamp { monotonic_ms: ms, utc: Timestamp::from_millis(ms), quality: ClockQuality::Network }
}

//! CLIP's towers on graphs of the true sizes with random weights (models/random_clip.py), one thread.
//!
//! `PERCEPT_BENCH_CLIP=FOLDER cargo bench --bench clip` times a picture and a sentence per model; beside it runs
//! benches/peers/clip.py. `… --bench clip -- memory MODEL image|text` loads one tower, runs it once and prints the
//! peak of the process's memory.

#![expect(clippy::expect_used, reason = "a benchmark that cannot run has nothing to print")]

use percept::domain::id::ModelId;
use percept::domain::time::ClockQuality;
use percept::domain::time::Stamp;
use percept::domain::time::Timestamp;
use percept::perception::clip::Loader;
use percept::perception::image::ImageTower;
use percept::perception::model::TractRuntime;
use percept::perception::model::runtime::Runtime;
use percept::perception::pixels::RgbImage;
use percept::perception::text::TextTower;
use std::path::PathBuf;

const MODELS: [&str; 2] = ["tinyclip-vit-8m-16", "clip-vit-b-32"];
const SIDE_PX: u32 = 224;

#[expect(clippy::print_stdout, reason = "a benchmark prints its figure")]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().position(|argument| argument == "memory") {
        Some(at) => memory(&arguments[at + 1], &arguments[at + 2]),
        None if folder().is_none() => println!("PERCEPT_BENCH_CLIP names no folder: nothing to measure"),
        None => divan::main(),
    }
}

#[divan::bench(args = MODELS, sample_count = 30)]
fn image(bencher: divan::Bencher<'_, '_>, model: &str) {
    let mut tower = image_tower(model);
    let picture = picture();
    bencher.bench_local(|| tower.embed(&picture));
}

#[divan::bench(args = MODELS, sample_count = 30)]
fn text(bencher: divan::Bencher<'_, '_>, model: &str) {
    let mut tower = text_tower(model);
    // Each sentence is another one: a known one would come from the cache.
    let mut number = 0;
    bencher.bench_local(|| {
        number += 1;
        tower.embed(&format!("a photo of dog number {number} in the garden"), now())
    });
}

#[divan::bench(sample_count = 30)]
fn preprocess_1080p(bencher: divan::Bencher<'_, '_>) {
    let picture = picture();
    bencher.bench_local(|| percept::perception::image::preprocess(&picture, SIDE_PX));
}

#[divan::bench(sample_count = 30)]
fn signature_1080p(bencher: divan::Bencher<'_, '_>) {
    let picture = picture();
    bencher.bench_local(|| percept::perception::scene::Signature::of(&picture));
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its figure")]
fn memory(model: &str, tower: &str) {
    let before = peak_kib();
    if tower == "image" {
        image_tower(model).embed(&picture()).expect("the picture is embedded");
    } else {
        text_tower(model).embed("a photo of a dog", now()).expect("the sentence is embedded");
    }
    println!("{model} {tower}: peak {} MiB ({} MiB before)", peak_kib() / 1024, before / 1024);
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|value| value.parse().ok()).unwrap_or(0)
}

fn image_tower(model: &str) -> ImageTower {
    ImageTower::load(ModelId::new(model), SIDE_PX, &loader(model, "vision_model.onnx")).expect("the tower loads")
}

fn text_tower(model: &str) -> TextTower {
    let mut tower = TextTower::new(ModelId::new(model), 60, loader(model, "text_model.onnx"));
    tower.embed("warm", now()).expect("the tower loads");
    tower
}

fn loader(model: &str, name: &'static str) -> Loader {
    let folder = folder().expect("PERCEPT_BENCH_CLIP names the folder").join(model);
    Box::new(move |spec| {
        let both = folder.join("model.onnx");
        let file = if both.exists() { both } else { folder.join(name) };
        TractRuntime.load(&file, spec)
    })
}

fn folder() -> Option<PathBuf> {
    std::env::var_os("PERCEPT_BENCH_CLIP").map(PathBuf::from)
}

fn picture() -> RgbImage {
    let pixels = (0..1920 * 1080 * 3_u32).map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    RgbImage::new(1920, 1080, pixels).expect("the bytes fit the size")
}

fn now() -> Stamp {
    Stamp { monotonic_ms: 0, utc: Timestamp::from_millis(0), quality: ClockQuality::Network }
}

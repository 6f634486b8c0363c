//! CLIP's towers on graphs of the true sizes, one thread: a picture and a sentence, and the memory each takes in a process
//! of its own. The peer is benches/peers/clip.py (ONNX Runtime on the same files).
//!
//! The graphs are the fetched models, or those with random weights that models/random_clip.py writes into
//! `PERCEPT_BENCH_CLIP`. What is not there is left out and said.

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
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

const MODELS: [&str; 2] = ["tinyclip-vit-8m-16", "clip-vit-b-32"];
const SIDE_PX: u32 = 224;
/// The best of so many runs counts: the others were disturbed.
const RUNS: usize = 30;

#[expect(clippy::print_stdout, reason = "a benchmark prints its figure")]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "memory") {
        return memory(&arguments[at + 1], &arguments[at + 2]);
    }
    let picture = picture();
    println!(
        "bench clip_preprocess_1080p {:.2} ms",
        best_ms(|| percept::perception::image::preprocess(&picture, SIDE_PX))
    );
    println!("bench scene_signature_1080p {:.2} ms", best_ms(|| percept::perception::scene::Signature::of(&picture)));
    for model in MODELS.into_iter().filter(|model| is_there(model)) {
        let mut tower = image_tower(model);
        println!("bench clip_image_{model} {:.1} ms", best_ms(|| tower.embed(&picture)));
        let mut tower = text_tower(model);
        // Each sentence is another one: a known one would come from the cache.
        let mut number = 0;
        let sentence = || {
            number += 1;
            tower.embed(&format!("a photo of dog number {number} in the garden"), now())
        };
        println!("bench clip_text_{model} {:.1} ms", best_ms(sentence));
        for tower in ["image", "text"] {
            peak_of_its_own_process(model, tower);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn best_ms<T>(mut work: impl FnMut() -> T) -> f64 {
    let mut best_ms = f64::INFINITY;
    for _ in 0..RUNS {
        let started = Instant::now();
        black_box(work());
        best_ms = best_ms.min(started.elapsed().as_secs_f64() * 1e3);
    }
    best_ms
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its figure")]
fn is_there(model: &str) -> bool {
    let folder = folder().join(model);
    let is_there = folder.join("model.onnx").exists() || folder.join("vision_model.onnx").exists();
    if !is_there {
        println!("{model} is neither fetched nor in PERCEPT_BENCH_CLIP: not measured");
    }
    is_there
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its figure")]
fn peak_of_its_own_process(model: &str, tower: &str) {
    let program = std::env::current_exe().expect("this program has a path");
    let output = std::process::Command::new(program).args(["memory", model, tower]).output().expect("it runs again");
    print!("{}", String::from_utf8_lossy(&output.stdout));
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its figure")]
fn memory(model: &str, tower: &str) {
    if tower == "image" {
        image_tower(model).embed(&picture()).expect("the picture is embedded");
    } else {
        text_tower(model).embed("a photo of a dog", now()).expect("the sentence is embedded");
    }
    println!("bench clip_{tower}_peak_memory_{model} {} MiB", peak_kib() / 1024);
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
    let folder = folder().join(model);
    Box::new(move |spec| {
        let both = folder.join("model.onnx");
        let file = if both.exists() { both } else { folder.join(name) };
        TractRuntime.load(&file, spec)
    })
}

fn folder() -> PathBuf {
    std::env::var_os("PERCEPT_BENCH_CLIP").map_or_else(|| PathBuf::from("var/models"), PathBuf::from)
}

fn picture() -> RgbImage {
    let pixels = (0..1920 * 1080 * 3_u32).map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    RgbImage::new(1920, 1080, pixels).expect("the bytes fit the size")
}

fn now() -> Stamp {
    Stamp { monotonic_ms: 0, utc: Timestamp::from_millis(0), quality: ClockQuality::Network }
}

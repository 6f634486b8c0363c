//! YAMNet per window, one thread: percept's prepared network and the runtime's own, for one and for four windows a run.
//!
//! Needs `yamnet.tflite` in the folder that `PERCEPT_MODEL_MIRROR` names, or in `models/`.
//! The peers of the same graph are timed by `benches/peers/yamnet.py`.

use std::path::PathBuf;

use divan::Bencher;
use divan::counter::ItemsCount;
use percept::perception::model::TractRuntime;
use percept::perception::model::YamnetRuntime;
use percept::perception::model::runtime::Model;
use percept::perception::model::runtime::ModelSpec;
use percept::perception::model::runtime::Runtime;
use percept::perception::model::runtime::Values;
use percept::perception::model::yamnet;
use percept::perception::sound::WINDOW_VALUES;

fn main() {
    divan::main();
}

fn folder() -> PathBuf {
    std::env::var_os("PERCEPT_MODEL_MIRROR").map_or_else(|| "models".into(), PathBuf::from)
}

fn load(runtime: &dyn Runtime, windows: usize) -> Box<dyn Model> {
    let imported = tempfile::tempdir().expect("a temporary folder");
    let file = imported.path().join("yamnet.onnx");
    yamnet::import_yamnet_file(&folder().join("yamnet.tflite"), &file).expect("yamnet.tflite is there and whole");
    runtime.load(&file, &ModelSpec::yamnet(windows)).expect("the imported file loads")
}

fn run(bencher: Bencher<'_, '_>, runtime: &dyn Runtime, windows: usize) {
    let mut model = load(runtime, windows);
    let values: Vec<f32> =
        (0..windows * WINDOW_VALUES).map(|value| (value * 7919 % 1009) as f32 / 130.0 - 6.5).collect();
    bencher.counter(ItemsCount::new(windows)).bench_local(|| model.run(&[Values::F32(divan::black_box(&values))]));
}

#[divan::bench(args = [1, 2, 4], sample_count = 200)]
fn prepared(bencher: Bencher<'_, '_>, windows: usize) {
    run(bencher, &YamnetRuntime, windows);
}

#[divan::bench(args = [1, 4], sample_count = 50)]
fn general(bencher: Bencher<'_, '_>, windows: usize) {
    run(bencher, &TractRuntime, windows);
}

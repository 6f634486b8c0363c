//! YAMNet per window, one thread, for one, two and four windows a run. Its peers are in `benches/peers/yamnet.py`
//! (ONNX Runtime on the same graph, LiteRT on Google's file) and the runtime's general way on the same graph.
//!
//! Imports `yamnet.tflite` from the folder that `PERCEPT_MODEL_MIRROR` names, or from `models/`, and leaves the
//! result as `var/bench/yamnet.onnx` for the peers. Prints this process's greatest memory, too.

#![expect(clippy::expect_used, reason = "a benchmark that cannot run has nothing to print")]

use percept::perception::log_mel::WINDOW_VALUES;
use percept::perception::model::TractRuntime;
use percept::perception::model::YamnetRuntime;
use percept::perception::model::runtime::ModelSpec;
use percept::perception::model::runtime::Runtime;
use percept::perception::model::runtime::Values;
use percept::perception::model::yamnet::import_yamnet_file;
use std::hint::black_box;
use std::path::Path;
use std::path::PathBuf;
use std::time::Instant;

/// The best of so many runs counts: the others were disturbed.
const RUNS: usize = 300;

#[expect(clippy::print_stdout, reason = "a benchmark prints its figure")]
fn main() {
    let file = Path::new("var/bench/yamnet.onnx");
    std::fs::create_dir_all("var/bench").expect("var/bench can be made");
    // Where `make models` puts it, else the mirror.
    let fetched = PathBuf::from("var/models/yamnet");
    let mirror = std::env::var_os("PERCEPT_MODEL_MIRROR").map(PathBuf::from);
    let models = if fetched.is_dir() { fetched } else { mirror.expect("`make models` has fetched YAMNet") };
    import_yamnet_file(&models.join("yamnet.tflite"), file).expect("yamnet.tflite is there and whole");

    for windows in [1, 2, 4] {
        println!("bench yamnet_{windows}_a_run {:.3} ms", best_ms(&YamnetRuntime, file, windows));
    }
    println!("bench yamnet_prepared_peak_memory {} KiB", peak_memory_kib());
    println!("bench yamnet_1_a_run_general {:.3} ms", best_ms(&TractRuntime, file, 1));
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn best_ms(runtime: &dyn Runtime, file: &Path, windows: u16) -> f64 {
    let mut model = runtime.load(file, &ModelSpec::yamnet(usize::from(windows))).expect("the imported file loads");
    let values = patches(usize::from(windows));
    let mut best_ms = f64::INFINITY;
    for _ in 0..RUNS {
        let started = Instant::now();
        black_box(model.run(&[Values::F32(black_box(&values))]).expect("it runs"));
        best_ms = best_ms.min(started.elapsed().as_secs_f64() * 1e3);
    }
    best_ms / f64::from(windows)
}

fn patches(windows: usize) -> Vec<f32> {
    let value = |index: usize| u16::try_from(index * 7919 % 1009).map_or(0.0, f32::from) / 130.0 - 6.5;
    (0..windows * WINDOW_VALUES).map(value).collect()
}

fn peak_memory_kib() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").to_owned()
}

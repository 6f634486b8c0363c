//! YAMNet: the import of Google's file, its scores against other runtimes, and what damaged files do.
//!
//! Expected values are written by `tests/reference/yamnet.py`. The model comes from the folder that
//! `PERCEPT_MODEL_MIRROR` names, or from `models/`; `make test` sees to it.

use std::path::Path;
use std::path::PathBuf;
use std::sync::LazyLock;

use percept::perception::log_mel::MelMatrix;
use percept::perception::log_mel::WINDOW_VALUES;
use percept::perception::model::ModelError;
use percept::perception::model::TractRuntime;
use percept::perception::model::YamnetRuntime;
use percept::perception::model::runtime::InputSpec;
use percept::perception::model::runtime::ModelSpec;
use percept::perception::model::runtime::Output;
use percept::perception::model::runtime::Runtime;
use percept::perception::model::runtime::Values;
use percept::perception::model::yamnet::import_yamnet;
use percept::perception::model::yamnet::import_yamnet_file;
use percept::perception::sound::SoundClassifier;
use serde_json::Value;

static TFLITE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let path = model_folder().join("yamnet.tflite");
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; `make test` fetches it", path.display()))
});

struct Imported {
    _folder: tempfile::TempDir,
    file: PathBuf,
}

/// The imported model, made once for all tests of one process.
static IMPORTED: LazyLock<Imported> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("yamnet.onnx");
    import_yamnet_file(&model_folder().join("yamnet.tflite"), &file).unwrap();
    Imported { _folder: folder, file }
});

pub(crate) fn imported_file() -> &'static Path {
    &IMPORTED.file
}

fn model_folder() -> PathBuf {
    std::env::var_os("PERCEPT_MODEL_MIRROR").map_or_else(|| "models".into(), PathBuf::from)
}

pub(crate) fn fixture(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/yamnet").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Integers of a fixture are millionths.
pub(crate) fn values(fixture: &Value) -> Vec<f32> {
    fixture.as_array().unwrap().iter().map(|value| value.as_i64().unwrap() as f32 / 1e6).collect()
}

/// The same log-mel patches that `tests/reference/yamnet.py` makes.
fn pattern(name: &str) -> Vec<f32> {
    let value = |frame: i32, band: i32| match name {
        "noise" => ((frame * 7919 + band * 104_729 + frame * band * 31) % 1009) as f32 / 1009.0 * 8.0,
        "rising tone" => (4 - (band - (10 + frame / 4)).abs()).max(0) as f32 * 1.75,
        "beats" => (if frame % 24 < 5 { 5 - frame % 24 } else { 0 } * (64 - band)) as f32 * 0.025,
        other => panic!("no pattern {other}"),
    };
    (0..96).flat_map(|frame| (0..64).map(move |band| value(frame, band) - 6.5)).collect()
}

const PATTERNS: [&str; 3] = ["noise", "rising tone", "beats"];

fn run(runtime: &dyn Runtime, patches: &[Vec<f32>]) -> Vec<Output> {
    let mut model = runtime.load(&IMPORTED.file, &ModelSpec::yamnet(patches.len())).unwrap();
    model.run(&[Values::F32(&patches.concat())]).unwrap()
}

#[track_caller]
pub(crate) fn assert_close(found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= tolerance, "value {at}: {found} instead of {expected}");
    }
}

#[test]
fn both_runtimes_score_patterns_as_onnx_runtime_does() {
    let fixtures = fixture("patterns.json");
    for (name, expected) in PATTERNS.iter().zip(fixtures.as_array().unwrap()) {
        assert_eq!(expected["name"], *name);
        for runtime in [&TractRuntime as &dyn Runtime, &YamnetRuntime] {
            let outputs = run(runtime, &[pattern(name)]);

            assert_close(&outputs[0].values, &values(&expected["scores"]), 1e-4);
            assert_close(&outputs[1].values, &values(&expected["embedding"]), 1e-4);
        }
    }
}

#[test]
fn the_prepared_network_equals_the_general_one() {
    for name in PATTERNS {
        let patch = [pattern(name)];

        let (prepared, general) = (run(&YamnetRuntime, &patch), run(&TractRuntime, &patch));

        assert_close(&prepared[0].values, &general[0].values, 2e-6);
        assert_close(&prepared[1].values, &general[1].values, 1e-5);
    }
}

#[test]
fn windows_score_the_same_together_and_alone() {
    let patches: Vec<Vec<f32>> = ["beats", "noise", "rising tone", "beats", "noise", "rising tone"].map(pattern).into();
    let windows: Vec<&[f32]> = patches.iter().map(Vec::as_slice).collect();
    let mut classifier = SoundClassifier::open(&IMPORTED.file).unwrap();

    let together = classifier.classify(&windows).unwrap();

    assert_eq!(together.len(), 6);
    for (window, together) in windows.iter().zip(&together) {
        let alone = classifier.classify(&[window]).unwrap();
        assert_close(&together.scores, &alone[0].scores, 1e-6);
        assert_close(&together.embedding, &alone[0].embedding, 1e-5);
    }
}

#[test]
fn the_import_carries_class_names_and_the_front_ends_constants() {
    let imported = import_yamnet(&TFLITE).unwrap();

    assert_eq!(imported.class_names.len(), 521);
    assert_eq!((&*imported.class_names[0], &*imported.class_names[520]), ("Speech", "Field recording"));
    assert_eq!(imported.class_names[1], "Child speech, kid speaking");
    assert_eq!(imported.mel_matrix.len(), 64 * 257);
    assert_close(&imported.mel_matrix, &MelMatrix::yamnet().to_rows(), 1e-6);
    assert_eq!(imported.log_offset, 0.001);
    assert_eq!(import_yamnet(&TFLITE).unwrap(), imported, "equal bytes give equal files");
    let classifier = SoundClassifier::open(&IMPORTED.file).unwrap();
    assert_eq!(**classifier.class_names(), imported.class_names);
}

#[test]
fn a_tflite_cut_anywhere_is_an_error_and_never_a_panic() {
    for part in 0..200 {
        let cut = TFLITE.len() * part / 200;

        assert!(import_yamnet(&TFLITE[..cut]).is_err(), "cut at {cut}");
    }
}

#[test]
fn a_tflite_with_lying_offsets_is_an_error_or_harmless() {
    // The tables stand outside the weights: at the very start and behind them.
    let places = (0..4_000).step_by(127).chain((TFLITE.len() - 90_000..TFLITE.len() - 6_500).step_by(2_999));
    for place in places {
        let mut bytes = TFLITE.clone();
        bytes[place..place + 4].fill(0xff);

        if let Ok(imported) = import_yamnet(&bytes) {
            assert_eq!(imported.class_names.len(), 521);
        }
    }
}

#[test]
fn a_failed_import_names_the_file_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("yamnet.tflite"), folder.path().join("yamnet.onnx"));
    std::fs::write(&source, &TFLITE[..1_000_000]).unwrap();

    let error = import_yamnet_file(&source, &target).unwrap_err();

    assert!(error.to_string().contains("yamnet.tflite is damaged"), "{error}");
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["yamnet.tflite"]);
}

#[test]
fn an_imported_file_cut_anywhere_is_an_error_and_never_a_panic() {
    let bytes = std::fs::read(&IMPORTED.file).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cut.onnx");
    for part in [0, 1, 7, 50, 500, 900, 990, 999] {
        std::fs::write(&file, &bytes[..bytes.len() * part / 1000]).unwrap();

        let error = SoundClassifier::open(&file).unwrap_err();

        assert!(error.to_string().contains("cut.onnx"), "{error}");
    }
}

#[test]
fn tensors_of_another_size_are_refused() {
    let mut classifier = SoundClassifier::open(&IMPORTED.file).unwrap();

    let error = classifier.classify(&[&[0.0; WINDOW_VALUES - 1]]).unwrap_err();

    assert!(matches!(error, ModelError::Run { .. }), "{error}");
    assert!(error.to_string().contains("6144 F32 values"), "{error}");
}

#[test]
fn outputs_and_inputs_are_asked_for_by_their_names() {
    let load = |inputs: &[InputSpec], outputs: &[&str]| {
        let outputs = outputs.iter().map(|name| (*name).to_owned()).collect();
        TractRuntime.load(&IMPORTED.file, &ModelSpec { inputs: inputs.into(), outputs }).map(drop)
    };
    let log_mel = InputSpec::f32("log_mel", &[1, 96, 64]);

    let no_output = load(std::slice::from_ref(&log_mel), &["classes"]).unwrap_err();
    let no_input = load(&[], &["scores"]).unwrap_err();
    let other_input = load(&[log_mel, InputSpec::i64("tokens", &[1, 77])], &["scores"]).unwrap_err();

    assert!(no_output.to_string().contains("no output classes (it offers scores, embedding)"), "{no_output}");
    assert!(no_input.to_string().contains("needs the input log_mel"), "{no_input}");
    assert!(other_input.to_string().contains("do not depend on an input tokens"), "{other_input}");
}

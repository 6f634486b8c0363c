//! `percept models` as a user runs it, without a network.

use std::ffi::OsString;
use std::path::Path;

use percept::cli::Io;
use percept::cli::run;
use percept::domain::time::SystemClock;
use serde_json::Value;

struct Output {
    code: u8,
    out: String,
    err: String,
}

/// Runs `percept --data-dir DIR models ARGS…`, with the built-in config.
fn models(data_dir: &Path, args: &[&str]) -> Output {
    let config = data_dir.join("percept.toml");
    std::fs::write(&config, "").unwrap();
    let shared = ["percept", "--config", config.to_str().unwrap(), "--data-dir", data_dir.to_str().unwrap(), "models"];
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let clock = SystemClock::new();
    let mut io = Io { out: &mut out, err: &mut err, out_is_terminal: false, err_is_terminal: false, clock: &clock };
    let code = run(shared.iter().chain(args).map(OsString::from), &mut io);
    Output { code, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

#[test]
fn the_list_names_every_model_and_what_is_needed() {
    let data_dir = tempfile::tempdir().unwrap();

    let table = models(data_dir.path(), &["list"]);
    let json = models(data_dir.path(), &["list", "--format", "json"]);

    assert_eq!((table.code, table.err.as_str()), (0, ""));
    assert!(table.out.contains("tinyclip-vit-8m-16"), "{}", table.out);
    let rows: Vec<Value> = serde_json::from_str(&json.out).unwrap();
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[0]["model"], "yamnet");
    assert_eq!(rows[0]["state"], "missing");
    assert_eq!(rows[2]["files"][0]["bytes"], 351_685_709);
}

#[test]
fn an_unknown_model_is_a_usage_error_with_the_nearest_name() {
    let data_dir = tempfile::tempdir().unwrap();

    let output = models(data_dir.path(), &["fetch", "yamnett"]);

    assert_eq!(output.code, 2);
    assert!(output.err.contains("do you mean yamnet?"), "{}", output.err);
    assert!(!data_dir.path().join("models").exists(), "nothing was begun");
}

#[test]
fn all_and_names_together_are_a_usage_error() {
    let data_dir = tempfile::tempdir().unwrap();

    assert_eq!(models(data_dir.path(), &["fetch", "--all", "yamnet"]).code, 2);
    assert_eq!(models(data_dir.path(), &["fetch", "--from", "/nowhere"]).code, 2);
}

#[test]
fn verify_fails_and_says_what_to_run_when_a_needed_model_is_not_here() {
    let data_dir = tempfile::tempdir().unwrap();

    let output = models(data_dir.path(), &["verify"]);

    assert_eq!(output.code, 1);
    assert!(output.out.contains("percept models fetch yamnet"), "{}", output.out);
}

#[test]
fn a_damaged_file_is_found_by_verify_with_both_hashes() {
    let data_dir = tempfile::tempdir().unwrap();
    let source = data_dir.path().join("models/yamnet/yamnet.tflite");
    crate::models::write(&source, &[b'x'; 4_126_810]);

    let output = models(data_dir.path(), &["verify", "yamnet", "--format", "jsonl"]);

    assert_eq!(output.code, 1);
    let row = output.out.lines().find(|line| line.contains("yamnet.tflite")).unwrap();
    let row: Value = serde_json::from_str(row).unwrap();
    assert_eq!(row["state"], "damaged");
    assert_eq!(row["found"], crate::models::sha256(&[b'x'; 4_126_810]));
    assert_eq!(row["expected"], "10c95ea3eb9a7bb4cb8bddf6feb023250381008177ac162ce169694d05c317de");
}

#[test]
fn a_local_model_is_taken_in_from_a_folder() {
    let data_dir = tempfile::tempdir().unwrap();
    let own = data_dir.path().join("own");
    crate::models::write(&own.join("vision_model.onnx"), b"image");
    crate::models::write(&own.join("text_model.onnx"), b"text");
    let id = "openclip-laion2b-vit-b-32";

    let refused = models(data_dir.path(), &["fetch", id, "--mirror", ""]);
    let taken = models(data_dir.path(), &["fetch", id, "--from", own.to_str().unwrap()]);
    let verified = models(data_dir.path(), &["verify", id]);

    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("--from FOLDER"), "{}", refused.err);
    assert_eq!((taken.code, verified.code), (0, 0), "{}{}", taken.err, verified.out);
    assert!(taken.err.contains("openclip-laion2b-vit-b-32/text_model.onnx: ready"), "{}", taken.err);
}

#[test]
fn a_second_fetch_into_the_same_folder_says_that_one_is_under_way() {
    let data_dir = tempfile::tempdir().unwrap();
    let models_dir = data_dir.path().join("models");
    std::fs::create_dir(&models_dir).unwrap();
    let held = std::fs::File::create(models_dir.join(".fetch.lock")).unwrap();
    held.lock().unwrap();

    let output = models(data_dir.path(), &["fetch", "yamnet"]);

    assert_eq!(output.code, 1);
    assert!(output.err.contains("another percept is fetching"), "{}", output.err);
}

#[test]
fn yamnet_is_fetched_from_a_mirror_built_verified_and_located() {
    let data_dir = tempfile::tempdir().unwrap();
    let mirror = std::env::var("PERCEPT_MODEL_MIRROR").unwrap_or_else(|_| "models".to_owned());

    let fetched = models(data_dir.path(), &["fetch", "yamnet", "--mirror", &mirror]);
    let again = models(data_dir.path(), &["fetch", "yamnet", "--mirror", ""]);
    let verified = models(data_dir.path(), &["verify", "yamnet"]);

    assert_eq!(fetched.code, 0, "{}", fetched.err);
    assert!(fetched.err.contains("yamnet/yamnet.onnx: building from yamnet.tflite"), "{}", fetched.err);
    assert_eq!((again.code, again.err.as_str()), (0, "yamnet/yamnet.tflite: is here\nyamnet/yamnet.onnx: is here\n"));
    assert_eq!(verified.code, 0, "{}", verified.out);
    let located = percept::perception::model::locate::locate(&data_dir.path().join("models"), "yamnet").unwrap();
    assert_eq!(located.files.len(), 1, "the tflite is not needed to run");
}

//! What documents, rows and media disagree on is found, told and mended.

use crate::replay::config;
use crate::replay::home;
use crate::scene::Scene;
use serde_json::Value;
use serde_json::json;
use std::fs;
use std::path::PathBuf;

fn found(scene: &Scene, args: &[&str]) -> (u8, Value) {
    let outcome = scene.percept(&config(), &[&["--format", "json", "reconcile"], args].concat());
    (outcome.code, serde_json::from_str(&outcome.out).unwrap_or_else(|error| panic!("{error}: {outcome:#?}")))
}

fn count(found: &Value, list: &str) -> u64 {
    found["found"][list]["count"].as_u64().unwrap()
}

/// A scene with six kept pictures and a moment.
fn pictures(name: &str) -> (Scene, Vec<PathBuf>) {
    let mut scene = home(name);
    for number in 2..6_u32 {
        let size = 8 + 16 * number;
        let picture = image::RgbImage::from_fn(320, 240, |x, y| {
            if (x / size + y / (size / 2)).is_multiple_of(2) {
                image::Rgb([220, 220, 10])
            } else {
                image::Rgb([10, 10, 90])
            }
        });
        scene = scene.picture(u64::from(number) * 100_000 - 50_000, &picture);
    }
    let keep = format!("{}[camera]\nkeep_key_frames = true\n", config());
    scene.replay(&keep);
    let mut files = Vec::new();
    for folder in fs::read_dir(scene.data_dir().join("media")).unwrap().flatten() {
        files.extend(fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path()));
    }
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    (scene, files)
}

fn meeting(scene: &Scene) -> (String, PathBuf) {
    let row = &scene.episodes(&["--modality", "social"])[0];
    let id = row["id"].as_str().unwrap().to_owned();
    let document = scene.data_dir().join("multimodal-episodes").join(&id).join("episode.json");
    (id, document)
}

#[test]
fn three_files_deleted_and_two_orphans_added_are_reported_3_and_2_and_mended_on_request() {
    let (scene, files) = pictures("media");
    assert_eq!(found(&scene, &[]).0, 0, "a sound store agrees with itself");
    files[..3].iter().for_each(|file| fs::remove_file(file).unwrap());
    fs::write(scene.data_dir().join("media/one.jpg"), b"1").unwrap();
    fs::create_dir_all(scene.data_dir().join("media/ff")).unwrap();
    fs::write(scene.data_dir().join("media/ff/two.jpg"), b"2").unwrap();

    let (code, report) = found(&scene, &[]);
    let table = scene.percept(&config(), &["reconcile"]);
    let (mended_code, mended) = found(&scene, &["--mend"]);

    let of = |name: &str| report["found"]["media"][name]["count"].as_u64();
    assert_eq!((code, of("missing"), of("orphans")), (1, Some(3), Some(2)), "{report}");
    assert!(table.out.contains("media files missing"), "{table:#?}");
    assert!(table.err.contains("--mend"), "{table:#?}");
    assert_eq!(mended_code, 0, "{mended}");
    assert_eq!(mended["mended"]["media"]["marked_missing"], json!(3));
    assert_eq!(mended["mended"]["media"]["set_aside"], json!(2));
    assert_eq!(found(&scene, &[]).0, 0);
}

#[test]
fn a_lost_document_is_written_again_from_its_row() {
    let scene = home("document");
    scene.replay(&config());
    let (_, document) = meeting(&scene);
    let before: Value = serde_json::from_slice(&fs::read(&document).unwrap()).unwrap();
    fs::remove_dir_all(document.parent().unwrap()).unwrap();

    let (code, report) = found(&scene, &["--mend"]);

    assert_eq!((code, count(&report, "rows_without_document")), (0, 1), "{report}");
    let after: Value = serde_json::from_slice(&fs::read(&document).unwrap()).unwrap();
    for key in ["id", "sessionId", "timestamp", "social"] {
        assert_eq!(after[key], before[key], "{key}");
    }
    assert_eq!(after["spatial"]["locationLabel"], before["spatial"]["locationLabel"]);
}

#[test]
fn a_document_without_a_row_gives_its_row_back_unless_it_was_forgotten() {
    let scene = home("row");
    scene.replay(&config());
    let (id, document) = meeting(&scene);
    let kept = fs::read(&document).unwrap();
    let store = scene.data_dir().join("memory.db");
    let others: Vec<PathBuf> = ["memory.db-wal", "memory.db-shm"].map(|name| scene.data_dir().join(name)).to_vec();
    // The store is lost; the documents are not.
    fs::rename(&store, scene.session().join("memory.db")).unwrap();
    others.iter().for_each(|file| drop(fs::remove_file(file)));
    let marked = scene.percept(&config(), &["capture", "--note", "the new store begins"]);
    assert_eq!(marked.code, 0, "{marked:#?}");

    let (code, report) = found(&scene, &["--mend"]);

    assert!(count(&report, "documents_without_row") >= 1, "{report}");
    assert_eq!(code, 0, "{report}");
    let rows = scene.episodes(&["--modality", "social"]);
    assert_eq!(rows.len(), 1, "{rows:#?}");
    assert_eq!(
        (rows[0]["id"].as_str(), rows[0]["content"].as_str()),
        (Some(id.as_str()), Some("Met Alice. Location: Kitchen"))
    );
    assert_eq!(rows[0]["importance"], json!(9));
    let outcome = scene.percept(&config(), &["forget", "--id", &id, "--yes"]);
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    fs::create_dir_all(document.parent().unwrap()).unwrap();
    fs::write(&document, kept).unwrap();

    let (code, report) = found(&scene, &["--mend"]);

    assert_eq!((code, count(&report, "documents_without_row")), (0, 1), "{report}");
    assert!(!document.exists(), "a forgotten moment does not come back from its document");
    assert!(scene.episodes(&["--modality", "social"]).is_empty());
}

#[test]
fn the_row_is_right_where_a_document_says_something_else() {
    let scene = home("differ");
    scene.replay(&config());
    let (_, document) = meeting(&scene);
    let right: Value = serde_json::from_slice(&fs::read(&document).unwrap()).unwrap();
    for (key, wrong) in [("timestamp", json!(5)), ("social", json!({"personName": "Mallory"})), ("id", json!("x"))] {
        let mut changed = right.clone();
        changed[key] = wrong;
        fs::write(&document, changed.to_string()).unwrap();

        let (code, report) = found(&scene, &[]);
        assert_eq!((code, count(&report, "documents_that_differ")), (1, 1), "{key}: {report}");
        let (code, report) = found(&scene, &["--mend"]);
        assert_eq!(code, 0, "{key}: {report}");

        let mended: Value = serde_json::from_slice(&fs::read(&document).unwrap()).unwrap();
        for part in ["id", "timestamp", "social"] {
            assert_eq!(mended[part], right[part], "{part} after a wrong {key}");
        }
    }
}

#[test]
fn what_a_crash_left_is_found_and_removed_and_what_cannot_be_mended_is_said() {
    let scene = home("left");
    scene.replay(&config());
    let data = scene.data_dir();
    let (id, document) = meeting(&scene);
    fs::create_dir_all(data.join(format!("multimodal-episodes/.{id}.tmp"))).unwrap();
    fs::write(document.with_extension("prog"), b"{").unwrap();
    fs::write(data.join("pending/cut.json"), b"{\"episode\"").unwrap();
    fs::write(data.join("pending/cut.prog"), b"{").unwrap();
    fs::create_dir_all(data.join("multimodal-episodes/no-id")).unwrap();

    let (code, report) = found(&scene, &["--mend"]);

    assert_eq!((count(&report, "unfinished"), count(&report, "markers")), (3, 1), "{report}");
    assert_eq!((code, report["left"]["documents_without_row"]["count"].as_u64()), (1, Some(1)), "{report}");
    assert!(report["mended"]["left"][0].as_str().unwrap().contains("no-id"), "{report}");
    fs::remove_dir_all(data.join("multimodal-episodes/no-id")).unwrap();
    assert_eq!(found(&scene, &[]).0, 0);
}

//! Mirrors, built files, local files, the lock, and what `locate` says about what lies on the disk.

use std::path::Path;

use percept::domain::disposition::Disposition;
use percept::perception::model::ModelFileError;
use percept::perception::model::locate::Depth;
use percept::perception::model::locate::FileState;
use percept::perception::model::locate::inspect;
use percept::perception::model::locate::locate_in;
use percept::perception::model::manifest::Role;

use crate::models::Bench;
use crate::models::content;
use crate::models::file_text;
use crate::models::manifest_text;
use crate::models::server::Reply;
use crate::models::server::Server;
use crate::models::sha256;
use crate::models::write;

/// A bench whose address always answers 404.
fn offline() -> (Bench, Server) {
    let server = Server::start(|_, _| Reply::status("404 Not Found"));
    (Bench::new(&[server.url("/a.bin")]), server)
}

/// A bench with a file that is built from the fetched one: its bytes in reverse.
fn with_built(source: &[u8], built: &[u8]) -> Bench {
    let text = manifest_text(source, &["http://127.0.0.1:9/a.bin".to_owned()]).replace("\"sound\"", "\"source\"")
        + &file_text("b.bin", "sound", built, "built_from = \"a.bin\"");
    let mut bench = Bench::with_manifest(&text);
    let mirror = bench.folder.path().join("mirror");
    write(&mirror.join("a.bin"), source);
    bench.mirrors.push(mirror);
    bench
}

/// A bench whose model is brought by its owner: `a.onnx` and `b.onnx`.
fn with_local() -> Bench {
    Bench::with_manifest(
        "format = 1\n[[model]]\nid = \"m\"\npurpose = \"p\"\nlicence = \"MIT\"\ndefault = false\nlocal = true\n\
         home = \"h\"\nnote = \"\"\n[[model.file]]\nname = \"a.onnx\"\nrole = \"image\"\n\
         [[model.file]]\nname = \"b.onnx\"\nrole = \"text\"\n",
    )
}

fn locate(bench: &Bench) -> Result<percept::perception::model::locate::ModelFiles, ModelFileError> {
    locate_in(&bench.manifest, &bench.models_dir(), "m")
}

fn states(bench: &Bench) -> Vec<FileState> {
    let model = bench.manifest.model("m").unwrap();
    inspect(&bench.models_dir(), model, Depth::Hash).into_iter().map(|report| report.state).collect()
}

#[test]
fn a_mirror_serves_before_any_address() {
    for layout in ["m/a.bin", "a.bin"] {
        let (mut bench, server) = offline();
        let mirror = bench.folder.path().join("mirror");
        write(&mirror.join(layout), &content());
        bench.mirrors = vec![bench.folder.path().join("absent"), mirror];
        bench.write("a.bin.part", b"of an earlier download");

        let steps = bench.fetch().unwrap();

        assert_eq!(bench.names(), ["a.bin"], "{layout}");
        assert!(steps[0].starts_with("Copying"), "{steps:?}");
        assert_eq!(server.requests(), []);
        assert_eq!(states(&bench), [FileState::Good { sha256: sha256(&content()) }]);
    }
}

#[test]
fn a_mirror_with_other_bytes_is_passed_over_and_told() {
    let (mut bench, _server) = offline();
    let mut lie = content();
    lie[0] ^= 1;
    let mirror = bench.folder.path().join("mirror");
    write(&mirror.join("m/a.bin"), &lie);
    write(&mirror.join("a.bin"), &content());
    bench.mirrors = vec![mirror.clone()];

    let steps = bench.fetch().unwrap();

    assert!(steps.iter().any(|step| step.contains("other bytes than pinned")), "{steps:?}");
    assert_eq!(std::fs::read(bench.file("a.bin")).unwrap(), content());
    std::fs::remove_file(bench.file("a.bin")).unwrap();
    write(&mirror.join("a.bin"), b"short");

    let error = bench.fetch().unwrap_err().to_string();

    assert!(error.contains("a file of 5 bytes, not 300000"), "{error}");
    assert!(error.contains("404"), "{error}");
    assert_eq!(bench.names(), Vec::<String>::new());
}

#[test]
fn a_wrong_mirror_costs_nothing_of_a_download_under_way() {
    let server = Server::start(|request, _| Reply::ranged(&content(), request));
    let mut bench = Bench::new(&[server.url("/a.bin")]);
    let mirror = bench.folder.path().join("mirror");
    write(&mirror.join("a.bin"), &vec![0; 300_000]);
    bench.mirrors = vec![mirror];
    bench.write("a.bin.part", &content()[..1_000]);

    bench.fetch().unwrap();

    assert_eq!(server.ranges(), [Some(1_000)]);
}

#[test]
fn a_full_disk_while_copying_leaves_nothing() {
    let (mut bench, _server) = offline();
    let mirror = bench.folder.path().join("mirror");
    write(&mirror.join("a.bin"), &content());
    bench.mirrors = vec![mirror];
    std::fs::create_dir_all(bench.models_dir().join("m")).unwrap();
    std::os::unix::fs::symlink("/dev/full", bench.file("a.bin.copy.part")).unwrap();

    let error = bench.fetch().unwrap_err();

    assert!(matches!(error, ModelFileError::DiskFull { .. }), "{error}");
    assert_eq!(bench.names(), Vec::<String>::new());
}

#[test]
fn what_is_right_already_is_left_alone() {
    let (bench, server) = offline();
    bench.write("a.bin", &content());
    bench.write("a.bin.part", b"left behind");

    let steps = bench.fetch().unwrap();

    assert_eq!(steps, ["Present"]);
    assert_eq!(bench.names(), ["a.bin"]);
    assert_eq!(server.requests(), []);
}

#[test]
fn a_damaged_file_is_replaced_and_never_used() {
    let server = Server::start(|_, earlier| match earlier {
        0 => Reply::status("503 Service Unavailable"),
        _ => Reply::whole(&content()),
    });
    let bench = Bench::new(&[server.url("/a.bin")]);
    let mut damaged = content();
    damaged[299_999] ^= 0x80;
    bench.write("a.bin", &damaged);

    let error = locate(&bench).unwrap_err();
    bench.fetch().unwrap_err();
    let still = locate(&bench).unwrap_err();
    bench.fetch().unwrap();

    assert!(error.to_string().contains(&format!("expected {}, found {}", sha256(&content()), sha256(&damaged))));
    assert!(error.to_string().contains("percept models fetch m"), "{error}");
    assert!(error.to_string().contains("a.bin"), "{error}");
    assert_eq!(error.disposition(), Disposition::Degrade);
    assert_eq!(still.to_string(), error.to_string());
    assert_eq!(locate(&bench).unwrap().path(Role::Sound), Some(bench.file("a.bin").as_path()));
}

#[test]
fn a_built_file_is_made_from_its_source_and_is_enough_to_run() {
    let bench = with_built(b"abc", b"cba");

    let steps = bench.fetch().unwrap();

    assert_eq!(bench.names(), ["a.bin", "b.bin"]);
    assert_eq!(std::fs::read(bench.file("b.bin")).unwrap(), b"cba");
    assert_eq!(steps[steps.len() - 2..], ["Building { from: \"a.bin\" }", "Ready"]);
    std::fs::remove_file(bench.file("a.bin")).unwrap();
    assert_eq!(locate(&bench).unwrap().path(Role::Sound), Some(bench.file("b.bin").as_path()));
}

#[test]
fn a_damaged_built_file_is_noticed_and_built_again() {
    let bench = with_built(b"abc", b"cba");
    bench.fetch().unwrap();
    bench.write("b.bin", b"cbx");

    let damaged = states(&bench);
    bench.fetch().unwrap();

    assert_eq!(damaged[1], FileState::WrongHash { expected: sha256(b"cba"), found: sha256(b"cbx") });
    assert_eq!(states(&bench)[1], FileState::Good { sha256: sha256(b"cba") });
}

#[test]
fn a_build_that_fails_or_differs_leaves_nothing_and_says_why() {
    let fails = with_built(b"?bc", b"cb?");
    let differs = with_built(b"abc", b"abc");

    let failed = fails.fetch().unwrap_err();
    let differed = differs.fetch().unwrap_err();

    assert!(failed.to_string().contains("the source makes no sense"), "{failed}");
    assert!(differed.to_string().contains("fault of percept"), "{differed}");
    assert_eq!([fails.names(), differs.names()], [["a.bin"], ["a.bin"]]);
    assert_eq!(failed.disposition(), Disposition::Degrade);
}

#[test]
fn local_files_are_taken_in_and_their_later_damage_is_noticed() {
    let bench = with_local();
    let own = bench.folder.path().join("own");
    write(&own.join("a.onnx"), b"image");
    write(&own.join("b.onnx"), b"text");

    bench.fetch_from(Some(&own)).unwrap();

    assert_eq!(bench.names(), ["SHA256SUMS", "a.onnx", "b.onnx"]);
    let files = locate(&bench).unwrap();
    assert_eq!(files.path(Role::Text), Some(bench.file("b.onnx").as_path()));
    bench.write("b.onnx", b"tent");
    assert!(matches!(locate(&bench).unwrap_err(), ModelFileError::HashMismatch { .. }));
    write(&own.join("b.onnx"), b"newer");
    bench.fetch_from(Some(&own)).unwrap();
    assert_ne!(locate(&bench).unwrap().digest(), files.digest(), "another model is another digest");
}

#[test]
fn a_local_model_is_taken_in_whole_or_not_at_all() {
    let bench = with_local();
    let own = bench.folder.path().join("own");
    write(&own.join("a.onnx"), b"image");

    let error = bench.fetch_from(Some(&own)).unwrap_err();

    assert!(error.to_string().contains(own.join("b.onnx").to_str().unwrap()), "{error}");
    assert!(error.to_string().contains("--from FOLDER"), "{error}");
    assert_eq!(bench.names(), Vec::<String>::new());
}

#[test]
fn local_files_dropped_into_the_folder_are_used_once_they_are_taken_in() {
    let bench = with_local();
    bench.write("a.onnx", b"image");
    bench.write("b.onnx", b"text");

    let before = states(&bench);
    bench.fetch().unwrap();

    assert_eq!(before, [FileState::NotRecorded, FileState::NotRecorded]);
    assert!(locate(&bench).is_ok());
}

#[test]
fn two_fetches_at_once_are_refused_and_the_folder_is_free_afterwards() {
    let (bench, _server) = offline();
    let first = bench.open().unwrap();

    let second = bench.open().err().unwrap();
    drop(first);

    assert!(matches!(second, ModelFileError::Busy { .. }), "{second}");
    assert_eq!(second.disposition(), Disposition::Retry);
    assert!(bench.open().is_ok());
}

#[test]
fn a_models_folder_that_is_a_file_is_named() {
    let (bench, _server) = offline();
    write(&bench.models_dir(), b"");

    let error = bench.fetch().unwrap_err();

    assert!(error.to_string().contains(bench.models_dir().to_str().unwrap()), "{error}");
    assert_eq!(error.disposition(), Disposition::Stop);
}

#[test]
fn a_folder_of_that_name_is_told_apart_from_a_missing_one() {
    let (bench, _server) = offline();
    std::fs::create_dir_all(bench.file("a.bin")).unwrap();

    let states = states(&bench);

    assert!(matches!(states[..], [FileState::Unreadable { .. }]), "{states:?}");
}

#[test]
fn a_missing_or_unknown_model_says_what_to_do() {
    let (bench, _server) = offline();

    let missing = locate(&bench).unwrap_err().to_string();
    let unknown = locate_in(&bench.manifest, Path::new("x"), "mm").unwrap_err().to_string();

    assert!(missing.ends_with("run `percept models fetch m`"), "{missing}");
    assert!(unknown.contains("no model \"mm\" (do you mean m?)"), "{unknown}");
}

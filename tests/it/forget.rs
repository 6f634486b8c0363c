//! Forgetting through the command line, on real replayed scenes: the bytes of every file are searched afterwards.

use crate::memory_rows;
use crate::replay::config;
use crate::replay::home;
use crate::scene::Outcome;
use crate::scene::STARTED_AT;
use crate::scene::Scene;
use percept::agent::forget;
use percept::agent::forget::Phase;
use percept::agent::moments::MomentFolder;
use percept::domain::episode::EpisodeRecord;
use percept::domain::episode::Media;
use percept::domain::episode::MediaKind;
use percept::domain::modality::Modality;
use percept::episodes::moment::Moment;
use percept::memory::forget::Order;
use percept::memory::forget::Subject;
use percept::memory::reader::Reader;
use serde_json::Value;
use serde_json::json;
use std::fs;
use std::io::BufRead as _;
use std::io::BufReader;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;

/// Two people who come and go, one after the other.
fn two_people(name: &str) -> Scene {
    (100..=160)
        .step_by(5)
        .fold(home(name), |scene, second| scene.advertisement(second * 1_000, "C0:FF:EE:00:12:35", -60))
}

fn two_known() -> String {
    format!("{}[[people]]\nname = \"Bob\"\naddresses = [\"C0:FF:EE:00:12:35\"]\n", config())
}

fn done(scene: &Scene, config: &str, args: &[&str]) -> Outcome {
    let outcome = scene.percept(config, args);
    assert_eq!(outcome.code, 0, "{args:?}: {outcome:#?}");
    outcome
}

fn json_of(scene: &Scene, config: &str, args: &[&str]) -> Value {
    serde_json::from_str(&done(scene, config, &[&["--format", "json"], args].concat()).out).unwrap()
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        if entry.path().is_dir() {
            files.extend(files_below(&entry.path()));
        }
        files.push(entry.path());
    }
    files
}

/// The files that hold a word in any letter case, in their bytes or their name.
pub fn files_with(dir: &Path, word: &str) -> Vec<String> {
    let word = word.to_lowercase();
    let holds = |bytes: &[u8]| bytes.to_ascii_lowercase().windows(word.len()).any(|part| part == word.as_bytes());
    let mut found: Vec<String> = files_below(dir)
        .into_iter()
        .filter(|file| {
            let name = file.strip_prefix(dir).unwrap().display().to_string();
            holds(name.as_bytes()) || (file.is_file() && holds(&fs::read(file).unwrap()))
        })
        .map(|file| file.display().to_string())
        .collect();
    found.sort();
    found
}

fn contents(scene: &Scene) -> Vec<String> {
    scene.episodes(&[]).iter().map(|row| row["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_person_is_in_no_file_afterwards_and_no_replay_brings_them_back() {
    let (scene, config) = (two_people("forget"), two_known());
    scene.replay(&config);
    done(&scene, &config, &["meet", "Alice", "--transcript", "it is me"]);
    let shared =
        json_of(&scene, &config, &["capture", "--face", "alice", "--face", "Dora", "--transcript", "Alice's tea"]);
    let other = json_of(&scene, &config, &["capture", "--transcript", "malice aforethought"]);
    let data = scene.data_dir();
    for file in ["memory.db.damaged-2026-11-30T12-00-00Z", "media/.orphans/alice.jpg", "media/alice.jpg"] {
        fs::create_dir_all(data.join(file).parent().unwrap()).unwrap();
        fs::write(data.join(file), b"Alice").unwrap();
    }
    let folder = data.join("multimodal-episodes").join(shared["id"].as_str().unwrap());
    fs::write(folder.join("alice.jpg"), b"a picture").unwrap();
    assert!(files_with(&data, "alice").len() > 4, "the person is everywhere");

    let outcome = done(&scene, &config, &["forget", "--person", "Alice", "--yes"]);

    let strays: Vec<String> =
        files_with(&data, "alice").into_iter().filter(|file| !fs::read_to_string(file).is_ok_and(is_malice)).collect();
    // `malice` is another word, and stays.
    assert_eq!(strays, [data.join("memory.db").display().to_string()], "{outcome:#?}");
    assert_eq!(fs::read(data.join("memory.db")).unwrap().windows(6).filter(|part| *part == b" Alice").count(), 0);
    assert!(outcome.err.contains("percept.toml: people[0].name"), "{}", outcome.err);
    let told = contents(&scene);
    assert!(told.iter().any(|content| content.starts_with("Met Bob")), "{told:?}");
    assert!(told.contains(&"Said: \"someone's tea\". Faces: someone, Dora".to_owned()), "{told:?}");
    assert!(told.contains(&"Said: \"malice aforethought\"".to_owned()), "{told:?}");
    assert!(!told.iter().any(|content| content.contains("Alice")), "{told:?}");
    let document: Value = serde_json::from_slice(&fs::read(folder.join("episode.json")).unwrap()).unwrap();
    assert_eq!(document["visual"]["faceNames"], json!(["someone", "Dora"]));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "what cannot be redacted is gone");
    assert!(data.join("multimodal-episodes").join(other["id"].as_str().unwrap()).is_dir());

    done(&scene, &config, &["forget", "--person", "malice", "--yes"]);
    assert_eq!(files_with(&data, "alice"), [""; 0]);
    nothing_comes_back(&scene, &config);
    assert_eq!(done(&scene, &config, &["reconcile"]).out, "documents, rows and media agree\n");
}

fn is_malice(text: String) -> bool {
    text.to_lowercase().matches("alice").count() == text.to_lowercase().matches("malice").count()
}

/// The same session again: as it is, with other settings, and with settings that give meetings other ids.
fn nothing_comes_back(scene: &Scene, config: &str) {
    let before = Reader::open(&scene.data_dir()).unwrap().dump().unwrap();
    let session = scene.session();
    let session = session.to_str().unwrap();

    let again = done(scene, config, &["replay", session]);
    assert!(again.out.contains("nothing new"), "{}", again.out);
    assert_eq!(Reader::open(&scene.data_dir()).unwrap().dump().unwrap(), before);

    let bob = contents(scene).into_iter().filter(|content| content.starts_with("Met Bob")).count();
    for other in ["[moments]\npause_s = 601\n", "[presence]\nabsence_s = 6\n", "[presence]\nabsence_s = 3\n"] {
        done(scene, &format!("{config}{other}"), &["replay", "--reprocess", session]);
        assert_eq!(files_with(&scene.data_dir(), "alice"), [""; 0], "after {other}");
        let left = contents(scene).into_iter().filter(|content| content.starts_with("Met Bob")).count();
        assert_eq!(left, bob, "after {other}");
    }
}

#[test]
fn a_replay_with_other_ids_would_bring_them_back_if_nothing_were_forgotten() {
    let (scene, config) = (two_people("ids"), two_known());
    scene.replay(&config);
    let ids = |scene: &Scene| -> Vec<String> {
        scene.episodes(&["--modality", "social"]).iter().map(|row| row["id"].to_string()).collect()
    };
    let before = ids(&scene);

    let session = scene.session();
    let other = format!("{config}[presence]\nabsence_s = 3\n");
    done(&scene, &other, &["replay", "--reprocess", session.to_str().unwrap()]);

    assert!(ids(&scene).iter().any(|id| !before.contains(id)), "the test above tests something");
}

#[test]
fn a_dry_run_counts_and_changes_nothing_and_without_a_yes_nothing_is_forgotten() {
    let (scene, config) = (two_people("dry"), two_known());
    scene.replay(&config);
    let before = Reader::open(&scene.data_dir()).unwrap().dump().unwrap();

    let dry = json_of(&scene, &config, &["forget", "--person", "alice", "--dry-run"]);
    let unasked = scene.percept(&config, &["forget", "--person", "Alice"]);
    let codes = [
        &["forget"][..],
        &["forget", "--person", "A", "--place", "B"],
        &["forget", "--since", "2h", "--id", "abcd"],
        &["forget", "--person", "...", "--yes"],
        &["forget", "--person", "someone", "--yes"],
        &["forget", "--id", "ffffffff", "--yes"],
        &["forget", "--since", "yesterday", "--until", "3d", "--yes"],
    ]
    .map(|words| scene.percept(&config, words).code);

    assert_eq!((dry["would_remove"].as_u64(), dry["would_redact"].as_u64()), (Some(1), Some(0)), "{dry}");
    assert_eq!(dry["examples"][0]["content"], json!("Met Alice. Location: Kitchen"));
    assert_eq!(dry["config"].as_array().map(Vec::len), Some(1), "{dry}");
    assert_eq!(unasked.code, 1);
    assert!(unasked.err.contains("--yes"), "{}", unasked.err);
    assert_eq!(codes, [2, 2, 2, 1, 1, 1, 1]);
    assert_eq!(Reader::open(&scene.data_dir()).unwrap().dump().unwrap(), before);
}

#[test]
fn a_place_loses_its_stays_its_name_and_its_position() {
    let (scene, config) = (two_people("place"), two_known());
    scene.replay(&config);

    let report = json_of(&scene, &config, &["forget", "--place", "kitchen", "--yes"]);

    assert_eq!(files_with(&scene.data_dir(), "kitchen"), [""; 0], "{report}");
    let rows = scene.episodes(&[]);
    assert!(rows.iter().all(|row| row["metadata"]["place"].is_null() && row["metadata"]["latitude_deg"].is_null()));
    let met: Vec<&str> =
        rows.iter().filter_map(|row| row["content"].as_str()).filter(|row| row.starts_with("Met")).collect();
    assert_eq!(met, ["Met Bob. Location: somewhere", "Met Alice. Location: somewhere"]);
    for file in files_below(&scene.data_dir().join("multimodal-episodes")).iter().filter(|file| file.is_file()) {
        let document: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        assert!(document["spatial"]["gps"].is_null() && document["spatial"]["locationLabel"].is_null(), "{document}");
    }
    assert_eq!(
        report["config"],
        json!([format!("{}: places[0].name", scene.data_dir().parent().unwrap().join("percept.toml").display())])
    );
    let session = scene.session();
    done(&scene, &format!("{config}[moments]\npause_s = 601\n"), &["replay", "--reprocess", session.to_str().unwrap()]);
    assert_eq!(files_with(&scene.data_dir(), "kitchen"), [""; 0]);
}

#[test]
fn a_span_and_an_id_go_with_their_documents() {
    let (scene, config) = (two_people("span"), two_known());
    scene.replay(&config);
    let social = scene.episodes(&["--modality", "social"]);
    let (bob, alice) = (social[0]["id"].as_str().unwrap(), &social[1]);
    let time = |millis: i64| percept::domain::time::Timestamp::from_millis(millis).to_string();
    let at = alice["timestamp"].as_i64().unwrap();
    let document = |id: &str| scene.data_dir().join("multimodal-episodes").join(id);
    assert!(document(bob).is_dir());

    let by_id = json_of(&scene, &config, &["forget", "--id", &bob[..13], "--yes"]);
    let span = json_of(&scene, &config, &["forget", "--since", &time(at - 1), "--until", &time(at + 1), "--yes"]);

    assert_eq!((by_id["episodes_removed"].as_u64(), by_id["documents_removed"].as_u64()), (Some(1), Some(1)));
    assert!(!document(bob).exists() && !document(alice["id"].as_str().unwrap()).exists());
    // The meeting, and the stay that went on meanwhile.
    assert!(span["episodes_removed"].as_u64() >= Some(2), "{span}");
    assert!(scene.episodes(&["--modality", "social"]).is_empty());
    let before = contents(&scene);
    let session = scene.session();
    for other in ["[moments]\npause_s = 601\n", "[presence]\nabsence_s = 3\n"] {
        done(&scene, &format!("{config}{other}"), &["replay", "--reprocess", session.to_str().unwrap()]);
        assert_eq!(contents(&scene), before);
    }
    let everything = json_of(&scene, &config, &["forget", "--until", "now", "--yes"]);
    assert_eq!(everything["episodes_removed"].as_u64(), Some(before.len() as u64));
    assert!(scene.episodes(&["--since", STARTED_AT]).is_empty());
}

#[test]
fn expired_session_rows_go_by_command_and_a_clock_that_is_not_set_is_refused() {
    let scene = Scene::new("prune");
    let writer = memory_rows::writer(&scene.data_dir());
    for (minutes, class) in [(-300, "session"), (-170, "session"), (-300, "daily")] {
        // The commands of the tests run an hour after the scene began.
        let now = percept::domain::time::Timestamp::parse(STARTED_AT).unwrap().plus_millis(3_600_000);
        let mut record = memory_rows::audio(minutes * 60_000, minutes * 60_000);
        record.episode.timestamp = now.plus_millis(minutes * 60_000);
        record.episode.ended_at = record.episode.timestamp;
        record.episode.decay_class = percept::domain::modality::DecayClass::parse(class).unwrap();
        record.episode.clock_quality = percept::domain::time::ClockQuality::Network;
        record.episode.id = percept::domain::id::EpisodeId::of_external(
            &record.episode.device_id,
            &percept::domain::id::ExternalId::new(format!("{minutes} {class}")),
        );
        writer.append(record).unwrap();
    }
    writer.close().unwrap();

    let first = done(&scene, "", &["prune"]);
    let second = json_of(&scene, "", &["prune"]);

    assert_eq!(first.out, "session rows gone: 1\n");
    assert_eq!(second, json!({"removed": 0}));
    assert_eq!(scene.episodes(&[]).len(), 2);
}

/// A meeting with a document, a picture and facts, every other one of them about Zebulon.
fn meeting(number: i64) -> (EpisodeRecord, Value) {
    let who = if number % 2 == 0 { "Zebulon" } else { "Bob" };
    let start = number * 60_000;
    let mut record = memory_rows::audio(start, start + 1_000);
    record.episode.modality = Modality::Social;
    record.episode.tool_name = "multimodal_memory".to_owned();
    record.episode.content = format!("Met {who}. Said: \"{} {}\"", "so it is ".repeat(20), who);
    record.episode.metadata.insert("person".to_owned(), who.into());
    record.episode.metadata.insert("multimodal_episode_id".to_owned(), record.episode.id.to_string().into());
    record.facts = vec![memory_rows::located(who, "Kitchen", start)];
    record.media = vec![Media { kind: MediaKind::Wav, bytes: number.to_le_bytes()[..].into() }];
    let moment = Moment { person: Some(who.to_owned()), ..Moment::default() };
    let document = moment.document(record.episode.id, &record.episode.session_id, record.episode.timestamp);
    (record, document)
}

const CHILD_DIR: &str = "PERCEPT_TEST_FORGET";
const MEETINGS: i64 = 240;

fn zebulon() -> Arc<Order> {
    Arc::new(Order { subject: Subject::Person("Zebulon".to_owned()), keep: Vec::new(), known: Vec::new() })
}

#[test]
#[ignore = "runs as the child process of a_forgetting_that_is_killed_leaves_each_row_whole_and_is_ended_by_the_next"]
fn child_that_forgets_until_it_is_killed() {
    let Some(dir) = std::env::var_os(CHILD_DIR) else { return };
    let (writer, folder) = (memory_rows::writer(Path::new(&dir)), MomentFolder::new(Path::new(&dir)));
    let mut next = Some(Phase::FIRST);
    while let Some(phase) = next {
        println!("\nphase");
        next = forget::advance(&zebulon(), phase, &writer, &folder).unwrap().next_phase;
    }
    println!("\nphase");
}

/// Starts the child and kills it as soon as it has begun so many phases.
fn forget_and_kill(dir: &Path, phases: usize) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "forget::child_that_forgets_until_it_is_killed", "--ignored", "--nocapture"])
        .env(CHILD_DIR, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let seen = lines.filter(|line| line == "phase").take(phases).count();
    assert!(seen > 0, "the child did nothing");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_forgetting_that_is_killed_leaves_each_row_whole_and_is_ended_by_the_next() {
    for phases in [1, 2, 3, 5, 8] {
        let dir = tempfile::tempdir().unwrap();
        let (writer, folder) = (memory_rows::writer(dir.path()), MomentFolder::new(dir.path()));
        for (record, document) in (0..MEETINGS).map(meeting) {
            // As the recorder writes it, without waiting for the disk each time.
            let place = folder.episodes().join(record.episode.id.to_string());
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("episode.json"), document.to_string()).unwrap();
            writer.append(record).unwrap();
        }
        writer.close().unwrap();

        forget_and_kill(dir.path(), phases);

        // The next start opens the store, and removes documents of rows that are gone.
        let writer = memory_rows::writer(dir.path());
        assert_eq!(forget::clean_up(&folder).unwrap(), dir.path().join(forget::MARKER).exists());
        let reader = Reader::open(dir.path()).unwrap();
        let told = files_below(folder.episodes());
        let documents: Vec<String> = told
            .iter()
            .filter(|path| path.is_dir())
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        for (record, _) in (0..MEETINGS).map(meeting) {
            let id = record.episode.id;
            let stored = reader.episode(id).unwrap();
            assert_eq!(stored.is_some(), documents.contains(&id.to_string()), "row and document of {id}");
            if let Some(stored) = stored {
                assert_eq!(stored.stored.episode.content, record.episode.content);
                assert_eq!((stored.edges.len(), stored.media.len()), (1, 1));
            }
        }
        let report = forget::forget(&zebulon(), &writer, &folder).unwrap();
        writer.close().unwrap();
        assert_eq!(files_with(dir.path(), "zebulon"), [""; 0], "killed in phase {phases}: {report:?}");
        assert_eq!(Reader::open(dir.path()).unwrap().stats().unwrap().episodes, MEETINGS.unsigned_abs() / 2);
        assert!(!dir.path().join(forget::MARKER).exists());
    }
}

//! Recall over 100,000 episodes while others are inserted: p50, p95 and the slowest of a mix of questions, and what an insert
//! with its facts, links and names costs at that size.
//!
//! The store is a made-up year of one household: sounds, scenes, meetings and stays with facts, names and co-occurrence links.
//! `PERCEPT_BENCH_EPISODES` changes the number.

#![expect(clippy::expect_used, reason = "a benchmark that cannot run has nothing to print")]

use jiff::tz::TimeZone;
use percept::domain::episode::Episode;
use percept::domain::episode::EpisodeRecord;
use percept::domain::episode::Metadata;
use percept::domain::fact::Fact;
use percept::domain::fact::Node;
use percept::domain::fact::NodeKind;
use percept::domain::id::BootId;
use percept::domain::id::DeviceId;
use percept::domain::id::EpisodeId;
use percept::domain::id::ExternalId;
use percept::domain::id::SessionId;
use percept::domain::id::SourceId;
use percept::domain::modality::Modality;
use percept::domain::time::ClockQuality;
use percept::domain::time::SystemClock;
use percept::domain::time::Timestamp;
use percept::memory::query::EpisodeFilter;
use percept::memory::reader::Reader;
use percept::memory::recall::RecallQuery;
use percept::memory::similarity::Similarity;
use percept::memory::store::OpenOptions;
use percept::memory::store::Store;
use percept::memory::writer::Writer;
use percept::recall::pagerank;
use percept::recall::score;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

const EPISODES: u32 = 100_000;
/// An episode about every five minutes of a year.
const STEP_MS: i64 = 315_000;
const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);
const ROUNDS: usize = 20;

const PLACES: [&str; 8] =
    ["Kitchen", "Garden", "Office", "Riverside Park", "Old Town Library", "Workshop", "Station", "Café Blum"];
const PEOPLE: [&str; 10] = [
    "Ann Lee",
    "Bob Miller",
    "Carla Gomez",
    "David Okafor",
    "Emil Sørensen",
    "Fatima Haddad",
    "Greta Holm",
    "Hiro Tanaka",
    "Ines Costa",
    "Jonas Weber",
];
const SOUNDS: [&str; 10] =
    ["Speech", "Dog", "Music", "Vehicle", "Bird", "Water", "Typing", "Door", "Laughter", "Siren"];
const THINGS: [&str; 8] = ["bicycle", "cup", "laptop", "red umbrella", "bookshelf", "dog", "newspaper", "violin"];

const QUESTIONS: [&str; 10] = [
    "Who did I meet yesterday?",
    "What happened in the Kitchen?",
    "Where did Ann Lee leave the red umbrella?",
    "What did I hear in Riverside Park last week?",
    "dog barking near the station",
    "Which things belong to Hiro Tanaka and Greta Holm?",
    "speech and laughter in the evening",
    "When was the violin last seen at Café Blum?",
    "Bob Miller",
    "note 4711 about the workshop",
];

#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn main() {
    let episodes = std::env::var("PERCEPT_BENCH_EPISODES").ok().and_then(|text| text.parse().ok()).unwrap_or(EPISODES);
    let dir = tempfile::tempdir().expect("a folder for the store");
    let writer = writer(dir.path());
    let started = now();
    (0..episodes).for_each(|number| writer.append(record(number)).expect("stored"));
    writer.flush().expect("committed");
    println!("bench recall_fill_{episodes} {:.3} ms an episode", millis(started.elapsed()) / f64::from(episodes));

    let is_done = AtomicBool::new(false);
    let (recalls, inserts) = std::thread::scope(|scope| {
        let inserting = scope.spawn(|| insert_until(&is_done, &writer, episodes));
        let recalls = recall_all(dir.path(), episodes);
        is_done.store(true, Ordering::Relaxed);
        (recalls, inserting.join().expect("inserted"))
    });

    for (question, times) in QUESTIONS.iter().zip(recalls.chunks(ROUNDS)) {
        println!("  {:7.1} ms  {question}", times.iter().copied().fold(0.0, f64::max));
    }
    report("recall_while_inserting", &recalls);
    report("insert_while_recalling", &inserts);
    println!("bench recall_peak_memory {} KiB", peak_memory_kib());
}

/// Commits one episode after the other; milliseconds of each.
fn insert_until(is_done: &AtomicBool, writer: &Writer, first: u32) -> Vec<f64> {
    let mut times = Vec::new();
    for number in first.. {
        if is_done.load(Ordering::Relaxed) {
            break;
        }
        let started = now();
        writer.append(record(number)).expect("stored");
        writer.flush().expect("committed");
        times.push(millis(started.elapsed()));
    }
    times
}

/// Milliseconds of each recall, question by question.
fn recall_all(dir: &Path, episodes: u32) -> Vec<f64> {
    let reader = Reader::open(dir).expect("opened");
    let mut similarity = Similarity::open(dir);
    let mut times = Vec::new();
    for text in QUESTIONS {
        for _ in 0..ROUNDS {
            let query = RecallQuery {
                text: text.to_owned(),
                vectors: Vec::new(),
                marks: score::Config::default(),
                filter: EpisodeFilter::default(),
                now: time_of(episodes),
                time_zone: TimeZone::UTC,
                limit: 10,
                damping: pagerank::DAMPING_DEFAULT,
            };
            let started = now();
            let found = reader.recall(&mut similarity, &query).expect("recalled");
            times.push(millis(started.elapsed()));
            assert!(!found.is_empty(), "{text}");
        }
    }
    times
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small counts"
)]
fn report(name: &str, times: &[f64]) {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times.get(((times.len() as f64 - 1.0) * part).round() as usize).copied().unwrap_or(0.0);
    println!(
        "bench {name} p50 {:.1} ms p95 {:.1} ms p99 {:.1} ms max {:.1} ms of {}",
        at(0.5),
        at(0.95),
        at(0.99),
        at(1.0),
        times.len()
    );
}

fn time_of(number: u32) -> Timestamp {
    START.plus_millis(i64::from(number) * STEP_MS)
}

/// What the household noticed: which of everything follows from the number, in no simple period.
fn record(number: u32) -> EpisodeRecord {
    let mixed = number.wrapping_mul(2_654_435_761) >> 7;
    fn pick<'a>(of: &[&'a str], by: u32) -> &'a str {
        of[by as usize % of.len()]
    }
    let place = pick(&PLACES, number / 40 + mixed % 3);
    let person = pick(&PEOPLE, mixed / 11);
    let (modality, content, subject) = match mixed % 10 {
        0 => (Modality::Social, format!("Met {person} at {place}"), Node::new(NodeKind::Person, person)),
        1 | 2 => {
            let thing = pick(&THINGS, mixed / 13);
            (Modality::Visual, format!("A {thing} beside a window, {place}"), Node::new(NodeKind::Object, thing))
        }
        3 => {
            let text = format!("Note {number}: {person} said that the {} can wait", pick(&THINGS, mixed / 17));
            (Modality::Text, text, Node::new(NodeKind::Other("note".to_owned()), format!("note {number}")))
        }
        _ => {
            let sound = pick(&SOUNDS, mixed / 7);
            (Modality::Audio, format!("{sound} for {} s at {place}", mixed % 60), Node::new(NodeKind::Sound, sound))
        }
    };
    let start = time_of(number);
    let relation = if modality == Modality::Social { "located_at" } else { "heard_at" };
    let facts = vec![Fact::triple(subject, relation, Node::new(NodeKind::Location, place), content.clone(), start)];
    let (device_id, external_id) = (DeviceId::new("bench"), ExternalId::new(number.to_string()));
    let episode = Episode {
        id: EpisodeId::of_external(&device_id, &external_id),
        external_id: Some(external_id),
        device_id,
        session_id: SessionId::new("s"),
        source: SourceId::new("microphone:bench"),
        timestamp: start,
        ended_at: start.plus_millis(i64::from(mixed % 900) * 1_000),
        boot_id: BootId::new("b"),
        monotonic_ms: start.as_millis(),
        clock_quality: ClockQuality::Network,
        modality,
        tool_name: "percept".to_owned(),
        content,
        importance: modality.default_importance(),
        decay_class: modality.default_decay(),
        metadata: Metadata::new(),
    };
    EpisodeRecord { episode, embeddings: Vec::new(), facts, media: Vec::new() }
}

fn writer(dir: &Path) -> Writer {
    let options = OpenOptions { device_id: Some(DeviceId::new("bench")), ..OpenOptions::default() };
    Writer::spawn(Store::open(dir, &options).expect("made"), Box::new(SystemClock::new())).expect("started")
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn now() -> Instant {
    Instant::now()
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

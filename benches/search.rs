//! Searches over 100,000 episodes, one thread, one reader: by words, by meaning, by filters, and together. Every episode has a
//! sentence's vector and every third a picture's, of 512 values, and 2 % were returned by a search before. Each figure is over
//! 200 queries that all differ.
//!
//! The words are drawn as people use them (a few often, most seldom), the vectors in crowds, with the
//! cosines of CLIP's space: sentences that have nothing in common 0.5, a sentence and a strange picture 0.15.

#![expect(clippy::expect_used, reason = "a benchmark that cannot run has nothing to print")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use percept::domain::episode::Embedding;
use percept::domain::episode::EmbeddingKind;
use percept::domain::episode::Episode;
use percept::domain::episode::EpisodeRecord;
use percept::domain::episode::Metadata;
use percept::domain::episode::unit_length;
use percept::domain::fact::Fact;
use percept::domain::fact::Node;
use percept::domain::fact::NodeKind;
use percept::domain::id::BootId;
use percept::domain::id::DeviceId;
use percept::domain::id::EpisodeId;
use percept::domain::id::EpisodeKey;
use percept::domain::id::ModelId;
use percept::domain::id::SessionId;
use percept::domain::id::SourceId;
use percept::domain::modality::Modality;
use percept::domain::time::ClockQuality;
use percept::domain::time::SystemClock;
use percept::domain::time::Timestamp;
use percept::memory::query::EpisodeFilter;
use percept::memory::reader::Reader;
use percept::memory::search::QueryVector;
use percept::memory::search::SearchQuery;
use percept::memory::sessions::Session;
use percept::memory::similarity::Similarity;
use percept::memory::store::OpenOptions;
use percept::memory::store::Store;
use percept::memory::writer::Writer;
use percept::recall::links::Cuts;
use percept::recall::score;
use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

const EPISODES: u32 = 100_000;
const QUERIES: u32 = 200;
const DIMS: usize = 512;
const CROWDS: u32 = 500;
const WORDS: u32 = 20_000;
const MINUTE_MS: i64 = 60_000;
const CLASSES: [&str; 10] =
    ["Speech", "Music", "Dog", "Rain", "Door", "Vehicle", "Bird", "Silence", "Laughter", "Footsteps"];

/// Makes one query.
type Asks<'a> = &'a dyn Fn(&mut Data) -> SearchQuery;

fn main() {
    let folder = PathBuf::from("var/bench/search");
    let mut data = Data { state: 11 };
    // A store that an earlier run has made is the same.
    if !folder.join("done").is_file() {
        let _ = std::fs::remove_dir_all(&folder);
        fill(&folder, &mut data);
        std::fs::write(folder.join("done"), b"").expect("var/bench can be written");
    }
    let reader = Reader::open(&folder).expect("the store can be read");
    let mut similarity = Similarity::open(&folder);
    let kinds: [(&str, Asks<'_>); 6] = [
        ("search_words", &|data| words(data)),
        ("search_words_filters", &|data| SearchQuery { filter: filter(data), ..words(data) }),
        ("search_filters", &|data| SearchQuery { filter: filter(data), ..nothing() }),
        ("search_meaning", &|data| meaning(data)),
        ("search_meaning_filters", &|data| SearchQuery { filter: filter(data), ..meaning(data) }),
        ("search_metadata_value", &|data| SearchQuery { filter: value(data), ..nothing() }),
    ];
    for (name, query) in kinds {
        let mut data = Data { state: 5 };
        let (mut times_ms, mut processor_ms) = (Vec::new(), 0.0);
        let mut found = 0;
        for number in 0..QUERIES + 5 {
            let query = query(&mut data);
            let (start, processor_start_ms) = (Instant::now(), processor_time_ms());
            let hits = reader.search(&mut similarity, &query).expect("the search is answered");
            // The first few meet a cold file.
            if number >= 5 {
                times_ms.push(start.elapsed().as_secs_f64() * 1e3);
                processor_ms += processor_time_ms() - processor_start_ms;
                found += hits.len();
            }
        }
        times_ms.sort_by(f64::total_cmp);
        let at = |percent: usize| times_ms[(times_ms.len() * percent).div_ceil(100).max(1) - 1];
        println!("bench {name}_p50 {:.2} ms", at(50));
        println!("bench {name}_p95 {:.2} ms", at(95));
        let (processor_ms, found) = (processor_ms / f64::from(QUERIES), found as f64 / f64::from(QUERIES));
        println!(
            "# {name}: slowest {:.2} ms; a query takes {processor_ms:.2} ms of a processor and finds {found:.1}",
            at(100)
        );
    }
}

/// What this thread has used of a processor: other programs on the machine do not count.
#[expect(clippy::cast_precision_loss, reason = "a run is shorter than 2^53 ns")]
fn processor_time_ms() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// The same numbers in every run.
struct Data {
    state: u64,
}

impl Data {
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(self.state >> 32).expect("32 bits")) / (f64::from(u32::MAX) + 1.0)
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to `count`")]
    fn below(&mut self, count: u32) -> u32 {
        (self.uniform() * f64::from(count)) as u32
    }

    /// The n-th word comes about 1/n as often as the first.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to the number of words")]
    fn word(&mut self) -> String {
        let number = (f64::from(WORDS).powf(self.uniform()) - 1.0) as u32;
        let mut word = String::new();
        let mut rest = number + 30;
        while rest > 0 {
            let consonants = ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t"];
            let vowels = ["a", "e", "i", "o", "u"];
            word.push_str(consonants[(rest % 12) as usize]);
            word.push_str(vowels[(rest / 12 % 5) as usize]);
            rest /= 60;
        }
        word
    }

    /// One of a crowd. Two sentences, and two pictures, have a cosine of about 0.5, and 0.85 within a crowd; a sentence and a
    /// picture 0.15, and 0.33 within a crowd.
    #[expect(clippy::cast_possible_truncation, reason = "noise needs no more than f32")]
    fn vector(&mut self, kind: EmbeddingKind) -> Arc<[f32]> {
        let (mut words, mut pictures) = (Data { state: 1 }, Data { state: 2 });
        let mut crowd = Data { state: u64::from(self.below(CROWDS)) + 1_000 };
        let value = |data: &mut Data| data.uniform() as f32 - 0.5;
        let values: Vec<f32> = (0..DIMS)
            .map(|_| {
                let (words, pictures, crowd, own) =
                    (value(&mut words), value(&mut pictures), value(&mut crowd), value(self));
                match kind {
                    EmbeddingKind::Image => 0.3 * words + 0.95 * pictures + 0.45 * crowd + 0.95 * own,
                    EmbeddingKind::Text | EmbeddingKind::Audio => words + 0.85 * crowd + 0.55 * own,
                }
            })
            .collect();
        unit_length(&values).expect("it is not zero")
    }
}

fn nothing() -> SearchQuery {
    SearchQuery {
        text: None,
        vectors: Vec::new(),
        filter: EpisodeFilter::default(),
        without: None,
        limit: 20,
        now: Timestamp::from_millis(i64::from(EPISODES) * MINUTE_MS),
        marks: score::Config::default(),
        raised: BTreeMap::new(),
    }
}

fn words(data: &mut Data) -> SearchQuery {
    let count = 1 + data.below(3);
    let words: Vec<String> = (0..count).map(|_| data.word()).collect();
    SearchQuery { text: Some(words.join(" ")), ..nothing() }
}

fn meaning(data: &mut Data) -> SearchQuery {
    let vector = QueryVector {
        model_id: ModelId::new("bench"),
        kind: EmbeddingKind::Text,
        vector: data.vector(EmbeddingKind::Text),
    };
    SearchQuery { vectors: vec![vector], ..words(data) }
}

/// One or two conditions of those that people set.
fn filter(data: &mut Data) -> EpisodeFilter {
    let mut filter = EpisodeFilter::default();
    for _ in 0..=data.below(2) {
        let start = Timestamp::from_millis(i64::from(data.below(EPISODES)) * MINUTE_MS);
        let days = i64::from(1 + data.below(20));
        match data.below(7) {
            0 => filter.modalities = vec![Modality::ALL[data.below(4) as usize]],
            1 => (filter.since, filter.until) = (Some(start), Some(start.plus_millis(days * 1_440 * MINUTE_MS))),
            2 => filter.place = Some(format!("Place {}", data.below(40))),
            3 => filter.person = Some(format!("Person {}", data.below(100))),
            4 => filter.sound_class = Some(CLASSES[data.below(10) as usize].to_owned()),
            5 => filter.rms_db_min = Some(-60.0 + f64::from(data.below(50))),
            _ => filter.session = Some(SessionId::new(format!("session {}", data.below(EPISODES / 1_000)))),
        }
    }
    filter
}

/// A value that has no index.
fn value(data: &mut Data) -> EpisodeFilter {
    let number = data.below(EPISODES).to_string();
    EpisodeFilter { metadata: vec![("number".to_owned(), number)], ..EpisodeFilter::default() }
}

fn record(number: u32, data: &mut Data) -> EpisodeRecord {
    let (device_id, session_id) = (DeviceId::new("d"), SessionId::new(format!("session {}", number / 1_000)));
    let start = Timestamp::from_millis(i64::from(number) * MINUTE_MS);
    let modality = match data.below(10) {
        0..=5 => Modality::Audio,
        6..=7 => Modality::Visual,
        8 => Modality::Spatial,
        _ => Modality::Social,
    };
    let source = SourceId::new("sensor:s");
    let key = EpisodeKey {
        device_id: &device_id,
        session_id: &session_id,
        modality,
        source: &source,
        started_at: start,
        ordinal: 0,
    };
    let id = EpisodeId::derive(&key);
    let (person, place) = (format!("Person {}", data.below(100)), format!("Place {}", data.below(40)));
    let words: Vec<String> = (0..10).map(|_| data.word()).collect();
    let mut facts = Vec::new();
    if modality == Modality::Social {
        let (one, other) = (Node::new(NodeKind::Person, &person), Node::new(NodeKind::Location, &place));
        facts.push(Fact::triple(one, "appears_in", other, format!("{person} seen at {place}"), start));
    }
    let mut embedding = |kind| Embedding { model_id: ModelId::new("bench"), kind, vector: data.vector(kind) };
    let mut embeddings = vec![embedding(EmbeddingKind::Text)];
    if number.is_multiple_of(3) {
        embeddings.push(embedding(EmbeddingKind::Image));
    }
    let episode = Episode {
        id,
        external_id: None,
        timestamp: start,
        ended_at: start.plus_millis(10_000),
        boot_id: BootId::new("b"),
        monotonic_ms: start.as_millis(),
        clock_quality: ClockQuality::Gps,
        modality,
        tool_name: "bench".to_owned(),
        content: words.join(" "),
        importance: modality.default_importance(),
        decay_class: modality.default_decay(),
        metadata: metadata(number, modality, &place, &person, data),
        device_id,
        session_id,
        source,
    };
    EpisodeRecord { episode, embeddings, facts, media: Vec::new() }
}

fn metadata(number: u32, modality: Modality, place: &str, person: &str, data: &mut Data) -> Metadata {
    let mut metadata = Metadata::new();
    metadata.insert("number".to_owned(), number.into());
    metadata.insert("place".to_owned(), place.into());
    match modality {
        Modality::Audio => {
            let level = if number.is_multiple_of(2) { "rms_db" } else { "rmsDb" };
            metadata.insert(level.to_owned(), (-80.0 * data.uniform()).into());
            metadata.insert("sound_class".to_owned(), CLASSES[data.below(10) as usize].into());
            metadata.insert("band_energy".to_owned(), (0..5).map(|_| -90.0 * data.uniform()).collect());
        }
        Modality::Visual
        | Modality::Social
        | Modality::Spatial
        | Modality::Code
        | Modality::ToolResult
        | Modality::Text
        | Modality::Gist => drop(metadata.insert("person".to_owned(), person.into())),
    }
    metadata
}

/// In one transaction, without links, which searches do not ask for; then the vectors' files are made.
fn fill(folder: &Path, data: &mut Data) {
    let links = Cuts { image_image_min: 2.0, text_text_min: 2.0, image_text_min: 2.0, audio_audio_min: 2.0 };
    let options = OpenOptions { device_id: Some(DeviceId::new("d")), links, ..OpenOptions::default() };
    let store = Store::open(folder, &options).expect("the store can be made");
    let writer = Writer::spawn(store, Box::new(SystemClock::new())).expect("the writer starts");
    let session = Session {
        session_id: SessionId::new("all"),
        device_id: DeviceId::new("d"),
        boot_id: BootId::new("b"),
        digest: String::new(),
        started_at: Timestamp::from_millis(0),
        clock_quality: ClockQuality::Gps,
    };
    writer.replace_session(session).expect("the store is empty");
    let mut raised = Vec::new();
    for number in 0..EPISODES {
        let record = record(number, data);
        if data.below(50) == 0 {
            raised.push(record.episode.id);
        }
        writer.append(record).expect("it is stored");
    }
    writer.finish_session(DeviceId::new("d"), SessionId::new("all"), Metadata::new()).expect("it is committed");
    writer.raise_strength(raised).expect("the writer is there");
    writer.flush().expect("it is committed");
    while writer.tend().expect("the writer is there") {}
    writer.close().expect("all is committed");
}

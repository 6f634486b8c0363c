//! The nearest ten of 10,000 and 100,000 vectors of 512 values, exact, on one thread; with `PERCEPT_BENCH_MILLION=1` those of
//! 1,000,000 by graphs; and what it costs to insert an episode with vectors, links and facts. The peers are in
//! `benches/peers/vectors.py` (sqlite-vec and a numpy scan); they read the vectors and queries this bench leaves in `var/bench`.
//!
//! The data have the structure of picture vectors: 2,000 crowds of unequal size in 48 directions, a common offset (CLIP's lie
//! in a narrow cone), and noise in all directions. Cosines of neighbours are 0.5 to 0.9, of strangers 0.2.

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
use percept::domain::id::ExternalId;
use percept::domain::id::ModelId;
use percept::domain::id::SessionId;
use percept::domain::id::SourceId;
use percept::domain::modality::Modality;
use percept::domain::time::ClockQuality;
use percept::domain::time::SystemClock;
use percept::domain::time::Timestamp;
use percept::memory::reader::Reader;
use percept::memory::similarity::Similarity;
use percept::memory::similarity::Space;
use percept::memory::store::OpenOptions;
use percept::memory::store::Store;
use percept::memory::writer::Writer;
use percept::recall::links::Cuts;
use simsimd::SpatialSimilarity;
use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

const DIMS: usize = 512;
const LATENT: usize = 48;
const CROWDS: usize = 2_000;
const QUERIES: usize = 200;
const LIMIT: usize = 10;

fn main() {
    let folder = PathBuf::from("var/bench");
    std::fs::create_dir_all(&folder).expect("var/bench can be made");
    let mut data = Data::new();
    let queries: Vec<Arc<[f32]>> = (0..QUERIES).map(|_| data.vector()).collect();
    write(&folder.join("queries.f32"), &queries);
    insert(&folder);
    for count in [10_000, 100_000] {
        exact(&folder, count, &queries);
    }
    if std::env::var_os("PERCEPT_BENCH_MILLION").is_some() {
        million(&folder, &queries);
    }
}

/// Vectors as they come, the same in every run.
struct Data {
    state: u64,
    offset: Vec<f32>,
    directions: Vec<f32>,
    crowds: Vec<f32>,
}

impl Data {
    fn new() -> Self {
        let mut this = Self { state: 7, offset: Vec::new(), directions: Vec::new(), crowds: Vec::new() };
        this.offset = (0..DIMS).map(|_| 4.0 * this.normal()).collect();
        this.directions = (0..LATENT * DIMS).map(|_| this.normal()).collect();
        this.crowds = (0..CROWDS * LATENT).map(|_| this.normal()).collect();
        this
    }

    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(self.state >> 32).expect("32 bits")) / f64::from(u32::MAX)
    }

    #[expect(clippy::cast_possible_truncation, reason = "noise needs no more than f32")]
    fn normal(&mut self) -> f32 {
        let (one, other) = (self.uniform().max(1e-12), self.uniform());
        ((-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()) as f32
    }

    /// Crowds are of unequal size: the square of a uniform number picks one.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 2,000")]
    fn vector(&mut self) -> Arc<[f32]> {
        let crowd = ((self.uniform().powi(2) * CROWDS as f64) as usize).min(CROWDS - 1);
        let mut vector: Vec<f32> = self.offset.clone();
        for place in 0..LATENT {
            let weight = self.crowds[crowd * LATENT + place] + 0.6 * self.normal();
            let direction = &self.directions[place * DIMS..(place + 1) * DIMS];
            vector.iter_mut().zip(direction).for_each(|(value, part)| *value += weight * part);
        }
        for value in &mut vector {
            *value += 1.5 * self.normal();
        }
        unit_length(&vector).expect("it is not zero")
    }
}

fn write(path: &Path, vectors: &[Arc<[f32]>]) {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).expect("var/bench can be written"));
    for value in vectors.iter().flat_map(|vector| vector.iter()) {
        file.write_all(&value.to_le_bytes()).expect("var/bench can be written");
    }
}

fn space() -> Space {
    Space { model_id: ModelId::new("bench"), kind: EmbeddingKind::Image }
}

fn embedding(kind: EmbeddingKind, vector: Arc<[f32]>) -> Embedding {
    Embedding { model_id: ModelId::new("bench"), kind, vector }
}

fn record(number: u32, embeddings: Vec<Embedding>) -> EpisodeRecord {
    let (device_id, external_id) = (DeviceId::new("d"), ExternalId::new(number.to_string()));
    let start = Timestamp::from_millis(i64::from(number) * 60_000);
    let person = Node::new(NodeKind::Person, format!("Person {}", number % 50));
    let place = Node::new(NodeKind::Location, format!("Place {}", number % 20));
    let episode = Episode {
        id: EpisodeId::of_external(&device_id, &external_id),
        external_id: Some(external_id),
        device_id,
        session_id: SessionId::new("s"),
        source: SourceId::new("camera:c"),
        timestamp: start,
        ended_at: start.plus_millis(10_000),
        boot_id: BootId::new("b"),
        monotonic_ms: start.as_millis(),
        clock_quality: ClockQuality::Gps,
        modality: Modality::Visual,
        tool_name: "camera_capture".to_owned(),
        content: format!("Scene number {number}: a desk with a computer"),
        importance: 7,
        decay_class: Modality::Visual.default_decay(),
        metadata: Metadata::new(),
    };
    let facts = vec![Fact::triple(person, "located_at", place, "They are there".to_owned(), start)];
    EpisodeRecord { episode, embeddings, facts, media: Vec::new() }
}

fn open(dir: &Path, cuts: Cuts) -> Writer {
    let _ = std::fs::remove_dir_all(dir);
    let options = OpenOptions { links: cuts, ..OpenOptions::default() };
    let store = Store::open(dir, &options).expect("the store opens");
    Writer::spawn(store, Box::new(SystemClock::new())).expect("the writer starts")
}

fn no_links() -> Cuts {
    Cuts { image_image_min: 2.0, text_text_min: 2.0, image_text_min: 2.0, audio_audio_min: 2.0 }
}

fn finish(writer: Writer) {
    while writer.tend().expect("it tends") {}
    writer.close().expect("it closes");
}

/// A store of so many pictures, with its sidecar.
fn filled(folder: &Path, count: u32) -> PathBuf {
    let dir = folder.join(format!("vectors-{count}"));
    let writer = open(&dir, no_links());
    let mut data = Data::new();
    // The first are the queries.
    (0..QUERIES).for_each(|_| drop(data.vector()));
    let mut file = std::io::BufWriter::new(
        std::fs::File::create(folder.join(format!("vectors-{count}.f32"))).expect("var/bench can be written"),
    );
    for number in 0..count {
        let vector = data.vector();
        for value in vector.iter() {
            file.write_all(&value.to_le_bytes()).expect("var/bench can be written");
        }
        writer.append(record(number, vec![embedding(EmbeddingKind::Image, vector)])).expect("it is accepted");
    }
    finish(writer);
    dir
}

fn exact(folder: &Path, count: u32, queries: &[Arc<[f32]>]) {
    let dir = filled(folder, count);
    let reader = Reader::open(&dir).expect("the store opens");
    let before_kib = resident_kib();
    let mut similarity = Similarity::open(&dir);
    let started = Instant::now();
    reader.nearest(&mut similarity, &space(), &queries[0], LIMIT, None).expect("it finds");
    println!("bench vectors_{count}_first_search {:.3} ms", ms(started));
    println!("bench vectors_{count} {:.3} ms", median_ms(&reader, &mut similarity, queries));
    println!("bench vectors_{count}_resident_growth {} KiB", resident_kib().saturating_sub(before_kib));
    let started = Instant::now();
    for query in queries {
        reader.nearest(&mut similarity, &space(), query, LIMIT, Some(&|row| row % 100 == 0)).expect("it finds");
    }
    println!("bench vectors_{count}_one_in_100_allowed {:.3} ms", ms(started) / QUERIES as f64);
}

fn median_ms(reader: &Reader, similarity: &mut Similarity, queries: &[Arc<[f32]>]) -> f64 {
    let mut times: Vec<f64> = Vec::new();
    for query in queries {
        let started = Instant::now();
        std::hint::black_box(reader.nearest(similarity, &space(), query, LIMIT, None).expect("it finds"));
        times.push(ms(started));
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn million(folder: &Path, queries: &[Arc<[f32]>]) {
    let started = Instant::now();
    let dir = filled(folder, 1_000_000);
    println!("bench vectors_1000000_fill_and_index {:.0} s", ms(started) / 1e3);
    let reader = Reader::open(&dir).expect("the store opens");
    let before_kib = resident_kib();
    let mut similarity = Similarity::open(&dir);
    let started = Instant::now();
    reader.nearest(&mut similarity, &space(), &queries[0], LIMIT, None).expect("it finds");
    println!("bench vectors_1000000_first_search {:.3} ms", ms(started));
    println!("bench vectors_1000000 {:.3} ms", median_ms(&reader, &mut similarity, queries));
    println!("bench vectors_1000000_resident_growth {} KiB", resident_kib().saturating_sub(before_kib));
    let truth = by_looking_at_all(&folder.join("vectors-1000000.f32"), queries);
    let mut found = 0;
    for (query, truth) in queries.iter().zip(&truth) {
        let near = reader.nearest(&mut similarity, &space(), query, LIMIT, None).expect("it finds");
        found += near.iter().filter(|neighbour| truth.contains(&neighbour.row_id)).count();
    }
    println!("bench vectors_1000000_recall_at_10 {:.4} share", found as f64 / (LIMIT * queries.len()) as f64);
}

/// Row numbers of the ten best of each query. The first row of a new store is number 1.
fn by_looking_at_all(vectors: &Path, queries: &[Arc<[f32]>]) -> Vec<Vec<i64>> {
    let mut best: Vec<Vec<(f64, i64)>> = vec![Vec::new(); queries.len()];
    let mut file = std::io::BufReader::new(std::fs::File::open(vectors).expect("it was written"));
    let (mut bytes, mut row) = ([0; 4 * DIMS], 0);
    while file.read_exact(&mut bytes).is_ok() {
        row += 1;
        let vector: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|value| f32::from_le_bytes(*value)).collect();
        for (query, best) in queries.iter().zip(&mut best) {
            let cosine = f32::dot(query, &vector).expect("equal lengths");
            if best.len() < LIMIT || best.last().is_some_and(|worst| cosine > worst.0) {
                let place = best.partition_point(|known| known.0 >= cosine);
                best.insert(place, (cosine, row));
                best.truncate(LIMIT);
            }
        }
    }
    best.into_iter().map(|best| best.into_iter().map(|(_, row)| row).collect()).collect()
}

/// Inserting with links and facts: twice as many against once as many, then single episodes with two vectors into what is
/// there, each waited for until it is on the disk.
fn insert(folder: &Path) {
    let dir = folder.join("vectors-insert");
    let mut data = Data::new();
    let one_by_one = seconds_at(&dir, &mut data, [5_000, 10_000], true).0;
    println!("bench insert_one_by_one_10000_over_5000 {:.3} ratio", one_by_one[1] / one_by_one[0]);
    let (batched, writer) = seconds_at(&dir, &mut data, [10_000, 20_000, 50_000, 100_000], false);
    println!("bench insert_batched_20000_over_10000 {:.3} ratio", batched[1] / batched[0]);
    println!("bench insert_batched_100000_over_50000 {:.3} ratio", batched[3] / batched[2]);
    println!("bench insert_batched_per_episode_at_10000 {:.3} ms", batched[0] * 1e3 / 10_000.0);
    println!("bench insert_batched_per_episode_at_100000 {:.3} ms", (batched[3] - batched[2]) * 1e3 / 50_000.0);
    let mut times = Vec::new();
    for number in 0..1_000 {
        let vectors =
            vec![embedding(EmbeddingKind::Image, data.vector()), embedding(EmbeddingKind::Text, data.vector())];
        let started = Instant::now();
        writer.append(record(1_000_000 + number, vectors)).expect("it is accepted");
        writer.flush().expect("it is committed");
        times.push(ms(started));
    }
    times.sort_by(f64::total_cmp);
    println!("bench insert_episode_p50 {:.3} ms", times[times.len() / 2]);
    println!("bench insert_episode_p99 {:.3} ms", times[times.len() * 99 / 100]);
    println!("bench insert_process_resident {} KiB", resident_kib());
    finish(writer);
}

/// Seconds of processor time until so many episodes were on the disk: what else runs on the machine must not count.
fn seconds_at<const N: usize>(dir: &Path, data: &mut Data, marks: [u32; N], waits: bool) -> ([f64; N], Writer) {
    let writer = open(dir, Cuts::default());
    let (mut at, mut seconds) = (0, 0.0);
    let taken = marks.map(|mark| {
        let records: Vec<_> =
            (at..mark).map(|number| record(number, vec![embedding(EmbeddingKind::Image, data.vector())])).collect();
        let before = processor_seconds();
        for record in records {
            writer.append(record).expect("it is accepted");
            if waits {
                writer.flush().expect("it is committed");
            }
        }
        writer.flush().expect("it is committed");
        seconds += processor_seconds() - before;
        at = mark;
        seconds
    });
    (taken, writer)
}

/// User and system time of this process, in steps of 10 ms.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in brackets may hold anything.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

fn ms(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e3
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").trim().parse().unwrap_or(0)
}

//! Links of episodes that are alike, compared with a model that looks at every vector.

use crate::domain::episode::Embedding;
use crate::domain::episode::EmbeddingKind;
use crate::domain::episode::EpisodeRecord;
use crate::domain::episode::unit_length;
use crate::domain::id::EpisodeId;
use crate::domain::id::ModelId;
use crate::domain::modality::Modality;
use crate::domain::time::Timestamp;
use crate::memory::append;
use crate::memory::append::Outcome;
use crate::memory::fixture;
use crate::memory::fixture::seeded;
use crate::memory::reader::Reader;
use crate::memory::removal;
use crate::memory::revision::Context;
use crate::memory::schema;
use crate::memory::similarity::Similarity;
use crate::memory::similarity::companion::Companion;
use crate::memory::similarity::product;
use crate::recall::links;
use crate::recall::links::Answer;
use crate::recall::links::Cuts;
use crate::recall::links::LINKS_MAX;
use crate::recall::links::Pair;
use crate::recall::links::Tie;
use proptest::prelude::*;
use rusqlite::Connection;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

const DIMS: usize = 12;

/// The links by likeness: both ends, reason, score.
type Rows = BTreeSet<(String, String, String, u64)>;

struct Lab {
    connection: Connection,
    companion: RefCell<Companion>,
}

impl Lab {
    fn new() -> Self {
        Self::of(Companion::new(Path::new("/nowhere"), "s", Cuts::default()))
    }

    fn of(companion: Companion) -> Self {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::stamp(&connection).unwrap();
        schema::migrate(&mut connection).unwrap();
        connection.pragma_update(None, "foreign_keys", true).unwrap();
        connection.execute("INSERT INTO store VALUES (1, 'd', 's', 1)", []).unwrap();
        Self { connection, companion: RefCell::new(companion) }
    }

    fn context(&self) -> Context<'_> {
        let stored_at = Timestamp::from_millis(0);
        Context { store_id: "s", stored_at, single_valued: &[], companion: &self.companion }
    }

    fn put(&self, record: &EpisodeRecord) -> Outcome {
        append::append(&self.connection, &self.context(), record, &[]).unwrap()
    }

    fn remove(&self, id: EpisodeId) {
        removal::remove(&self.connection, &self.context(), &id.to_string()).unwrap();
    }

    fn refill(&self) {
        super::refill(&self.connection, &self.context(), 100).unwrap();
    }

    fn rows(&self) -> Rows {
        links_in(&self.connection)
    }
}

fn links_in(connection: &Connection) -> Rows {
    connection
        .prepare("SELECT a, b, reason, score FROM links WHERE reason LIKE 'similar:%'")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get::<_, f64>(3)?.to_bits())))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

fn embedding(model: &str, kind: EmbeddingKind, values: &[f32]) -> Embedding {
    Embedding { model_id: ModelId::new(model), kind, vector: unit_length(values).unwrap() }
}

/// An episode of that minute with these vectors, far from all others in time.
fn episode(minute: u32, embeddings: Vec<Embedding>) -> EpisodeRecord {
    EpisodeRecord { embeddings, ..fixture::episode(minute, Modality::Visual) }
}

/// Episodes with pictures, words or both, of two models, in a few crowds.
fn episodes(seed: u64, count: u32) -> Vec<EpisodeRecord> {
    let mut next = seeded(seed);
    let mut value = move || (next() % 2_001) as f32 / 1_000.0 - 1.0;
    let middles: Vec<Vec<f32>> = (0..3).map(|_| (0..DIMS).map(|_| value()).collect()).collect();
    (0..count)
        .map(|number| {
            let mut vector = |model: &str, kind| {
                let middle = &middles[if value() > 0.3 { 2 } else { usize::from(value() > 0.0) }];
                let near: Vec<f32> = middle.iter().map(|part| part + 0.01 + 0.3 * value()).collect();
                embedding(model, kind, &near)
            };
            let embeddings = match number % 5 {
                0 => vec![vector("m", EmbeddingKind::Image), vector("m", EmbeddingKind::Text)],
                1 => vec![vector("m", EmbeddingKind::Text)],
                2 => vec![vector("n", EmbeddingKind::Image), vector("m", EmbeddingKind::Image)],
                3 => vec![vector("a", EmbeddingKind::Audio), vector("n", EmbeddingKind::Text)],
                _ => Vec::new(),
            };
            episode(number, embeddings)
        })
        .collect()
}

/// The rule, told again over a map, with every vector looked at.
#[derive(Default)]
struct Model {
    stored: Vec<EpisodeRecord>,
    ties: BTreeMap<EpisodeId, Vec<Tie>>,
}

impl Model {
    fn put(&mut self, record: &EpisodeRecord) {
        let (cuts, id) = (Cuts::default(), record.episode.id);
        let mut near = Vec::new();
        for own in &record.embeddings {
            for kind in crate::memory::embedding::KINDS {
                near.extend(self.nearest(own, kind).into_iter().filter_map(|(other, cosine)| {
                    let pair = Pair::of(own.kind, kind)?;
                    Some(Tie { other, pair, cosine, strength: cuts.strength(pair, cosine)? })
                }));
            }
        }
        self.stored.push(record.clone());
        for tie in links::offers(near) {
            if self.ties.entry(id).or_default().len() >= LINKS_MAX {
                break;
            }
            let held = self.ties.entry(tie.other).or_default();
            match links::answer(held, id, tie.strength) {
                Answer::Refuse => continue,
                Answer::Accept => {}
                Answer::AcceptInPlaceOf(weakest) => {
                    held.retain(|known| known.other != weakest.other);
                    self.ties.entry(weakest.other).or_default().retain(|known| known.other != tie.other);
                }
            }
            self.ties.entry(tie.other).or_default().push(Tie { other: id, ..tie });
            self.ties.entry(id).or_default().push(tie);
        }
    }

    /// The nearest of that kind and the same model, the episode itself left out.
    fn nearest(&self, own: &Embedding, kind: EmbeddingKind) -> Vec<(EpisodeId, f64)> {
        let mut all: Vec<(EpisodeId, f64)> = Vec::new();
        for record in &self.stored {
            for other in record.embeddings.iter().filter(|other| other.model_id == own.model_id && other.kind == kind) {
                let cosine = f64::from(product(&own.vector, &other.vector)).clamp(-1.0, 1.0);
                all.push((record.episode.id, cosine));
            }
        }
        all
    }

    fn rows(&self) -> Rows {
        let mut rows = Rows::new();
        for (id, ties) in &self.ties {
            for tie in ties {
                let (one, other) = (id.to_string(), tie.other.to_string());
                let (a, b) = if one < other { (one, other) } else { (other, one) };
                rows.insert((a, b, tie.pair.reason().to_owned(), tie.cosine.to_bits()));
            }
        }
        rows
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Few enough episodes that no neighbour is beyond those that are looked at.
    #[test]
    fn links_are_those_of_the_rule(seed in 0_u64..1_000_000, count in 1_u32..60) {
        let (lab, mut model) = (Lab::new(), Model::default());

        for record in &episodes(seed, count) {
            lab.put(record);
            model.put(record);
        }

        prop_assert_eq!(lab.rows(), model.rows());
    }

    #[test]
    fn whatever_happens_links_keep_their_bounds(seed in 0_u64..1_000_000) {
        let lab = Lab::new();
        let records = episodes(seed, 120);
        let mut next = seeded(seed);
        records.iter().for_each(|record| drop(lab.put(record)));
        for _ in 0..40 {
            let one = &records[usize::try_from(next() % 120).unwrap()];
            let other = &records[usize::try_from(next() % 120).unwrap()];
            match next() % 4 {
                0 => lab.remove(one.episode.id),
                1 => drop(lab.put(&EpisodeRecord { embeddings: other.embeddings.clone(), ..one.clone() })),
                2 => {
                    let context = lab.context();
                    append::add_vectors(&lab.connection, &context, &one.episode.id, &other.embeddings).unwrap();
                }
                _ => lab.refill(),
            }
        }

        check_bounds(&lab.connection);
    }
}

/// At most five an episode, none below its cut, none between models, one for two episodes.
#[track_caller]
fn check_bounds(connection: &Connection) {
    let (mut counts, cuts) = (BTreeMap::<String, usize>::new(), Cuts::default());
    let mut pairs = BTreeSet::new();
    for (a, b, reason, score) in links_in(connection) {
        assert!(a < b);
        assert!(pairs.insert((a.clone(), b.clone())), "{a} and {b} have two links");
        *counts.entry(a.clone()).or_default() += 1;
        *counts.entry(b.clone()).or_default() += 1;
        let pair = Pair::parse(&reason).unwrap();
        let score = f64::from_bits(score);
        assert!(score >= cuts.of(pair) && score <= 1.0, "{reason} {score}");
        let vectors = vectors_of(connection, &a, &b);
        let is_true = vectors.iter().any(|(model, one, of_model, other, cosine)| {
            model == of_model && Pair::of(*one, *other) == Some(pair) && (cosine - score).abs() < 1e-9
        });
        assert!(is_true, "{a} and {b} have no {reason} of {score}");
    }
    assert!(counts.values().all(|count| *count <= LINKS_MAX), "{counts:?}");
}

type Compared = (String, EmbeddingKind, String, EmbeddingKind, f64);

fn vectors_of(connection: &Connection, a: &str, b: &str) -> Vec<Compared> {
    let load = |id: &str| {
        super::vectors_of(connection, id).unwrap().into_iter().map(|own| (own.model_id, own.kind, own.vector))
    };
    let mut all = Vec::new();
    for (model, kind, vector) in load(a) {
        for (other_model, other_kind, other) in load(b) {
            let cosine = if vector.len() == other.len() { f64::from(product(&vector, &other)) } else { f64::NAN };
            let names = (model.as_str().to_owned(), other_model.as_str().to_owned());
            all.push((names.0, kind, names.1, other_kind, cosine.clamp(-1.0, 1.0)));
        }
    }
    all
}

#[test]
fn a_picture_and_its_sentence_are_linked_and_the_reason_says_so() {
    let lab = Lab::new();
    lab.put(&episode(0, vec![embedding("m", EmbeddingKind::Image, &[1.0, 0.0, 0.0])]));
    lab.put(&episode(1, vec![embedding("m", EmbeddingKind::Text, &[0.3, 1.0, 0.0])]));
    lab.put(&episode(2, vec![embedding("other", EmbeddingKind::Text, &[1.0, 0.0, 0.0])]));
    lab.put(&episode(3, vec![embedding("m", EmbeddingKind::Audio, &[1.0, 0.0, 0.0])]));

    let rows: Vec<_> = lab.rows().into_iter().map(|(_, _, reason, score)| (reason, f64::from_bits(score))).collect();

    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].0, "similar:image-text");
    assert!((rows[0].1 - 0.3 / 1.09_f64.sqrt()).abs() < 1e-6);
}

#[test]
fn a_vector_that_comes_later_links_and_one_that_changes_links_anew() {
    let lab = Lab::new();
    let (x, y) = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]);
    let image = |values: &[f32]| vec![embedding("m", EmbeddingKind::Image, values)];
    let late = episode(2, Vec::new());
    lab.put(&episode(0, image(&x)));
    lab.put(&episode(1, image(&y)));
    lab.put(&late);
    assert!(lab.rows().is_empty());

    let mut ends = Vec::new();
    for vector in [&x, &y] {
        append::add_vectors(&lab.connection, &lab.context(), &late.episode.id, &image(vector)).unwrap();
        ends.push(lab.rows());
    }
    let changed = EpisodeRecord { embeddings: image(&x), ..late.clone() };
    lab.put(&changed);
    ends.push(lab.rows());

    assert!(ends.iter().all(|rows| rows.len() == 1), "{ends:?}");
    assert_ne!(ends[0], ends[1]);
    assert_eq!(ends[0], ends[2]);
}

#[test]
fn who_loses_a_link_finds_another_in_an_idle_moment() {
    let lab = Lab::new();
    // Six of a kind: a full node each, and one that was left out.
    let records: Vec<EpisodeRecord> = (0..7_u8)
        .map(|number| {
            let values = [1.0, 0.01 * f32::from(number), 0.0];
            episode(u32::from(number), vec![embedding("m", EmbeddingKind::Image, &values)])
        })
        .collect();
    records.iter().for_each(|record| drop(lab.put(record)));
    let count = |id: EpisodeId| {
        let id = id.to_string();
        lab.rows().iter().filter(|(a, b, ..)| *a == id || *b == id).count()
    };
    lab.remove(records[3].episode.id);
    let before: usize = records.iter().map(|record| count(record.episode.id)).sum();

    lab.refill();

    let after: usize = records.iter().map(|record| count(record.episode.id)).sum();
    assert!(after > before, "{before} ends of links before and {after} after");
    assert_eq!(after, 6 * 5, "six that are left, each linked to all others");
    check_bounds(&lab.connection);
}

#[test]
fn one_by_one_and_together_give_the_same_links() {
    let records = episodes(9, 150);
    let (one, together) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let writer = fixture::writer(one.path());
    for record in &records {
        writer.append(record.clone()).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    let writer = fixture::writer(together.path());
    records.iter().for_each(|record| writer.append(record.clone()).unwrap());
    writer.close().unwrap();

    let dump = |dir: &Path| Reader::open(dir).unwrap().dump().unwrap();

    assert_eq!(dump(one.path()), dump(together.path()));
    assert!(links_in(&fixture::connection(one.path())).len() > 150);
    check_bounds(&fixture::connection(one.path()));
}

/// Steps of SQLite's machine, not time: neighbours that are compared are rows that are read.
#[test]
fn one_insert_costs_as_much_in_a_store_ten_times_as_large() {
    let mut lab = Lab::new();
    let steps = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&steps);
    let count = move || counter.fetch_add(1, Ordering::Relaxed) == u64::MAX;
    lab.connection.progress_handler(1, Some(count)).unwrap();
    let mut of_last_hundred = Vec::new();
    for (number, record) in (0..).zip(&episodes(4, 1_500)) {
        if matches!(number, 150 | 1_400) {
            steps.store(0, Ordering::Relaxed);
        }
        lab.put(record);
        if matches!(number, 249 | 1_499) {
            of_last_hundred.push(steps.load(Ordering::Relaxed));
        }
    }

    let [small, large] = of_last_hundred[..] else { panic!("two measurements") };
    assert!(small > 10_000, "{small} steps were counted");
    assert!(large < small * 3 / 2, "100 appends took {small} steps at first and {large} later");
}

#[test]
fn a_store_without_its_index_is_caught_up_with_and_links_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let records = episodes(3, 300);
    let writer = fixture::writer(dir.path());
    records[..200].iter().for_each(|record| writer.append(record.clone()).unwrap());
    writer.close().unwrap();
    Similarity::forget_everything(dir.path()).unwrap();
    let writer = fixture::writer(dir.path());
    records[200..].iter().for_each(|record| writer.append(record.clone()).unwrap());
    writer.close().unwrap();
    let whole = Lab::new();
    records.iter().for_each(|record| drop(whole.put(record)));

    assert_eq!(links_in(&fixture::connection(dir.path())), whole.rows());
}

/// What is rolled back gives its numbers to the next rows.
#[test]
fn a_row_that_was_taken_back_links_to_nobody() {
    let lab = Lab::new();
    let image = |values: &[f32]| vec![embedding("m", EmbeddingKind::Image, values)];
    for number in 0..20_u8 {
        lab.connection.execute_batch("SAVEPOINT one_row").unwrap();
        lab.put(&episode(u32::from(number), image(&[1.0, f32::from(number) / 50.0, 0.0])));
        if number % 2 == 1 {
            lab.connection.execute_batch("ROLLBACK TO one_row").unwrap();
            lab.companion.borrow_mut().rolled_back(&lab.connection);
        }
        lab.connection.execute_batch("RELEASE one_row").unwrap();
    }
    let straight = Lab::new();
    for number in (0..20_u8).step_by(2) {
        straight.put(&episode(u32::from(number), image(&[1.0, f32::from(number) / 50.0, 0.0])));
    }

    assert_eq!(lab.rows(), straight.rows());
    assert!(!lab.rows().is_empty());
}

/// Every file of the folder, by name.
fn files_under(folder: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files_under(&path) } else { vec![path] }).collect()
}

#[test]
fn forgotten_vectors_leave_the_files_beside_the_store_and_the_rest_is_indexed_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("vectors");
    let record = |number: u32| {
        let angle = number as f32 / 400.0;
        episode(number, vec![embedding("m", EmbeddingKind::Image, &[angle.cos(), angle.sin(), 0.0])])
    };
    let writer = fixture::writer(dir.path());
    (0..1_100).for_each(|number| writer.append(record(number)).unwrap());
    while writer.tend().unwrap() {}
    assert_eq!(files_under(&folder).len(), 1, "the sidecar");

    writer.forget_vectors().unwrap();
    assert!(files_under(&folder).is_empty());
    writer.append(record(1_100)).unwrap();
    while writer.tend().unwrap() {}
    writer.close().unwrap();

    assert!(files_under(&folder).len() >= 2, "the sidecar and the graph");
    let connection = fixture::connection(dir.path());
    let newest = record(1_100).episode.id.to_string();
    let linked = links_in(&connection).iter().filter(|(a, b, ..)| *a == newest || *b == newest).count();
    assert!(linked > 0, "it was linked when the graph was made again");
    check_bounds(&connection);
}

/// As `--reprocess` does it: all rows of a session go and come again, several times.
#[test]
fn rows_that_were_replaced_many_times_are_linked_as_at_first() {
    let records = episodes(21, 60);
    let fresh = Lab::new();
    records.iter().for_each(|record| drop(fresh.put(record)));
    let lab = Lab::new();
    for _ in 0..12 {
        lab.connection.execute_batch("BEGIN").unwrap();
        records.iter().for_each(|record| lab.remove(record.episode.id));
        records.iter().for_each(|record| drop(lab.put(record)));
        lab.connection.execute_batch("COMMIT").unwrap();
        lab.companion.borrow_mut().committed();
    }

    assert_eq!(lab.rows(), fresh.rows());
}

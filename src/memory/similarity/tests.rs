//! The nearest vectors, compared with looking at every one.

use super::*;
use crate::domain::episode::Embedding;
use crate::domain::episode::unit_length;
use crate::memory::embedding;
use crate::memory::fixture::seeded;
use crate::memory::schema;
use crate::memory::similarity::companion::Companion;
use crate::recall::links::Cuts;
use proptest::prelude::*;
use std::sync::Arc;

const MODEL: &str = "m";

fn space() -> Space {
    Space { model_id: ModelId::new(MODEL), kind: EmbeddingKind::Image }
}

fn key(dims: usize) -> Key {
    Key { model_id: ModelId::new(MODEL), kind: EmbeddingKind::Image, dims }
}

/// A store with episodes that are nothing but a vector.
struct Lab {
    dir: tempfile::TempDir,
    connection: Connection,
    companion: Companion,
}

impl Lab {
    fn new() -> Self {
        Self::of_store("s")
    }

    fn of_store(store_id: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut connection = Connection::open(dir.path().join(STORE_FILE)).unwrap();
        schema::stamp(&connection).unwrap();
        connection.pragma_update(None, "synchronous", "OFF").unwrap();
        schema::migrate(&mut connection).unwrap();
        connection.execute("INSERT INTO store VALUES (1, 'd', ?1, 1)", [store_id]).unwrap();
        let companion = Companion::new(dir.path(), store_id, Cuts::default());
        Self { dir, connection, companion }
    }

    fn add(&self, vector: &[f32]) -> i64 {
        self.add_to(MODEL, EmbeddingKind::Image, vector)
    }

    fn add_all(&self, vectors: &[Arc<[f32]>]) -> Vec<i64> {
        vectors.iter().map(|vector| self.add(vector)).collect()
    }

    fn add_to(&self, model: &str, kind: EmbeddingKind, vector: &[f32]) -> i64 {
        let id = uuid::Uuid::new_v4().to_string();
        self.connection
            .execute(
                "INSERT INTO episodes (id, device_id, store_id, session_id, source, timestamp, ended_at, boot_id,
                   monotonic_ms, clock_quality, modality, tool_name, content, importance, decay_class, metadata, digest,
                   stored_at, revision)
                 VALUES (?1, 'd', 's', 'r', 'm', 0, 0, 'b', 0, 'gps', 'visual', 't', '', 6, 'daily', '{}', x'', 0, 1)",
                [&id],
            )
            .unwrap();
        let row = self.connection.last_insert_rowid();
        put(&self.connection, row, model, kind, vector);
        row
    }

    fn change(&self, row: i64, vector: &[f32]) {
        put(&self.connection, row, MODEL, EmbeddingKind::Image, vector);
    }

    fn remove(&self, row: i64) {
        self.connection
            .execute("DELETE FROM embeddings WHERE episode_id = (SELECT id FROM episodes WHERE row_id = ?1)", [row])
            .unwrap();
        self.connection.execute("DELETE FROM episodes WHERE row_id = ?1", [row]).unwrap();
    }

    fn sidecar(&self, dims: usize) -> PathBuf {
        key(dims).folder(self.dir.path()).join(rows::MAIN)
    }

    fn nearest(&self, similarity: &mut Similarity, query: &[f32], limit: usize) -> Vec<Neighbour> {
        similarity.nearest(&self.connection, &space(), query, limit, None).unwrap()
    }

    #[track_caller]
    fn check(&self, similarity: &mut Similarity, query: &[f32], limit: usize) {
        assert_eq!(
            self.nearest(similarity, query, limit),
            by_looking_at_all(&self.connection, query, limit, &|_| true)
        );
    }
}

fn put(connection: &Connection, row: i64, model: &str, kind: EmbeddingKind, vector: &[f32]) {
    let id: String =
        connection.query_row("SELECT id FROM episodes WHERE row_id = ?1", [row], |row| row.get(0)).unwrap();
    let embedding = Embedding { model_id: ModelId::new(model), kind, vector: unit_length(vector).unwrap() };
    embedding::put(connection, &id, &[embedding]).unwrap();
}

fn by_looking_at_all(
    connection: &Connection,
    query: &[f32],
    limit: usize,
    allowed: &dyn Fn(i64) -> bool,
) -> Vec<Neighbour> {
    let mut statement = connection
        .prepare(
            "SELECT e.row_id, m.vector FROM embeddings AS m JOIN episodes AS e ON e.id = m.episode_id
             WHERE m.model_id = ?1 AND m.kind = 'image' AND m.dims = ?2",
        )
        .unwrap();
    let mut all: Vec<Neighbour> = statement
        .query_map((MODEL, i64::try_from(query.len()).unwrap()), |row| {
            let vector = embedding::decode(row.get_ref(1)?.as_blob()?).unwrap();
            Ok(Neighbour { row_id: row.get(0)?, cosine: product(query, &vector) })
        })
        .unwrap()
        .map(Result::unwrap)
        .filter(|neighbour| allowed(neighbour.row_id))
        .collect();
    all.sort_by(|one, other| other.cosine.total_cmp(&one.cosine).then(one.row_id.cmp(&other.row_id)));
    all.truncate(limit);
    all
}

/// Vectors around a few middles, some of them the very same.
fn vectors(seed: u64, count: usize, dims: usize) -> Vec<Arc<[f32]>> {
    let mut next = seeded(seed);
    let mut value = move || (next() % 2_001) as f32 / 1_000.0 - 1.0;
    let middles: Vec<Vec<f32>> = (0..4).map(|_| (0..dims).map(|_| value()).collect()).collect();
    let mut made: Vec<Arc<[f32]>> = Vec::new();
    for number in 0..count {
        let middle = &middles[number % middles.len()];
        let spread = 0.1 + value().abs() / 4.0;
        let near: Vec<f32> = middle.iter().map(|part| part + 0.001 + spread * value()).collect();
        let is_repeat = value() > 0.4 && number > 0;
        made.push(if is_repeat { Arc::clone(&made[number / 2]) } else { unit_length(&near).unwrap() });
    }
    made
}

/// What happens to a store after its sidecar was made.
#[derive(Debug, Clone)]
enum Later {
    Add(usize),
    Remove(usize),
    Replace(usize),
}

fn changes() -> impl Strategy<Value = Vec<Later>> {
    let change = prop_oneof![
        (0_usize..1_000).prop_map(Later::Add),
        (0_usize..1_000).prop_map(Later::Remove),
        (0_usize..1_000).prop_map(Later::Replace),
    ];
    proptest::collection::vec(change, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Whatever was added, removed and replaced since the sidecar was made, whatever the filter.
    #[test]
    fn the_nearest_are_those_that_looking_at_all_finds(
        seed in 0_u64..1_000_000,
        count in 0_usize..300,
        dims in 1_usize..70,
        limit in 1_usize..40,
        part in 1_i64..5,
        changes in changes(),
        late_at in 0_usize..60,
    ) {
        let mut lab = Lab::new();
        let spare = vectors(seed + 1, 1_000, dims);
        lab.connection.execute_batch("BEGIN").unwrap();
        let mut rows: Vec<i64> = lab.add_all(&vectors(seed, count, dims));
        lab.companion.make_sidecar(&lab.connection, &key(dims), false);
        let mut similarity = Similarity::open(lab.dir.path());
        lab.check(&mut similarity, &spare[999], limit);
        for (number, change) in changes.into_iter().enumerate() {
            if number == late_at {
                lab.companion.make_sidecar(&lab.connection, &key(dims), true);
                lab.check(&mut similarity, &spare[998], limit);
            }
            match change {
                Later::Add(number) => rows.push(lab.add(&spare[number])),
                Later::Remove(number) if number < rows.len() => lab.remove(rows.swap_remove(number)),
                Later::Replace(number) if number < rows.len() => lab.change(rows[number], &spare[number]),
                Later::Remove(_) | Later::Replace(_) => {}
            }
        }

        prop_assert!(!similarity.spaces[&key(dims)].rows.is_empty(), "the sidecar is in use");
        for query in [&spare[0], &spare[500]] {
            lab.check(&mut similarity, query, limit);
            let allowed = |row: i64| row % part == 0;
            let found = similarity.nearest(&lab.connection, &space(), query, limit, Some(&allowed)).unwrap();
            prop_assert_eq!(found, by_looking_at_all(&lab.connection, query, limit, &allowed));
        }
    }
}

#[test]
fn many_removed_rows_among_the_best_do_not_push_out_a_living_one() {
    let mut lab = Lab::new();
    let rows: Vec<i64> = (0..200).map(|number| lab.add(&[1.0, number as f32 / 100.0, 0.3])).collect();
    lab.companion.make_sidecar(&lab.connection, &key(3), false);
    rows[..60].iter().for_each(|row| lab.remove(*row));

    let mut similarity = Similarity::open(lab.dir.path());

    lab.check(&mut similarity, &[1.0, 0.0, 0.0], 5);
}

#[test]
fn a_number_is_never_given_twice_not_even_after_the_newest_vector_has_gone() {
    let lab = Lab::new();
    let newest =
        || -> i64 { lab.connection.query_row("SELECT max(row_id) FROM embeddings", [], |row| row.get(0)).unwrap() };
    let mut seen = Vec::new();
    for _ in 0..3 {
        let row = lab.add(&[1.0, 0.0]);
        seen.push(newest());
        lab.change(row, &[0.0, 1.0]);
        seen.push(newest());
        lab.remove(row);
        lab.add(&[0.5, 0.5]);
        seen.push(newest());
    }

    assert!(seen.is_sorted_by(|one, other| one < other), "{seen:?}");
}

/// What may stand in place of the sidecar, and whether it is used.
#[test]
fn a_sidecar_that_does_not_fit_is_not_used_and_the_answer_is_the_same() {
    const DIMS: usize = 32;
    let mut lab = Lab::new();
    let vectors = vectors(7, 500, DIMS);
    lab.add_all(&vectors);
    lab.companion.make_sidecar(&lab.connection, &key(DIMS), false);
    let path = lab.sidecar(DIMS);
    let whole = std::fs::read(&path).unwrap();
    let mut other = Lab::of_store("another");
    other.add(&vectors[0]);
    other.companion.make_sidecar(&other.connection, &key(DIMS), false);
    let of_other = std::fs::read(other.sidecar(DIMS)).unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        bytes
    };

    for (name, bytes, is_used) in [
        ("whole", whole.clone(), true),
        ("empty", Vec::new(), false),
        ("cut in its header", whole[..100].to_vec(), false),
        ("cut in its rows", whole[..whole.len() - 1].to_vec(), false),
        ("longer", [whole.clone(), vec![0]].concat(), false),
        ("another store's", of_other, false),
        ("damaged in its header", flipped(50), false),
        ("damaged in a code", flipped(5_000), false),
        ("damaged in its checksum", flipped(whole.len() - 1), false),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let mut similarity = Similarity::open(lab.dir.path());

        lab.check(&mut similarity, &vectors[3], 10);

        assert_eq!(!similarity.spaces[&key(DIMS)].rows.is_empty(), is_used, "{name}");
        lab.check(&mut similarity, &vectors[4], 10);
    }
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    lab.check(&mut Similarity::open(lab.dir.path()), &vectors[3], 10);
}

#[test]
fn a_sidecar_that_takes_the_place_of_another_is_noticed() {
    let mut lab = Lab::new();
    let vectors = vectors(1, 300, 16);
    lab.add_all(&vectors[..100]);
    let mut similarity = Similarity::open(lab.dir.path());
    for upto in [100, 200, 300] {
        lab.add_all(&vectors[upto - 100..upto]);
        lab.companion.make_sidecar(&lab.connection, &key(16), false);

        lab.check(&mut similarity, &vectors[0], 7);

        assert_eq!(similarity.spaces[&key(16)].len(), upto + 100);
    }
    Similarity::forget_everything(lab.dir.path()).unwrap();
    Similarity::forget_everything(lab.dir.path()).unwrap();
    lab.check(&mut similarity, &vectors[0], 7);
    assert!(similarity.spaces[&key(16)].rows.is_empty());
    assert!(!lab.dir.path().join(storage::FOLDER).exists());
}

/// The copy that is put back has the same store id, and gives the same numbers to other vectors.
#[test]
fn a_store_put_back_from_a_copy_does_not_meet_the_sidecar_of_what_came_after() {
    let mut lab = Lab::new();
    let vectors = vectors(5, 400, 16);
    lab.add_all(&vectors[..100]);
    lab.connection.execute_batch("SAVEPOINT copy").unwrap();
    lab.add_all(&vectors[100..200]);
    lab.companion.make_sidecar(&lab.connection, &key(16), false);
    lab.connection.execute_batch("ROLLBACK TO copy; RELEASE copy").unwrap();

    for upto in [200, 250, 350, 400] {
        let mut similarity = Similarity::open(lab.dir.path());
        lab.check(&mut similarity, &vectors[150], 9);
        assert!(similarity.spaces[&key(16)].rows.is_empty(), "{upto}");
        lab.add_all(&vectors[upto - 50..upto]);
    }
}

#[test]
fn spaces_are_listed_and_never_mixed() {
    let lab = Lab::new();
    lab.add(&[1.0, 0.0]);
    lab.add(&[1.0, 0.0, 0.0]);
    lab.add_to(MODEL, EmbeddingKind::Text, &[1.0, 0.0]);
    lab.add_to("another", EmbeddingKind::Image, &[1.0, 0.0]);
    let mut similarity = Similarity::open(lab.dir.path());
    let space = |model: &str, kind| Space { model_id: ModelId::new(model), kind };

    assert_eq!(
        spaces(&lab.connection).unwrap(),
        [space("another", EmbeddingKind::Image), space(MODEL, EmbeddingKind::Image), space(MODEL, EmbeddingKind::Text)]
    );
    for (model, kind, expected) in [
        (MODEL, EmbeddingKind::Image, vec![1]),
        (MODEL, EmbeddingKind::Text, vec![3]),
        ("none", EmbeddingKind::Image, vec![]),
    ] {
        let found = similarity.nearest(&lab.connection, &space(model, kind), &[1.0, 0.0], 9, None).unwrap();
        assert_eq!(found.iter().map(|found| found.row_id).collect::<Vec<_>>(), expected, "{model} {kind:?}");
    }
}

#[test]
fn a_query_that_is_no_vector_is_refused_and_no_limit_is_too_great() {
    let lab = Lab::new();
    lab.add(&[1.0, 0.0]);
    let mut similarity = Similarity::open(lab.dir.path());
    for query in [&[][..], &[f32::NAN, 0.0], &[f32::INFINITY, 0.0]] {
        let error = similarity.nearest(&lab.connection, &space(), query, 3, None).unwrap_err();
        assert!(error.to_string().contains("query vector"), "{error}");
    }

    assert_eq!(lab.nearest(&mut similarity, &[1.0, 0.0], usize::MAX).len(), 1);
    assert_eq!(lab.nearest(&mut similarity, &[1.0, 0.0], 0), []);
    assert_eq!(lab.nearest(&mut similarity, &[0.0, 0.0], 3)[0].cosine, 0.0);
}

#[test]
fn nobody_needs_the_right_to_write() {
    use std::os::unix::fs::PermissionsExt;
    let mut lab = Lab::new();
    let vectors = vectors(5, 200, 16);
    lab.add_all(&vectors);
    for has_sidecar in [false, true] {
        if has_sidecar {
            lab.companion.make_sidecar(&lab.connection, &key(16), false);
        }
        let reader =
            Connection::open_with_flags(lab.dir.path().join(STORE_FILE), rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)
                .unwrap();
        let before: Vec<_> =
            std::fs::read_dir(lab.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        std::fs::set_permissions(lab.dir.path(), std::fs::Permissions::from_mode(0o555)).unwrap();

        let found = Similarity::open(lab.dir.path()).nearest(&reader, &space(), &vectors[0], 4, None).unwrap();

        std::fs::set_permissions(lab.dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(found, by_looking_at_all(&reader, &vectors[0], 4, &|_| true));
        let after: Vec<_> =
            std::fs::read_dir(lab.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(before, after);
    }
}

/// Graphs of 400 rows in place of 30,000, so that a small store has several.
#[test]
fn beyond_the_bound_graphs_find_the_same_but_for_a_few() {
    const DIMS: usize = 48;
    let mut lab = Lab::new();
    lab.companion = Companion::new(lab.dir.path(), "s", Cuts::default()).with_segments_of(400);
    lab.connection.execute_batch("BEGIN").unwrap();
    let vectors = vectors(11, 2_000, DIMS);
    let rows = lab.add_all(&vectors);
    lab.connection.execute_batch("COMMIT").unwrap();
    while lab.companion.tend(&lab.connection) {}
    let mut similarity = Similarity { exact_rows_max: 0, ..Similarity::open(lab.dir.path()) };
    rows.iter().step_by(3).for_each(|row| lab.remove(*row));
    rows.iter().skip(1).step_by(3).take(100).for_each(|row| lab.change(*row, &vectors[0]));

    let (mut found, mut wanted) = (0, 0);
    for query in vectors.iter().step_by(37) {
        for allowed in [&(|_| true) as &dyn Fn(i64) -> bool, &|row| row % 2 == 0, &|row| row % 101 == 0] {
            let exact = by_looking_at_all(&lab.connection, query, 10, allowed);
            let near = similarity.nearest(&lab.connection, &space(), query, 10, Some(allowed)).unwrap();
            assert!(near.iter().all(|neighbour| allowed(neighbour.row_id)));
            wanted += exact.len();
            found += exact.iter().filter(|neighbour| near.contains(neighbour)).count();
        }
    }

    assert_eq!(similarity.spaces[&key(DIMS)].segments.len(), 4, "2,000 rows are four full segments and some");
    assert!(found * 100 >= wanted * 98, "{found} of {wanted}");
}

#[test]
fn a_damaged_graph_is_never_mapped() {
    const DIMS: usize = 16;
    let mut lab = Lab::new();
    lab.companion = Companion::new(lab.dir.path(), "s", Cuts::default()).with_segments_of(500);
    lab.connection.execute_batch("BEGIN").unwrap();
    let vectors = vectors(2, 1_600, DIMS);
    lab.add_all(&vectors);
    lab.connection.execute_batch("COMMIT").unwrap();
    while lab.companion.tend(&lab.connection) {}
    let folder = key(DIMS).folder(lab.dir.path());
    let mut graphs: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "hnsw"))
        .collect();
    graphs.sort();
    assert_eq!(graphs.len(), 3);
    let mut bytes = std::fs::read(&graphs[0]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&graphs[0], bytes).unwrap();

    let mut similarity = Similarity { exact_rows_max: 0, ..Similarity::open(lab.dir.path()) };
    lab.nearest(&mut similarity, &vectors[0], 10);

    assert!(similarity.spaces[&key(DIMS)].segments.len() < 3);
    Similarity::forget_everything(lab.dir.path()).unwrap();
    lab.check(&mut similarity, &vectors[0], 10);
}

#[test]
fn a_graph_that_was_lost_is_made_again() {
    const DIMS: usize = 16;
    let mut lab = Lab::new();
    lab.companion = Companion::new(lab.dir.path(), "s", Cuts::default()).with_segments_of(300);
    lab.connection.execute_batch("BEGIN").unwrap();
    let vectors = vectors(2, 1_000, DIMS);
    lab.add_all(&vectors);
    lab.connection.execute_batch("COMMIT").unwrap();
    while lab.companion.tend(&lab.connection) {}
    let graphs = || -> Vec<PathBuf> {
        let entries = std::fs::read_dir(key(DIMS).folder(lab.dir.path())).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "hnsw")).collect()
    };
    let before = graphs();
    std::fs::write(&before[0], b"not a graph").unwrap();

    let mut codes = vec![0; DIMS];
    quantise(&vectors[0], &mut codes);
    lab.companion.near(&lab.connection, &key(DIMS), &codes, 5).unwrap();
    while lab.companion.tend(&lab.connection) {}

    assert_eq!(graphs().len(), before.len());
    let mut similarity = Similarity { exact_rows_max: 0, ..Similarity::open(lab.dir.path()) };
    assert_eq!(lab.nearest(&mut similarity, &vectors[0], 1)[0].row_id, 1);
}

#[test]
fn a_segment_that_lost_much_is_made_without_it() {
    const DIMS: usize = 16;
    let mut lab = Lab::new();
    lab.companion = Companion::new(lab.dir.path(), "s", Cuts::default()).with_segments_of(2_000);
    lab.connection.execute_batch("BEGIN").unwrap();
    let vectors = vectors(2, 2_400, DIMS);
    let rows = lab.add_all(&vectors);
    lab.connection.execute_batch("COMMIT").unwrap();
    while lab.companion.tend(&lab.connection) {}
    let rows_of_first = |lab: &Lab| segments::manifests(&key(DIMS).folder(lab.dir.path()), &key(DIMS), "s")[0].rows;
    let before = rows_of_first(&lab);
    lab.connection.execute_batch("BEGIN").unwrap();
    for row in &rows[..1_100] {
        lab.remove(*row);
        lab.companion.removed(Vec::new());
    }
    lab.connection.execute_batch("COMMIT").unwrap();

    while lab.companion.tend(&lab.connection) {}

    assert_eq!(rows_of_first(&lab), before - 1_100);
    assert!(before >= 2_000);
}

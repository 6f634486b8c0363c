//! An HNSW graph over quantised vectors (the crate `usearch`, with SimSIMD's cosine).
//!
//! In: keys with codes. Out: keys of about the nearest, to be compared in full by the caller.
//! A key holds both row numbers, so that a filter can be asked inside the search.
//! One thread, and its random levels begin at the same seed, so the same puts give the same graph.
//! Never: an answer that is taken for exact.

use simsimd::SpatialSimilarity;
use std::path::Path;
use usearch::Index;
use usearch::IndexOptions;
use usearch::MetricKind;
use usearch::ScalarKind;

/// Links a node has on each level but the lowest, which has twice as many. Measured at 65,536 × 512 in clusters: recall of
/// the ten nearest 0.9985 at an effort of 64, 116 bytes a vector besides its codes; 8 gave 0.97 at 16,384, 16 was a half slower.
const CONNECTIVITY: usize = 12;

/// Nodes looked at when one is added.
const EFFORT_TO_ADD: usize = 64;

/// Nodes looked at in a search.
pub(crate) const EFFORT_TO_FIND: usize = 64;

/// Nodes by which the room grows.
const ROOM_STEP: usize = 1_024;

/// Both row numbers in one key; `None` when one is beyond 32 bits: such a row is never indexed, and found by scanning.
pub(crate) fn key_of(row_id: i64, episode: i64) -> Option<u64> {
    Some(u64::from(u32::try_from(row_id).ok()?) << 32 | u64::from(u32::try_from(episode).ok()?))
}

/// `embeddings.row_id` and `episodes.row_id` of a key.
pub(crate) fn rows_of(key: u64) -> (i64, i64) {
    let half = |bits: u64| i64::try_from(bits & u64::from(u32::MAX)).unwrap_or(0);
    (half(key >> 32), half(key))
}

/// A key near what was asked for, and how far from it: 1 - cosine of the codes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Near {
    pub(crate) key: u64,
    pub(crate) distance: f32,
}

/// A graph.
pub(crate) struct Graph {
    index: Index,
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Graph").field("nodes", &self.len()).finish()
    }
}

impl Graph {
    /// An empty graph; `None` when there is no memory for it.
    pub(crate) fn new(dims: usize) -> Option<Self> {
        let mut index = Index::new(&options(dims)).ok()?;
        set_metric(&mut index, dims);
        Some(Self { index })
    }

    /// A saved graph, mapped: it takes nothing more. The file must be whole, so its checksum has to be looked at before.
    pub(crate) fn view(path: &Path, dims: usize) -> Option<Self> {
        Self::read(dims, |index| index.view(path.to_str()?).ok())
    }

    /// A saved graph in memory, to which more can be added. The file must be whole.
    pub(crate) fn load(path: &Path, dims: usize) -> Option<Self> {
        Self::read(dims, |index| index.load(path.to_str()?).ok())
    }

    fn read(dims: usize, read: impl FnOnce(&Index) -> Option<()>) -> Option<Self> {
        let mut index = Index::new(&options(dims)).ok()?;
        read(&index)?;
        if index.dimensions() != dims || index.scalar_kind() != ScalarKind::I8 {
            return None;
        }
        // Reading sets the metric the file names.
        set_metric(&mut index, dims);
        index.change_expansion_add(EFFORT_TO_ADD);
        Some(Self { index })
    }

    /// Saves it under that path; `false` when that failed.
    pub(crate) fn save(&self, path: &Path) -> bool {
        path.to_str().is_some_and(|path| self.index.save(path).is_ok())
    }

    /// Nodes in it.
    pub(crate) fn len(&self) -> usize {
        self.index.size()
    }

    /// Whether it has a node of that key.
    pub(crate) fn holds(&self, key: u64) -> bool {
        self.index.contains(key)
    }

    /// Adds a node, or replaces that of the same key; `false` when there is no memory for it.
    pub(crate) fn put(&mut self, key: u64, codes: &[i8]) -> bool {
        if self.index.contains(key) {
            self.remove(key);
        }
        if self.index.size() >= self.index.capacity()
            && self.index.reserve_capacity_and_threads(self.index.size() + ROOM_STEP, 1).is_err()
        {
            return false;
        }
        self.index.add(key, codes).is_ok()
    }

    /// Removes a node.
    pub(crate) fn remove(&mut self, key: u64) {
        // One that is not there is fine.
        let _ = self.index.remove(key);
    }

    /// About the nearest `count` nodes, nearest first.
    pub(crate) fn nearest(&self, codes: &[i8], count: usize, effort: usize) -> Vec<Near> {
        if self.len() == 0 {
            return Vec::new();
        }
        let count = count.min(self.len());
        self.index.change_expansion_search(effort.max(count));
        self.index.search(codes, count).map_or_else(|_| Vec::new(), nears)
    }

    /// The nearest `count` nodes, by looking at every one.
    pub(crate) fn nearest_of_all(&self, codes: &[i8], count: usize) -> Vec<Near> {
        if self.len() == 0 {
            return Vec::new();
        }
        self.index.exact_search(codes, count.min(self.len())).map_or_else(|_| Vec::new(), nears)
    }

    /// About the nearest `count` nodes that the filter lets through.
    pub(crate) fn nearest_allowed(
        &self,
        codes: &[i8],
        count: usize,
        effort: usize,
        allowed: &dyn Fn(u64) -> bool,
    ) -> Vec<Near> {
        if self.len() == 0 {
            return Vec::new();
        }
        let count = count.min(self.len());
        self.index.change_expansion_search(effort.max(count));
        self.index.filtered_search(codes, count, allowed).map_or_else(|_| Vec::new(), nears)
    }
}

fn options(dims: usize) -> IndexOptions {
    IndexOptions {
        dimensions: dims,
        metric: MetricKind::Cos,
        quantization: ScalarKind::I8,
        connectivity: CONNECTIVITY,
        expansion_add: EFFORT_TO_ADD,
        expansion_search: EFFORT_TO_FIND,
        multi: false,
    }
}

/// Cosine of codes: their scales cancel out. Three times as fast as the crate's own on a processor with VNNI.
#[expect(unsafe_code, reason = "the crate hands the metric two bare pointers")]
fn set_metric(index: &mut Index, dims: usize) {
    index.change_metric::<i8>(Box::new(move |one, other| {
        // SAFETY: the index was made for rows of `dims` codes, and both rows live while it compares them.
        let (one, other) = unsafe { (std::slice::from_raw_parts(one, dims), std::slice::from_raw_parts(other, dims)) };
        #[expect(clippy::cast_possible_truncation, reason = "a cosine needs no more than f32")]
        let distance = i8::cos(one, other).map_or(1.0, |distance| distance as f32);
        distance
    }));
}

fn nears(matches: usearch::ffi::Matches) -> Vec<Near> {
    matches.keys.into_iter().zip(matches.distances).map(|(key, distance)| Near { key, distance }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::fixture::seeded;

    const DIMS: usize = 24;

    fn random(next: &mut impl FnMut() -> u64) -> Vec<i8> {
        (0..DIMS).map(|_| (next() % 255) as u8 as i8).collect()
    }

    fn filled(count: u64) -> (Graph, Vec<Vec<i8>>) {
        let mut next = seeded(3);
        let rows: Vec<Vec<i8>> = (0..count).map(|_| random(&mut next)).collect();
        let mut graph = Graph::new(DIMS).unwrap();
        for (key, row) in (0_u64..).zip(&rows) {
            assert!(graph.put(key, row));
        }
        (graph, rows)
    }

    #[test]
    fn a_key_is_both_row_numbers_unless_one_is_too_great() {
        assert_eq!(key_of(7, 9).map(rows_of), Some((7, 9)));
        assert_eq!(key_of(i64::from(u32::MAX), 0).map(rows_of), Some((i64::from(u32::MAX), 0)));
        assert_eq!((key_of(1 << 32, 1), key_of(1, -1)), (None, None));
    }

    #[test]
    fn the_nearest_are_found_saved_viewed_and_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("graph");
        let (graph, rows) = filled(3_000);
        assert!(graph.save(&path));
        let (viewed, mut loaded) = (Graph::view(&path, DIMS).unwrap(), Graph::load(&path, DIMS).unwrap());
        assert!(loaded.put(9_999, &[1; DIMS]));

        for (key, row) in (0_u64..).zip(&rows).step_by(97) {
            for graph in [&graph, &viewed, &loaded] {
                assert_eq!(graph.nearest(row, 3, EFFORT_TO_FIND)[0].key, key);
            }
        }
        assert_eq!(loaded.nearest(&[1; DIMS], 1, EFFORT_TO_FIND)[0].key, 9_999);
        assert!(Graph::view(&path, DIMS + 1).is_none());
    }

    #[test]
    fn the_same_puts_give_the_same_answers() {
        let (one, rows) = filled(3_000);
        let (other, _) = filled(3_000);

        for row in rows.iter().step_by(301) {
            assert_eq!(one.nearest(row, 10, EFFORT_TO_FIND), other.nearest(row, 10, EFFORT_TO_FIND));
        }
    }

    #[test]
    fn a_filter_is_asked_inside_the_search_and_a_replaced_node_has_its_new_place() {
        let (mut graph, rows) = filled(2_000);

        let odd = graph.nearest_allowed(&rows[4], 5, EFFORT_TO_FIND, &|key| key % 2 == 1);
        assert!(graph.put(4, &rows[5]));
        let of_five: Vec<u64> = graph.nearest(&rows[5], 2, EFFORT_TO_FIND).iter().map(|near| near.key).collect();

        assert_eq!(odd.len(), 5);
        assert!(odd.iter().all(|near| near.key % 2 == 1), "{odd:?}");
        assert!(of_five.contains(&4) && of_five.contains(&5), "{of_five:?}");
        assert_eq!(graph.len(), 2_000);
    }
}

//! Which part of the graph a query can reach.
//!
//! In: seeds, and a [`Surroundings`] that names the neighbours of a place. Out: places and edges, ready for
//! [`crate::recall::pagerank`].
//!
//! ```text
//! seeds ──hop──> neighbours ──hop──> …   until nothing is new, or the walk has too little left to matter
//! ```
//!
//! Below [`PLACES_MAX`] reachable places the ranks are those of the whole graph within 1e-7. Beyond, the places met first are
//! taken, of each hop those the walk reaches most; the rest is left out, and the answer says so. Never: I/O of its own.

use crate::domain::id::EpisodeId;
use crate::recall::pagerank::Edge;
use std::collections::HashMap;
use std::collections::HashSet;

/// Most places taken from the graph (DESIGN section 5).
pub const PLACES_MAX: usize = 20_000;

/// Most edges held: 24 bytes each here and as much again while ranks are made. 20,000 episodes with every link they may have
/// stay below it.
const EDGES_MAX: usize = 500_000;

/// Places looked around from once the graph is known to be larger than [`PLACES_MAX`]. What the walk reaches last then
/// counts little, and every look costs about 10 µs of reading.
const LOOKS_BEYOND_MAX: usize = 1_000;

/// Ties read of one place once the graph is known to be larger.
const TIES_BEYOND_MAX: usize = 500;

/// The walk is not followed further once so little of it is left.
const LEFT_MIN: f64 = 1e-8;

/// A node of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// An episode.
    Episode(EpisodeId),
    /// A name: people, places, things that are called the same.
    Name(i64),
}

/// The graph, as far as it is asked for.
pub trait Surroundings {
    /// Why a place cannot be looked up.
    type Error;

    /// Appends what the place is tied to and how strongly (above 0), in a stable order, at most `limit`. A tie is named from
    /// both of its ends.
    ///
    /// # Errors
    /// When it cannot be read.
    fn ties_of(&mut self, place: Place, limit: usize, into: &mut Vec<(Place, f64)>) -> Result<(), Self::Error>;
}

/// The part of the graph around the seeds.
#[derive(Debug, Clone, Default)]
pub struct Expansion {
    /// The places; seeds first. A place's number is its position.
    pub places: Vec<Place>,
    /// The edges between them.
    pub edges: Vec<Edge>,
    /// Whether nothing was left out that could change a rank by 1e-6.
    pub is_whole: bool,
    numbers: HashMap<Place, u32>,
    /// How much of the walk arrives first, roughly: what is looked at first.
    arrivals: Vec<f64>,
    looks: Vec<Look>,
}

/// What is known of a place's ties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    NotYet,
    All,
    Some,
}

impl Expansion {
    /// Expands from the seeds (with their weights).
    ///
    /// # Errors
    /// The first error of a look.
    pub fn around<S: Surroundings>(
        surroundings: &mut S,
        seeds: &[(Place, f64)],
        damping: f64,
    ) -> Result<Self, S::Error> {
        Self::bounded(surroundings, seeds, damping, PLACES_MAX)
    }

    fn bounded<S: Surroundings>(
        surroundings: &mut S,
        seeds: &[(Place, f64)],
        damping: f64,
        places_max: usize,
    ) -> Result<Self, S::Error> {
        let mut expansion = Self { is_whole: true, ..Self::default() };
        let mut frontier = Vec::new();
        for (place, weight) in seeds {
            if let Some((number, is_new)) = expansion.number(*place, places_max) {
                expansion.arrivals[number as usize] += weight;
                frontier.extend(is_new.then_some(number));
            }
        }
        let mut cut = HashSet::new();
        let (mut left, mut looks) = (1.0, 0);
        while !frontier.is_empty() && left > LEFT_MIN {
            let arrivals = &expansion.arrivals;
            frontier.sort_by(|one: &u32, other: &u32| {
                arrivals[*other as usize].total_cmp(&arrivals[*one as usize]).then(one.cmp(other))
            });
            let mut next = Vec::new();
            for number in frontier {
                if expansion.is_enough(looks) {
                    return Ok(expansion);
                }
                looks += 1;
                expansion.look(surroundings, number, damping, places_max, &mut cut, &mut next)?;
            }
            frontier = next;
            left *= damping;
        }
        Ok(expansion)
    }

    /// The seeds by their numbers, for [`crate::recall::pagerank::rank`].
    #[must_use]
    pub fn numbered(&self, seeds: &[(Place, f64)]) -> Vec<(u32, f64)> {
        seeds.iter().filter_map(|(place, weight)| Some((*self.numbers.get(place)?, *weight))).collect()
    }

    fn is_enough(&mut self, looks: usize) -> bool {
        self.is_whole &= self.edges.len() < EDGES_MAX;
        !self.is_whole && (looks >= LOOKS_BEYOND_MAX || self.edges.len() >= EDGES_MAX)
    }

    /// Takes the ties of one place.
    fn look<S: Surroundings>(
        &mut self,
        surroundings: &mut S,
        number: u32,
        damping: f64,
        places_max: usize,
        cut: &mut HashSet<(u32, u32)>,
        next: &mut Vec<u32>,
    ) -> Result<(), S::Error> {
        let limit = if self.is_whole { places_max + 1 } else { TIES_BEYOND_MAX };
        let mut ties = Vec::new();
        surroundings.ties_of(self.places[number as usize], limit, &mut ties)?;
        let is_cut = ties.len() >= limit;
        self.looks[number as usize] = if is_cut { Look::Some } else { Look::All };
        self.is_whole &= !is_cut;
        let sum: f64 = ties.iter().map(|(_, weight)| weight).sum();
        let share = damping * self.arrivals[number as usize] / sum;
        for (place, weight) in ties {
            let Some((other, is_new)) = self.number(place, places_max) else {
                self.is_whole = false;
                continue;
            };
            next.extend(is_new.then_some(other));
            let look = self.looks[other as usize];
            if look == Look::NotYet {
                self.arrivals[other as usize] += share * weight;
            }
            // What was looked around from has told of this tie, unless it did not tell all.
            if look == Look::All || (look == Look::Some && cut.contains(&(other, number))) {
                continue;
            }
            if is_cut {
                cut.insert((number, other));
            }
            self.edges.push(Edge { one: number, other, weight });
        }
        Ok(())
    }

    /// The place's number, and whether it is new; `None` when there is no room for it.
    fn number(&mut self, place: Place, places_max: usize) -> Option<(u32, bool)> {
        if let Some(number) = self.numbers.get(&place) {
            return Some((*number, false));
        }
        let number = u32::try_from(self.places.len()).ok().filter(|_| self.places.len() < places_max)?;
        self.numbers.insert(place, number);
        self.places.push(place);
        self.arrivals.push(0.0);
        self.looks.push(Look::NotYet);
        Some((number, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::pagerank;
    use crate::recall::pagerank::Graph;
    use proptest::prelude::*;
    use std::convert::Infallible;

    /// Names joined by weighted edges.
    struct Map(Vec<(i64, i64, f64)>);

    impl Surroundings for Map {
        type Error = Infallible;

        fn ties_of(&mut self, place: Place, limit: usize, into: &mut Vec<(Place, f64)>) -> Result<(), Infallible> {
            let Place::Name(name) = place else { return Ok(()) };
            let ties = self.0.iter().filter_map(|(one, other, weight)| match name {
                _ if name == *one => Some((Place::Name(*other), *weight)),
                _ if name == *other => Some((Place::Name(*one), *weight)),
                _ => None,
            });
            into.extend(ties.take(limit));
            Ok(())
        }
    }

    fn ranks(expansion: &Expansion, seeds: &[(Place, f64)], damping: f64, nodes: usize) -> Vec<f64> {
        let numbered = expansion.numbered(seeds);
        let graph = Graph::new(expansion.places.len(), &expansion.edges);
        let found = pagerank::rank(&graph, &numbered, damping).unwrap();
        let mut ranks = vec![0.0; nodes];
        for (place, rank) in expansion.places.iter().zip(found) {
            let Place::Name(name) = place else { panic!("{place:?}") };
            ranks[usize::try_from(*name).unwrap()] = rank;
        }
        ranks
    }

    proptest! {
        #[test]
        fn ranks_around_the_seeds_are_those_of_the_whole_graph(
            edges in prop::collection::btree_map((0_i64..30, 0_i64..30), 0.1_f64..3.0, 0..80),
            seeds in prop::collection::btree_map(0_i64..30, 0.1_f64..3.0, 1..4),
            damping in prop::sample::select(vec![0.1, 0.5, 0.85]),
        ) {
            let edges: Vec<(i64, i64, f64)> = edges
                .into_iter()
                .filter(|((one, other), _)| one < other)
                .map(|((one, other), weight)| (one, other, weight))
                .collect();
            let number = |name: i64| u32::try_from(name).unwrap();
            let whole: Vec<Edge> = edges
                .iter()
                .map(|(one, other, weight)| Edge { one: number(*one), other: number(*other), weight: *weight })
                .collect();
            let all_seeds: Vec<(u32, f64)> = seeds.iter().map(|(name, weight)| (number(*name), *weight)).collect();
            let wanted = pagerank::rank(&Graph::new(30, &whole), &all_seeds, damping).unwrap();
            let seeds: Vec<(Place, f64)> = seeds.iter().map(|(name, weight)| (Place::Name(*name), *weight)).collect();

            let expansion = Expansion::around(&mut Map(edges), &seeds, damping).unwrap();

            prop_assert!(expansion.is_whole);
            for (rank, wanted) in ranks(&expansion, &seeds, damping, 30).iter().zip(&wanted) {
                prop_assert!((rank - wanted).abs() < 1e-7, "{rank}, not {wanted}");
            }
        }
    }

    #[test]
    fn a_long_chain_is_followed_only_as_far_as_the_walk_matters() {
        let chain: Vec<(i64, i64, f64)> = (0..5_000).map(|place| (place, place + 1, 1.0)).collect();
        let seeds = [(Place::Name(0), 1.0)];

        let expansion = Expansion::around(&mut Map(chain), &seeds, 0.5).unwrap();

        assert!(expansion.is_whole);
        assert!((20..40).contains(&expansion.places.len()), "{} places", expansion.places.len());
    }

    #[test]
    fn a_graph_that_is_too_large_is_taken_in_part_and_says_so() {
        let star: Vec<(i64, i64, f64)> =
            (1..200).flat_map(|leaf| [(0, leaf, 1.0), (leaf, leaf + 1_000, 1.0)]).collect();
        let seeds = [(Place::Name(0), 1.0)];

        let expansion = Expansion::bounded(&mut Map(star), &seeds, 0.5, 50).unwrap();

        assert!(!expansion.is_whole);
        assert_eq!(expansion.places.len(), 50);
        let pairs: std::collections::BTreeSet<(u32, u32)> =
            expansion.edges.iter().map(|edge| (edge.one.min(edge.other), edge.one.max(edge.other))).collect();
        assert_eq!(pairs.len(), expansion.edges.len(), "no edge is there twice");
    }
}

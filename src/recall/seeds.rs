//! Where the walk of a query begins.
//!
//! In: the names and episodes a query was found to be about. Out: seeds with weights.
//!
//! A name weighs the more, the rarer its words are and the fewer episodes have it; one that is only like what the query says
//! weighs less. Where a query has names the episodes nearest to it by vector begin with a small part of the walk, else they
//! and those that its words fit best with all of it: whatever begins at an episode stays there for the most part, and
//! a larger part cost the multi-hop questions more than it gave (docs/benchmarks.md).

use crate::domain::id::EpisodeId;
use crate::recall::expansion::Place;

/// Names of a query that are seeds.
pub const NAMES_MAX: usize = 32;

/// Episodes that are seeds because the query's words fit them.
pub const BY_WORDS_MAX: usize = 5;

/// Episodes that are seeds because a vector of the query is near theirs.
pub const BY_VECTOR_MAX: usize = 5;

/// The part of the walk that begins at the nearest episodes when the query has names.
const EPISODES_PART: f64 = 0.02;

/// Weight of a name that is wholly like what the query says, and is not it.
const ALIKE: f64 = 0.3;

/// Least part that an alike name has in common with what the query says.
pub const ALIKE_MIN: f64 = 0.2;

/// Alike names of one span of the query.
pub const ALIKE_MAX: usize = 2;

/// A known name that the query means.
#[derive(Debug, Clone, PartialEq)]
pub struct NameFound {
    /// `names.name_id`.
    pub name_id: i64,
    /// Its key.
    pub key: String,
    /// 1 when the query names it so, less when it is only like what it says.
    pub likeness: f64,
    /// Episodes that have it, each counted as its tie weighs, up to a bound.
    pub episodes: f64,
    /// How rare its words are: the sum of their [`rarity`].
    pub rarity: f64,
}

/// An episode near the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EpisodeFound {
    /// The episode.
    pub id: EpisodeId,
    /// How near, above 0 and at most 1.
    pub nearness: f64,
}

/// How much a name counts that has so large a part in common with what the query says, beside 1 for the name itself.
#[must_use]
pub fn of_alike(part: f64) -> f64 {
    ALIKE * part
}

/// Why something is a seed.
#[derive(Debug, Clone, PartialEq)]
pub enum Why {
    /// The query names it.
    Named(String),
    /// The query's words fit it.
    Words,
    /// A vector of the query is near.
    Vector,
}

/// A seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Seed {
    /// Where.
    pub place: Place,
    /// The part of the walk that begins here; all together 1.
    pub weight: f64,
    /// Why.
    pub why: Why,
}

/// How rare a word is that so many of the episodes have.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
pub fn rarity(episodes_with_it: usize, episodes: usize) -> f64 {
    ((episodes as f64 + 1.0) / (episodes_with_it as f64 + 0.5)).ln().max(0.01)
}

/// The seeds, the heaviest first.
#[must_use]
pub fn seeds(names: &[NameFound], by_words: &[EpisodeFound], by_vector: &[EpisodeFound]) -> Vec<Seed> {
    let named = named(names);
    let near = by_vector.iter().take(BY_VECTOR_MAX).map(|found| episode(found, Why::Vector));
    let mut episodes: Vec<Seed> = near.collect();
    if named.is_empty() {
        episodes.extend(by_words.iter().take(BY_WORDS_MAX).map(|found| episode(found, Why::Words)));
    }
    let part = match (named.is_empty(), episodes.is_empty()) {
        (false, false) => EPISODES_PART,
        (true, _) => 1.0,
        (false, true) => 0.0,
    };
    let mut seeds = scaled(named, 1.0 - part);
    seeds.extend(scaled(episodes, part));
    seeds.sort_by(|one, other| other.weight.total_cmp(&one.weight).then(one.place.cmp(&other.place)));
    seeds
}

fn named(names: &[NameFound]) -> Vec<Seed> {
    let seed = |name: &NameFound| Seed {
        place: Place::Name(name.name_id),
        weight: name_weight(name),
        why: Why::Named(name.key.clone()),
    };
    let mut seeds: Vec<Seed> = names.iter().map(seed).collect();
    seeds.sort_by(|one, other| other.weight.total_cmp(&one.weight).then(one.place.cmp(&other.place)));
    seeds.truncate(NAMES_MAX);
    seeds
}

fn name_weight(name: &NameFound) -> f64 {
    name.likeness * name.rarity / name.episodes.max(1.0)
}

fn episode(found: &EpisodeFound, why: Why) -> Seed {
    Seed { place: Place::Episode(found.id), weight: found.nearness.max(f64::MIN_POSITIVE), why }
}

/// The seeds with weights that add up to `part`.
fn scaled(mut seeds: Vec<Seed>, part: f64) -> Vec<Seed> {
    let sum: f64 = seeds.iter().map(|seed| seed.weight).sum();
    for seed in &mut seeds {
        seed.weight *= part / sum;
    }
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rare_name_weighs_more_than_a_common_one_and_an_alike_one_less() {
        let names =
            [name(2, "new york", 1.0, 4.0, 6.0), name(3, "anna", 1.0, 100.0, 5.0), name(4, "york", 0.1, 4.0, 6.0)];

        let seeds = seeds(&names, &[found(1)], &[]);

        let places: Vec<Place> = seeds.iter().map(|seed| seed.place).collect();
        assert_eq!(places, [Place::Name(2), Place::Name(4), Place::Name(3)]);
        assert!((seeds[0].weight - 1.5 / 1.7).abs() < 1e-12);
    }

    #[test]
    fn near_episodes_have_a_part_beside_names_and_all_without() {
        let weight = |seeds: &[Seed]| -> f64 {
            seeds.iter().filter(|seed| matches!(seed.place, Place::Episode(_))).map(|seed| seed.weight).sum()
        };

        let beside = seeds(&[name(1, "anna", 1.0, 1.0, 1.0)], &[found(1)], &[found(2)]);
        let alone = seeds(&[], &[found(1)], &[found(2)]);

        assert!((weight(&beside) - EPISODES_PART).abs() < 1e-12);
        assert!((weight(&alone) - 1.0).abs() < 1e-12);
        assert_eq!(alone.len(), 2);
        assert!(seeds(&[], &[], &[]).is_empty());
    }

    fn name(name_id: i64, key: &str, likeness: f64, episodes: f64, rarity: f64) -> NameFound {
        NameFound { name_id, key: key.to_owned(), likeness, episodes, rarity }
    }

    fn found(number: u8) -> EpisodeFound {
        let id = EpisodeId::parse(&format!("00000000-0000-5000-8000-0000000000{number:02}")).unwrap();
        EpisodeFound { id, nearness: 0.5 }
    }
}

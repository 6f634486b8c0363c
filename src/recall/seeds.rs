//! Where the walk of a query begins.
//!
//! In: the names and episodes a query was found to be about. Out: seeds with weights.
//!
//! A name weighs the more, the rarer its words are and the fewer episodes have it. A name within a longer one of the query
//! does not count beside it, and common nouns (`airport`) only when the query has no name. Where a query has names the
//! episodes nearest to it by vector begin with a part of the walk, else they and those that its words fit best with all of it.

use crate::domain::id::EpisodeId;
use crate::recall::expansion::Place;

/// Names of a query that are seeds.
pub const NAMES_MAX: usize = 32;

/// Episodes that are seeds because the query's words fit them.
pub const BY_WORDS_MAX: usize = 5;

/// Episodes that are seeds because a vector of the query is near theirs.
pub const BY_VECTOR_MAX: usize = 5;

/// The part of the walk that begins at the nearest episodes when the query has names.
const EPISODES_PART: f64 = 0.2;

/// A known name that stands in the query.
#[derive(Debug, Clone, PartialEq)]
pub struct NameFound {
    /// `names.name_id`.
    pub name_id: i64,
    /// Its key.
    pub key: String,
    /// Whether it is a name rather than a common noun.
    pub is_name: bool,
    /// Episodes that have it (counted up to a bound).
    pub episodes: usize,
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
    let is_within = |inner: &str, outer: &str| inner != outer && format!(" {outer} ").contains(&format!(" {inner} "));
    let has_names = names.iter().any(|name| name.is_name);
    let mut seeds: Vec<Seed> = names
        .iter()
        .filter(|name| name.is_name || !has_names)
        .filter(|name| !names.iter().any(|other| (other.is_name || !has_names) && is_within(&name.key, &other.key)))
        .map(|name| Seed {
            place: Place::Name(name.name_id),
            weight: name_weight(name),
            why: Why::Named(name.key.clone()),
        })
        .collect();
    seeds.sort_by(|one, other| other.weight.total_cmp(&one.weight).then(one.place.cmp(&other.place)));
    seeds.truncate(NAMES_MAX);
    seeds
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn name_weight(name: &NameFound) -> f64 {
    name.rarity / (name.episodes.max(1) as f64).sqrt()
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
    fn a_rare_name_weighs_more_and_a_name_within_another_nothing() {
        let names = [name(1, "york", true, 1, 2.0), name(2, "new york", true, 4, 6.0), name(3, "anna", true, 100, 5.0)];

        let seeds = seeds(&names, &[found(1)], &[]);

        let places: Vec<Place> = seeds.iter().map(|seed| seed.place).collect();
        assert_eq!(places, [Place::Name(2), Place::Name(3)]);
        assert!((seeds[0].weight - 3.0 / 3.5).abs() < 1e-12);
    }

    #[test]
    fn common_nouns_count_only_when_nothing_else_does() {
        let noun = name(1, "airport", false, 3, 2.0);

        assert_eq!(seeds(std::slice::from_ref(&noun), &[], &[]).len(), 1);
        let beside = seeds(&[noun, name(2, "anna", true, 1, 1.0)], &[], &[]);
        assert_eq!(beside.iter().map(|seed| seed.place).collect::<Vec<_>>(), [Place::Name(2)]);
    }

    #[test]
    fn near_episodes_have_a_part_beside_names_and_all_without() {
        let weight = |seeds: &[Seed]| -> f64 {
            seeds.iter().filter(|seed| matches!(seed.place, Place::Episode(_))).map(|seed| seed.weight).sum()
        };

        let beside = seeds(&[name(1, "anna", true, 1, 1.0)], &[found(1)], &[found(2)]);
        let alone = seeds(&[], &[found(1)], &[found(2)]);

        assert!((weight(&beside) - EPISODES_PART).abs() < 1e-12);
        assert!((weight(&alone) - 1.0).abs() < 1e-12);
        assert_eq!(alone.len(), 2);
        assert!(seeds(&[], &[], &[]).is_empty());
    }

    fn name(name_id: i64, key: &str, is_name: bool, episodes: usize, rarity: f64) -> NameFound {
        NameFound { name_id, key: key.to_owned(), is_name, episodes, rarity }
    }

    fn found(number: u8) -> EpisodeFound {
        let id = EpisodeId::parse(&format!("00000000-0000-5000-8000-0000000000{number:02}")).unwrap();
        EpisodeFound { id, nearness: 0.5 }
    }
}

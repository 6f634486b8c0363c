//! Counts by name, bounded.
//!
//! In: names with how long and when. Out: the names that matter most. A name beyond [`NAMES_MAX`] is only counted as
//! another one: sensors know 521 classes of sound, people know fewer people.

use crate::domain::id::EpisodeId;
use crate::domain::time::Timestamp;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Names of one kind that are told apart.
pub(super) const NAMES_MAX: usize = 1_024;

/// One occurrence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Once {
    pub(super) id: EpisodeId,
    pub(super) from: Timestamp,
    pub(super) length_ms: i64,
    /// How much it counts, e.g. a label's score times its length in seconds.
    pub(super) weight: f64,
}

/// What is known of a name.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) times: u64,
    pub(super) total_ms: i64,
    pub(super) weight: f64,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
    /// The occurrence that counted most.
    pub(super) best: EpisodeId,
    best_weight: f64,
}

/// Counts by name.
#[derive(Debug, Default, Clone)]
pub(super) struct Tally {
    names: BTreeMap<String, Entry>,
    others: u64,
}

impl Tally {
    pub(super) fn add(&mut self, name: &str, once: Once) {
        if self.names.len() >= NAMES_MAX && !self.names.contains_key(name) {
            self.others += 1;
            return;
        }
        let entry = self.names.entry(name.to_owned()).or_insert(Entry {
            times: 0,
            total_ms: 0,
            weight: 0.0,
            first: once.from,
            last: once.from,
            best: once.id,
            best_weight: f64::NEG_INFINITY,
        });
        entry.times += 1;
        entry.total_ms = entry.total_ms.saturating_add(once.length_ms);
        entry.weight += once.weight;
        entry.first = entry.first.min(once.from);
        entry.last = entry.last.max(once.from);
        if once.weight > entry.best_weight {
            entry.best_weight = once.weight;
            entry.best = once.id;
        }
    }

    /// The names by weight, then by how often, then in the order of the alphabet.
    pub(super) fn ranked(&self) -> Vec<(&str, &Entry)> {
        let mut ranked: Vec<(&str, &Entry)> = self.names.iter().map(|(name, entry)| (name.as_str(), entry)).collect();
        ranked.sort_by(|(one, a), (other, b)| {
            let order = b.weight.total_cmp(&a.weight).then_with(|| Reverse(a.times).cmp(&Reverse(b.times)));
            order.then_with(|| one.cmp(other))
        });
        ranked
    }

    pub(super) fn entry(&self, name: &str) -> Option<&Entry> {
        self.names.get(name)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Occurrences of names beyond the bound.
    pub(super) fn others(&self) -> u64 {
        self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::DeviceId;
    use crate::domain::id::ExternalId;

    #[test]
    fn the_heaviest_name_comes_first_with_its_best_occurrence() {
        let mut tally = Tally::default();
        for (number, name, weight) in [(0, "dog", 1.0), (1, "cat", 2.0), (2, "dog", 4.0), (3, "ape", 2.0)] {
            tally.add(name, once(number, weight));
        }

        let ranked: Vec<_> = tally.ranked().into_iter().map(|(name, entry)| (name, entry.times)).collect();

        assert_eq!(ranked, [("dog", 2), ("ape", 1), ("cat", 1)]);
        assert_eq!(tally.ranked()[0].1.best, once(2, 0.0).id);
        assert_eq!((tally.ranked()[0].1.first, tally.ranked()[0].1.last), (once(0, 0.0).from, once(2, 0.0).from));
    }

    #[test]
    fn names_beyond_the_bound_are_counted() {
        let mut tally = Tally::default();

        (0..2_000).for_each(|number| tally.add(&format!("{number}"), once(number, 1.0)));

        assert_eq!((tally.ranked().len(), tally.others()), (NAMES_MAX, 976));
    }

    fn once(number: i64, weight: f64) -> Once {
        let id = EpisodeId::of_external(&DeviceId::new("d"), &ExternalId::new(number.to_string()));
        Once { id, from: Timestamp::from_millis(number), length_ms: 5, weight }
    }
}

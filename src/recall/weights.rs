//! How strongly two places of the graph are tied.
//!
//! In: what ties them, what they are. Out: a weight above 0 for [`crate::recall::pagerank`].
//!
//! ```text
//! weight of an edge = bond × factor of one end × factor of the other
//! ```
//!
//! So the walk goes over names rather than over dates and common nouns, and to the episodes that the question's other words
//! fit. Between two episodes it is the geometric mean of the factors: a link says too little to be multiplied twice.
//! Constants found on the first half of the multi-hop questions (docs/benchmarks.md).

use crate::recall::name_sort::NameSort;

/// What ties two places.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bond<'a> {
    /// The episode states a fact with the name.
    States,
    /// The name stands in the episode's text.
    Mentions,
    /// So many facts name both.
    Facts(i64),
    /// Two episodes are linked.
    Link {
        /// `co_occurrence`, `similarity`, `gist`, …
        reason: &'a str,
        /// 0–1.
        score: f64,
    },
}

/// Least weight of a link: one that exists says something.
const LINK_MIN: f64 = 0.05;

/// Weight of a name that merely stands in a text, beside 1 for a stated fact.
const MENTION: f64 = 0.25;

/// Weight of a fact that names both, between them.
const FACT: f64 = 0.6;

/// Factor of what half the store may have: common nouns, dates, amounts.
const WEAK_BRIDGE: f64 = 0.1;

/// How much more the walk goes to an episode that fits best of all.
const FIT_GAIN: f64 = 10.0;

/// The weight.
#[must_use]
pub fn weight(bond: Bond<'_>) -> f64 {
    match bond {
        Bond::States => 1.0,
        Bond::Mentions => MENTION,
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
        Bond::Facts(count) => FACT * count.max(1) as f64,
        Bond::Link { score, .. } if score.is_finite() => score.clamp(LINK_MIN, 1.0),
        Bond::Link { .. } => LINK_MIN,
    }
}

/// The factor of a name.
#[must_use]
pub const fn of_name(sort: NameSort) -> f64 {
    match sort {
        NameSort::Common | NameSort::Measure => WEAK_BRIDGE,
        NameSort::Name | NameSort::Known => 1.0,
    }
}

/// The factor of an episode that the question fits so well (0–1); 1 for one it does not fit.
#[must_use]
pub fn of_episode(fit: f64) -> f64 {
    if fit.is_finite() { 1.0 + FIT_GAIN * fit.clamp(0.0, 1.0).powi(2) } else { 1.0 }
}

/// The factor of a link between two episodes with such factors.
#[must_use]
pub fn of_link(one: f64, other: f64) -> f64 {
    (one * other).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bond_weighs_something_whatever_the_row_says() {
        let link = |score| Bond::Link { reason: "r", score };
        let cases = [
            (Bond::States, 1.0),
            (Bond::Facts(3), 1.8),
            (Bond::Facts(-1), 0.6),
            (link(0.7), 0.7),
            (link(0.0), LINK_MIN),
            (link(9.0), 1.0),
            (link(f64::NAN), LINK_MIN),
        ];

        for (bond, expected) in cases {
            assert!((weight(bond) - expected).abs() < 1e-12, "{bond:?}");
        }
    }

    #[test]
    fn the_walk_prefers_names_and_what_fits() {
        assert!(of_name(NameSort::Known) > of_name(NameSort::Measure) && of_name(NameSort::Common) > 0.0);
        for (fit, expected) in [(0.0, 1.0), (0.5, 3.5), (1.0, 11.0), (7.0, 11.0), (-1.0, 1.0), (f64::NAN, 1.0)] {
            assert!((of_episode(fit) - expected).abs() < 1e-12, "{fit}");
        }
        assert!((of_link(of_episode(1.0), of_episode(1.0)) - 11.0).abs() < 1e-12);
    }
}

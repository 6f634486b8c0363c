//! How strongly two places of the graph are tied.
//!
//! In: what ties them. Out: a weight above 0 for [`crate::recall::pagerank`].

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
const MENTION: f64 = 0.5;

/// The weight.
#[must_use]
pub fn weight(bond: Bond<'_>) -> f64 {
    match bond {
        Bond::States => 1.0,
        Bond::Mentions => MENTION,
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
        Bond::Facts(count) => count.max(1) as f64,
        Bond::Link { score, .. } if score.is_finite() => score.clamp(LINK_MIN, 1.0),
        Bond::Link { .. } => LINK_MIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bond_weighs_something_whatever_the_row_says() {
        let link = |score| Bond::Link { reason: "r", score };
        let cases = [
            (Bond::States, 1.0),
            (Bond::Facts(3), 3.0),
            (Bond::Facts(-1), 1.0),
            (link(0.7), 0.7),
            (link(0.0), LINK_MIN),
            (link(9.0), 1.0),
            (link(f64::NAN), LINK_MIN),
        ];

        for (bond, expected) in cases {
            assert!((weight(bond) - expected).abs() < 1e-12, "{bond:?}");
        }
    }
}

//! One order out of two: how near an episode is in the graph, and how well the query's words fit it.
//!
//! In: ranks and BM25 shares. Out: one score. Never: the scores of search.

/// What a factor of e in rank counts, beside 1 for the best fit of the words. Found on the first half of the multi-hop
/// questions (docs/benchmarks.md).
const RANK_WEIGHT: f64 = 0.1;

/// Added to every rank, so that what the walk does not reach has a score, too.
const RANK_FLOOR: f64 = 1e-9;

/// The score of an episode: `rank` is its share of the walk (0–1), `words` its BM25 over the best one (0–1). Above 0 only
/// for what both the walk and the words find good; only the order means anything.
#[must_use]
pub fn score(rank: f64, words: f64) -> f64 {
    RANK_WEIGHT * (rank.max(0.0) + RANK_FLOOR).ln() + words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_part_alone_decides_between_two_that_are_equal_in_the_other() {
        assert!(score(0.2, 0.5) > score(0.1, 0.5));
        assert!(score(0.1, 0.6) > score(0.1, 0.5));
        assert!(score(0.0, 1.0).is_finite() && score(-1.0, 0.0).is_finite());
    }
}

//! One order out of two: how near an episode is in the graph, and how well the question's words fit it.
//!
//! In: shares of the walk and fits. Out: one score. Never: the scores of search.

/// The share, of the best one, that an episode the walk does not reach is taken to have: with the best fit of all it stands
/// where the walk is a 500th of its best, before what is merely in the neighbourhood. Found on the first half of the
/// multi-hop questions (docs/benchmarks.md), as is the next.
const SHARE_MIN: f64 = 0.001;

/// What a factor of e in the share counts, beside 1 for the best fit.
const SHARE_WEIGHT: f64 = 1.5;

/// The score of an episode: `arrived` is how much of the walk comes to it from elsewhere, `best` the most that comes to any,
/// `fit` how well the words fit that the walk did not begin at (0–1): a fit of 1 counts as much as twice the share. Only the
/// order means anything.
#[must_use]
pub fn score(arrived: f64, best: f64, fit: f64) -> f64 {
    let share = if best > 0.0 { (arrived / best).clamp(0.0, 1.0) } else { 0.0 };
    SHARE_WEIGHT * (share + SHARE_MIN).ln() + fit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_part_alone_decides_between_two_that_are_equal_in_the_other() {
        assert!(score(0.2, 0.3, 0.5) > score(0.1, 0.3, 0.5));
        assert!(score(0.1, 0.3, 0.6) > score(0.1, 0.3, 0.5));
        assert!(score(0.0, 0.3, 1.0) > score(0.0002, 0.3, 0.0));
        assert!(score(0.0, 0.0, 1.0).is_finite() && score(-1.0, 0.1, 0.0).is_finite());
    }

    #[test]
    fn only_the_share_of_the_best_counts() {
        assert!((score(0.2, 0.4, 0.1) - score(0.002, 0.004, 0.1)).abs() < 1e-12);
    }
}

//! When a fact holds.
//!
//! In: when statements begin, where their producers said they end, and what follows them. Out: intervals.
//!
//! ```text
//! one value at a time, in the order of valid_from (ties by id):
//!   Alice located_at Kitchen   |-------|
//!   Alice located_at Garden            |---------|          each ends where the next begins,
//!   Alice located_at Kitchen                      |------>  or where its producer said, if that is earlier
//! ```
//!
//! The end of a statement depends only on the statement itself and its successor, so that facts may come in any order and
//! one that comes late changes two ends and no more. An interval holds its start and not its end: at a boundary the
//! newer value holds. Nothing here removes a statement.

use crate::domain::time::Timestamp;

/// What a producer said, with what orders it among others of the same subject and relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement<'a> {
    /// Its id: decides between statements that begin in the same millisecond.
    pub id: &'a str,
    /// From when it holds.
    pub valid_from: Timestamp,
    /// The end its producer gave, if any.
    pub stated_to: Option<Timestamp>,
}

/// Where a statement ends: where its producer said or where its successor begins, whichever is earlier. `next_from` is
/// `None` for the last of a chain, and for relations of which a subject may have several values at a time.
#[must_use]
pub fn end(stated_to: Option<Timestamp>, next_from: Option<Timestamp>) -> Option<Timestamp> {
    stated_to.into_iter().chain(next_from).min()
}

/// Whether what is valid from `valid_from` to `valid_to` (`None`: without end) holds at that instant.
#[must_use]
pub fn holds(valid_from: Timestamp, valid_to: Option<Timestamp>, at: Timestamp) -> bool {
    valid_from <= at && valid_to.is_none_or(|end| at < end)
}

/// The ends of all statements of one subject and single-valued relation, in the order of the chain.
#[must_use]
pub fn chain_ends<'a>(statements: &[Statement<'a>]) -> Vec<(Statement<'a>, Option<Timestamp>)> {
    let mut chain = statements.to_vec();
    chain.sort_by(|one, other| (one.valid_from, one.id).cmp(&(other.valid_from, other.id)));
    let nexts = chain.iter().skip(1).map(|next| Some(next.valid_from)).chain([None]);
    chain.iter().zip(nexts).map(|(statement, next)| (*statement, end(statement.stated_to, next))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_of_both_ends_counts() {
        let at = |millis| Some(Timestamp::from_millis(millis));

        let ends = [(None, None), (at(5), None), (None, at(7)), (at(5), at(7)), (at(9), at(7))].map(|(a, b)| end(a, b));

        assert_eq!(ends, [None, at(5), at(7), at(5), at(7)]);
    }

    #[test]
    fn an_interval_holds_its_start_and_not_its_end() {
        let at = Timestamp::from_millis;

        let held = [9, 10, 19, 20].map(|millis| holds(at(10), Some(at(20)), at(millis)));

        assert_eq!(held, [false, true, true, false]);
        assert!(holds(at(10), None, at(i64::MAX)));
    }

    #[test]
    fn a_chain_is_the_same_whatever_order_it_came_in() {
        let at = Timestamp::from_millis;
        let [kitchen, garden, again] = [("k", 10, None), ("g", 20, Some(25)), ("r", 40, None)]
            .map(|(id, from, to)| Statement { id, valid_from: at(from), stated_to: to.map(at) });
        let expected = [(kitchen, Some(at(20))), (garden, Some(at(25))), (again, None)];

        for order in [[kitchen, garden, again], [again, kitchen, garden], [garden, again, kitchen]] {
            assert_eq!(chain_ends(&order), expected);
        }
    }
}

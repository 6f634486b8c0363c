//! Which rows pass a filter.
//!
//! Each condition is asked by itself, because each has an index that answers it alone; the rows that pass all are what the
//! answers share. A condition on any value of the metadata has no index: it is asked of the rows that pass the others.

use crate::domain::id::EpisodeId;
use crate::memory::query;
use crate::memory::query::Conditions;
use crate::memory::query::EpisodeFilter;
use rusqlite::Connection;
use rusqlite::OptionalExtension;

/// Up to so many rows are asked for their metadata one by one; beyond, all rows are in one pass.
const ASKED_SINGLY_MAX: usize = 4_096;

/// Rows between the first and the last of a set up to which it is kept as bits, too (8 MiB of them).
const SPAN_MAX: u64 = 64 << 20;

/// The rows that may be found.
#[derive(Debug)]
pub(crate) struct Allowed {
    /// `None` for all.
    rows: Option<RowSet>,
    without: Option<i64>,
}

impl Allowed {
    /// Those that pass the filter, but for one.
    pub(crate) fn of(
        connection: &Connection,
        filter: &EpisodeFilter,
        without: Option<EpisodeId>,
    ) -> rusqlite::Result<Self> {
        let mut rows: Option<Vec<i64>> = None;
        for part in parts(filter) {
            let found = passing(connection, &part)?;
            rows = Some(match rows {
                None => found,
                Some(rows) => shared(&rows, &found),
            });
            if rows.as_ref().is_some_and(Vec::is_empty) {
                break;
            }
        }
        if !filter.metadata.is_empty() {
            rows = Some(with_metadata(connection, filter, rows)?);
        }
        let without = match without {
            Some(id) => connection
                .prepare_cached("SELECT row_id FROM episodes WHERE id = ?1")?
                .query_row([id.to_string()], |row| row.get(0))
                .optional()?,
            None => None,
        };
        if let (Some(rows), Some(without)) = (&mut rows, without) {
            rows.retain(|row_id| *row_id != without);
        }
        Ok(Self { rows: rows.map(RowSet::new), without })
    }

    /// Whether every row may be found.
    pub(crate) fn is_all(&self) -> bool {
        self.rows.is_none() && self.without.is_none()
    }

    /// Whether this one may be.
    pub(crate) fn contains(&self, row_id: i64) -> bool {
        self.without != Some(row_id) && self.rows.as_ref().is_none_or(|rows| rows.contains(row_id))
    }

    /// The rows in order, unless all (but for one).
    pub(crate) fn rows(&self) -> Option<&[i64]> {
        self.rows.as_ref().map(|rows| rows.rows.as_slice())
    }
}

/// Row numbers, to be asked for one of them very often.
#[derive(Debug)]
pub(super) struct RowSet {
    /// In order.
    rows: Vec<i64>,
    /// From the first row on; empty when the rows lie too far apart.
    bits: Vec<u64>,
}

impl RowSet {
    /// Of rows in order.
    pub(super) fn new(rows: Vec<i64>) -> Self {
        let mut bits = Vec::new();
        if let (Some(first), Some(last)) = (rows.first(), rows.last())
            && last.abs_diff(*first) < SPAN_MAX
        {
            bits = vec![0_u64; place(*first, *last).map_or(0, |(word, _)| word + 1)];
            for row_id in &rows {
                if let Some((word, bit)) = place(*first, *row_id) {
                    bits[word] |= 1 << bit;
                }
            }
        }
        Self { rows, bits }
    }

    /// How many rows they are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn contains(&self, row_id: i64) -> bool {
        let Some(first) = self.rows.first() else { return false };
        if self.bits.is_empty() {
            return self.rows.binary_search(&row_id).is_ok();
        }
        place(*first, row_id).is_some_and(|(word, bit)| self.bits.get(word).is_some_and(|bits| bits >> bit & 1 == 1))
    }
}

/// Word and bit of a row; `None` before the first.
fn place(first: i64, row_id: i64) -> Option<(usize, u32)> {
    let offset = u64::try_from(row_id.checked_sub(first)?).ok()?;
    Some((usize::try_from(offset / 64).ok()?, u32::try_from(offset % 64).ok()?))
}

/// The filter as filters of one indexed condition each.
fn parts(filter: &EpisodeFilter) -> Vec<EpisodeFilter> {
    let none = EpisodeFilter::default;
    let mut parts = Vec::new();
    let mut part = |is_there: bool, part: EpisodeFilter| {
        if is_there {
            parts.push(part);
        }
    };
    part(filter.person.is_some(), EpisodeFilter { person: filter.person.clone(), ..none() });
    part(filter.place.is_some(), EpisodeFilter { place: filter.place.clone(), ..none() });
    part(filter.sound_class.is_some(), EpisodeFilter { sound_class: filter.sound_class.clone(), ..none() });
    part(filter.session.is_some(), EpisodeFilter { session: filter.session.clone(), ..none() });
    let (since, until) = (filter.since, filter.until);
    part(since.is_some() || until.is_some(), EpisodeFilter { since, until, ..none() });
    part(!filter.modalities.is_empty(), EpisodeFilter { modalities: filter.modalities.clone(), ..none() });
    let (rms_db_min, rms_db_max) = (filter.rms_db_min, filter.rms_db_max);
    part(rms_db_min.is_some() || rms_db_max.is_some(), EpisodeFilter { rms_db_min, rms_db_max, ..none() });
    part(filter.source.is_some(), EpisodeFilter { source: filter.source.clone(), ..none() });
    part(filter.device.is_some(), EpisodeFilter { device: filter.device.clone(), ..none() });
    part(filter.decay_class.is_some(), EpisodeFilter { decay_class: filter.decay_class, ..none() });
    parts
}

/// The statement of one part.
pub(super) fn statement(part: &EpisodeFilter) -> (String, Conditions) {
    let conditions = query::conditions(part);
    (format!("SELECT e.row_id FROM episodes AS e {}", conditions.sql()), conditions)
}

fn passing(connection: &Connection, part: &EpisodeFilter) -> rusqlite::Result<Vec<i64>> {
    let (sql, conditions) = statement(part);
    let mut rows: Vec<i64> = connection
        .prepare_cached(&sql)?
        .query_map(rusqlite::params_from_iter(conditions.values()), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    rows.sort_unstable();
    rows.dedup();
    Ok(rows)
}

/// Those of the rows (of all, when `None`) whose metadata have the values wanted.
fn with_metadata(
    connection: &Connection,
    filter: &EpisodeFilter,
    rows: Option<Vec<i64>>,
) -> rusqlite::Result<Vec<i64>> {
    let wanted = EpisodeFilter { metadata: filter.metadata.clone(), ..EpisodeFilter::default() };
    let few = match rows {
        Some(rows) if rows.len() <= ASKED_SINGLY_MAX => rows,
        Some(rows) => return Ok(shared(&rows, &passing(connection, &wanted)?)),
        None => return passing(connection, &wanted),
    };
    let (sql, conditions) = statement(&wanted);
    let place = conditions.values().len() + 1;
    let mut statement = connection.prepare_cached(&format!("{sql} AND e.row_id = ?{place}"))?;
    let mut found = Vec::new();
    for row_id in few {
        let values = conditions.values().iter().cloned().chain([row_id.into()]);
        if statement.exists(rusqlite::params_from_iter(values))? {
            found.push(row_id);
        }
    }
    Ok(found)
}

fn shared(one: &[i64], other: &[i64]) -> Vec<i64> {
    let (few, many) = if one.len() < other.len() { (one, other) } else { (other, one) };
    few.iter().copied().filter(|row_id| many.binary_search(row_id).is_ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_set_holds_its_rows_and_no_other_whether_they_lie_close_or_far(
            rows in proptest::collection::btree_set(prop_oneof![-70_i64..300, any::<i64>()], 0..40),
            asked in proptest::collection::vec(prop_oneof![-70_i64..300, any::<i64>()], 20),
        ) {
            let set = RowSet::new(rows.iter().copied().collect());

            for row_id in asked.iter().chain(&rows) {
                prop_assert_eq!(set.contains(*row_id), rows.contains(row_id), "{}", row_id);
            }
        }
    }
}

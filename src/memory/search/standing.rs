//! What rows are worth without a query: their recency, importance and strength.
//!
//! The index `episodes_by_value` holds a class and importance beside each other in the order of time. Within such a group
//! what is newer is worth more, unless a search has raised it; so the best that no search has raised are the newest of each
//! group, and the few raised ones are looked at by themselves.

use crate::domain::id::EpisodeId;
use crate::domain::modality::DecayClass;
use crate::domain::time::Timestamp;
use crate::recall::score::Standing;
use rusqlite::Connection;
use rusqlite::OptionalExtension;
use std::collections::BTreeMap;

/// The greatest importance of a row.
const IMPORTANCE_MAX: u8 = 10;

/// The newest rows of one group from a time on.
pub(super) const GROUP: &str = "SELECT row_id, timestamp FROM episodes INDEXED BY episodes_by_value
    WHERE (acked_revision < revision) = ?1 AND decay_class = ?2 AND importance = ?3 AND (clock_quality = 'unset') = ?4
      AND timestamp >= ?5 ORDER BY timestamp DESC, row_id DESC";

/// Every row, with what its worth is made of.
pub(super) const ALL: &str =
    "SELECT row_id, timestamp, decay_class, importance FROM episodes INDEXED BY episodes_by_value";

/// A row with what is known of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Known {
    pub(super) row_id: i64,
    pub(super) timestamp: i64,
    pub(super) standing: Standing,
}

/// Reads rows as they stand at one moment.
pub(super) struct Standings<'a> {
    connection: &'a Connection,
    now: Timestamp,
    /// Strength above 1, written or not, by row.
    raised: BTreeMap<i64, f64>,
}

impl<'a> Standings<'a> {
    /// `waiting` is how often searches returned episodes since their strength was last written.
    pub(super) fn new(
        connection: &'a Connection,
        now: Timestamp,
        waiting: &BTreeMap<EpisodeId, u32>,
    ) -> rusqlite::Result<Self> {
        let mut raised: BTreeMap<i64, f64> = connection
            .prepare_cached(
                "SELECT e.row_id, s.strength FROM strength AS s CROSS JOIN episodes AS e ON e.id = s.episode_id
                 WHERE s.strength > 1",
            )?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        let mut statement = connection.prepare_cached("SELECT row_id FROM episodes WHERE id = ?1")?;
        for (id, times) in waiting {
            let row_id: Option<i64> = statement.query_row([id.to_string()], |row| row.get(0)).optional()?;
            if let Some(row_id) = row_id {
                *raised.entry(row_id).or_insert(1.0) += f64::from(*times);
            }
        }
        Ok(Self { connection, now, raised })
    }

    /// Whether a search has raised this one.
    pub(super) fn is_raised(&self, row_id: i64) -> bool {
        self.raised.contains_key(&row_id)
    }

    /// The rows that searches have raised.
    pub(super) fn raised(&self) -> impl Iterator<Item = i64> {
        self.raised.keys().copied()
    }

    /// One row.
    pub(super) fn of(&self, row_id: i64) -> rusqlite::Result<Option<Known>> {
        self.connection
            .prepare_cached("SELECT row_id, timestamp, decay_class, importance FROM episodes WHERE row_id = ?1")?
            .query_row([row_id], |row| self.read(row))
            .optional()
    }

    /// Every row, in no order.
    pub(super) fn all(&self, mut take: impl FnMut(Known)) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare_cached(ALL)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            take(self.read(row)?);
        }
        Ok(())
    }

    /// Rows that no search has raised and that are worth at least `floor`, each group (numbered) from its newest on, until
    /// `take` has enough of that group.
    pub(super) fn unraised_from(
        &self,
        floor: f64,
        mut take: impl FnMut(usize, Known) -> Enough,
    ) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare_cached(GROUP)?;
        let mut group = 0;
        for class in DecayClass::ALL {
            for importance in 0..=IMPORTANCE_MAX {
                let Some(since) = self.since(class, importance, floor) else { continue };
                for (is_pending, is_unset) in [(false, false), (false, true), (true, false), (true, true)] {
                    group += 1;
                    let mut rows = statement.query((is_pending, class.as_str(), importance, is_unset, since))?;
                    while let Some(row) = rows.next()? {
                        let (row_id, timestamp) = (row.get(0)?, row.get(1)?);
                        let standing = self.standing(class, importance, timestamp, None);
                        if self.is_raised(row_id) || standing.worth() < floor {
                            continue;
                        }
                        match take(group, Known { row_id, timestamp, standing }) {
                            Enough::NotYet => {}
                            Enough::OfThisGroup => break,
                            Enough::OfAll => return Ok(()),
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// From when on a row of that class and importance is worth at least `floor`; `None` when none can be.
    fn since(&self, class: DecayClass, importance: u8, floor: f64) -> Option<i64> {
        let recency = floor - f64::from(importance) / 10.0;
        if recency > 1.0 + 1e-9 {
            return None;
        }
        let half_life_ms = class.half_life_ms().filter(|_| recency > 0.0);
        let Some(half_life_ms) = half_life_ms else { return Some(i64::MIN) };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "saturates; rounding is allowed for"
        )]
        let age_ms = (-recency.min(1.0).log2() * half_life_ms as f64) as i64;
        // What the rounding lets in is looked at row by row.
        Some(self.now.as_millis().saturating_sub(age_ms).saturating_sub(1_000))
    }

    fn read(&self, row: &rusqlite::Row<'_>) -> rusqlite::Result<Known> {
        let (row_id, timestamp): (i64, i64) = (row.get(0)?, row.get(1)?);
        // A class that this program does not know fades as fast as one it knows least about.
        let class = DecayClass::parse(row.get_ref(2)?.as_str()?).unwrap_or(DecayClass::Daily);
        let strength = self.raised.get(&row_id).copied();
        Ok(Known { row_id, timestamp, standing: self.standing(class, row.get(3)?, timestamp, strength) })
    }

    fn standing(&self, decay_class: DecayClass, importance: u8, timestamp: i64, strength: Option<f64>) -> Standing {
        let age_ms = self.now.as_millis().saturating_sub(timestamp);
        Standing { age_ms, decay_class, importance, strength }
    }
}

/// Whether more rows are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Enough {
    NotYet,
    OfThisGroup,
    OfAll,
}

//! Which rows pass a filter, and what is known of them without a query.
//!
//! Each condition is asked by itself, because each has an index that answers it alone; the rows that pass all are what the
//! answers share. A condition on any value of the metadata has no index and is asked for one row at a time.

use crate::domain::id::EpisodeId;
use crate::domain::modality::DecayClass;
use crate::domain::time::Timestamp;
use crate::memory::query;
use crate::memory::query::Conditions;
use crate::memory::query::EpisodeFilter;
use crate::recall::score::Standing;
use rusqlite::Connection;
use rusqlite::OptionalExtension;
use std::collections::BTreeMap;

/// Up to so many candidates are looked up one by one; beyond, one pass over an index that holds all that is needed is cheaper.
const LOOKUPS_MAX: usize = 8_192;

/// The rows that may be found.
#[derive(Debug)]
pub(crate) struct Allowed {
    /// In order; `None` for all.
    rows: Option<Vec<i64>>,
    without: Option<i64>,
    metadata: Option<Conditions>,
}

impl Allowed {
    /// Those that pass the filter.
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
        let metadata = EpisodeFilter { metadata: filter.metadata.clone(), ..EpisodeFilter::default() };
        let metadata = (!metadata.metadata.is_empty()).then(|| query::conditions(&metadata));
        Ok(Self { rows, without, metadata })
    }

    /// Whether every row may be found.
    pub(crate) fn is_all(&self) -> bool {
        self.rows.is_none() && self.without.is_none() && self.metadata.is_none()
    }

    /// Whether this one may be, as far as indexes tell. The rows that a limit counts are asked for their metadata, too.
    pub(crate) fn contains(&self, row_id: i64) -> bool {
        self.without != Some(row_id) && self.rows.as_ref().is_none_or(|rows| rows.binary_search(&row_id).is_ok())
    }

    /// The rows, unless all.
    pub(crate) fn rows(&self) -> Option<&[i64]> {
        self.rows.as_deref()
    }

    /// Whether the row's metadata have the values wanted.
    pub(crate) fn passes_metadata(&self, connection: &Connection, row_id: i64) -> rusqlite::Result<bool> {
        let Some(conditions) = &self.metadata else { return Ok(self.without != Some(row_id)) };
        let mut values = conditions.values().to_vec();
        values.push(row_id.into());
        let place = values.len();
        let sql = format!("SELECT 1 FROM episodes AS e {} AND e.row_id = ?{place}", conditions.sql());
        let found = connection.prepare_cached(&sql)?.exists(rusqlite::params_from_iter(values))?;
        Ok(found && self.without != Some(row_id))
    }
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

fn shared(one: &[i64], other: &[i64]) -> Vec<i64> {
    let (few, many) = if one.len() < other.len() { (one, other) } else { (other, one) };
    few.iter().copied().filter(|row_id| many.binary_search(row_id).is_ok()).collect()
}

/// What rows are worth without a query.
pub(super) struct Standings;

/// The statement that reads what is needed of all rows from one index.
pub(super) const ALL: &str =
    "SELECT row_id, timestamp, decay_class, importance FROM episodes INDEXED BY episodes_by_value";

impl Standings {
    /// Gives `take` each candidate (every row when `None`) with its capture time.
    pub(super) fn read(
        connection: &Connection,
        candidates: Option<&[i64]>,
        now: Timestamp,
        mut take: impl FnMut(i64, i64, Standing),
    ) -> rusqlite::Result<()> {
        if let Some(rows) = candidates.filter(|rows| rows.len() <= LOOKUPS_MAX) {
            let mut statement = connection.prepare_cached(
                "SELECT e.row_id, e.timestamp, e.decay_class, e.importance, s.strength
                 FROM episodes AS e LEFT JOIN strength AS s ON s.episode_id = e.id WHERE e.row_id = ?1",
            )?;
            for row_id in rows {
                let mut found = statement.query([row_id])?;
                if let Some(row) = found.next()? {
                    let strength = row.get(4)?;
                    let (row_id, timestamp, standing) = standing(row, now, strength)?;
                    take(row_id, timestamp, standing);
                }
            }
            return Ok(());
        }
        let raised = raised(connection)?;
        let mut statement = connection.prepare_cached(ALL)?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            let row_id: i64 = row.get(0)?;
            if candidates.is_none_or(|rows| rows.binary_search(&row_id).is_ok()) {
                let (row_id, timestamp, standing) = standing(row, now, raised.get(&row_id).copied())?;
                take(row_id, timestamp, standing);
            }
        }
        Ok(())
    }
}

fn standing(row: &rusqlite::Row<'_>, now: Timestamp, strength: Option<f64>) -> rusqlite::Result<(i64, i64, Standing)> {
    let timestamp: i64 = row.get(1)?;
    // A class that this program does not know fades as fast as one it knows least about.
    let decay_class = DecayClass::parse(row.get_ref(2)?.as_str()?).unwrap_or(DecayClass::Daily);
    let age_ms = now.as_millis().saturating_sub(timestamp);
    Ok((row.get(0)?, timestamp, Standing { age_ms, decay_class, importance: row.get(3)?, strength }))
}

/// The rows whose strength a search has raised.
fn raised(connection: &Connection) -> rusqlite::Result<BTreeMap<i64, f64>> {
    connection
        .prepare_cached(
            "SELECT e.row_id, s.strength FROM strength AS s JOIN episodes AS e ON e.id = s.episode_id WHERE s.strength > 1",
        )?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

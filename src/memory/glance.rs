//! The store at a glance, for `percept status`: quick on a store of any size.
//!
//! In: a connection. Out: a [`Glance`], from indexes and the file's header alone. Never: a scan of rows.

use crate::domain::id::EpisodeId;
use crate::domain::modality::Modality;
use crate::domain::time::Timestamp;
use crate::memory::rows;
use crate::memory::stats;
use rusqlite::Connection;
use rusqlite::OptionalExtension;

/// What a look at the store shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glance {
    /// The episode captured last.
    pub last: Option<LastEpisode>,
    /// Synced rows that central has not acknowledged.
    pub pending: u64,
    /// Size of the database's file, free pages included, the WAL left out.
    pub database_bytes: u64,
    /// Kept pictures and sounds.
    pub media_bytes: u64,
    /// What counts against the disk budget: used pages and kept media.
    pub used_bytes: u64,
}

/// The episode captured last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastEpisode {
    /// Its id.
    pub id: EpisodeId,
    /// When it began.
    pub timestamp: Timestamp,
    /// What it is about.
    pub modality: Modality,
    /// Its sentence.
    pub content: String,
}

/// Takes the look.
pub(crate) fn glance(connection: &Connection) -> rusqlite::Result<Glance> {
    let (database_bytes, used) = stats::database_bytes(connection)?;
    let media_bytes = stats::media_bytes(connection)?;
    Ok(Glance {
        last: connection.prepare_cached(LAST)?.query_row([], read).optional()?,
        pending: stats::pending(connection)?,
        database_bytes,
        media_bytes,
        used_bytes: used + media_bytes,
    })
}

const LAST: &str = "SELECT id, timestamp, modality, content FROM episodes ORDER BY timestamp DESC, id DESC LIMIT 1";

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<LastEpisode> {
    Ok(LastEpisode {
        id: rows::id(row, 0)?,
        timestamp: Timestamp::from_millis(row.get(1)?),
        modality: rows::named(row, 2, Modality::parse)?,
        content: row.get(3)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::fixture;
    use crate::memory::reader::Reader;

    #[test]
    fn a_glance_shows_the_last_capture_and_what_is_pending() {
        let dir = tempfile::tempdir().unwrap();
        let writer = fixture::writer(dir.path());
        for minute in [1, 3, 2] {
            writer.append(fixture::sound(minute)).unwrap();
        }
        writer.close().unwrap();

        let glance = Reader::open(dir.path()).unwrap().glance().unwrap();

        let expected = fixture::sound(3).episode;
        let last = glance.last.unwrap();
        assert_eq!((last.id, last.timestamp, last.content), (expected.id, expected.timestamp, expected.content));
        assert_eq!(glance.pending, 3);
        assert_eq!(glance.used_bytes, glance.database_bytes, "nothing was removed yet and there are no media");
        assert!(glance.used_bytes > 4_096);
    }

    #[test]
    fn a_glance_looks_only_along_indexes() {
        let dir = tempfile::tempdir().unwrap();
        fixture::writer(dir.path()).close().unwrap();
        let connection = fixture::connection(dir.path());
        for sql in [LAST, stats::PENDING, stats::MEDIA_BYTES] {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let plan: Vec<String> =
                statement.query_map([], |row| row.get(3)).unwrap().collect::<Result<_, _>>().unwrap();
            let mut scans = plan.iter().filter(|line| line.starts_with("SCAN") && !line.contains("INDEX"));
            assert!(scans.all(|line| line == "SCAN CONSTANT ROW"), "{sql}: {plan:?}");
        }
    }
}

//! The moments of one boot: what a clock correction has to rewrite outside the store as well.
//!
//! In: a boot. Out: its rows of tool [`MOMENT_TOOL`], in the order of capture. Never: rows of other tools.

use crate::domain::episode::Episode;
use crate::domain::id::BootId;
use crate::domain::id::EpisodeId;
use crate::memory::forget;
use crate::memory::rows;
use rusqlite::Connection;
use rusqlite::OptionalExtension;

/// What writes the rows of moments.
pub const MOMENT_TOOL: &str = "multimodal_memory";

/// A moment's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MomentRow {
    /// The row's id.
    pub id: EpisodeId,
    /// The moment's own id (`metadata.multimodal_episode_id`), which names its JSON.
    pub moment: Option<String>,
    /// When it was captured, on the clock of its boot.
    pub monotonic_ms: i64,
}

/// The moments captured in that boot, whatever session they belong to.
pub(crate) fn of_boot(connection: &Connection, boot_id: &BootId) -> rusqlite::Result<Vec<MomentRow>> {
    connection
        .prepare_cached(
            "SELECT id, multimodal_episode_id, monotonic_ms FROM episodes WHERE boot_id = ?1 AND tool_name = ?2
             ORDER BY monotonic_ms, id",
        )?
        .query_map((boot_id.as_str(), MOMENT_TOOL), |row| {
            Ok(MomentRow { id: rows::id(row, 0)?, moment: row.get(1)?, monotonic_ms: row.get(2)? })
        })?
        .collect()
}

/// A moment with its row.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredMoment {
    /// The moment's own id, which names its folder.
    pub name: String,
    /// Its row.
    pub episode: Episode,
    /// Whether something of it was forgotten.
    pub is_redacted: bool,
}

/// The moments that percept itself made, in the order of their own ids, behind `after`. Those that were handed in from
/// outside have no document.
pub(crate) fn stored(connection: &Connection, after: &str, limit: usize) -> rusqlite::Result<Vec<StoredMoment>> {
    connection
        .prepare_cached(&format!(
            "SELECT {}, e.multimodal_episode_id, e.digest FROM episodes AS e
             WHERE e.multimodal_episode_id > ?1 AND e.external_id IS NULL AND e.tool_name = ?2
             ORDER BY e.multimodal_episode_id LIMIT ?3",
            rows::COLUMNS
        ))?
        .query_map((after, MOMENT_TOOL, i64::try_from(limit).unwrap_or(i64::MAX)), |row| {
            Ok(StoredMoment {
                episode: rows::read(row)?,
                name: row.get(rows::COLUMN_COUNT)?,
                is_redacted: forget::is_redacted(&row.get::<_, Vec<u8>>(rows::COLUMN_COUNT + 1)?),
            })
        })?
        .collect()
}

/// What became of a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The store never heard of it, or made room and let it go.
    Unknown,
    /// Its row stands as it was handed over.
    Stored,
    /// Its row stands without what was forgotten.
    Redacted,
    /// It was forgotten, or has expired, and must not come back.
    Gone,
}

/// What became of the moment of that id, which is its row's or its own.
pub(crate) fn standing(connection: &Connection, moment: &str) -> rusqlite::Result<Standing> {
    let digest: Option<Vec<u8>> = connection
        .prepare_cached("SELECT digest FROM episodes WHERE multimodal_episode_id = ?1 OR id = ?1 LIMIT 1")?
        .query_row([moment], |row| row.get(0))
        .optional()?;
    match digest {
        Some(digest) if forget::is_redacted(&digest) => return Ok(Standing::Redacted),
        Some(_) => return Ok(Standing::Stored),
        None => {}
    }
    let is_gone: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM tombstones WHERE id = ?1 AND kind = 'episode' AND reason <> 'replaced')",
        )?
        .query_row([moment], |row| row.get(0))?;
    Ok(if is_gone { Standing::Gone } else { Standing::Unknown })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::DeviceId;
    use crate::domain::id::SessionId;
    use crate::domain::time::ClockQuality;
    use crate::memory::clock::ClockCorrection;
    use crate::memory::clock::ClockScope;
    use crate::memory::fixture;
    use crate::memory::query::EpisodeFilter;
    use crate::memory::reader::Reader;

    #[test]
    fn a_correction_of_a_boot_moves_rows_of_its_earlier_sessions_and_names_their_moments() {
        let dir = tempfile::tempdir().unwrap();
        let writer = fixture::writer(dir.path());
        let mut records = [1, 2, 3, 4].map(fixture::sound);
        let runs = [("first", "b1"), ("second", "b1"), ("second", "b1"), ("other", "b2")];
        for (record, (session, boot)) in records.iter_mut().zip(runs) {
            record.episode.session_id = SessionId::new(session);
            record.episode.boot_id = BootId::new(boot);
            record.episode.clock_quality = ClockQuality::Unset;
        }
        for number in [0, 1, 3] {
            MOMENT_TOOL.clone_into(&mut records[number].episode.tool_name);
            records[number].episode.metadata.insert("multimodal_episode_id".to_owned(), format!("m{number}").into());
        }
        for record in &records {
            writer.append(record.clone()).unwrap();
        }
        writer
            .correct_clock(ClockCorrection {
                device_id: DeviceId::new("d"),
                scope: ClockScope::Boot(BootId::new("b1")),
                before_monotonic_ms: records[2].episode.monotonic_ms,
                delta_ms: 1_000_000,
                quality: ClockQuality::Gps,
            })
            .unwrap();
        let counters = writer.close().unwrap();

        let reader = Reader::open(dir.path()).unwrap();
        let moments = reader.moments_of_boot(&BootId::new("b1")).unwrap();
        let rows = reader.episodes(&EpisodeFilter::default()).unwrap();
        let moved = |number: usize| {
            let episode = &records[number].episode;
            let row = rows.iter().find(|row| row.episode.id == episode.id).unwrap();
            (row.episode.timestamp.millis_since(episode.timestamp), row.episode.clock_quality)
        };

        assert_eq!(counters.rows_moved, 2);
        assert_eq!([0, 1].map(moved), [(1_000_000, ClockQuality::Gps); 2], "both sessions of the boot");
        assert_eq!([2, 3].map(moved), [(0, ClockQuality::Unset); 2], "captured after it; another boot");
        let found: Vec<_> = moments.iter().map(|row| (row.id, row.moment.as_deref(), row.monotonic_ms)).collect();
        let expected = [(0, "m0"), (1, "m1")]
            .map(|(number, moment)| (records[number].episode.id, Some(moment), records[number].episode.monotonic_ms));
        assert_eq!(found, expected);
    }
}

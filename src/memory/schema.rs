//! The store's file: how it is recognised, created and brought up to date.
//!
//! In: a path, a connection. Out: a connection whose schema is [`SCHEMA_VERSION`], or the reason why not.
//! Never: writes to a file that is not ours, or that a newer percept wrote.
//!
//! | version | what changed |
//! |---|---|
//! | 1 | all tables of DESIGN section 3 |
//! | 2 | `media.state`, indexes for the disk budget |
//! | 3 | what search, links and recall need: `strength_raised`, `names`, `mentions`, `ties`; row numbers of vectors come from the revisions |
//!
//! Old migrations are never edited.

use crate::memory::error::StoreError;
use crate::memory::mentions;
use rusqlite::Connection;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Written into the file's header so that other programs (and `file`) know it: "PCPT".
pub const APPLICATION_ID: u32 = 0x5043_5054;

/// The version of the newest migration.
pub const SCHEMA_VERSION: u32 = 3;

/// The version from which on names are kept; a store of an older one gets them when it is brought up to date.
const NAMES_SINCE: u32 = 3;

/// Migration `n` stands at `n - 1`.
const MIGRATIONS: [&str; SCHEMA_VERSION as usize] =
    [include_str!("migrations/0001.sql"), include_str!("migrations/0002.sql"), include_str!("migrations/0003.sql")];

const HEADER_BYTES: usize = 100;
pub(crate) const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// What stands at a path, judged by its first bytes alone: SQLite might already write to what it opens.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing, or an empty file.
    Nothing,
    /// A store this program may open.
    Store,
    /// The same, but its last page is not whole. The WAL may hold that page; [`check_whole`] tells.
    Torn,
}

/// Looks at the file's header.
///
/// # Errors
/// [`StoreError::Foreign`] and [`StoreError::NewerSchema`] for files that must be left alone, [`StoreError::Io`] for unreadable ones.
pub(crate) fn inspect(path: &Path) -> Result<Found, StoreError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(StoreError::from_io("open", path, error)),
    };
    let mut header = Vec::with_capacity(HEADER_BYTES);
    file.by_ref()
        .take(HEADER_BYTES as u64)
        .read_to_end(&mut header)
        .map_err(|error| StoreError::from_io("read", path, error))?;
    if header.is_empty() {
        return Ok(Found::Nothing);
    }
    judge(path, &header)?;
    let length = file.metadata().map_err(|error| StoreError::from_io("read", path, error))?.len();
    if length.is_multiple_of(page_size(&header)) {
        return Ok(Found::Store);
    }
    // SQLite itself takes the missing part of a page for zeros. A checkpoint that was cut off leaves the page in the WAL.
    if has_wal(path) {
        return Ok(Found::Torn);
    }
    Err(StoreError::Damaged { path: path.to_path_buf(), detail: "its end is cut off".to_owned() })
}

/// The number of the last page of the file at that path, whole or not.
pub(crate) fn last_page(path: &Path) -> Result<u64, StoreError> {
    let read = || -> std::io::Result<u64> {
        let mut file = File::open(path)?;
        let mut header = Vec::with_capacity(HEADER_BYTES);
        file.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut header)?;
        Ok(file.metadata()?.len().div_ceil(page_size(&header)))
    };
    read().map_err(|error| StoreError::from_io("read", path, error))
}

/// The page size a header names, in bytes.
pub(crate) fn page_size(header: &[u8]) -> u64 {
    match header.get(16..18) {
        // 65,536 does not fit its two bytes and is written as 1.
        Some([0, 1]) => 65_536,
        Some([high, low]) => u64::from(u16::from_be_bytes([*high, *low])).max(1),
        _ => 1,
    }
}

/// Whether there is a WAL with something in it.
pub(crate) fn has_wal(path: &Path) -> bool {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    std::fs::metadata(name).is_ok_and(|wal| wal.len() > 0)
}

/// Looks through the pages of a file that was found torn.
///
/// # Errors
/// [`StoreError::Damaged`] when the WAL does not make it whole.
pub(crate) fn check_whole(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let verdict: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|error| StoreError::from_sqlite(path, error))?;
    if verdict == "ok" { Ok(()) } else { Err(StoreError::Damaged { path: path.to_path_buf(), detail: verdict }) }
}

fn judge(path: &Path, header: &[u8]) -> Result<(), StoreError> {
    let foreign = |found: String| Err(StoreError::Foreign { path: path.to_path_buf(), found });
    if header.len() < HEADER_BYTES || !header.starts_with(MAGIC) {
        return foreign("it is not an SQLite database".to_owned());
    }
    let word = |at: usize| header.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes);
    if word(68) != APPLICATION_ID {
        return foreign("it is an SQLite database of another program".to_owned());
    }
    refuse_newer(path, word(60))
}

/// Refuses a version above [`SCHEMA_VERSION`].
pub(crate) fn refuse_newer(path: &Path, found: u32) -> Result<(), StoreError> {
    if found > SCHEMA_VERSION {
        return Err(StoreError::NewerSchema { path: path.to_path_buf(), found, known: SCHEMA_VERSION });
    }
    Ok(())
}

/// The schema version the connection sees (the header on disk may lag behind the WAL).
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Marks an empty database as ours. Must come before the first table: `auto_vacuum` cannot be changed later.
pub(crate) fn stamp(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)
}

/// Runs the migrations that are missing, each in a transaction of its own.
pub(crate) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let from = version(connection)?;
    for (number, sql) in (1..=SCHEMA_VERSION).zip(MIGRATIONS).filter(|(number, _)| *number > from) {
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        transaction.execute_batch(sql)?;
        if number == NAMES_SINCE {
            mentions::rebuild(&transaction)?;
        }
        transaction.pragma_update(None, "user_version", number)?;
        transaction.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_of_version_1_is_brought_up_with_its_rows() {
        let mut connection = Connection::open_in_memory().unwrap();
        stamp(&connection).unwrap();
        connection.execute_batch(MIGRATIONS[0]).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        connection
            .execute_batch(
                "INSERT INTO media (hash, path, bytes, kind, store_id, stored_at, revision)
                 VALUES ('h', 'media/h', 1, 'jpg', 's', 0, 1)",
            )
            .unwrap();

        migrate(&mut connection).unwrap();

        let state: String = connection.query_row("SELECT state FROM media", [], |row| row.get(0)).unwrap();
        assert_eq!((state.as_str(), version(&connection).unwrap()), ("kept", SCHEMA_VERSION));
    }

    fn fresh() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        stamp(&connection).unwrap();
        migrate(&mut connection).unwrap();
        connection
    }

    #[test]
    fn a_second_run_of_the_migrations_changes_nothing() {
        let mut connection = fresh();
        let objects = |connection: &Connection| -> i64 {
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap()
        };
        let before = objects(&connection);

        migrate(&mut connection).unwrap();

        assert_eq!(objects(&connection), before);
        assert_eq!(version(&connection).unwrap(), SCHEMA_VERSION);
    }

    #[test]
    fn the_documentation_names_every_column_of_every_table() {
        let documentation = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/schema.md")).unwrap();
        let connection = fresh();
        let mut columns = connection
            .prepare(
                "SELECT t.name, c.name FROM pragma_table_list AS t JOIN pragma_table_xinfo(t.name) AS c
                 WHERE t.type IN ('table', 'virtual') AND t.name NOT LIKE 'sqlite_%' AND t.schema = 'main'
                   AND c.name NOT IN ('episodes_fts', 'rank') ORDER BY 1, 2",
            )
            .unwrap();
        let columns: Vec<(String, String)> =
            columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().collect::<Result<_, _>>().unwrap();

        assert!(columns.len() > 90, "only {} columns found", columns.len());
        for (table, column) in columns {
            let section = documentation.split("\n## ").find(|part| part.starts_with(&format!("`{table}`")));
            let section = section.unwrap_or_else(|| panic!("docs/schema.md has no section for `{table}`"));
            assert!(section.contains(&format!("\n| `{column}` |")), "docs/schema.md does not explain {table}.{column}");
        }
    }

    #[test]
    fn broken_json_and_both_spellings_of_the_level_are_tolerated() {
        let connection = fresh();
        let insert = |id: &str, metadata: &str| {
            connection
                .execute(
                    "INSERT INTO episodes (id, device_id, store_id, session_id, source, timestamp, ended_at, boot_id,
                       monotonic_ms, clock_quality, modality, tool_name, content, importance, decay_class, metadata,
                       digest, stored_at, revision)
                     VALUES (?1, 'd', 's', 'r', 'm', 0, 0, 'b', 0, 'gps', 'audio', 't', 'c', 6, 'daily', ?2, x'', 0, 1)",
                    [id, metadata],
                )
                .unwrap();
        };
        insert("1", r#"{"rms_db": -20}"#);
        insert("2", r#"{"rmsDb": -21.5, "sound_class": "Dog"}"#);
        insert("3", r#"{"rms_db": "#);
        insert("4", r#"{"rms_db": "loud", "sound_class": 7}"#);

        let level = |id: &str| -> Option<f64> {
            connection.query_row("SELECT rms_db FROM episodes WHERE id = ?1", [id], |row| row.get(0)).unwrap()
        };

        assert_eq!(["1", "2", "3", "4"].map(level), [Some(-20.0), Some(-21.5), None, None]);
        let dogs: i64 = connection
            .query_row("SELECT count(*) FROM episodes WHERE sound_class = 'Dog'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(dogs, 1);
    }
}

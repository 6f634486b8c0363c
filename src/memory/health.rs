//! When there is reason to look through the store's file, and whether what was found is a store in ruins.
//!
//! In: the data directory. Out: nothing, or [`StoreError::Damaged`].
//!
//! | the last run | looked through |
//! |---|---|
//! | ended cleanly | nothing: a start must not cost a read of the whole card |
//! | left a WAL behind (power cut, kill) | up to [`PAGES_CHECKED_MAX`] pages |
//! | met damage while it worked, and left [`SUSPECT_FILE`] | everything, indexes and full text included |
//!
//! Damage that the bounded look misses is met by the writer, which leaves the mark for the next start.
//! Never: writes to the store.

use crate::memory::error::StoreError;
use crate::memory::schema;
use crate::memory::schema::Found;
use crate::memory::store;
use rusqlite::Connection;
use rusqlite::ErrorCode;
use rusqlite::OpenFlags;
use rusqlite::config::DbConfig;
use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::path::Path;

/// Left beside the store by a writer that met damage.
pub(crate) const SUSPECT_FILE: &str = "memory.db.suspect";

/// Pages looked at after an end that was not clean: 64 MiB, some seconds on a slow card. A store up to that size is
/// looked through whole.
const PAGES_CHECKED_MAX: u64 = 16_384;

/// SQLite asks whether to go on once in so many pages or steps.
const STEPS_BETWEEN_QUESTIONS: i32 = 64;

/// How far into a file the words that make our tables are looked for.
const SCHEMA_BYTES_MAX: u64 = 1 << 20;

/// How the first of them begins.
const SCHEMA_WORDS: &[u8] = b"CREATE TABLE episodes (\n    row_id";

/// Leaves the mark if the error is damage.
pub(crate) fn note(dir: &Path, error: &StoreError) {
    if matches!(error, StoreError::Damaged { .. }) {
        // Without the mark the next start looks less closely; the error itself is reported by its finder.
        let _ = File::create(dir.join(SUSPECT_FILE));
    }
}

/// Takes the mark away.
pub(crate) fn clear(dir: &Path) -> Result<(), StoreError> {
    store::remove_if_there(&dir.join(SUSPECT_FILE))
}

/// Looks through the store as far as there is reason to. Nothing is there: nothing is wrong.
///
/// # Errors
/// [`StoreError::Damaged`], and whatever keeps the file from being opened.
pub(crate) fn probe(dir: &Path, path: &Path) -> Result<(), StoreError> {
    let found = schema::inspect(path)?;
    let is_suspect = dir.join(SUSPECT_FILE).exists();
    let is_unclean = schema::has_wal(path);
    if found == Found::Nothing || !(is_suspect || is_unclean || found == Found::Torn) {
        return Ok(());
    }
    if found == Found::Torn && !has_in_wal(path, schema::last_page(path)?) {
        return Err(StoreError::Damaged { path: path.to_path_buf(), detail: "its end is cut off".to_owned() });
    }
    let sqlite = |error| StoreError::from_sqlite(path, error);
    let mut connection = open_untouched(path).map_err(sqlite)?;
    schema::refuse_newer(path, schema::version(&connection).map_err(sqlite)?)?;
    let looked = if is_suspect { integrity(&connection) } else { quick(&mut connection, path) };
    let verdict = looked.map_err(sqlite)?;
    if verdict == "ok" { Ok(()) } else { Err(StoreError::Damaged { path: path.to_path_buf(), detail: verdict }) }
}

/// Whether the WAL holds that page. Where it does not, SQLite would take the missing end of the page for zeros, and the
/// row that ends there for what it is not.
fn has_in_wal(path: &Path, page: u64) -> bool {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    File::open(name).is_ok_and(|wal| names_page(&mut BufReader::new(wal), page).unwrap_or(false))
}

/// Looks for a frame of that page: a WAL is a header and frames, each a header with page number and salt, and a page.
fn names_page(wal: &mut impl BufRead, page: u64) -> std::io::Result<bool> {
    let word = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_be_bytes)
    };
    let mut header = [0; 32];
    wal.read_exact(&mut header)?;
    let page_bytes = u64::from(word(&header, 8));
    let mut frame = [0; 24];
    while wal.read_exact(&mut frame).is_ok() && frame[8..16] == header[16..24] {
        if u64::from(word(&frame, 0)) == page {
            return Ok(true);
        }
        std::io::copy(&mut wal.take(page_bytes), &mut std::io::sink())?;
    }
    Ok(false)
}

/// A connection that leaves file and WAL as they are, also when it closes.
pub(crate) fn open_untouched(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(store::BUSY_TIMEOUT)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    Ok(connection)
}

fn integrity(connection: &Connection) -> rusqlite::Result<String> {
    connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
}

/// `quick_check`, ended when it has seen enough; what it saw was well then.
fn quick(connection: &mut Connection, path: &Path) -> rusqlite::Result<String> {
    let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
    let is_bounded = bytes > PAGES_CHECKED_MAX * 4_096;
    let mut questions_left = PAGES_CHECKED_MAX / u64::from(STEPS_BETWEEN_QUESTIONS.unsigned_abs());
    let has_seen_enough = move || {
        questions_left = questions_left.saturating_sub(1);
        questions_left == 0
    };
    connection.progress_handler(STEPS_BETWEEN_QUESTIONS, is_bounded.then_some(has_seen_enough))?;
    match connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => Ok("ok".to_owned()),
        result => result,
    }
}

/// Whether the file is our store in ruins, which may be set aside, and nobody else's. A file whose first page is gone is
/// ours when the words that make our tables stand in it, or when it is all zeros, as some file systems leave it after a
/// power cut.
pub(crate) fn is_wreck(error: &StoreError, path: &Path) -> bool {
    if matches!(error, StoreError::Foreign { .. }) {
        return File::open(path).is_ok_and(|file| has_our_remains(file).unwrap_or(false));
    }
    matches!(error, StoreError::Damaged { .. })
}

fn has_our_remains(mut file: File) -> std::io::Result<bool> {
    let mut start = Vec::new();
    file.by_ref().take(SCHEMA_BYTES_MAX).read_to_end(&mut start)?;
    if start.starts_with(schema::MAGIC) {
        return Ok(false);
    }
    if start.windows(SCHEMA_WORDS.len()).any(|words| words == SCHEMA_WORDS) {
        return Ok(true);
    }
    let mut piece = start;
    while !piece.is_empty() {
        if piece.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        piece.clear();
        file.by_ref().take(SCHEMA_BYTES_MAX).read_to_end(&mut piece)?;
    }
    Ok(true)
}

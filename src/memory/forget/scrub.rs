//! Makes sure that what left the rows leaves the files, too.
//!
//! In: the store, a step. Out: what was done and the next step. Each call is bounded; all of it can be repeated.
//!
//! | where old content hides | what is done |
//! |---|---|
//! | cells of deleted rows, freed pages | zeroed by SQLite itself: the store always runs with `secure_delete` |
//! | full text: segments keep deleted words until they are merged | `secure-delete`, then all segments are merged |
//! | free pages | given back to the file system |
//! | the write-ahead log | moved into the database and cut to nothing |
//! | copies that SQLite leaves in the unused middle of a page when it moves rows to a neighbour | zeroed here, see below |
//!
//! The last one has no pragma but `VACUUM`, which needs twice the store's size and stops a device's capture for minutes. So
//! the gaps are zeroed in the file: under the write lock and with an empty log nobody else writes to it, a reader never
//! looks at them, and a crash in between leaves a page that is as valid as before.
//! Never: changes a byte that SQLite counts as content, or writes while the log holds anything.

use crate::memory::error::StoreError;
use crate::memory::eviction;
use crate::memory::forget::Round;
use crate::memory::forget::Step;
use crate::memory::media;
use crate::memory::media_check;
use crate::memory::salvage::swap;
use crate::memory::schema;
use crate::memory::store::BUSY_TIMEOUT;
use crate::memory::store::Store;
use crate::memory::store::UNFINISHED_FILE;
use crate::memory::store::remove_if_there;
use rusqlite::Connection;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Pages of full text that are merged in one call.
const MERGED_PAGES: i64 = 250;

/// Free pages given back in one call (4 MiB).
const FREE_PAGES: u64 = 1_024;

/// Pages looked at for gaps in one call (16 MiB).
const GAP_PAGES: u32 = 4_096;

/// How long readers may keep the log from being emptied.
const LOG_TIMEOUT: Duration = Duration::from_secs(2);

/// From this number of pages on the first byte of an overflow page may look like that of a tree page (128 GiB).
const PAGES_MAX: u64 = 0x0200_0000;

/// Carries out one step after [`Step::Rest`].
pub(crate) fn clean(store: &Store, step: Step) -> Result<Round, StoreError> {
    let at_store = |error| StoreError::from_sqlite(&store.path, error);
    let connection = &store.connection;
    match step {
        Step::Rows(_) | Step::Rest => Ok(Round { next: Some(Step::CLEAN), ..Round::default() }),
        Step::SetAside => {
            let files_removed = remove_set_aside(store)?;
            Ok(Round { files_removed, next: Some(Step::FullText), ..Round::default() })
        }
        Step::FullText => {
            merge(connection, -MERGED_PAGES).map_err(at_store)?;
            Ok(Round { next: Some(Step::MoreFullText), ..Round::default() })
        }
        Step::MoreFullText => {
            let is_more = merge(connection, MERGED_PAGES).map_err(at_store)?;
            Ok(Round { next: Some(if is_more { step } else { Step::FreePages }), ..Round::default() })
        }
        Step::FreePages => {
            let returned = eviction::return_free_pages(connection, FREE_PAGES, 0).map_err(at_store)?;
            Ok(Round { next: Some(if returned > 0 { step } else { Step::Gaps(0) }), ..Round::default() })
        }
        Step::Gaps(after) => scrub_gaps(store, after),
    }
}

/// Files that hold what nobody can tell apart any more: orphans, damaged stores, what a crash left, the sidecar.
fn remove_set_aside(store: &Store) -> Result<u64, StoreError> {
    let dir = &store.dir;
    media::discard_unfinished(dir)?;
    let mut removed = media_check::remove_orphans(dir, &store.path, &store.connection)?;
    let entries = std::fs::read_dir(dir).map_err(|error| StoreError::from_io("read", dir, error))?;
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if swap::is_set_aside(&name) || name.starts_with(UNFINISHED_FILE) {
            remove_if_there(&entry.path())?;
            removed += 1;
        }
    }
    store.companion.borrow_mut().forget()?;
    Ok(removed)
}

/// Merges some segments of full text; with a negative number it begins to merge all of them into one. Returns whether
/// there is more to merge.
fn merge(connection: &Connection, pages: i64) -> rusqlite::Result<bool> {
    if pages < 0 {
        connection.execute("INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('secure-delete', 1)", [])?;
    }
    let before = connection.total_changes();
    connection.execute("INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('merge', ?1)", [pages])?;
    // The command itself counts as one change.
    Ok(connection.total_changes() - before >= 2)
}

/// Zeroes the gaps of some pages.
fn scrub_gaps(store: &Store, after: u32) -> Result<Round, StoreError> {
    let at_store = |error| StoreError::from_sqlite(&store.path, error);
    let connection = &store.connection;
    // Pages in memory hold their gaps too, and would write them again with the next change.
    connection.execute_batch("PRAGMA shrink_memory").map_err(at_store)?;
    if !empty_log(connection).map_err(at_store)? {
        return Ok(unfinished("a program reads memory.db and keeps its log: run the same command again later"));
    }
    connection.execute_batch("BEGIN IMMEDIATE").map_err(at_store)?;
    let scrubbed = if schema::has_wal(&store.path) {
        Ok(unfinished("another program wrote to memory.db: run the same command again"))
    } else {
        scrub_file(store, after)
    };
    let _ = connection.execute_batch("ROLLBACK");
    scrubbed
}

fn unfinished(words: &str) -> Round {
    Round { left: vec![format!("old copies in memory.db: {words}")], ..Round::default() }
}

/// Moves the log into the database and cuts it to nothing. `false` when somebody still reads from it.
fn empty_log(connection: &Connection) -> rusqlite::Result<bool> {
    connection.busy_timeout(LOG_TIMEOUT)?;
    let is_busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(is_busy? == 0)
}

fn scrub_file(store: &Store, after: u32) -> Result<Round, StoreError> {
    let io = |action| move |error| StoreError::from_io(action, &store.path, error);
    let file = store.pages_file()?;
    let mut header = [0; 100];
    file.read_exact_at(&mut header, 0).map_err(io("read"))?;
    let layout = Layout::of(&header);
    let pages = file.metadata().map_err(io("read"))?.len() / layout.page_bytes;
    if pages >= PAGES_MAX {
        return Ok(unfinished("it is too large to be scrubbed; VACUUM it"));
    }
    let last = u32::try_from(pages).unwrap_or(u32::MAX).min(after.saturating_add(GAP_PAGES));
    let mut bytes_scrubbed = 0;
    let mut page = vec![0; usize::try_from(layout.page_bytes).unwrap_or(0)];
    // The first page holds the schema alone.
    for number in after.max(1).saturating_add(1)..=last {
        if layout.is_map(number) {
            continue;
        }
        let at = u64::from(number - 1) * layout.page_bytes;
        file.read_exact_at(&mut page, at).map_err(io("read"))?;
        bytes_scrubbed += zero_gaps(file, at, &page[..layout.usable.min(page.len())]).map_err(io("write"))?;
    }
    if bytes_scrubbed > 0 {
        file.sync_data().map_err(io("sync"))?;
    }
    let next = (u64::from(last) < pages).then_some(Step::Gaps(last));
    Ok(Round { bytes_scrubbed, next, ..Round::default() })
}

fn zero_gaps(file: &File, at: u64, page: &[u8]) -> std::io::Result<u64> {
    let mut count = 0;
    for gap in gaps(page) {
        let old = page[gap.clone()].iter().filter(|byte| **byte != 0).count() as u64;
        if old > 0 {
            file.write_all_at(&vec![0; gap.len()], at + gap.start as u64)?;
            count += old;
        }
    }
    Ok(count)
}

/// How the pages of a file are laid out, from its header.
struct Layout {
    page_bytes: u64,
    usable: usize,
    has_map: bool,
}

/// SQLite's locks stand at this byte; its page is never used.
const LOCK_BYTE: u64 = 1 << 30;

impl Layout {
    fn of(header: &[u8; 100]) -> Self {
        let page_bytes = schema::page_size(header);
        let usable = usize::try_from(page_bytes).unwrap_or(0).saturating_sub(usize::from(header[20]));
        Self { page_bytes, usable, has_map: header[52..56] != [0; 4] }
    }

    /// Whether the page is one of the pointer map, whose first byte may look like that of a tree page.
    fn is_map(&self, number: u32) -> bool {
        let (number, every) = (u64::from(number), self.usable as u64 / 5 + 1);
        let is_at = |number: u64| number >= 2 && (number - 2).is_multiple_of(every);
        let lock_page = LOCK_BYTE / self.page_bytes + 1;
        self.has_map && (is_at(number) || (number == lock_page + 1 && is_at(lock_page)))
    }
}

/// The parts of a page that hold nothing: between the cells' places and the first cell, and inside of free blocks. None for
/// a page that is no tree page, or that contradicts itself.
fn gaps(page: &[u8]) -> Vec<Range<usize>> {
    let word = |at: usize| page.get(at..at + 2).map_or(0, |two| usize::from(u16::from_be_bytes([two[0], two[1]])));
    let header = match page.first() {
        Some(0x02 | 0x05) => 12,
        Some(0x0a | 0x0d) => 8,
        _ => return Vec::new(),
    };
    let content = if word(5) == 0 { 65_536 } else { word(5) };
    let places_end = header + 2 * word(3);
    if places_end > content || content > page.len() {
        return Vec::new();
    }
    let mut found: Vec<Range<usize>> = std::iter::once(places_end..content).collect();
    let (mut block, mut least) = (word(1), content);
    while block != 0 {
        let (next, bytes) = (word(block), word(block + 2));
        if block < least || bytes < 4 || block + bytes > page.len() {
            return Vec::new();
        }
        found.push(block + 4..block + bytes);
        (least, block) = (block + bytes, next);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_what_lies_between_cells_and_never_a_cell() {
        let mut page = vec![7; 64];
        page[..8].copy_from_slice(&[0x0d, 0, 40, 0, 2, 0, 30, 0]);
        page[40..44].copy_from_slice(&[0, 0, 0, 10]);

        assert_eq!(gaps(&page), [12..30, 44..50]);

        let contradictions: [(usize, u8); 6] = [(0, 0x01), (4, 200), (6, 200), (2, 20), (43, 3), (43, 60)];
        for (at, value) in contradictions {
            let mut wrong = page.clone();
            wrong[at] = value;
            assert!(gaps(&wrong).is_empty(), "byte {at} = {value}");
        }
        assert!(gaps(&[]).is_empty() && gaps(&[0x0d]).is_empty());
    }

    #[test]
    fn pages_of_the_pointer_map_are_left_alone() {
        let mut header = [0; 100];
        header[16..18].copy_from_slice(&4_096_u16.to_be_bytes());
        header[55] = 1;
        let layout = Layout::of(&header);

        assert!(layout.is_map(2) && layout.is_map(2 + 820) && !layout.is_map(3) && !layout.is_map(1));
        header[55] = 0;
        assert!(!Layout::of(&header).is_map(2));
    }
}

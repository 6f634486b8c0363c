//! Puts the salvaged store in the place of the damaged one, whenever the power goes.
//!
//! In: the new store, whole and on the disk. Out: the damaged file with its WAL under their dated names, the new one as
//! `memory.db`.
//!
//! The rename to `memory.db.salvaged-DATE` decides: before it the damaged file is the store, after it the new one is, and
//! what is left to do ([`finish`]) is done again by whoever opens the store next. The WAL of the damaged file must never
//! stand beside the new one: SQLite would put its pages into it.
//! Never: overwrites a file.

use crate::domain::time::Timestamp;
use crate::memory::error::StoreError;
use crate::memory::store;
use crate::memory::store::STORE_FILE;
use std::path::Path;
use std::path::PathBuf;

const DECIDED: &str = "memory.db.salvaged-";
const SET_ASIDE: &str = "memory.db.damaged-";

/// The store's file and what belongs to it.
const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// Decides for the new store. Returns where the damaged one will stand.
pub(super) fn begin(dir: &Path, unfinished: &Path, now: Timestamp) -> Result<PathBuf, StoreError> {
    let date = free_date(dir, now);
    let decided = dir.join(format!("{DECIDED}{date}"));
    rename(unfinished, &decided)?;
    store::sync_dir(dir)?;
    Ok(dir.join(format!("{SET_ASIDE}{date}")))
}

/// Whether a file of that name is a damaged store that was set aside, or what was left of a salvage.
pub(crate) fn is_set_aside(name: &str) -> bool {
    name.starts_with(SET_ASIDE) || name.starts_with(super::UNFINISHED_FILE)
}

/// Ends a swap that was decided; nothing happens when there is none.
pub(crate) fn finish(dir: &Path) -> Result<(), StoreError> {
    let Some((decided, date)) = decided(dir)? else { return Ok(()) };
    for suffix in SUFFIXES {
        let damaged = dir.join(format!("{STORE_FILE}{suffix}"));
        if damaged.exists() {
            rename(&damaged, &free_name(dir, &format!("{SET_ASIDE}{date}"), suffix))?;
        }
    }
    store::sync_dir(dir)?;
    rename(&decided, &dir.join(STORE_FILE))?;
    store::sync_dir(dir)
}

fn decided(dir: &Path) -> Result<Option<(PathBuf, String)>, StoreError> {
    let entries = std::fs::read_dir(dir).map_err(|error| StoreError::from_io("read", dir, error))?;
    let mut found: Vec<(PathBuf, String)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some((entry.path(), name.strip_prefix(DECIDED)?.to_owned()))
        })
        .collect();
    found.sort();
    Ok(found.pop())
}

/// `2026-11-30T12-00-00Z`, with a number behind it if there is such a file: without a set clock two may have one date.
fn free_date(dir: &Path, now: Timestamp) -> String {
    let whole_seconds = Timestamp::from_millis(now.as_millis().div_euclid(1_000).saturating_mul(1_000));
    let date = whole_seconds.to_string().replace(".000Z", "Z").replace([':', ' '], "-");
    let is_free =
        |date: &String| SUFFIXES.iter().all(|suffix| !dir.join(format!("{SET_ASIDE}{date}{suffix}")).exists());
    let numbered = (2_u32..).map(|number| format!("{date}.{number}"));
    std::iter::once(date.clone()).chain(numbered).find(is_free).unwrap_or(date)
}

fn free_name(dir: &Path, name: &str, suffix: &str) -> PathBuf {
    let wished = dir.join(format!("{name}{suffix}"));
    let numbered = (2_u32..).map(|number| dir.join(format!("{name}.{number}{suffix}")));
    std::iter::once(wished.clone()).chain(numbered).find(|path| !path.exists()).unwrap_or(wished)
}

fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    std::fs::rename(from, to).map_err(|error| StoreError::from_io("rename", from, error))
}

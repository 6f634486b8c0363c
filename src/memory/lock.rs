//! The exclusive lock on a data directory: one writer at a time.
//!
//! In: the directory and how the program calls itself. Out: the lock, held until dropped, or who holds it.
//! Never: waits. The kernel lets go of the lock when its holder dies, whatever way it dies.

use crate::memory::error::StoreError;
use std::fs::File;
use std::fs::TryLockError;
use std::io::Read;
use std::io::Seek;
use std::io::Write;
use std::path::Path;

/// The lock's file in the data directory. It stays; only the lock on it counts.
pub const LOCK_FILE: &str = "percept.lock";

/// Longest text read from a lock file, in bytes.
const HOLDER_BYTES_MAX: u64 = 200;

/// The held lock.
#[derive(Debug)]
pub(crate) struct DirLock {
    _file: File,
}

/// Takes the lock.
///
/// # Errors
/// [`StoreError::InUse`] with the holder's name when another program has it.
pub(crate) fn acquire(dir: &Path, holder: &str) -> Result<DirLock, StoreError> {
    let path = dir.join(LOCK_FILE);
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|error| StoreError::from_io("open", &path, error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(StoreError::InUse { dir: dir.to_path_buf(), holder: read_holder(&mut file) });
        }
        Err(TryLockError::Error(error)) => return Err(StoreError::from_io("lock", &path, error)),
    }
    // On a full disk the name cannot be written; the lock holds all the same.
    let _ = write_holder(&mut file, holder);
    Ok(DirLock { _file: file })
}

fn write_holder(file: &mut File, holder: &str) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    write!(file, "{holder} (process {})", std::process::id())
}

fn read_holder(file: &mut File) -> String {
    let mut text = Vec::new();
    let read = file.take(HOLDER_BYTES_MAX).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text).replace(char::is_control, " ");
    if read.is_err() || text.trim().is_empty() { "another program".to_owned() } else { text.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_writer_is_told_who_was_first_and_may_come_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let first = acquire(dir.path(), "percept replay").unwrap();

        let refusal = acquire(dir.path(), "percept run").unwrap_err().to_string();
        drop(first);

        assert!(refusal.contains("in use by percept replay (process "), "{refusal}");
        assert!(acquire(dir.path(), "percept run").is_ok());
    }
}

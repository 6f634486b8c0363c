//! Opens the store for writing: the directory, its lock, the file, its schema, the connection's settings.
//!
//! In: a data directory and [`OpenOptions`]. Out: a [`Store`], the one connection that may write.
//! Never: touches a file that is not ours or that a newer percept wrote; leaves a half-made store behind.

use crate::domain::id::DeviceId;
use crate::domain::id::StoreId;
use crate::domain::time::Timestamp;
use crate::memory::error::StoreError;
use crate::memory::health;
use crate::memory::lock;
use crate::memory::lock::DirLock;
use crate::memory::media;
use crate::memory::salvage;
use crate::memory::salvage::Salvage;
use crate::memory::salvage::swap;
use crate::memory::schema;
use crate::memory::schema::Found;
use crate::memory::similarity::companion::Companion;
use crate::recall::links::Cuts;
use rusqlite::Connection;
use rusqlite::OpenFlags;
use rusqlite::config::DbConfig;
use std::cell::OnceCell;
use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

/// The store's file in the data directory.
pub const STORE_FILE: &str = "memory.db";

/// Where a new store is made before it gets its name.
pub(crate) const UNFINISHED_FILE: &str = "memory.db.new";

/// How long a statement waits for another program's write lock before it fails as busy (and is tried again).
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// The WAL file is cut back to this many bytes after a checkpoint.
const WAL_BYTES_KEPT: i64 = 8 << 20;

/// Prepared statements kept at hand.
const STATEMENTS_KEPT: usize = 128;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// How the program calls itself in the lock file, e.g. `percept replay`.
    pub holder: String,
    /// The device id a new store gets; random when `None`. An existing store keeps its own.
    pub device_id: Option<DeviceId>,
    /// The store id a new store gets; random when `None`. An existing store keeps its own.
    pub store_id: Option<StoreId>,
    /// Relations of which a subject has one at a time: a newer fact ends the older one.
    pub single_valued: Vec<String>,
    /// The least cosines of links between episodes that are alike.
    pub links: Cuts,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            holder: "percept".to_owned(),
            device_id: None,
            store_id: None,
            single_valued: vec!["located_at".to_owned()],
            links: Cuts::default(),
        }
    }
}

/// Who a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The device this store belongs to.
    pub device_id: DeviceId,
    /// This store.
    pub store_id: StoreId,
}

/// The store, open for writing. Give it to [`crate::memory::writer::Writer::spawn`].
#[derive(Debug)]
pub struct Store {
    pub(crate) connection: Connection,
    pub(crate) dir: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) single_valued: Vec<String>,
    pub(crate) companion: RefCell<Companion>,
    /// The file itself, once its gaps are scrubbed. It is closed after the connection: closing any handle of a file lets go
    /// of all locks that this process holds on it.
    pages: OnceCell<File>,
    _lock: DirLock,
}

impl Store {
    /// Opens the store in `dir`, making the directory and the store when they are not there.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another program writes there; [`StoreError::Foreign`], [`StoreError::NewerSchema`] and
    /// [`StoreError::Damaged`] when the file cannot be used (it is then untouched); [`StoreError::Io`] and
    /// [`StoreError::Full`] from the file system.
    pub fn open(dir: &Path, options: &OpenOptions) -> Result<Self, StoreError> {
        create_dir(dir)?;
        let lock = lock::acquire(dir, &options.holder)?;
        swap::finish(dir)?;
        let path = dir.join(STORE_FILE);
        let (connection, identity) = ready(dir, &path, options)?;
        Ok(Self::locked(dir, options, connection, identity, lock))
    }

    /// Opens the store in `dir` as [`Store::open`] does, and goes on with a new one when the file is damaged: the damaged
    /// one is set aside under the date `now`, and what can be read of it is copied (see [`crate::memory::salvage`]).
    ///
    /// The file is looked through only when there is reason to: after an end that was not clean (in a bounded piece), and
    /// after a writer met damage (all of it).
    ///
    /// # Errors
    /// As [`Store::open`], but for [`StoreError::Damaged`]; [`StoreError::Full`] when there is no room for the copy: the
    /// damaged file then stays where it was, and the same call can be made again.
    pub fn open_or_salvage(
        dir: &Path,
        options: &OpenOptions,
        now: Timestamp,
    ) -> Result<(Self, Option<Salvage>), StoreError> {
        Self::open_or_salvage_with(dir, options, now, &mut |_| {})
    }

    /// The same, telling how many rows were kept so far after each piece of a salvage, which may take minutes.
    ///
    /// # Errors
    /// As [`Store::open_or_salvage`].
    pub fn open_or_salvage_with(
        dir: &Path,
        options: &OpenOptions,
        now: Timestamp,
        on_rows: &mut dyn FnMut(u64),
    ) -> Result<(Self, Option<Salvage>), StoreError> {
        create_dir(dir)?;
        let lock = lock::acquire(dir, &options.holder)?;
        swap::finish(dir)?;
        let path = dir.join(STORE_FILE);
        let sound = health::probe(dir, &path).and_then(|()| ready(dir, &path, options));
        let (opened, salvage) = match sound {
            Err(error) if health::is_wreck(&error, &path) => {
                let salvage = salvage::salvage(dir, options, &error, now, on_rows)?;
                (ready(dir, &path, options)?, Some(salvage))
            }
            other => (other?, None),
        };
        health::clear(dir)?;
        let (connection, identity) = opened;
        Ok((Self::locked(dir, options, connection, identity, lock), salvage))
    }

    fn locked(dir: &Path, options: &OpenOptions, connection: Connection, identity: Identity, lock: DirLock) -> Self {
        let (path, single_valued) = (dir.join(STORE_FILE), options.single_valued.clone());
        let companion = Companion::new(dir, identity.store_id.as_str(), options.links.clone());
        let (companion, pages) = (RefCell::new(companion), OnceCell::new());
        Self { connection, dir: dir.to_path_buf(), path, identity, single_valued, companion, pages, _lock: lock }
    }

    /// The database's file, for what SQLite itself does not do.
    pub(crate) fn pages_file(&self) -> Result<&File, StoreError> {
        if let Some(file) = self.pages.get() {
            return Ok(file);
        }
        let opened = File::options().read(true).write(true).open(&self.path);
        let file = opened.map_err(|error| StoreError::from_io("open", &self.path, error))?;
        Ok(self.pages.get_or_init(|| file))
    }

    /// Who this store is.
    #[must_use]
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The data directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// A connection to the store, which is made if there is none.
fn ready(dir: &Path, path: &Path, options: &OpenOptions) -> Result<(Connection, Identity), StoreError> {
    let found = schema::inspect(path)?;
    if found == Found::Nothing {
        create(dir, path, options)?;
    }
    let opened = connect(path, &found)?;
    media::discard_unfinished(dir)?;
    Ok(opened)
}

/// Only the user and the group may look in: what a device heard and saw is private.
fn create_dir(dir: &Path) -> Result<(), StoreError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o750)
        .create(dir)
        .map_err(|error| StoreError::from_io("create", dir, error))
}

/// Makes the store under another name and renames it when it is whole and on the disk, so that `memory.db`
/// is complete from the first moment it exists, whenever the power goes.
fn create(dir: &Path, path: &Path, options: &OpenOptions) -> Result<(), StoreError> {
    let unfinished = dir.join(UNFINISHED_FILE);
    remove_unfinished(dir)?;
    fill(&unfinished, options).map_err(|error| {
        // Whatever was written would only take the room that is missing.
        let _ = remove_unfinished(dir);
        StoreError::from_sqlite(path, error)
    })?;
    seal(&unfinished)?;
    std::fs::rename(&unfinished, path).map_err(|error| StoreError::from_io("create", path, error))?;
    sync_dir(dir)
}

/// Gives a file that was made its mode and puts it on the disk.
pub(crate) fn seal(path: &Path) -> Result<(), StoreError> {
    let io = |action: &'static str| move |error: std::io::Error| StoreError::from_io(action, path, error);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o640)).map_err(io("create"))?;
    File::open(path).and_then(|file| file.sync_all()).map_err(io("sync"))
}

fn remove_unfinished(dir: &Path) -> Result<(), StoreError> {
    ["", "-journal"].iter().try_for_each(|suffix| remove_if_there(&dir.join(format!("{UNFINISHED_FILE}{suffix}"))))
}

/// Makes an empty store under that name and closes it.
pub(crate) fn fill(unfinished: &Path, options: &OpenOptions) -> rusqlite::Result<()> {
    let random = || uuid::Uuid::new_v4().to_string();
    let device_id = options.device_id.as_ref().map_or_else(random, |id| id.as_str().to_owned());
    let store_id = options.store_id.as_ref().map_or_else(random, |id| id.as_str().to_owned());
    let mut connection = Connection::open(unfinished)?;
    schema::stamp(&connection)?;
    schema::migrate(&mut connection)?;
    connection.execute(
        "INSERT INTO store (one, device_id, store_id, next_revision) VALUES (1, ?1, ?2, 1)",
        [device_id, store_id],
    )?;
    connection.close().map_err(|(_, error)| error)
}

fn connect(path: &Path, found: &Found) -> Result<(Connection, Identity), StoreError> {
    let sqlite = |error| StoreError::from_sqlite(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(sqlite)?;
    configure(&connection).map_err(sqlite)?;
    schema::refuse_newer(path, schema::version(&connection).map_err(sqlite)?)?;
    if *found == Found::Torn {
        schema::check_whole(&connection, path)?;
    }
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)).map_err(sqlite)?;
    if mode != "wal" {
        let source = std::io::Error::other("its file system has no shared memory, which SQLite's WAL needs");
        return Err(StoreError::Io { action: "use", path: path.to_path_buf(), source });
    }
    schema::migrate(&mut connection).map_err(sqlite)?;
    let identity = identity(&connection).map_err(|error| {
        let error = sqlite(error);
        if let StoreError::Sql { path, source } = error {
            return StoreError::Damaged { path, detail: format!("whose it is cannot be read: {source}") };
        }
        error
    })?;
    Ok((connection, identity))
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    // FULL: every commit is on the disk before it is called done. NORMAL would let a power cut take
    // back commits that were already answered for; with commits grouped to one a second FULL costs one fsync a second.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    // What is deleted is overwritten: forgetting is only as good as every change before it, and costs one write more a page.
    connection.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
    // Temporary tables hold ids of episodes: they must not land in /tmp.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // Otherwise a bound value may choose another plan, for partial indexes for one, and every use of a kept statement with
    // another value parses and plans it anew: a good part of the time of an insert.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "cell_size_check", true)
}

/// Reads who the store is.
pub(crate) fn identity(connection: &Connection) -> rusqlite::Result<Identity> {
    connection.query_row("SELECT device_id, store_id FROM store", [], |row| {
        Ok(Identity {
            device_id: DeviceId::new(row.get::<_, String>(0)?),
            store_id: StoreId::new(row.get::<_, String>(1)?),
        })
    })
}

/// Puts a rename or a new name in `dir` on the disk.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    File::open(dir).and_then(|file| file.sync_all()).map_err(|error| StoreError::from_io("sync", dir, error))
}

/// Removes a file; one that is not there is fine.
pub(crate) fn remove_if_there(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(StoreError::from_io("remove", path, error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(dir: &Path) -> Result<Store, StoreError> {
        Store::open(dir, &OpenOptions::default())
    }

    #[test]
    fn a_new_store_is_durable_and_keeps_its_identity() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("a/b");
        let first = open(&data).unwrap();
        let pragma = |name: &str| -> String {
            first
                .connection
                .pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
                .map(|value| format!("{value:?}"))
                .unwrap()
        };

        assert_eq!(pragma("journal_mode"), "Text(\"wal\")");
        assert_eq!(pragma("synchronous"), "Integer(2)");
        assert_eq!(pragma("auto_vacuum"), "Integer(2)");
        assert_eq!(pragma("foreign_keys"), "Integer(1)");
        let identity = first.identity().clone();
        drop(first);
        assert_eq!(open(&data).unwrap().identity(), &identity);
        assert!(!data.join(UNFINISHED_FILE).exists());
    }

    #[test]
    fn two_new_stores_have_different_ids_unless_told() {
        let (one, two, told) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let options = OpenOptions {
            device_id: Some(DeviceId::new("d1")),
            store_id: Some(StoreId::new("s1")),
            ..OpenOptions::default()
        };

        let (one, two) = (open(one.path()).unwrap(), open(two.path()).unwrap());
        let told = Store::open(told.path(), &options).unwrap();

        assert_ne!(one.identity().device_id, two.identity().device_id);
        assert_ne!(one.identity().store_id, two.identity().store_id);
        assert_eq!(told.identity(), &Identity { device_id: DeviceId::new("d1"), store_id: StoreId::new("s1") });
    }

    #[test]
    fn foreign_and_newer_files_are_refused_by_name_and_left_as_they_were() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(STORE_FILE);
        let newer = |path: &Path| {
            drop(open(path.parent().unwrap()).unwrap());
            let connection = Connection::open(path).unwrap();
            connection.pragma_update(None, "journal_mode", "DELETE").unwrap();
            connection.pragma_update(None, "user_version", 99).unwrap();
        };
        let other = |path: &Path| {
            Connection::open(path)
                .unwrap()
                .execute_batch("CREATE TABLE notes (text); INSERT INTO notes VALUES (1)")
                .unwrap();
        };
        let short = |path: &Path| std::fs::write(path, b"hello").unwrap();
        let zeros = |path: &Path| std::fs::write(path, vec![0; 9000]).unwrap();
        let makers: [&dyn Fn(&Path); 4] = [&short, &zeros, &other, &newer];
        let sentences =
            ["not an SQLite database", "not an SQLite database", "another program", "newer percept (schema 99"];

        for (make, sentence) in makers.into_iter().zip(sentences) {
            let _ = std::fs::remove_file(&path);
            make(&path);
            let before = std::fs::read(&path).unwrap();
            let error = open(dir.path()).unwrap_err().to_string();
            assert!(error.contains(sentence) && error.contains(STORE_FILE), "{error}");
            assert_eq!(std::fs::read(&path).unwrap(), before, "{sentence}");
            assert!(!dir.path().join("memory.db-wal").exists());
        }
    }

    #[test]
    fn a_store_whose_making_was_cut_off_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(UNFINISHED_FILE), b"half a page").unwrap();
        std::fs::write(dir.path().join(STORE_FILE), b"").unwrap();

        assert!(open(dir.path()).is_ok());
    }
}

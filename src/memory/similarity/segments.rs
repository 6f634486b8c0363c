//! Graphs on the disk: each holds the rows of one span of numbers, so that none is larger than [`rows_max`] and a space of any
//! size needs no more memory to be indexed than one of them.
//!
//! ```text
//! 0 ──── segment ────│──── segment ────│── last segment, still growing ──│ rows above: not indexed
//! ```
//!
//! A segment is a graph file and a small JSON file that says what it holds and what its checksum is. The JSON is written
//! last and names its graph file, so a reader finds both or neither.
//! Never: a graph whose checksum was not looked at: the crate trusts what it maps.

use crate::memory::error::StoreError;
use crate::memory::similarity::graph::Graph;
use crate::memory::similarity::storage;
use crate::memory::similarity::storage::Key;
use crate::memory::similarity::storage::Mark;
use std::fs::File;
use std::path::Path;
use std::path::PathBuf;

/// Most bytes of a segment, which is what it takes in memory while it grows: three spaces that grow at once (pictures,
/// sentences, sounds) stay below the 64 MiB the agent may grow by.
const BYTES_MAX: usize = 20 << 20;

/// What a row takes besides its codes: its links and its key (measured: 116 bytes at a connectivity of 12).
const NODE_BYTES: usize = 128;

/// Most rows of one segment.
pub(crate) const fn rows_max(dims: usize) -> usize {
    BYTES_MAX / (dims + NODE_BYTES)
}

/// What these files hold changes with this number.
const FORMAT: u32 = 1;

/// The JSON file: what a graph file holds.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Manifest {
    format: u32,
    /// Digest of store and space.
    digest: String,
    /// It holds rows with numbers above this one …
    pub(crate) above: i64,
    /// … up to this one.
    pub(crate) upto: i64,
    /// Rows it held when it was made.
    pub(crate) rows: usize,
    /// Whether more rows will be added to it.
    pub(crate) is_growing: bool,
    file: String,
    blake3: String,
}

impl Manifest {
    fn path(&self, folder: &Path) -> PathBuf {
        manifest_path(folder, self.above)
    }
}

fn manifest_path(folder: &Path, above: i64) -> PathBuf {
    folder.join(format!("{above}.json"))
}

/// The manifests of a space that belong to this store, as far as they follow one another from the first row on.
pub(crate) fn manifests(folder: &Path, key: &Key, store_id: &str) -> Vec<Manifest> {
    let digest = key.digest(store_id).to_hex().to_string();
    let mut found: Vec<Manifest> = Vec::new();
    let mut above = 0;
    while let Some(manifest) = read(&manifest_path(folder, above)) {
        if manifest.format != FORMAT || manifest.digest != digest || manifest.above != above || manifest.upto <= above {
            break;
        }
        above = manifest.upto;
        let is_growing = manifest.is_growing;
        found.push(manifest);
        if is_growing {
            break;
        }
    }
    found
}

fn read(path: &Path) -> Option<Manifest> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// A file whose checksum was right, so that it need not be read whole each time it is opened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Checked {
    mark: Mark,
}

/// Opens a segment. `checked` is what an earlier call left; `None` comes back when the graph cannot be used.
pub(crate) fn open(
    folder: &Path,
    key: &Key,
    manifest: &Manifest,
    checked: &mut Option<Checked>,
    open: fn(&Path, usize) -> Option<Graph>,
) -> Option<Graph> {
    // A name with a way in it is not one of ours.
    let path = folder.join(Path::new(&manifest.file).file_name()?);
    let file = File::open(&path).ok()?;
    let mark = Mark::of(&file).ok()?;
    if checked.as_ref().is_none_or(|checked| checked.mark != mark) {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(file).ok()?;
        if hasher.finalize().to_hex().as_str() != manifest.blake3 {
            return None;
        }
        *checked = Some(Checked { mark });
    }
    open(&path, key.dims)
}

/// What a graph that is to be saved holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) above: i64,
    pub(crate) upto: i64,
    pub(crate) is_growing: bool,
}

/// Saves a graph as a segment, in place of the one that begins at the same row.
pub(crate) fn save(
    folder: &Path,
    key: &Key,
    store_id: &str,
    graph: &Graph,
    span: Span,
) -> Result<Manifest, StoreError> {
    storage::create_folder(folder)?;
    let unfinished = folder.join("graph.new");
    let failed = || StoreError::from_io("write", &unfinished, std::io::Error::other("the graph could not be saved"));
    storage::begin(&unfinished)?;
    if !graph.save(&unfinished) {
        return Err(failed());
    }
    let hash = File::open(&unfinished).and_then(|file| {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(file)?;
        Ok(hasher.finalize().to_hex().to_string())
    });
    let hash = hash.map_err(|error| StoreError::from_io("read", &unfinished, error))?;
    let manifest = Manifest {
        format: FORMAT,
        digest: key.digest(store_id).to_hex().to_string(),
        above: span.above,
        upto: span.upto,
        rows: graph.len(),
        is_growing: span.is_growing,
        file: format!("{}-{}.hnsw", span.above, &hash[..16]),
        blake3: hash,
    };
    let before = read(&manifest.path(folder));
    storage::finish(&unfinished, &folder.join(&manifest.file))?;
    write_manifest(folder, &manifest)?;
    if let Some(before) = before.filter(|before| before.file != manifest.file) {
        // One that stays only takes room.
        let _ = std::fs::remove_file(folder.join(Path::new(&before.file).file_name().unwrap_or_default()));
    }
    Ok(manifest)
}

fn write_manifest(folder: &Path, manifest: &Manifest) -> Result<(), StoreError> {
    let unfinished = folder.join("manifest.new");
    let bytes = serde_json::to_vec(manifest).unwrap_or_default();
    storage::begin(&unfinished)
        .and_then(|mut file| {
            std::io::Write::write_all(&mut file, &bytes)
                .map_err(|error| StoreError::from_io("write", &unfinished, error))
        })
        .and_then(|()| storage::finish(&unfinished, &manifest.path(folder)))
}

/// Removes the segments of a space from the row `above` on.
pub(crate) fn discard(folder: &Path, above: i64) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let start = name.strip_suffix(".json").or_else(|| name.split_once('-').map(|(start, _)| start));
        if start.and_then(|start| start.parse::<i64>().ok()).is_some_and(|start| start >= above) {
            // It is found out by its checksum and its digest if it stays.
            let _ = std::fs::remove_file(&path);
        }
    }
}

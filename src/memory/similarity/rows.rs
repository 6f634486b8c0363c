//! The sidecar: the vectors of one space in one byte a value, in two files beside the store.
//!
//! ```text
//! header (4,096 bytes)      magic, digest of store and space, dims, rows, above, covered, rows a block, greatest length, checksum
//! block 0, 1, 2 …           codes of its rows | 32 bytes about each row | checksum
//! ```
//!
//! A block is about [`BLOCK_BYTES`] and begins at a page, so that a scan maps one after the other. Its checksum is looked at
//! when it is first mapped. Rows stand in the order of their number; every row of the space above `above` and up to `covered` was
//! in the store when the file was made and is in it, so what the file lacks are rows beyond these, and what it has too many are
//! rows that were removed since.
//!
//! The main file holds all rows when it is made, the late one those that came after: it is small and made often, and when it
//! has grown both become a new main one.
//! Never: a row of another store, space or length.

use crate::memory::error::StoreError;
use crate::memory::similarity::quantise;
use crate::memory::similarity::quantise::Scale;
use crate::memory::similarity::storage;
use crate::memory::similarity::storage::Key;
use crate::memory::similarity::storage::Mark;
use crate::memory::similarity::window;
use memmap2::Mmap;
use std::fs::File;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

/// The names of main and late file in the folder of their space.
pub(crate) const MAIN: &str = "rows.i8";
pub(crate) const LATE: &str = "rows.late.i8";

/// One of them while it is made.
const UNFINISHED: &str = "rows.new";

/// About how long a block is: what a scan adds to the resident memory.
const BLOCK_BYTES: usize = 4 << 20;

/// Where the first block begins; a multiple of every page size there is on a Linux of today (up to 64 KiB pages
/// `memmap2` maps the page before and hides it).
const HEADER_BYTES: usize = 4_096;
const PAGE: usize = 4_096;
const MAGIC: &[u8; 8] = b"PCPTVEC\x02";
const FIELDS_BYTES: usize = 88;
const META_BYTES: usize = 32;
const HASH_BYTES: usize = blake3::OUT_LEN;

/// What is known of a row besides its codes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Meta {
    /// `embeddings.row_id`.
    pub(crate) row_id: i64,
    /// `episodes.row_id`.
    pub(crate) episode: i64,
    /// Beginning of the BLAKE3 of the stored vector: equal ones are equal vectors.
    pub(crate) hash: u64,
    /// How its codes are read.
    pub(crate) scale: Scale,
}

impl Meta {
    fn decode(meta: &[u8; META_BYTES]) -> Self {
        Self {
            row_id: i64::from_le_bytes(field(meta, 0)),
            episode: i64::from_le_bytes(field(meta, 8)),
            hash: u64::from_le_bytes(field(meta, 16)),
            scale: Scale { scale: f32::from_le_bytes(field(meta, 24)), lost: f32::from_le_bytes(field(meta, 28)) },
        }
    }

    fn encode(&self, into: &mut Vec<u8>) {
        into.extend(self.row_id.to_le_bytes());
        into.extend(self.episode.to_le_bytes());
        into.extend(self.hash.to_le_bytes());
        into.extend(self.scale.scale.to_le_bytes());
        into.extend(self.scale.lost.to_le_bytes());
    }
}

/// The hash of a vector as stored.
pub(crate) fn hash_of(stored: &[u8]) -> u64 {
    u64::from_le_bytes(field(blake3::hash(stored).as_bytes(), 0))
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..at + N).and_then(|field| field.try_into().ok()).unwrap_or([0; N])
}

/// The header's fields.
#[derive(Debug, Clone, PartialEq)]
struct Header {
    digest: [u8; HASH_BYTES],
    dims: usize,
    rows: usize,
    above: i64,
    covered: i64,
    rows_per_block: usize,
    length_max: f32,
}

impl Header {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(self.digest);
        bytes.extend((self.dims as u64).to_le_bytes());
        bytes.extend((self.rows as u64).to_le_bytes());
        bytes.extend(self.covered.to_le_bytes());
        bytes.extend((self.rows_per_block as u64).to_le_bytes());
        bytes.extend(self.above.to_le_bytes());
        bytes.extend(self.length_max.to_le_bytes());
        bytes.resize(FIELDS_BYTES, 0);
        bytes.extend(blake3::hash(&bytes).as_bytes());
        bytes.resize(HEADER_BYTES, 0);
        bytes
    }

    fn decode(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let (fields, rest) = bytes.split_at(FIELDS_BYTES);
        let is_whole = fields.starts_with(MAGIC) && rest.starts_with(blake3::hash(fields).as_bytes());
        let number = |at| usize::try_from(u64::from_le_bytes(field(fields, at))).ok();
        is_whole.then_some(Self {
            digest: field(fields, 8),
            dims: number(40)?,
            rows: number(48)?,
            covered: i64::from_le_bytes(field(fields, 56)),
            rows_per_block: number(64)?,
            above: i64::from_le_bytes(field(fields, 72)),
            length_max: f32::from_le_bytes(field(fields, 80)),
        })
    }

    fn stride(&self) -> usize {
        block_bytes(self.dims, self.rows_per_block).next_multiple_of(PAGE)
    }

    const fn blocks(&self) -> usize {
        self.rows.div_ceil(self.rows_per_block)
    }

    fn rows_in(&self, block: usize) -> usize {
        self.rows.saturating_sub(block * self.rows_per_block).min(self.rows_per_block)
    }

    fn file_bytes(&self) -> u64 {
        let Some(last) = self.blocks().checked_sub(1) else { return HEADER_BYTES as u64 };
        (HEADER_BYTES + last * self.stride() + block_bytes(self.dims, self.rows_in(last))) as u64
    }
}

const fn block_bytes(dims: usize, rows: usize) -> usize {
    rows * (dims + META_BYTES) + HASH_BYTES
}

fn rows_per_block(dims: usize) -> usize {
    ((BLOCK_BYTES - HASH_BYTES) / (dims + META_BYTES)).max(1)
}

/// The sidecar, open for reading.
#[derive(Debug)]
pub(crate) struct Rows {
    file: File,
    mark: Mark,
    header: Header,
    is_checked: Vec<bool>,
}

impl Rows {
    /// Opens the file of that name of a space; `None` when there is none that can be used.
    pub(crate) fn open(folder: &Path, name: &str, key: &Key, store_id: &str) -> Option<Self> {
        let mut file = File::open(folder.join(name)).ok()?;
        let mark = Mark::of(&file).ok()?;
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact(&mut bytes).ok()?;
        let header = Header::decode(&bytes)?;
        let is_ours = header.digest == *key.digest(store_id).as_bytes()
            && header.dims == key.dims
            && header.rows_per_block == rows_per_block(key.dims)
            && header.file_bytes() == mark.bytes();
        let is_checked = vec![false; header.blocks()];
        is_ours.then_some(Self { file, mark, header, is_checked })
    }

    /// Which file this is.
    pub(crate) const fn mark(&self) -> Mark {
        self.mark
    }

    /// Rows in it.
    pub(crate) const fn len(&self) -> usize {
        self.header.rows
    }

    /// It holds rows with numbers above this one.
    pub(crate) const fn above(&self) -> i64 {
        self.header.above
    }

    /// The greatest number of a row when it was made.
    pub(crate) const fn covered(&self) -> i64 {
        self.header.covered
    }

    /// The greatest length of a vector in it, rounded up.
    pub(crate) const fn length_max(&self) -> f32 {
        self.header.length_max
    }

    /// Blocks in it.
    pub(crate) const fn blocks(&self) -> usize {
        self.header.blocks()
    }

    /// Maps a block; `None` when it is damaged.
    pub(crate) fn block(&mut self, number: usize) -> Option<Block> {
        let rows = self.header.rows_in(number);
        let at = HEADER_BYTES + number * self.header.stride();
        let map = window::map(&self.file, at as u64, block_bytes(self.header.dims, rows)).ok()?;
        let is_checked = self.is_checked.get_mut(number)?;
        if !*is_checked {
            let (content, checksum) = map.split_at(map.len() - HASH_BYTES);
            *is_checked = blake3::hash(content).as_bytes() == checksum;
        }
        is_checked.then_some(Block { map, rows, dims: self.header.dims })
    }

    /// What is known of the row at that place; `None` beyond the end or when its block is damaged.
    fn meta(&mut self, place: usize) -> Option<Meta> {
        let block = self.block(place / self.header.rows_per_block)?;
        block.meta(place % self.header.rows_per_block)
    }

    /// The first block that has a row with a number above this one; `None` when a block is damaged.
    pub(crate) fn first_block_above(&mut self, row_id: i64) -> Option<usize> {
        let (mut low, mut high) = (0, self.blocks());
        while low < high {
            let middle = low.midpoint(high);
            let last = middle * self.header.rows_per_block + self.header.rows_in(middle) - 1;
            if self.meta(last)?.row_id > row_id { high = middle } else { low = middle + 1 }
        }
        Some(low)
    }

    /// The row of that number: `None` when its block is damaged, `Some(None)` when there is none.
    pub(crate) fn find(&mut self, row_id: i64) -> Option<Option<Meta>> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            let meta = self.meta(middle)?;
            match meta.row_id.cmp(&row_id) {
                std::cmp::Ordering::Equal => return Some(Some(meta)),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Some(None)
    }
}

/// A mapped block.
pub(crate) struct Block {
    map: Mmap,
    rows: usize,
    dims: usize,
}

impl Block {
    /// Its rows, in the order of their number.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&[i8], Meta)> {
        let codes = &self.map[..self.rows * self.dims];
        window::codes(codes).chunks_exact(self.dims).zip(self.metas())
    }

    /// What is known of them.
    fn metas(&self) -> impl Iterator<Item = Meta> {
        self.encoded_metas().iter().map(Meta::decode)
    }

    /// What is known of the row at that place in the block.
    pub(crate) fn meta(&self, place: usize) -> Option<Meta> {
        self.encoded_metas().get(place).map(Meta::decode)
    }

    /// Rows in it.
    pub(crate) const fn len(&self) -> usize {
        self.rows
    }

    fn encoded_metas(&self) -> &[[u8; META_BYTES]] {
        self.map[self.rows * self.dims..self.map.len() - HASH_BYTES].as_chunks().0
    }
}

/// The sidecar while it is made.
#[derive(Debug)]
pub(crate) struct RowsWriter {
    folder: PathBuf,
    name: &'static str,
    file: File,
    header: Header,
    codes: Vec<u8>,
    metas: Vec<u8>,
}

impl RowsWriter {
    /// Begins one that will hold every row above `above` and up to `covered`.
    pub(crate) fn begin(
        folder: &Path,
        name: &'static str,
        key: &Key,
        store_id: &str,
        (above, covered): (i64, i64),
    ) -> Result<Self, StoreError> {
        storage::create_folder(folder)?;
        let header = Header {
            digest: *key.digest(store_id).as_bytes(),
            dims: key.dims,
            rows: 0,
            above,
            covered,
            rows_per_block: rows_per_block(key.dims),
            length_max: 0.0,
        };
        let mut this = Self {
            folder: folder.to_path_buf(),
            name,
            file: storage::begin(&folder.join(UNFINISHED))?,
            header,
            codes: Vec::new(),
            metas: Vec::new(),
        };
        this.write_at(0, &[0; HEADER_BYTES])?;
        Ok(this)
    }

    /// The greatest number of a row it will hold.
    pub(crate) const fn covered(&self) -> i64 {
        self.header.covered
    }

    /// Adds the next row; numbers must grow.
    pub(crate) fn push(&mut self, row_id: i64, episode: i64, stored: &[u8], vector: &[f32]) -> Result<(), StoreError> {
        let mut codes = vec![0; vector.len()];
        let scale = quantise::quantise(vector, &mut codes);
        self.header.length_max = self.header.length_max.max(quantise::rounded_up(quantise::length(vector)));
        self.codes.extend(window::bytes(&codes));
        Meta { row_id, episode, hash: hash_of(stored), scale }.encode(&mut self.metas);
        self.header.rows += 1;
        if self.header.rows.is_multiple_of(self.header.rows_per_block) { self.write_block() } else { Ok(()) }
    }

    /// Writes what is left and the header, and gives the file its name.
    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        if !self.metas.is_empty() {
            self.write_block()?;
        }
        self.write_at(0, &self.header.encode())?;
        storage::finish(&self.folder.join(UNFINISHED), &self.folder.join(self.name))
    }

    fn write_block(&mut self) -> Result<(), StoreError> {
        let block = (self.header.rows - 1) / self.header.rows_per_block;
        let mut bytes = std::mem::take(&mut self.codes);
        bytes.append(&mut self.metas);
        bytes.extend(blake3::hash(&bytes).as_bytes());
        self.write_at((HEADER_BYTES + block * self.header.stride()) as u64, &bytes)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.file
            .seek(SeekFrom::Start(at))
            .and_then(|_| self.file.write_all(bytes))
            .map_err(|error| StoreError::from_io("write", &self.folder.join(UNFINISHED), error))
    }
}

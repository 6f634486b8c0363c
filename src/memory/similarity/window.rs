//! A piece of a file, mapped for reading: the one place of this folder that maps memory.
//!
//! In: an open file, a span within it. Out: its bytes, and bytes as codes. Pieces are mapped one after the other and let go
//! again, so that a scan of any length adds no more than one piece to the resident memory.
//! Never: writes.

use memmap2::Mmap;
use memmap2::MmapOptions;
use std::fs::File;

/// Maps `bytes` bytes from `at` on, or says why not. The span must lie within the file.
#[expect(
    unsafe_code,
    reason = "files of `vectors/` are replaced by rename and never written again once they have their name"
)]
pub(super) fn map(file: &File, at: u64, bytes: usize) -> std::io::Result<Mmap> {
    // SAFETY: the file is ours: it was made under another name, is complete, and nobody changes or shortens it (see
    // `storage`); its end was checked when it was opened. A replaced file lives on until the last mapping of it goes.
    unsafe { MmapOptions::new().offset(at).len(bytes).map(file) }
}

/// Bytes as signed codes.
#[expect(unsafe_code, reason = "i8 and u8 have one layout; the standard library has no safe cast of their slices")]
pub(super) fn codes(bytes: &[u8]) -> &[i8] {
    // SAFETY: same length, same alignment, every bit pattern is valid, same lifetime.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}

/// Codes as bytes.
pub(super) fn bytes(codes: &[i8]) -> impl Iterator<Item = u8> {
    codes.iter().map(|code| code.to_ne_bytes()[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn codes_come_back_from_a_file_at_any_place() {
        let mut file = tempfile::tempfile().unwrap();
        let written: Vec<i8> = (-128..=127).collect();
        file.write_all(&vec![9; 5_000]).unwrap();
        file.write_all(&bytes(&written).collect::<Vec<u8>>()).unwrap();

        let piece = map(&file, 5_000, 256).unwrap();

        assert_eq!(codes(&piece), written);
    }
}

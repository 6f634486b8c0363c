//! The identity of a file's content: size and SHA-256.
//!
//! In: a path or bytes. Out: what is really there, to be compared with a [`Pin`].

use std::fs::File;
use std::io;
use std::io::Read;
use std::path::Path;

use sha2::Digest;
use sha2::Sha256;

use crate::perception::model::manifest::Pin;

/// Bytes read at once while hashing.
const BLOCK_BYTES: usize = 1 << 18;

/// Size and SHA-256 of a file, read through once.
pub(super) fn of_file(file: &Path) -> io::Result<Pin> {
    let mut opened = File::open(file)?;
    let mut block = vec![0; BLOCK_BYTES];
    let mut hash = Sha256::new();
    let mut bytes = 0;
    loop {
        match opened.read(&mut block) {
            Ok(0) => return Ok(Pin { bytes, sha256: hex(&hash.finalize()) }),
            Ok(count) => {
                hash.update(&block[..count]);
                bytes += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Size and SHA-256 of bytes in memory.
pub(super) fn of_bytes(bytes: &[u8]) -> Pin {
    Pin { bytes: bytes.len() as u64, sha256: hex(&Sha256::digest(bytes)) }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        let pin = of_bytes(b"abc"); // FIPS 180-2, appendix B.1

        assert_eq!(pin.bytes, 3);
        assert_eq!(pin.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}

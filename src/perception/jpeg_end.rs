//! Where a JPEG really ends.
//!
//! In: bytes that begin with a JPEG. Out: the offset just past its end-of-image marker, found by walking the segments
//! and the entropy-coded data, so that a marker inside a thumbnail or in the padding after the picture does not count.
//! It never looks at the picture itself.

use crate::perception::pixels::PixelError;

const START_OF_IMAGE: u8 = 0xD8;
const END_OF_IMAGE: u8 = 0xD9;
const START_OF_SCAN: u8 = 0xDA;

/// The offset just past the end-of-image marker (ITU-T T.81, annex B).
///
/// # Errors
/// [`PixelError::Damaged`] if the bytes do not follow the marker grammar, [`PixelError::Truncated`] if they stop before the end marker.
pub fn find(bytes: &[u8]) -> Result<usize, PixelError> {
    if bytes.len() < 2 || bytes[..2] != [0xFF, START_OF_IMAGE] {
        return Err(PixelError::Damaged("it does not begin like a JPEG".into()));
    }
    let mut at = 2;
    let mut has_scan = false;
    loop {
        let (marker, after) = marker_at(bytes, at)?;
        match marker {
            END_OF_IMAGE if has_scan => return Ok(after),
            END_OF_IMAGE => return Err(PixelError::Damaged("it ends before any picture data".into())),
            START_OF_IMAGE | 0x00 => return Err(PixelError::Damaged(format!("marker {marker:02X} where none belongs"))),
            0x01 | 0xD0..=0xD7 => at = after,
            _ => at = segment_end(bytes, after)?,
        }
        if marker == START_OF_SCAN {
            has_scan = true;
            at = scan_end(bytes, at)?;
        }
    }
}

/// The marker at `at` (fill bytes skipped) and the offset after it.
fn marker_at(bytes: &[u8], at: usize) -> Result<(u8, usize), PixelError> {
    let rest = bytes.get(at..).unwrap_or_default();
    if rest.first().is_some_and(|&byte| byte != 0xFF) {
        return Err(PixelError::Damaged("bytes between its segments".into()));
    }
    let fill = rest.iter().take_while(|&&byte| byte == 0xFF).count();
    rest.get(fill).map(|&marker| (marker, at + fill + 1)).ok_or_else(cut)
}

fn segment_end(bytes: &[u8], at: usize) -> Result<usize, PixelError> {
    let length = bytes.get(at..at + 2).ok_or_else(cut)?;
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    let end = at + length.max(2);
    if end > bytes.len() { Err(cut()) } else { Ok(end) }
}

/// The offset of the first marker after the entropy-coded data that starts at `at`.
fn scan_end(bytes: &[u8], at: usize) -> Result<usize, PixelError> {
    let data = bytes.get(at..).unwrap_or_default();
    data.windows(2)
        .position(|pair| pair[0] == 0xFF && !matches!(pair[1], 0x00 | 0xFF | 0xD0..=0xD7))
        .map(|offset| at + offset)
        .ok_or_else(cut)
}

fn cut() -> PixelError {
    PixelError::Truncated("no end marker".into())
}

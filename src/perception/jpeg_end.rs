//! The segments of a JPEG, and where it really ends.
//!
//! In: bytes that begin with a JPEG. Out: its [`Segments`] with their entropy-coded data, and the offset just past its
//! end marker, so that a marker inside a thumbnail or in the padding after the picture does not count.
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
    let mut segments = Segments::new(bytes);
    let mut has_scan = false;
    for segment in segments.by_ref() {
        has_scan |= segment?.marker == START_OF_SCAN;
    }
    if has_scan { Ok(segments.at) } else { Err(PixelError::Damaged("it ends before any picture data".into())) }
}

/// One marker segment.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    /// The marker's second byte.
    pub marker: u8,
    /// What follows the length; empty for a marker without one.
    pub body: &'a [u8],
    /// The entropy-coded data after a start of scan, restart markers included; else empty.
    pub scan: &'a [u8],
}

/// Walks the segments from the start of the image to its end marker, which is not given out.
#[derive(Debug)]
pub struct Segments<'a> {
    bytes: &'a [u8],
    at: usize,
    is_over: bool,
}

impl<'a> Segments<'a> {
    /// Begins at the first byte.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, is_over: false }
    }

    fn step(&mut self) -> Result<Option<Segment<'a>>, PixelError> {
        if self.at == 0 {
            if !self.bytes.starts_with(&[0xFF, START_OF_IMAGE]) {
                return Err(PixelError::Damaged("it does not begin like a JPEG".into()));
            }
            self.at = 2;
        }
        let marker = self.marker()?;
        let mut segment = Segment { marker, body: &[], scan: &[] };
        match marker {
            END_OF_IMAGE => return Ok(None),
            START_OF_IMAGE | 0x00 => {
                return Err(PixelError::Damaged(format!("marker {marker:02X} where none belongs")));
            }
            0x01 | 0xD0..=0xD7 => {}
            _ => segment.body = self.body()?,
        }
        if marker == START_OF_SCAN {
            segment.scan = self.scan()?;
        }
        Ok(Some(segment))
    }

    /// The marker that must stand here; fill bytes before it are skipped.
    fn marker(&mut self) -> Result<u8, PixelError> {
        let rest = &self.bytes[self.at..];
        if rest.first().is_some_and(|&byte| byte != 0xFF) {
            return Err(PixelError::Damaged("bytes between its segments".into()));
        }
        let fill = rest.iter().take_while(|&&byte| byte == 0xFF).count();
        let marker = *rest.get(fill).ok_or_else(cut)?;
        self.at += fill + 1;
        Ok(marker)
    }

    fn body(&mut self) -> Result<&'a [u8], PixelError> {
        let rest = &self.bytes[self.at..];
        let length = rest.get(..2).ok_or_else(cut)?;
        let length = usize::from(u16::from_be_bytes([length[0], length[1]])).max(2);
        let body = rest.get(2..length).ok_or_else(cut)?;
        self.at += length;
        Ok(body)
    }

    /// Entropy-coded data, up to the first marker that is no restart.
    fn scan(&mut self) -> Result<&'a [u8], PixelError> {
        let rest = &self.bytes[self.at..];
        let is_end = |pair: &[u8]| pair[0] == 0xFF && !matches!(pair[1], 0x00 | 0xFF | 0xD0..=0xD7);
        let length = rest.windows(2).position(is_end).ok_or_else(cut)?;
        self.at += length;
        Ok(&rest[..length])
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = Result<Segment<'a>, PixelError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let step = self.step();
        self.is_over = !matches!(step, Ok(Some(_)));
        step.transpose()
    }
}

fn cut() -> PixelError {
    PixelError::Truncated("no end marker".into())
}

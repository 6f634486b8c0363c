//! Walks the fields of a protobuf message in a file without holding the message in memory.
//!
//! In: a seekable reader and the byte range of a message. Out: its fields one by one, with the place of their payload.
//! A length that points outside the enclosing message is an error; nothing is allocated on a file's word alone.

use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::ops::Range;

/// Why a message could not be walked.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("a field at byte {at} reaches past the end of its message")]
    Overrun { at: u64 },
    #[error("byte {at} starts no protobuf field")]
    NoField { at: u64 },
}

/// One field: its number and what follows the key.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u64,
    /// The whole field in the file, key included.
    pub(super) whole: Range<u64>,
    /// Where the payload stands: behind the length for strings, bytes and messages, behind the key for numbers.
    pub(super) payload: Range<u64>,
}

impl Field {
    pub(super) fn payload_bytes(&self) -> u64 {
        self.payload.end - self.payload.start
    }
}

/// A position in a file, walking forward through one message at a time.
#[derive(Debug)]
pub(super) struct Walker<R> {
    reader: R,
    at: u64,
}

impl<R: Read + Seek> Walker<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, at: u64::MAX }
    }

    /// The size of the whole file.
    pub(super) fn file_bytes(&mut self) -> Result<u64, WireError> {
        self.at = self.reader.seek(SeekFrom::End(0))?;
        Ok(self.at)
    }

    /// The field at the start of `rest`, after which `rest` begins behind it; `None` at the end of the message.
    pub(super) fn next_field(&mut self, rest: &mut Range<u64>) -> Result<Option<Field>, WireError> {
        if rest.start >= rest.end {
            return Ok(None);
        }
        let at = rest.start;
        self.move_to(at)?;
        let key = self.varint(at, rest.end)?;
        let payload = self.payload(at, key & 7, rest.end)?;
        rest.start = payload.end;
        Ok(Some(Field { number: key >> 3, whole: at..payload.end, payload }))
    }

    /// The bytes of a range that [`Walker::next_field`] has returned, and so is known to lie inside the file.
    pub(super) fn read(&mut self, range: &Range<u64>) -> Result<Vec<u8>, WireError> {
        let bytes = usize::try_from(range.end - range.start).map_err(|_| WireError::Overrun { at: range.start })?;
        let mut buffer = vec![0; bytes];
        self.read_into(range.start, &mut buffer)?;
        Ok(buffer)
    }

    /// Fills `buffer` with the bytes from `start` on.
    pub(super) fn read_into(&mut self, start: u64, buffer: &mut [u8]) -> Result<(), WireError> {
        self.move_to(start)?;
        // The position is lost if this fails half-way; the next call then seeks.
        self.at = u64::MAX;
        self.reader.read_exact(buffer)?;
        self.at = start + buffer.len() as u64;
        Ok(())
    }

    fn payload(&mut self, at: u64, kind: u64, end: u64) -> Result<Range<u64>, WireError> {
        let (start, bytes) = match kind {
            0 => {
                let start = self.at;
                self.varint(at, end)?;
                return Ok(start..self.at);
            }
            1 => (self.at, 8),
            2 => {
                let bytes = self.varint(at, end)?;
                (self.at, bytes)
            }
            5 => (self.at, 4),
            _ => return Err(WireError::NoField { at }),
        };
        match start.checked_add(bytes) {
            Some(stop) if stop <= end => Ok(start..stop),
            _ => Err(WireError::Overrun { at }),
        }
    }

    fn varint(&mut self, field_at: u64, end: u64) -> Result<u64, WireError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            if self.at >= end {
                return Err(WireError::Overrun { at: field_at });
            }
            let mut byte = [0_u8];
            self.reader.read_exact(&mut byte)?;
            self.at += 1;
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(WireError::NoField { at: field_at })
    }

    fn move_to(&mut self, to: u64) -> Result<(), WireError> {
        if self.at != to {
            self.at = self.reader.seek(SeekFrom::Start(to))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn walk(bytes: &[u8]) -> Result<Vec<(u64, Vec<u8>)>, WireError> {
        let mut walker = Walker::new(Cursor::new(bytes));
        let mut rest = 0..walker.file_bytes()?;
        let mut fields = Vec::new();
        while let Some(field) = walker.next_field(&mut rest)? {
            fields.push((field.number, walker.read(&field.payload)?));
        }
        Ok(fields)
    }

    #[test]
    fn fields_of_each_kind_come_out_in_order() {
        let bytes = [0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x1d, 1, 2, 3, 4];

        let fields = walk(&bytes).unwrap();

        assert_eq!(fields, [(1, vec![0x96, 1]), (2, b"hi".to_vec()), (3, vec![1, 2, 3, 4])]);
    }

    #[test]
    fn a_length_past_the_end_is_refused_before_anything_is_allocated() {
        let bytes = [0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0];

        assert!(matches!(walk(&bytes), Err(WireError::Overrun { at: 0 })));
    }

    #[test]
    fn group_markers_and_endless_numbers_are_refused() {
        assert!(matches!(walk(&[0x0b]), Err(WireError::NoField { at: 0 })));
        assert!(matches!(walk(&[0xff; 12]), Err(WireError::NoField { at: 0 })));
    }
}

//! Takes a stream of bytes apart into lines of bounded length.
//!
//! In: reads of any size. Out: lines without their end. A line that is too long is dropped as it arrives, and told once.

use std::io;
use std::io::Read;

/// Longest line: gpsd's own limit for a report is a sixth of it.
pub(super) const LINE_BYTES_MAX: usize = 65_536;

/// Bytes taken by one read.
const READ_BYTES: usize = 8_192;

/// One line, or what stood in its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Its bytes.
    Whole(Vec<u8>),
    /// It was longer than [`LINE_BYTES_MAX`].
    TooLong,
}

/// The bytes that are not a line yet.
#[derive(Debug, Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// Bytes at the front that hold no line end.
    searched: usize,
    is_skipping: bool,
}

impl Lines {
    /// The next line that is already here. Empty lines are passed over.
    pub(super) fn pop(&mut self) -> Option<Line> {
        loop {
            let rest = self.bytes.get(self.searched..).unwrap_or_default();
            let Some(offset) = rest.iter().position(|&byte| byte == b'\n') else {
                return self.wait();
            };
            let mut line: Vec<u8> = self.bytes.drain(..=self.searched + offset).collect();
            self.searched = 0;
            if std::mem::take(&mut self.is_skipping) {
                continue;
            }
            line.truncate(line.trim_ascii_end().len());
            match line.len() {
                0 => {}
                length if length > LINE_BYTES_MAX => return Some(Line::TooLong),
                _ => return Some(Line::Whole(line)),
            }
        }
    }

    /// No line end is here: keeps what there is, unless it is too much already.
    fn wait(&mut self) -> Option<Line> {
        self.searched = self.bytes.len();
        if self.searched <= LINE_BYTES_MAX && !self.is_skipping {
            return None;
        }
        self.bytes.clear();
        self.searched = 0;
        (!std::mem::replace(&mut self.is_skipping, true)).then_some(Line::TooLong)
    }

    /// Reads once. `Ok(0)` is the end of the stream.
    pub(super) fn fill(&mut self, stream: &mut impl Read) -> io::Result<usize> {
        let held = self.bytes.len();
        self.bytes.resize(held + READ_BYTES, 0);
        let read = stream.read(self.bytes.get_mut(held..).unwrap_or_default());
        self.bytes.truncate(held + read.as_ref().map_or(0, |&count| count));
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_all(pieces: &[&[u8]]) -> Vec<Line> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                lines.fill(&mut rest).unwrap();
                found.extend(std::iter::from_fn(|| lines.pop()));
            }
        }
        found
    }

    #[test]
    fn a_line_that_is_too_long_is_told_once_and_the_next_one_is_read() {
        let long = vec![b'x'; 3 * LINE_BYTES_MAX];

        assert_eq!(read_all(&[&long, b"y\nnext\r\n"]), [Line::TooLong, Line::Whole(b"next".to_vec())]);
    }

    #[test]
    fn an_endless_line_takes_no_more_memory_than_the_longest_line() {
        let mut lines = Lines::default();
        for _ in 0..1_000 {
            lines.fill(&mut [b'x'; READ_BYTES].as_slice()).unwrap();
            lines.pop();
            assert!(lines.bytes.len() <= LINE_BYTES_MAX + READ_BYTES);
        }
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_they_arrive(text in "[a-c\r\n]{0,60}", cut in 0_usize..60) {
            let cut = cut.min(text.len());
            let (front, back) = text.as_bytes().split_at(cut);

            prop_assert_eq!(read_all(&[front, back]), read_all(&[text.as_bytes()]));
        }
    }
}

//! Lines of a file of any content, one at a time, each of bounded length.

use std::io;
use std::io::BufRead;

/// Longest line that is kept; a longer one is passed over without being held in memory.
pub(super) const LINE_BYTES_MAX: usize = 64 * 1024;

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Counted from 1.
    pub(super) number: u64,
    /// Its bytes; `None` when it is longer than [`LINE_BYTES_MAX`].
    pub(super) bytes: Option<Vec<u8>>,
}

/// Reads lines that end in `\n` or `\r\n`; the last may lack its end.
pub(super) struct Lines<R> {
    reader: R,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, number: 0 }
    }

    /// The next line, or `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        let mut bytes = Some(Vec::new());
        let mut any = false;
        loop {
            let buffer = match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if buffer.is_empty() {
                break;
            }
            any = true;
            let end = buffer.iter().position(|&byte| byte == b'\n');
            let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
            bytes = bytes.filter(|held| held.len() + part.len() <= LINE_BYTES_MAX);
            if let Some(held) = &mut bytes {
                held.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        if !any {
            return Ok(None);
        }
        self.number += 1;
        if let Some(held) = &mut bytes {
            if held.last() == Some(&b'\r') {
                held.pop();
            }
            if self.number == 1 && held.starts_with(b"\xEF\xBB\xBF") {
                held.drain(..3);
            }
        }
        Ok(Some(Line { number: self.number, bytes }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_any_end_and_length_come_one_by_one() {
        let mut text = b"\xEF\xBB\xBFone\r\n\ntwo\n".to_vec();
        text.extend(vec![b'x'; 2 * LINE_BYTES_MAX]);
        text.extend(b"\nlast");
        let mut lines = Lines::new(io::BufReader::with_capacity(7, &text[..]));

        let found: Vec<_> = std::iter::from_fn(|| lines.next().unwrap()).map(|line| line.bytes).collect();

        let expected = [Some("one"), Some(""), Some("two"), None, Some("last")];
        assert_eq!(found, expected.map(|line| line.map(|line| line.as_bytes().to_vec())));
    }
}

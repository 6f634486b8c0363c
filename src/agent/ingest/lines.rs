//! Lines of bounded length.
//!
//! In: a reader of bytes. Out: one line at a time without its end; one that is too long is skipped without being kept.

use std::io::BufRead;

/// What came next. Lengths are in bytes read, line ends included.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextLine {
    /// A line; it stands in the buffer.
    Line(u64),
    /// A line beyond the bound; it was skipped.
    TooLong(u64),
    /// Nothing more comes.
    End,
}

/// Reads the next line into `buffer`.
pub(super) fn next(input: &mut dyn BufRead, buffer: &mut Vec<u8>, bytes_max: usize) -> std::io::Result<NextLine> {
    buffer.clear();
    let mut length: u64 = 0;
    loop {
        let piece = match input.fill_buf() {
            Ok(piece) => piece,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if piece.is_empty() {
            break;
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(piece.len(), |end| end + 1);
        let text = &piece[..end.unwrap_or(piece.len())];
        // One byte beyond the bound is enough to know.
        let room = (bytes_max + 1).saturating_sub(buffer.len());
        buffer.extend_from_slice(&text[..text.len().min(room)]);
        input.consume(used);
        length += used as u64;
        if end.is_some() {
            break;
        }
    }
    Ok(match length {
        0 => NextLine::End,
        _ if buffer.len() > bytes_max => NextLine::TooLong(length),
        _ => NextLine::Line(length),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_the_bytes_arrive() {
        for capacity in 1..8 {
            let mut input = std::io::BufReader::with_capacity(capacity, &b"ab\n\nabcdef\nabc"[..]);
            let (mut buffer, mut found) = (Vec::new(), Vec::new());
            loop {
                let line = next(&mut input, &mut buffer, 3).unwrap();
                if line == NextLine::End {
                    break;
                }
                found.push((line, String::from_utf8(buffer.clone()).unwrap()));
            }
            let expected = [
                (NextLine::Line(3), "ab".to_owned()),
                (NextLine::Line(1), String::new()),
                (NextLine::TooLong(7), "abcd".to_owned()),
                (NextLine::Line(3), "abc".to_owned()),
            ];
            assert_eq!(found, expected, "{capacity}");
        }
    }
}

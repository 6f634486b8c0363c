//! The lines of a `.jsonl` file of a session, in order of their `at_ms`.
//!
//! In: a file whose lines say when they were captured. Out: each line's record, or what is wrong with
//! the line. A line up to two seconds late is taken as captured with the one before it. Of two
//! neighbours further out of order, the one that does not fit the line before both is set aside, so
//! that one wrong time does not cost the rest of the file. Never: more than two lines in memory.

use super::lines::Line;
use super::lines::Lines;
use super::manifest::OFFSET_MS_MAX;
use super::problems::ProblemKind;
use serde_json::Value;
use std::fs::File;
use std::io::BufReader;

/// Lines may be this late without being set aside.
const LATE_MS_MAX: i64 = 2_000;

/// One line of the file.
#[derive(Debug)]
pub(super) struct TimedLine {
    /// When it was captured; of a line without a time that counts, when the one before it was.
    pub(super) at_ms: i64,
    /// The line's number and its JSON, or what is wrong with it.
    pub(super) record: Result<(u64, Value), BadLine>,
}

/// A line that is set aside.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadLine {
    /// What kind of problem it is.
    pub(super) kind: ProblemKind,
    /// Which line and why, without its content.
    pub(super) detail: String,
}

impl BadLine {
    pub(super) fn new(number: u64, what: &str) -> Self {
        Self { kind: ProblemKind::BadLine, detail: format!("line {number} is left out: {what}") }
    }
}

enum Parsed {
    Good(u64, i64, Value),
    Bad(BadLine),
}

/// Reads a file of timed lines.
pub(super) struct TimedLines {
    lines: Lines<BufReader<File>>,
    /// The line behind the one that is handed out next.
    ahead: Option<Parsed>,
    last_ms: i64,
    is_over: bool,
}

impl TimedLines {
    pub(super) fn new(file: File) -> Self {
        Self { lines: Lines::new(BufReader::new(file)), ahead: None, last_ms: 0, is_over: false }
    }

    /// The next line, or `None` at the end.
    pub(super) fn next(&mut self) -> Option<TimedLine> {
        let line = self.ahead.take().or_else(|| self.parse_next())?;
        let (number, at_ms, value) = match line {
            Parsed::Good(number, at_ms, value) => (number, at_ms, value),
            Parsed::Bad(bad) => return Some(TimedLine { at_ms: self.last_ms, record: Err(bad) }),
        };
        self.ahead = self.parse_next();
        if let Some(Parsed::Good(_, next_ms, _)) = self.ahead
            && at_ms > next_ms.saturating_add(LATE_MS_MAX)
            && next_ms >= self.last_ms
        {
            let detail = format!("line {number} is left out: its at_ms is far ahead of the line behind it");
            let bad = BadLine { kind: ProblemKind::LateLine, detail };
            return Some(TimedLine { at_ms: self.last_ms, record: Err(bad) });
        }
        if at_ms.saturating_add(LATE_MS_MAX) < self.last_ms {
            let late = self.last_ms - at_ms;
            let detail = format!("line {number} is left out: it is {late} ms behind the line before it");
            let bad = BadLine { kind: ProblemKind::LateLine, detail };
            return Some(TimedLine { at_ms: self.last_ms, record: Err(bad) });
        }
        self.last_ms = self.last_ms.max(at_ms);
        Some(TimedLine { at_ms: self.last_ms, record: Ok((number, value)) })
    }

    /// Reads on to the next line that is not blank.
    fn parse_next(&mut self) -> Option<Parsed> {
        while !self.is_over {
            match self.lines.next() {
                Ok(Some(Line { bytes: Some(bytes), .. })) if bytes.iter().all(u8::is_ascii_whitespace) => {}
                Ok(Some(line)) => return Some(parse(&line)),
                Ok(None) => self.is_over = true,
                Err(error) => {
                    self.is_over = true;
                    let detail = format!("the rest is left out: it cannot be read ({error})");
                    return Some(Parsed::Bad(BadLine { kind: ProblemKind::TruncatedFile, detail }));
                }
            }
        }
        None
    }
}

fn parse(line: &Line) -> Parsed {
    let number = line.number;
    let bad = |what: &str| Parsed::Bad(BadLine::new(number, what));
    let Some(bytes) = &line.bytes else { return bad("it is longer than 64 KiB") };
    let value = match serde_json::from_slice::<Value>(bytes) {
        Ok(value @ Value::Object(_)) => value,
        Ok(_) => return bad("it is no JSON object"),
        Err(error) => return bad(&format!("it is no JSON ({error})")),
    };
    match value.get("at_ms").and_then(Value::as_i64) {
        Some(at_ms) if (0..=OFFSET_MS_MAX).contains(&at_ms) => Parsed::Good(number, at_ms, value),
        Some(_) => bad("its at_ms is not between 0 and a year"),
        None => bad("it has no at_ms in whole milliseconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Seek as _;
    use std::io::Write as _;

    fn read(text: &str) -> Vec<(i64, bool)> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.rewind().unwrap();
        let mut lines = TimedLines::new(file);
        std::iter::from_fn(|| lines.next()).map(|line| (line.at_ms, line.record.is_ok())).collect()
    }

    fn at(times: &[i64]) -> String {
        times.iter().map(|at_ms| format!("{{\"at_ms\":{at_ms}}}\n")).collect()
    }

    #[test]
    fn a_line_that_is_a_little_late_is_kept() {
        assert_eq!(read(&at(&[0, 1_000, 900, 2_000])), [(0, true), (1_000, true), (1_000, true), (2_000, true)]);
    }

    #[test]
    fn one_time_far_ahead_costs_one_line() {
        let found = read(&at(&[0, 900_000, 1_000, 2_000]));

        assert_eq!(found, [(0, true), (0, false), (1_000, true), (2_000, true)]);
    }

    #[test]
    fn one_time_far_behind_costs_one_line() {
        let found = read(&at(&[0, 10_000, 11_000, 5, 12_000]));

        assert_eq!(found, [(0, true), (10_000, true), (11_000, true), (11_000, false), (12_000, true)]);
    }

    #[test]
    fn lines_that_are_no_records_are_told_one_by_one() {
        let found = read("{\"at_ms\":5}\n\nrubbish\n[1]\n{}\n{\"at_ms\":-1}\n{\"at_ms\":1.5}\n{\"at_ms\":6}");

        assert_eq!(found, [(5, true), (5, false), (5, false), (5, false), (5, false), (5, false), (6, true)]);
    }
}

//! Lines that other programs hand in, on their way into the store: `percept ingest`, `POST /v1/ingest` and MCP.
//!
//! ```text
//!  lines ─► [feed]: read, understood, each id once ─► batch ─► [Sink] ─► one commit ─► a report for each line
//!                                                             ├ [Intake]: this process is the writer
//!                                                             └ `Remote` in cli/ingest.rs: the running agent is
//! ```
//!
//! In: bytes. Out: [`LineReport`]s, after the commit. One bad line never stops the rest. Memory is bounded by one line, one
//! batch and the last [`SEEN_MAX`] ids. Never: waits for more input while whole lines are uncommitted, so a pipe may stay
//! open for days.

mod alone;
mod intake;
mod lines;
mod seen;

pub use alone::alone;
pub use intake::Intake;

use crate::agent::ingest::lines::NextLine;
use crate::agent::ingest::seen::Seen;
use crate::domain::id::EpisodeId;
use crate::episodes::handed_in::HandedIn;
use crate::episodes::handed_in::LINE_BYTES_MAX;
use crate::memory::writer::STORE_ROWS_MAX;
use anyhow::Context as _;
use std::io::BufReader;
use std::io::Read;

/// Lines that are committed together: one fsync for so many.
pub const BATCH_LINES_MAX: usize = STORE_ROWS_MAX;

/// Bytes of the lines that are committed together; one line may be longer than this.
pub const BATCH_BYTES_MAX: usize = 1 << 20;

/// Greatest body of `POST /v1/ingest`, in bytes: a batch, and one line as long as lines may be.
pub const BODY_BYTES_MAX: usize = BATCH_BYTES_MAX + LINE_BYTES_MAX + 1;

/// Most lines of one `POST /v1/ingest`: the agent's loop does nothing else while it stores them.
pub const BODY_LINES_MAX: usize = STORE_ROWS_MAX;

/// Ids of which a second line with other content is noticed; older ones are forgotten, and such a line then updates its
/// episode. About 20 MiB.
pub const SEEN_MAX: usize = 200_000;

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is a new episode.
    New,
    /// Its episode was there with other content.
    Updated,
    /// Its episode was there and the same.
    Known,
    /// Its episode was forgotten or has expired, and stays so.
    Forgotten,
    /// It is wrong; `reason` says how.
    Refused,
}

/// One line's fate.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LineReport {
    /// Counted from 1, empty lines included.
    pub line: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// The episode, unless the line was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<EpisodeId>,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl LineReport {
    /// A refused line.
    #[must_use]
    pub fn refused(line: u64, reason: impl Into<String>) -> Self {
        Self { line, outcome: Outcome::Refused, id: None, reason: Some(reason.into()) }
    }
}

/// A line that is understood and waits for its batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Counted from 1.
    pub number: u64,
    /// As it came.
    pub bytes: Vec<u8>,
    /// What it says.
    pub handed_in: HandedIn,
}

/// Where batches go.
pub trait Sink {
    /// Commits a batch and reports each of its lines.
    ///
    /// # Errors
    /// When none of it could be committed; handing it in again later is right.
    fn take(&mut self, batch: Vec<Line>) -> anyhow::Result<Vec<LineReport>>;
}

/// Bytes that are read ahead.
const READ_AHEAD_BYTES: usize = 256 << 10;

/// Takes in every line of `input`. `tell` gets each line's report, after its commit, and how many bytes were read so far.
///
/// # Errors
/// When the input cannot be read or the store cannot take a batch; what was told before is committed.
pub fn feed(input: impl Read, sink: &mut dyn Sink, tell: &mut dyn FnMut(&LineReport, u64)) -> anyhow::Result<()> {
    let mut feed = Feed { sink, tell, seen: Seen::new(SEEN_MAX), batch: Vec::new(), batch_bytes: 0, read: 0 };
    let mut input = BufReader::with_capacity(READ_AHEAD_BYTES, input);
    let mut number = 0;
    let mut bytes = Vec::new();
    loop {
        let next =
            lines::next(&mut input, &mut bytes, LINE_BYTES_MAX).with_context(|| format!("read line {}", number + 1))?;
        number += 1;
        match next {
            NextLine::End => break,
            NextLine::Line(length) => {
                feed.read += length;
                feed.line(number, &bytes)?;
            }
            NextLine::TooLong(length) => {
                feed.read += length;
                let reason = format!("the line: {length} bytes are too many; the most is {LINE_BYTES_MAX}");
                feed.refuse(number, reason)?;
            }
        }
        if input.buffer().is_empty() {
            feed.flush()?;
        }
    }
    feed.flush()
}

struct Feed<'a> {
    sink: &'a mut dyn Sink,
    tell: &'a mut dyn FnMut(&LineReport, u64),
    seen: Seen,
    batch: Vec<Line>,
    batch_bytes: usize,
    read: u64,
}

impl Feed<'_> {
    fn line(&mut self, number: u64, bytes: &[u8]) -> anyhow::Result<()> {
        // A byte order mark is what some editors put before the first line.
        let bytes = if number == 1 { bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes) } else { bytes };
        let bytes = bytes.trim_ascii();
        if bytes.is_empty() {
            return Ok(());
        }
        let handed_in = match HandedIn::parse(bytes) {
            Ok(handed_in) => handed_in,
            Err(error) => return self.refuse(number, error.to_string()),
        };
        if let Some(earlier) = self.seen.conflict(&handed_in, number) {
            let id = handed_in.external_id;
            let reason = format!("id: {id:?} stands in line {earlier} with other content", id = id.as_str());
            return self.refuse(number, reason);
        }
        self.batch_bytes += bytes.len();
        self.batch.push(Line { number, bytes: bytes.to_vec(), handed_in });
        if self.batch.len() >= BATCH_LINES_MAX || self.batch_bytes >= BATCH_BYTES_MAX { self.flush() } else { Ok(()) }
    }

    /// Reports come in the order of the lines: those before this one are committed first.
    fn refuse(&mut self, number: u64, reason: String) -> anyhow::Result<()> {
        self.flush()?;
        (self.tell)(&LineReport::refused(number, reason), self.read);
        Ok(())
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.batch_bytes = 0;
        let (Some(first), Some(last)) = (batch.first(), batch.last()) else { return Ok(()) };
        let (first, last) = (first.number, last.number);
        let reports = self.sink.take(batch).with_context(|| format!("store lines {first} to {last}"))?;
        for report in &reports {
            (self.tell)(report, self.read);
        }
        Ok(())
    }
}

/// How many lines met which fate.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// New episodes.
    pub new: u64,
    /// Episodes that were there and the same.
    pub known: u64,
    /// Episodes that were there with other content.
    pub updated: u64,
    /// Lines whose episode was forgotten.
    pub forgotten: u64,
    /// Wrong lines.
    pub refused: u64,
}

impl Summary {
    /// Counts one line.
    pub fn count(&mut self, outcome: Outcome) {
        let counter = match outcome {
            Outcome::New => &mut self.new,
            Outcome::Known => &mut self.known,
            Outcome::Updated => &mut self.updated,
            Outcome::Forgotten => &mut self.forgotten,
            Outcome::Refused => &mut self.refused,
        };
        *counter += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes everything, in batches it remembers.
    #[derive(Default)]
    struct Taker(Vec<Vec<u64>>);

    impl Sink for Taker {
        fn take(&mut self, batch: Vec<Line>) -> anyhow::Result<Vec<LineReport>> {
            self.0.push(batch.iter().map(|line| line.number).collect());
            let report = |line: &Line| LineReport { line: line.number, outcome: Outcome::New, id: None, reason: None };
            Ok(batch.iter().map(report).collect())
        }
    }

    type Told = Vec<(u64, Outcome, String)>;

    fn fed(text: &str) -> (Told, Vec<Vec<u64>>) {
        let (mut sink, mut told) = (Taker::default(), Vec::new());
        let mut tell = |report: &LineReport, _: u64| {
            told.push((report.line, report.outcome, report.reason.clone().unwrap_or_default()));
        };
        feed(text.as_bytes(), &mut sink, &mut tell).unwrap();
        (told, sink.0)
    }

    fn note(id: &str, content: &str) -> String {
        format!("{{\"id\": \"{id}\", \"tool_name\": \"note\", \"content\": \"{content}\", \"timestamp\": 5}}\n")
    }

    #[test]
    fn bad_lines_are_told_by_number_and_the_rest_goes_in_order() {
        let text = format!("\u{feff}{}\r\n\n{{broken\n{}{}", note("a", "x"), note("b", "y"), note("c", "z").trim_end());

        let (told, batches) = fed(&text);

        let outcomes: Vec<_> = told.iter().map(|(line, outcome, _)| (*line, *outcome)).collect();
        assert_eq!(outcomes, [(1, Outcome::New), (4, Outcome::Refused), (5, Outcome::New), (6, Outcome::New)]);
        assert!(told[1].2.starts_with("it is no JSON object: key must be a string at column 2"), "{}", told[1].2);
        assert_eq!(batches, [vec![1], vec![5, 6]]);
    }

    #[test]
    fn a_second_line_of_an_id_passes_only_with_the_same_content() {
        let (told, batches) = fed(&[note("a", "x"), note("a", "x"), note("a", "y")].concat());

        assert_eq!(batches, [[1, 2]]);
        assert_eq!((told[2].0, told[2].1), (3, Outcome::Refused));
        assert_eq!(told[2].2, "id: \"a\" stands in line 1 with other content");
    }

    #[test]
    fn a_batch_is_bounded_in_lines_and_in_bytes() {
        let many: String = (0..300).map(|number| note(&number.to_string(), "x")).collect();
        let long: String = (0..5).map(|number| note(&number.to_string(), &"x".repeat(250_000))).collect();

        let lengths = |batches: Vec<Vec<u64>>| batches.iter().map(Vec::len).collect::<Vec<_>>();

        assert_eq!(lengths(fed(&many).1), [256, 44]);
        assert!(fed(&long).1.iter().all(|batch| batch.len() <= 5));
    }

    #[test]
    fn a_line_without_end_is_refused_and_the_next_is_read() {
        let text = format!("{}\n{}", "x".repeat(LINE_BYTES_MAX + 10), note("a", "x"));

        let (told, batches) = fed(&text);

        assert!(told[0].2.contains("the most is 4194304"), "{}", told[0].2);
        assert_eq!(batches, [[2]]);
    }
}

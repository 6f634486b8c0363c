//! The ids of the lines that came before, so that two different lines under one id are noticed.
//!
//! In: lines. Out: the number of an earlier line with the same id and other content. Bounded: the oldest go first.

use crate::domain::id::DeviceId;
use crate::episodes::handed_in::HandedIn;
use std::collections::BTreeMap;
use std::collections::VecDeque;

/// The first half of a BLAKE3 hash: two of 200,000 meet by chance once in 10^28 files.
type Short = [u8; 16];

/// What was seen.
pub(super) struct Seen {
    lines: BTreeMap<Short, (Short, u64)>,
    order: VecDeque<Short>,
    length_max: usize,
}

impl Seen {
    pub(super) fn new(length_max: usize) -> Self {
        Self { lines: BTreeMap::new(), order: VecDeque::new(), length_max }
    }

    /// The earlier line that says something else under this id; else notes this one.
    pub(super) fn conflict(&mut self, handed_in: &HandedIn, line: u64) -> Option<u64> {
        let id = short(handed_in.external_id.as_str().as_bytes());
        let record = handed_in.clone().record(&DeviceId::new(""));
        let content = short(&serde_json::to_vec(&record).unwrap_or_default());
        if let Some((known, earlier)) = self.lines.get(&id) {
            return (*known != content).then_some(*earlier);
        }
        self.lines.insert(id, (content, line));
        self.order.push_back(id);
        if self.order.len() > self.length_max
            && let Some(oldest) = self.order.pop_front()
        {
            self.lines.remove(&oldest);
        }
        None
    }
}

fn short(bytes: &[u8]) -> Short {
    let mut half = Short::default();
    half.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
    half
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_ids_are_forgotten_first() {
        let mut seen = Seen::new(2);
        let line = |id: &str, content: &str| {
            let text =
                format!("{{\"id\": \"{id}\", \"tool_name\": \"t\", \"content\": \"{content}\", \"timestamp\": 1}}");
            HandedIn::parse(text.as_bytes()).unwrap()
        };

        let conflicts = [("a", "x"), ("b", "x"), ("a", "y"), ("c", "x"), ("a", "y"), ("c", "y")]
            .into_iter()
            .zip(1..)
            .map(|((id, content), number)| seen.conflict(&line(id, content), number))
            .collect::<Vec<_>>();

        assert_eq!(conflicts, [None, None, Some(1), None, None, Some(4)]);
    }
}

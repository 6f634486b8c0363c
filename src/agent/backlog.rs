//! Products that wait while the store cannot take them: the disk is full, or another program holds the file.
//!
//! In: products in order. Out: the same, once the store takes rows again. Full: the least valuable goes (coverage first,
//! then the lowest importance, the oldest of those) and is counted. Never: I/O.

use crate::agent::pipeline::Product;
use std::collections::VecDeque;

/// Products that wait at most: hours of an ordinary day.
pub const WAITING_MAX: usize = 512;

/// Waiting products.
#[derive(Debug, Default)]
pub struct Backlog {
    waiting: VecDeque<Product>,
    dropped: u64,
}

impl Backlog {
    /// Adds one at the end.
    pub fn push(&mut self, product: Product) {
        self.waiting.push_back(product);
        if self.waiting.len() > WAITING_MAX {
            let least = self.waiting.iter().enumerate().min_by_key(|(_, product)| value(product)).map(|(at, _)| at);
            self.waiting.remove(least.unwrap_or(0));
            self.dropped += 1;
        }
    }

    /// Takes the first.
    pub fn pop(&mut self) -> Option<Product> {
        self.waiting.pop_front()
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many had to go since the start.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// A correction of the clock concerns every row: it is never dropped before one.
fn value(product: &Product) -> u8 {
    match product {
        Product::Coverage(_) => 0,
        Product::Episode(draft) | Product::Moment(draft, _) => 1 + draft.modality.default_importance(),
        Product::Correction(_) => u8::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::coverage::Coverage;
    use crate::domain::coverage::CoverageReason;
    use crate::domain::coverage::CoverageState;
    use crate::domain::episode::Draft;
    use crate::domain::episode::Metadata;
    use crate::domain::id::SensorKind;
    use crate::domain::id::SourceId;
    use crate::domain::modality::Modality;
    use crate::domain::time::ClockQuality;
    use crate::domain::time::Stamp;
    use crate::domain::time::Timestamp;

    #[test]
    fn what_is_worth_least_goes_first_and_the_order_stays() {
        let mut backlog = Backlog::default();
        backlog.push(episode(Modality::Social, 0));
        backlog.push(coverage());
        for ms in 1..i64::try_from(WAITING_MAX).unwrap() {
            backlog.push(episode(Modality::Audio, ms));
        }
        backlog.push(episode(Modality::Visual, 9_999));

        assert_eq!((backlog.len(), backlog.dropped()), (WAITING_MAX, 2));
        assert_eq!(backlog.pop(), Some(episode(Modality::Social, 0)));
        assert_eq!(backlog.pop(), Some(episode(Modality::Audio, 2)));
    }

    fn at(ms: i64) -> Stamp {
        Stamp { monotonic_ms: ms, utc: Timestamp::from_millis(ms), quality: ClockQuality::Network }
    }

    fn coverage() -> Product {
        let source = SourceId::of(SensorKind::Gps, "gpsd");
        let (state, reason) = (CoverageState::Blind, CoverageReason::NoFix);
        Product::Coverage(Coverage { source, from: at(0), to: at(1), state, reason, detail: None })
    }

    fn episode(modality: Modality, ms: i64) -> Product {
        Product::Episode(Box::new(Draft {
            modality,
            source: SourceId::of(SensorKind::Microphone, "x"),
            start: at(ms),
            end: at(ms),
            ordinal: 0,
            tool_name: "audio_capture",
            content: String::new(),
            metadata: Metadata::new(),
            embeddings: Vec::new(),
            facts: Vec::new(),
            media: Vec::new(),
        }))
    }
}

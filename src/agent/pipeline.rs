//! The stages in a row: readings in, products out.
//!
//! ```text
//!  reading ─► clock ─► perception of its sensor ─► builder of its modality ─► products
//!                                │                        │
//!                                └──── surroundings ──────┴── moments
//! ```
//!
//! In: readings of all sensors in order of capture. Out: [`Product`]s, in the order they came about.
//! The pipeline decides nothing itself and touches no file: the same readings give the same products.

use crate::agent::clock::BootClock;
use crate::agent::clock::Correction;
use crate::agent::moment_maker::MomentMaker;
use crate::agent::senses::Senses;
use crate::config::Config;
use crate::domain::coverage::Coverage;
use crate::domain::coverage::CoverageState;
use crate::domain::episode::Draft;
use crate::domain::id::SourceId;
use crate::domain::reading::Loss;
use crate::domain::reading::Payload;
use crate::domain::reading::Reading;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;
use crate::episodes::coverage::CoverageLog;
use crate::episodes::moment::Moment;
use std::collections::BTreeMap;
use std::collections::VecDeque;

/// Something for the store.
#[derive(Debug, Clone, PartialEq)]
pub enum Product {
    /// An episode, new or updated.
    Episode(Box<Draft>),
    /// A moment: its row and what its document says.
    Moment(Box<Draft>, Box<Moment>),
    /// A blind interval.
    Coverage(Coverage),
    /// Rows of this boot before that moment have wrong times.
    Correction(Correction),
}

/// All stages of one run or session.
pub struct Pipeline {
    clock: BootClock,
    senses: Senses,
    moments: MomentMaker,
    coverage: CoverageLog,
    losses: BTreeMap<SourceId, (Stamp, Loss)>,
    now: Option<Stamp>,
    products: VecDeque<Product>,
    readings: BTreeMap<SourceId, u64>,
}

impl Pipeline {
    /// Stages that have seen nothing yet. No wall-clock time before `earliest` is believed.
    #[must_use]
    pub fn new(config: &Config, senses: Senses, earliest: Timestamp) -> Self {
        Self {
            clock: BootClock::new(earliest),
            moments: MomentMaker::new(config.moments, senses.clip_model()),
            senses,
            coverage: CoverageLog::default(),
            losses: BTreeMap::new(),
            now: None,
            products: VecDeque::new(),
            readings: BTreeMap::new(),
        }
    }

    /// Takes the next reading.
    pub fn handle_reading(&mut self, mut reading: Reading) {
        let captured = reading.captured_at;
        self.let_time_pass(captured);
        let (stamp, correction) = self.clock.handle_stamp(captured);
        self.products.extend(correction.map(Product::Correction));
        reading.captured_at = stamp;
        self.reach(stamp);
        *self.readings.entry(reading.source.clone()).or_default() += 1;
        self.note_loss(&reading);
        self.senses.handle_reading(&reading);
        self.collect(captured);
    }

    /// Lets time pass up to `captured` (as the device's own clock stamps it) without a reading: ends what is due.
    pub fn handle_timeout(&mut self, captured: Stamp) {
        self.let_time_pass(captured);
        let (stamp, correction) = self.clock.handle_stamp(captured);
        self.products.extend(correction.map(Product::Correction));
        self.reach(stamp);
        self.collect(captured);
    }

    /// A loss is told late, from the last capture on: the present stays where it was.
    fn reach(&mut self, stamp: Stamp) {
        if self.now.is_none_or(|now| now.monotonic_ms <= stamp.monotonic_ms) {
            self.now = Some(stamp);
        }
    }

    /// Makes a moment of what is noticed at `captured` and of what the user adds.
    pub fn capture(&mut self, captured: Stamp, added: Moment) {
        self.handle_timeout(captured);
        let stamp = self.clock.stamp(captured);
        self.moments.capture(stamp, added);
        self.products.extend(self.moments.poll_product());
    }

    /// The place where the device is staying.
    #[must_use]
    pub fn place(&self) -> Option<&str> {
        self.senses.places.current_place()
    }

    /// Sensors that deliver and whose signal is none, with what is wrong.
    #[must_use]
    pub fn complaints(&self) -> Vec<(SourceId, String)> {
        self.senses.sounds.complaints()
    }

    /// Whether the optional models rest, for heat, charge or backlog.
    pub fn set_resting(&mut self, is_resting: bool) {
        self.senses.sights.set_resting(is_resting);
    }

    /// A stretch in which a sensor delivered less than configured.
    pub fn note_coverage(&mut self, coverage: Coverage) {
        self.coverage.handle(coverage);
    }

    /// Wakes every stage at each moment one of them asked for, up to `until`.
    fn let_time_pass(&mut self, until: Stamp) {
        while let (Some(now), Some(due_ms)) = (self.now, self.poll_timeout()) {
            if due_ms > until.monotonic_ms {
                return;
            }
            let due = now.plus_millis((due_ms - now.monotonic_ms).max(0));
            self.senses.handle_timeout(due);
            self.moments.handle_timeout(due);
            self.now = Some(due);
            self.collect(due);
        }
    }

    fn poll_timeout(&self) -> Option<i64> {
        let due_ms = [self.senses.poll_timeout(), self.moments.poll_timeout()].into_iter().flatten().min()?;
        // A stage that asks for a moment already past is woken at once, and time still moves on.
        Some(self.now.map_or(due_ms, |now| due_ms.max(now.monotonic_ms + 1)))
    }

    /// A loss without a length lasts until the next reading of its source.
    fn note_loss(&mut self, reading: &Reading) {
        if let Some((from, loss)) = self.losses.remove(&reading.source) {
            self.blind(reading.source.clone(), from, reading.captured_at, loss);
        }
        if let Payload::Loss(loss) = &reading.payload {
            match loss.length_ms {
                Some(length_ms) => {
                    let to = reading.captured_at.plus_millis(length_ms);
                    self.blind(reading.source.clone(), reading.captured_at, to, loss.clone());
                }
                None => {
                    self.losses.insert(reading.source.clone(), (reading.captured_at, loss.clone()));
                }
            }
        }
    }

    fn blind(&mut self, source: SourceId, from: Stamp, to: Stamp, loss: Loss) {
        let detail = Some(loss.detail).filter(|detail| !detail.is_empty());
        let state = CoverageState::Blind;
        self.coverage.handle(Coverage { source, from, to, state, reason: loss.reason, detail });
    }

    /// Takes what the stages have ready. `captured` is the present as the device's own clock stamps it.
    fn collect(&mut self, captured: Stamp) {
        if let Some(time) = self.senses.poll_gps_time() {
            self.products.extend(self.clock.handle_gps_time(captured, time).map(Product::Correction));
        }
        while let Some(coverage) = self.senses.poll_coverage() {
            self.coverage.handle(coverage);
        }
        self.moments.notice(&mut self.senses);
        while let Some(draft) = self.senses.poll_draft() {
            self.products.push_back(self.moments.handle_draft(draft));
        }
        self.products.extend(self.moments.poll_product());
        let now_ms = self.now.map_or(0, |now| now.monotonic_ms);
        while let Some(coverage) = self.coverage.poll(now_ms) {
            self.products.push_back(Product::Coverage(coverage));
        }
    }

    /// The next product.
    pub fn poll_product(&mut self) -> Option<Product> {
        self.products.pop_front()
    }

    /// There will be no more readings: closes what is open. `end` is the end of the capture as the device stamped it.
    pub fn finish(&mut self, end: Stamp) {
        self.let_time_pass(end);
        let (end, correction) = self.clock.handle_stamp(end);
        self.products.extend(correction.map(Product::Correction));
        self.now = Some(end);
        for (source, (from, loss)) in std::mem::take(&mut self.losses) {
            self.blind(source, from, end.max(from), loss);
        }
        self.senses.finish(end);
        self.collect(end);
        self.moments.finish();
        self.products.extend(self.moments.poll_product());
        self.products.extend(self.coverage.finish().into_iter().map(Product::Coverage));
    }

    /// Coverage rows begun so far.
    #[must_use]
    pub fn coverage_rows(&self) -> u64 {
        self.coverage.rows()
    }

    /// What a moment stamped by the device's own clock is worth by what is known so far: after a receiver told the time to
    /// a clock that nobody had set, by that.
    #[must_use]
    pub fn stamp(&self, captured: Stamp) -> Stamp {
        self.clock.stamp(captured)
    }

    /// The right time of something stamped earlier.
    #[must_use]
    pub fn corrected(&self, stamp: Stamp) -> Stamp {
        self.clock.corrected(stamp)
    }

    /// Readings taken, by source.
    #[must_use]
    pub fn readings(&self) -> &BTreeMap<SourceId, u64> {
        &self.readings
    }
}

//! Sums up the counts of devices near by: an episode an hour, or sooner when the count has changed for good.
//!
//! In: [`CrowdCount`]s. Out: [`Draft`]s. Never: an episode that only says that nobody was there.

use super::Config;
use super::object;
use super::seconds;
use crate::domain::episode::Draft;
use crate::domain::id::Ordinals;
use crate::domain::id::SourceId;
use crate::domain::modality::Modality;
use crate::domain::observation::presence::CrowdCount;
use crate::domain::time::Stamp;
use std::collections::BTreeMap;
use std::collections::VecDeque;

/// Counts in a row that must differ for the change to be one for good.
const CHANGED_COUNTS: usize = 3;

#[derive(Debug)]
pub(super) struct CrowdWindow {
    max_ms: i64,
    min_ms: i64,
    step_min: u32,
    step_share_min: f64,
    ordinals: Ordinals,
    open: Option<Open>,
    /// The latest counts, which differ from the open window and may begin the next.
    changed: Vec<CrowdCount>,
    drafts: VecDeque<Draft>,
}

/// The counts of one episode, as milliseconds for each number of devices.
#[derive(Debug)]
struct Open {
    source: SourceId,
    from: Stamp,
    to: Stamp,
    counted_ms: BTreeMap<u32, i64>,
}

impl Open {
    fn new(count: &CrowdCount) -> Self {
        let mut open =
            Self { source: count.source.clone(), from: count.from, to: count.to, counted_ms: BTreeMap::new() };
        open.count(count);
        open
    }

    fn count(&mut self, count: &CrowdCount) {
        self.to = count.to;
        *self.counted_ms.entry(count.device_count).or_default() += count.to.millis_since(count.from).max(1);
    }

    /// The number of devices that half of the time there were no more of.
    fn median(&self) -> u32 {
        let half_ms = self.counted_ms.values().sum::<i64>() / 2;
        let mut sum_ms = 0;
        for (device_count, counted_ms) in &self.counted_ms {
            sum_ms += counted_ms;
            if sum_ms > half_ms {
                return *device_count;
            }
        }
        0
    }

    fn length_ms(&self) -> i64 {
        self.to.millis_since(self.from)
    }
}

impl CrowdWindow {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            max_ms: millis(config.crowd_s_max),
            min_ms: millis(config.crowd_s_min),
            step_min: config.crowd_step_min,
            step_share_min: config.crowd_step_share_min,
            ordinals: Ordinals::default(),
            open: None,
            changed: Vec::new(),
            drafts: VecDeque::new(),
        }
    }

    pub(super) fn handle_count(&mut self, count: &CrowdCount) {
        self.handle_timeout(count.from);
        match &self.open {
            Some(open) if self.is_changed(open, count) => {
                self.changed.push(count.clone());
                if self.changed.len() >= CHANGED_COUNTS {
                    self.begin_anew();
                }
            }
            _ => {
                self.join_changed();
                self.join(count);
            }
        }
        if self.latest().is_some_and(|(from, to)| to.millis_since(from) >= self.max_ms) {
            self.close();
        }
    }

    /// Closes the window when no count has followed the last one for longer than the shortest episode.
    pub(super) fn handle_timeout(&mut self, now: Stamp) {
        if self.poll_timeout().is_some_and(|due_ms| now.monotonic_ms >= due_ms) {
            self.close();
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<i64> {
        self.latest().map(|(_, to)| to.monotonic_ms.saturating_add(self.min_ms))
    }

    pub(super) fn poll_draft(&mut self) -> Option<Draft> {
        self.drafts.pop_front()
    }

    pub(super) fn close(&mut self) {
        self.join_changed();
        if let Some(open) = self.open.take() {
            let ordinal = self.ordinals.next(open.from.utc);
            self.drafts.extend(draft(&open, ordinal));
        }
    }

    fn is_changed(&self, open: &Open, count: &CrowdCount) -> bool {
        let median = open.median();
        let step = count.device_count.abs_diff(median);
        open.length_ms() >= self.min_ms
            && step >= self.step_min
            && f64::from(step) >= self.step_share_min * f64::from(median)
    }

    fn begin_anew(&mut self) {
        let changed = std::mem::take(&mut self.changed);
        self.close();
        changed.iter().for_each(|count| self.join(count));
    }

    fn join_changed(&mut self) {
        let changed = std::mem::take(&mut self.changed);
        changed.iter().for_each(|count| self.join(count));
    }

    fn join(&mut self, count: &CrowdCount) {
        match &mut self.open {
            Some(open) => open.count(count),
            None => self.open = Some(Open::new(count)),
        }
    }

    /// Start of the window and end of its latest count.
    fn latest(&self) -> Option<(Stamp, Stamp)> {
        let open = self.open.as_ref()?;
        Some((open.from, self.changed.last().map_or(open.to, |count| count.to)))
    }
}

/// The episode of a window; `None` when there was nothing near in it.
fn draft(open: &Open, ordinal: u32) -> Option<Draft> {
    let device_count_max = *open.counted_ms.keys().max()?;
    let device_count_min = *open.counted_ms.keys().min()?;
    // Half the time alone is not "0 devices near by" when somebody passed.
    let device_count = open.median().max(u32::from(device_count_max > 0));
    let plural = if device_count == 1 { "" } else { "s" };
    (device_count > 0).then(|| Draft {
        modality: Modality::Spatial,
        source: open.source.clone(),
        start: open.from,
        end: open.to,
        ordinal,
        tool_name: "bluetooth_scan",
        content: format!("About {device_count} device{plural} near by"),
        metadata: object([
            ("kind", "crowd".into()),
            ("device_count", device_count.into()),
            ("device_count_min", device_count_min.into()),
            ("device_count_max", device_count_max.into()),
            ("duration_s", seconds(open.length_ms())),
        ]),
        embeddings: Vec::new(),
        facts: Vec::new(),
        media: Vec::new(),
    })
}

/// Seconds of the config as whole milliseconds, at least 1; NaN becomes 1.
fn millis(seconds: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "float casts saturate and send NaN to 0")]
    let millis = (seconds * 1000.0).round() as i64;
    millis.max(1)
}

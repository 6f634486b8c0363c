//! Judges the signs: carry on, save power, or stop; steady enough to act upon.
//!
//! In: [`Signs`] in order, each with its `now`. Out: the [`Assessment`] that holds, and a [`Stretch`] for each
//! interval in which something was wrong. Never: files, the clock.
//!
//! A cause counts at once and ends when it has been gone for `hold_s`; heat and charge must besides come back past a
//! second mark. A critical charge counts when two looks in a row see it: gauges misread, and stopping is for good.

use crate::agent::power::Config;
use crate::agent::power::signs::Signs;
use crate::domain::coverage::Coverage;
use crate::domain::coverage::CoverageReason;
use crate::domain::coverage::CoverageState;
use crate::domain::id::SourceId;
use crate::domain::time::Stamp;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::VecDeque;

/// A charge must rise this many percent above its mark to be well again.
const CHARGE_MARGIN_PCT: u8 = 5;
/// Looks in a row that must see a critical charge.
const CRITICAL_LOOKS: u8 = 2;
/// Longest stretch one row stands for, in milliseconds: a power cut loses no more.
const STRETCH_MS_MAX: i64 = 3_600_000;
/// Finished stretches kept for the caller; beyond it the oldest are dropped. One look finishes two at most.
const STRETCHES_MAX: usize = 64;

/// What is to be done about power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Carry on.
    #[default]
    Normal,
    /// Slow the optional models down.
    Saving,
    /// Finish, and stop cleanly.
    Critical,
}

/// Why power is to be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Too hot.
    Hot,
    /// The board slows its processor down.
    Throttled,
    /// The supply is too weak.
    UnderVoltage,
    /// The battery is low.
    BatteryLow,
    /// The battery is nearly empty.
    BatteryCritical,
}

impl Cause {
    const ALL: [Self; 5] = [Self::Hot, Self::Throttled, Self::UnderVoltage, Self::BatteryLow, Self::BatteryCritical];

    /// What coverage calls it.
    #[must_use]
    pub const fn reason(self) -> CoverageReason {
        match self {
            Self::Hot | Self::Throttled => CoverageReason::Throttled,
            Self::UnderVoltage | Self::BatteryLow | Self::BatteryCritical => CoverageReason::LowPower,
        }
    }

    /// In words, to be joined with others.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Hot => "too hot",
            Self::Throttled => "the board slows its processor down",
            Self::UnderVoltage => "the supply's voltage is too low",
            Self::BatteryLow => "the battery is low",
            Self::BatteryCritical => "the battery is nearly empty",
        }
    }
}

/// What holds at the moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Assessment {
    /// What is to be done.
    pub level: Level,
    /// Why, in a fixed order; empty when all is well.
    pub causes: Vec<Cause>,
}

impl Assessment {
    /// The causes in words, or that there is none.
    #[must_use]
    pub fn words(&self) -> String {
        if self.causes.is_empty() { "power and heat are fine".to_owned() } else { join(&self.causes) }
    }
}

/// An interval in which power had to be saved for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Start.
    pub from: Stamp,
    /// End.
    pub to: Stamp,
    /// [`CoverageReason::Throttled`] or [`CoverageReason::LowPower`].
    pub reason: CoverageReason,
    /// Every cause of it, in words.
    pub detail: String,
}

impl Stretch {
    /// The row for a sensor whose optional models ran slowly.
    #[must_use]
    pub fn coverage(&self, source: SourceId) -> Coverage {
        Coverage {
            source,
            from: self.from,
            to: self.to,
            state: CoverageState::Degraded,
            reason: self.reason,
            detail: Some(self.detail.clone()),
        }
    }
}

/// Judges the signs of one machine.
#[derive(Debug)]
pub struct PowerJudge {
    config: Config,
    /// When each cause that holds was last seen, in monotonic milliseconds.
    seen: BTreeMap<Cause, i64>,
    critical_looks: u8,
    open: BTreeMap<CoverageReason, OpenStretch>,
    finished: VecDeque<Stretch>,
    assessment: Assessment,
}

#[derive(Debug)]
struct OpenStretch {
    from: Stamp,
    causes: BTreeSet<Cause>,
}

impl PowerJudge {
    /// A judge of a machine that is well until it says otherwise.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            seen: BTreeMap::new(),
            critical_looks: 0,
            open: BTreeMap::new(),
            finished: VecDeque::new(),
            assessment: Assessment::default(),
        }
    }

    /// Takes other settings. What holds goes on to hold until the next look.
    pub fn set_config(&mut self, config: Config) {
        self.config = config;
    }

    /// Takes the next look at the machine, and says what holds from `now` on.
    pub fn handle_signs(&mut self, signs: &Signs, now: Stamp) -> &Assessment {
        for cause in Cause::ALL {
            match self.observe(cause, signs) {
                Some(true) => {
                    self.seen.insert(cause, now.monotonic_ms);
                }
                Some(false) => self.let_go(cause, now),
                // Nothing was to be read: what held still holds.
                None => {}
            }
        }
        let causes: Vec<Cause> = self.seen.keys().copied().collect();
        let level = match causes.iter().max() {
            None => Level::Normal,
            Some(Cause::BatteryCritical) => Level::Critical,
            Some(_) => Level::Saving,
        };
        self.assessment = Assessment { level, causes };
        self.keep_stretches(now);
        &self.assessment
    }

    /// What holds.
    #[must_use]
    pub const fn assessment(&self) -> &Assessment {
        &self.assessment
    }

    /// The next finished stretch.
    pub fn poll_stretch(&mut self) -> Option<Stretch> {
        self.finished.pop_front()
    }

    /// Ends the open stretches at `now`: the agent stops.
    pub fn finish(&mut self, now: Stamp) {
        for (reason, open) in std::mem::take(&mut self.open) {
            self.close(reason, open, now);
        }
    }

    /// Whether the cause is there; `None` when that cannot be told this time.
    fn observe(&mut self, cause: Cause, signs: &Signs) -> Option<bool> {
        match cause {
            Cause::Hot => {
                let mark_c = if self.holds(cause) { self.config.cool_c } else { self.config.hot_c };
                Some(signs.heat.as_ref().is_some_and(|heat| heat.celsius >= mark_c))
            }
            Cause::Throttled => Some(signs.throttle.is_some_and(|flags| flags.is_slowed())),
            Cause::UnderVoltage => Some(signs.is_under_voltage()),
            Cause::BatteryLow => self.is_charge_below(cause, self.config.battery_low_pct, signs),
            Cause::BatteryCritical => {
                let is_below = self.is_charge_below(cause, self.config.battery_critical_pct, signs)?;
                self.critical_looks = if is_below { self.critical_looks.saturating_add(1) } else { 0 };
                Some(self.critical_looks >= CRITICAL_LOOKS)
            }
        }
    }

    fn is_charge_below(&self, cause: Cause, mark_pct: u8, signs: &Signs) -> Option<bool> {
        if mark_pct == 0 || !signs.is_on_battery() {
            return Some(false);
        }
        let charge_pct = signs.charge_pct()?;
        Some(if self.holds(cause) {
            charge_pct < mark_pct.saturating_add(CHARGE_MARGIN_PCT)
        } else {
            charge_pct <= mark_pct
        })
    }

    fn holds(&self, cause: Cause) -> bool {
        self.seen.contains_key(&cause)
    }

    fn let_go(&mut self, cause: Cause, now: Stamp) {
        let hold_ms = millis(self.config.hold_s);
        if self.seen.get(&cause).is_some_and(|seen_ms| now.monotonic_ms.saturating_sub(*seen_ms) >= hold_ms) {
            self.seen.remove(&cause);
        }
    }

    fn keep_stretches(&mut self, now: Stamp) {
        let causes = self.assessment.causes.clone();
        let is_over = |reason: CoverageReason| !causes.iter().any(|cause| cause.reason() == reason);
        for (reason, open) in std::mem::take(&mut self.open) {
            if is_over(reason) || now.millis_since(open.from) >= STRETCH_MS_MAX {
                self.close(reason, open, now);
            } else {
                self.open.insert(reason, open);
            }
        }
        for cause in causes {
            let begin = || OpenStretch { from: now, causes: BTreeSet::new() };
            self.open.entry(cause.reason()).or_insert_with(begin).causes.insert(cause);
        }
    }

    fn close(&mut self, reason: CoverageReason, open: OpenStretch, to: Stamp) {
        let causes: Vec<Cause> = open.causes.into_iter().collect();
        if self.finished.len() >= STRETCHES_MAX {
            self.finished.pop_front();
        }
        self.finished.push_back(Stretch { from: open.from, to, reason, detail: join(&causes) });
    }
}

fn join(causes: &[Cause]) -> String {
    let words: Vec<&str> = causes.iter().map(|cause| cause.words()).collect();
    words.join("; ")
}

/// Seconds of the config as whole milliseconds; NaN and less than zero become 0.
fn millis(seconds: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "float casts saturate and send NaN to 0")]
    let millis = (seconds * 1000.0).round() as i64;
    millis.max(0)
}

//! Estimates how many unknown devices are near, although they change their addresses.
//!
//! In: tokens with what their advertisements show. Out: a number of devices.
//! Never: more than `tokens_max` tokens.
//!
//! Each token lives from its first to its last advertisement. A device has one address at a time, so
//! tokens that live at the same time are different devices, and one that begins after another
//! has ended may be the same device with its next address, if what they show and how strong
//! they are allows it. The estimate is the smallest number of devices that explains the tokens:
//!
//! ```text
//! A ├─────┤        A and C may be one device, B is another: 2
//! B     ├────────┤
//! C        ├─────┤
//! ```

use super::device::Habit;
use super::device::Traits;
use super::salt::Token;
use super::salt::Tokens;
use crate::domain::reading::Advertisement;
use std::collections::BTreeMap;

/// Two addresses whose mean signal differs by more than this many dB are not one device; a body
/// between two devices costs about 20 dB.
const RSSI_STEP_DB_MAX: f64 = 25.0;

#[derive(Debug)]
pub(super) struct Crowd {
    window_ms: i64,
    tokens_max: usize,
    tokens: BTreeMap<Token, Life>,
    dropped: u64,
}

/// What is known of one token.
#[derive(Debug, Clone)]
struct Life {
    habit: Habit,
    traits: Traits,
    first_ms: i64,
    last_ms: i64,
    rssi_sum_db: f64,
    rssi_count: u32,
}

impl Life {
    fn rssi_db(&self) -> Option<f64> {
        (self.rssi_count > 0).then(|| self.rssi_sum_db / f64::from(self.rssi_count))
    }

    /// How unlikely it is that `self` goes on as `next`; `None` if it cannot be.
    fn cost_db(&self, next: &Self) -> Option<f64> {
        if self.habit != next.habit || self.last_ms >= next.first_ms || !self.traits.fits(&next.traits, next.habit) {
            return None;
        }
        let step_db = match (self.rssi_db(), next.rssi_db()) {
            (Some(before_db), Some(after_db)) => (before_db - after_db).abs(),
            _ => 0.0,
        };
        (step_db <= RSSI_STEP_DB_MAX).then_some(step_db)
    }
}

impl Crowd {
    pub(super) const fn new(window_ms: i64, tokens_max: usize) -> Self {
        Self { window_ms, tokens_max, tokens: BTreeMap::new(), dropped: 0 }
    }

    /// Tokens forgotten for want of room.
    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn handle_advertisement(
        &mut self,
        tokens: Tokens,
        advertisement: &Advertisement,
        rssi_dbm: Option<i16>,
        now_ms: i64,
    ) {
        if let Some(life) = tokens.previous.and_then(|previous| self.tokens.remove(&previous)) {
            self.tokens.insert(tokens.current, life);
        }
        if !self.tokens.contains_key(&tokens.current) {
            self.make_room(now_ms);
        }
        let life = self.tokens.entry(tokens.current).or_insert_with(|| Life {
            habit: Habit::of(&advertisement.sender),
            traits: Traits::default(),
            first_ms: now_ms,
            last_ms: now_ms,
            rssi_sum_db: 0.0,
            rssi_count: 0,
        });
        life.last_ms = now_ms;
        life.traits.count(advertisement);
        if let Some(rssi_dbm) = rssi_dbm.filter(|_| life.rssi_count < u32::MAX) {
            life.rssi_sum_db += f64::from(rssi_dbm);
            life.rssi_count += 1;
        }
    }

    /// How many devices explain the tokens of the last window.
    pub(super) fn estimate(&mut self, now_ms: i64) -> u32 {
        self.forget_before(now_ms.saturating_sub(self.window_ms));
        let (kept, mut changing): (Vec<&Life>, Vec<&Life>) =
            self.tokens.values().partition(|life| life.habit == Habit::Keeps);
        changing.sort_by_key(|life| (life.first_ms, life.last_ms));
        let mut devices: Vec<&Life> = Vec::new();
        for life in changing {
            let costs = devices.iter().enumerate().filter_map(|(index, device)| Some((index, device.cost_db(life)?)));
            match costs.min_by(|(_, a), (_, b)| a.total_cmp(b)).and_then(|(index, _)| devices.get_mut(index)) {
                Some(device) => *device = life,
                None => devices.push(life),
            }
        }
        u32::try_from(kept.len() + devices.len()).unwrap_or(u32::MAX)
    }

    fn forget_before(&mut self, oldest_ms: i64) {
        self.tokens.retain(|_, life| life.last_ms >= oldest_ms);
    }

    /// Forgets a quarter at a time, so that a flood of addresses costs little for each.
    fn make_room(&mut self, now_ms: i64) {
        if self.tokens.len() < self.tokens_max {
            return;
        }
        self.forget_before(now_ms.saturating_sub(self.window_ms));
        if self.tokens.len() < self.tokens_max {
            return;
        }
        let mut ages: Vec<(i64, Token)> = self.tokens.iter().map(|(token, life)| (life.last_ms, *token)).collect();
        ages.sort_unstable();
        for (_, token) in ages.into_iter().take(self.tokens_max.div_ceil(4)) {
            self.tokens.remove(&token);
            self.dropped += 1;
        }
    }
}

#[cfg(test)]
impl Crowd {
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }
}

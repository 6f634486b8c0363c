//! A stay that goes on: its middle, its spread, and when it was last confirmed.
//!
//! In: fixes at the place. Out: the [`Stay`] as it stands. Never: the fixes themselves; only sums are kept.

use super::candidate::Found;
use super::geometry::Mean;
use crate::domain::id::SourceId;
use crate::domain::observation::place::Fix;
use crate::domain::observation::place::Place;
use crate::domain::observation::place::Position;
use crate::domain::observation::place::Stay;
use crate::domain::time::Stamp;

/// Fixes within this many metres are in the middle of a place whatever their spread; the noise of an ordinary receiver.
const MIDDLE_M_MIN: f64 = 30.0;
/// The middle holds fixes within this many times their spread (root mean square): all but 0.2 % of a Gaussian's.
const MIDDLE_SPREADS: f64 = 2.5;
/// √(ln 20): the circle that holds 95 % of a circular Gaussian has this many times its root mean square distance.
const RADIUS_SPREADS: f64 = 1.731;
/// Two fixes further apart than this leave the time between them unobserved, in milliseconds.
pub(super) const OBSERVED_MS_MAX: i64 = 60_000;

/// Where a fix lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Where most fixes are.
    Middle,
    /// Still within the radius of a stay: perhaps on the way out.
    Edge,
    /// Somewhere else.
    Outside,
}

/// The radius in metres of the middle of a place of `count` fixes.
pub(super) fn middle_radius_m(square_sum_m2: f64, count: u64, radius_m: f64) -> f64 {
    (MIDDLE_SPREADS * spread_m(square_sum_m2, count)).max(MIDDLE_M_MIN).min(radius_m)
}

fn spread_m(square_sum_m2: f64, count: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    let count = count.max(1) as f64;
    (square_sum_m2 / count).sqrt()
}

#[derive(Debug)]
pub(super) struct Staying {
    source: SourceId,
    place: Place,
    radius_m: f64,
    start: Stamp,
    latest: Stamp,
    /// The last fix in the middle, and what was unobserved up to it: the end, if it goes away from here.
    middle: Stamp,
    middle_unobserved_ms: i64,
    unobserved_ms: i64,
    /// Whether the latest fix lay in the middle.
    was_middle: bool,
    mean: Mean,
    square_sum_m2: f64,
}

impl Staying {
    pub(super) fn new(source: SourceId, place: Place, found: Found, radius_m: f64) -> Self {
        let mut staying = Self {
            source,
            place,
            radius_m,
            start: found.start,
            latest: found.start,
            middle: found.start,
            middle_unobserved_ms: 0,
            unobserved_ms: 0,
            was_middle: true,
            mean: Mean::of(found.centre),
            square_sum_m2: 0.0,
        };
        if let Some(mean) = Mean::of_all(found.fixes.iter().map(|fix| fix.position)) {
            staying.mean = mean;
        }
        let centre = staying.centre();
        staying.square_sum_m2 = found.fixes.iter().map(|fix| centre.distance_m(fix.position).powi(2)).sum();
        found.fixes.iter().for_each(|fix| {
            staying.pass_time(fix);
        });
        staying
    }

    pub(super) fn centre(&self) -> Position {
        self.mean.position()
    }

    pub(super) fn side(&self, fix: &Fix) -> Side {
        let distance_m = self.centre().distance_m(fix.position);
        if distance_m <= middle_radius_m(self.square_sum_m2, self.mean.len(), self.radius_m) {
            Side::Middle
        } else if distance_m <= self.radius_m {
            Side::Edge
        } else {
            Side::Outside
        }
    }

    /// Counts a fix at the place and says where the device is.
    pub(super) fn count(&mut self, fix: &Fix) -> Side {
        self.mean.count(fix.position);
        self.square_sum_m2 += self.centre().distance_m(fix.position).powi(2);
        self.pass_time(fix)
    }

    fn pass_time(&mut self, fix: &Fix) -> Side {
        let gap_ms = fix.at.millis_since(self.latest);
        if gap_ms > OBSERVED_MS_MAX {
            self.unobserved_ms += gap_ms;
        }
        self.latest = fix.at;
        // One fix in the middle on the way out is astray; two in a row are not.
        let is_middle = self.side(fix) == Side::Middle;
        let side = if is_middle && self.was_middle { Side::Middle } else { Side::Edge };
        self.was_middle = is_middle;
        if side == Side::Middle {
            self.middle = fix.at;
            self.middle_unobserved_ms = self.unobserved_ms;
        }
        side
    }

    /// The stay up to the latest fix at the place or, once it was left, to the last one in its middle.
    pub(super) fn told(&self, has_left: bool) -> Stay {
        let (end, unobserved_ms) =
            if has_left { (self.middle, self.middle_unobserved_ms) } else { (self.latest, self.unobserved_ms) };
        Stay {
            source: self.source.clone(),
            start: self.start,
            end,
            place: self.place.clone(),
            centre: self.centre(),
            radius_m: RADIUS_SPREADS * spread_m(self.square_sum_m2, self.mean.len()),
            fix_count: self.mean.len(),
            unobserved_ms,
        }
    }
}

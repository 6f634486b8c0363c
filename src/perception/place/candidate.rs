//! The latest fixes that lie together, and whether they are a stay yet.
//!
//! In: believed fixes. Out: [`Found`], once they have lain within the radius of their mean for long enough.
//! Never: more than [`FIXES_MAX`] fixes.

use super::geometry::Mean;
use super::staying::middle_radius_m;
use crate::domain::observation::place::Fix;
use crate::domain::observation::place::Position;
use crate::domain::time::Stamp;
use std::collections::VecDeque;

/// Fixes kept; the tracker thins them so that the shortest stay has at most half as many.
const FIXES_MAX: usize = 1024;

/// A stay that has just become one.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) start: Stamp,
    pub(super) end: Stamp,
    pub(super) centre: Position,
    pub(super) fixes: Vec<Fix>,
}

#[derive(Debug)]
pub(super) struct Candidate {
    radius_m: f64,
    stay_ms_min: i64,
    fixes: VecDeque<Fix>,
    centre: Option<Position>,
}

impl Candidate {
    pub(super) const fn new(radius_m: f64, stay_ms_min: i64) -> Self {
        Self { radius_m, stay_ms_min, fixes: VecDeque::new(), centre: None }
    }

    pub(super) fn clear(&mut self) {
        self.fixes.clear();
        self.centre = None;
    }

    /// Whether the fix lies with the others, or there are none.
    pub(super) fn holds(&self, fix: &Fix) -> bool {
        self.centre.is_none_or(|centre| centre.distance_m(fix.position) <= self.radius_m)
    }

    /// Adds a fix and drops the oldest ones until the rest lie within the radius of their mean.
    pub(super) fn count(&mut self, fix: &Fix) {
        // Two looks at a place with nothing between them, as far apart as a stay is long, do not make a stay.
        if self.fixes.back().is_some_and(|last| fix.at.millis_since(last.at) > self.stay_ms_min) {
            self.clear();
        }
        if self.fixes.len() >= FIXES_MAX {
            self.fixes.pop_front();
        }
        self.fixes.push_back(fix.clone());
        self.centre = self.mean();
        while let Some(centre) = self.centre
            && self.fixes.iter().any(|fix| centre.distance_m(fix.position) > self.radius_m)
        {
            self.fixes.pop_front();
            self.centre = self.mean();
        }
    }

    /// The stay, if there is one. Its start is the first of two fixes in a row in the middle of the
    /// place, so that neither the approach counts nor a fix astray in it.
    pub(super) fn found(&self) -> Option<Found> {
        let (first, last) = (self.fixes.front()?, self.fixes.back()?);
        if last.at.millis_since(first.at) < self.stay_ms_min {
            return None;
        }
        let half_ms = last.at.monotonic_ms - self.stay_ms_min / 2;
        let settled = || self.fixes.iter().filter(move |fix| fix.at.monotonic_ms >= half_ms).map(|fix| fix.position);
        let mean = Mean::of_all(settled())?;
        let centre = mean.position();
        let square_sum_m2 = settled().map(|position| centre.distance_m(position).powi(2)).sum::<f64>();
        let middle_m = middle_radius_m(square_sum_m2, mean.len(), self.radius_m);
        let is_middle = |fix: &Fix| centre.distance_m(fix.position) <= middle_m;
        let pairs = self.fixes.iter().zip(self.fixes.iter().skip(1));
        let arrival = pairs.into_iter().position(|(fix, next)| is_middle(fix) && is_middle(next))?;
        let start = self.fixes.get(arrival)?.at;
        let fixes: Vec<Fix> = self.fixes.iter().skip(arrival).cloned().collect();
        (last.at.millis_since(start) >= self.stay_ms_min).then_some(Found { start, end: last.at, centre, fixes })
    }

    fn mean(&self) -> Option<Position> {
        Mean::of_all(self.fixes.iter().map(|fix| fix.position)).map(|mean| mean.position())
    }
}

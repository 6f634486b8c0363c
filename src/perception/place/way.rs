//! The way since the last stay: its length, its box, and the time nobody saw.
//!
//! In: believed fixes. Out: a [`Leg`] up to any of the latest vertices, because where the way ended
//! is known only minutes later. Never: the track itself; only the latest vertices are kept.
//!
//! The median of the fixes of [`BLOCK_MS`] is taken, and only steps of [`STEP_M_MIN`] count, so that
//! the noise of a receiver that stands still does not add up and a stray fix is no detour.

use super::geometry::GrowingBounds;
use super::geometry::median;
use super::staying::OBSERVED_MS_MAX;
use crate::domain::observation::place::Bounds;
use crate::domain::observation::place::Fix;
use crate::domain::observation::place::Position;
use crate::domain::time::Stamp;
use std::collections::VecDeque;

const BLOCK_MS: i64 = 10_000;
const STEP_M_MIN: f64 = 20.0;
/// Vertices and gaps kept: more than an hour of them.
const HISTORY_MAX: usize = 512;

/// A part of a way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leg {
    pub(super) length_m: f64,
    pub(super) bounds: Bounds,
    pub(super) unobserved_ms: i64,
}

/// A point of the way, with all that lies before it summed up.
#[derive(Debug, Clone, Copy)]
struct Vertex {
    at: Stamp,
    position: Position,
    length_m: f64,
    bounds: GrowingBounds,
}

/// The latest fixes: a dozen at most, since the tracker takes about one a second.
#[derive(Debug)]
struct Block {
    positions: Vec<Position>,
    start: Stamp,
    end: Stamp,
}

#[derive(Debug)]
pub(super) struct Way {
    latest: Stamp,
    start: Vertex,
    vertices: VecDeque<Vertex>,
    block: Option<Block>,
    /// End of each gap, with the sum of the gaps up to it.
    gaps: VecDeque<(Stamp, i64)>,
}

impl Way {
    pub(super) fn new(from: Position, at: Stamp) -> Self {
        let start = Vertex { at, position: from, length_m: 0.0, bounds: GrowingBounds::of(from) };
        Self { latest: at, start, vertices: VecDeque::new(), block: None, gaps: VecDeque::new() }
    }

    /// Forgets the way so far.
    pub(super) fn restart(&mut self, from: Position, at: Stamp) {
        self.latest = at;
        self.start = Vertex { at, position: from, length_m: 0.0, bounds: GrowingBounds::of(from) };
        self.vertices.clear();
        self.block = None;
        self.gaps.clear();
    }

    pub(super) fn count(&mut self, fix: &Fix) {
        let gap_ms = fix.at.millis_since(self.latest);
        self.latest = fix.at;
        if gap_ms > OBSERVED_MS_MAX {
            let before_ms = self.gaps.back().map_or(0, |(_, sum_ms)| *sum_ms);
            push(&mut self.gaps, (fix.at, before_ms + gap_ms));
        }
        let is_over = |block: &Block| fix.at.millis_since(block.start) >= BLOCK_MS || gap_ms >= BLOCK_MS;
        if let Some(block) = self.block.take_if(|block| is_over(block))
            && let Some(position) = median(&block.positions)
        {
            self.step(position, block.end);
        }
        let block = self.block.get_or_insert_with(|| Block { positions: Vec::new(), start: fix.at, end: fix.at });
        block.positions.push(fix.position);
        block.end = fix.at;
    }

    /// Metres so far.
    pub(super) fn length_m(&self) -> f64 {
        self.vertices.back().map_or(0.0, |vertex| vertex.length_m)
    }

    /// The way up to the place that was reached at `at`.
    pub(super) fn until(&self, at: Stamp, centre: Position) -> Leg {
        let is_before = |stamp: Stamp| stamp.monotonic_ms <= at.monotonic_ms;
        let last = self.vertices.iter().rev().find(|vertex| is_before(vertex.at)).unwrap_or(&self.start);
        let mut bounds = last.bounds;
        bounds.count(centre);
        Leg {
            length_m: last.length_m + last.position.distance_m(centre),
            bounds: bounds.bounds(),
            unobserved_ms: self.gaps.iter().rev().find(|(end, _)| is_before(*end)).map_or(0, |(_, sum_ms)| *sum_ms),
        }
    }

    fn step(&mut self, position: Position, at: Stamp) {
        let last = self.vertices.back().copied().unwrap_or(self.start);
        let step_m = last.position.distance_m(position);
        if step_m >= STEP_M_MIN {
            let mut bounds = last.bounds;
            bounds.count(position);
            push(&mut self.vertices, Vertex { at, position, length_m: last.length_m + step_m, bounds });
        }
    }
}

fn push<T>(history: &mut VecDeque<T>, entry: T) {
    if history.len() >= HISTORY_MAX {
        history.pop_front();
    }
    history.push_back(entry);
}

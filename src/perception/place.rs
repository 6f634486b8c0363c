//! Finds stays and trips in the fixes, and names the places.
//!
//! In: [`Fix`]es of one receiver, in order, and the passing of time. Out: [`PlaceObservation`]s.
//!
//! A stay is at least `stay_s_min` within `stay_radius_m` of one point; a trip is the way between
//! two stays, at least `trip_m_min` long. A stray fix or two end nothing. A place is called as the
//! config calls it, else `place-N`; the learned places go in and out as plain data.
//!
//! ```text
//! fixes      ·· · ·|······················|· · ·  · · ·|··················|· ·
//! out                       StayBegan A            StayEnded A      Trip, StayBegan B
//! ```
//! Never: I/O, the clock, any trust in a fix that [`crate::perception::fix`] did not admit.

mod candidate;
mod geometry;
mod known;
mod staying;
mod way;

pub use known::LearnedPlace;
pub use known::NamedPlace;

use crate::domain::id::SourceId;
use crate::domain::observation::place::Fix;
use crate::domain::observation::place::PlaceObservation;
use crate::domain::observation::place::Stay;
use crate::domain::observation::place::Trip;
use crate::domain::time::Stamp;
use candidate::Candidate;
use known::KnownPlaces;
use staying::Side;
use staying::Staying;
use std::collections::VecDeque;
use way::Way;

/// What counts as a stay and as a trip.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Shortest stay in seconds.
    pub stay_s_min: f64,
    /// Distance in metres from its middle within which a stay remains one, and within which a learned place is met again.
    pub stay_radius_m: f64,
    /// Shortest trip in metres of way.
    pub trip_m_min: f64,
    /// A stay without any fix for more than this many seconds has ended at the last one.
    pub gap_s_max: f64,
    /// Learned places kept; when there are more, the least visited goes.
    pub learned_places_max: usize,
    /// Places with a name.
    #[serde(skip)]
    pub named: Vec<NamedPlace>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            stay_s_min: 300.0,
            stay_radius_m: 100.0,
            trip_m_min: 300.0,
            gap_s_max: 3600.0,
            learned_places_max: 1000,
            named: Vec::new(),
        }
    }
}

impl Config {
    /// What is wrong with the values, one sentence each.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        let is_positive = |value: f64| value.is_finite() && value > 0.0;
        let keys = [
            ("stay_s_min", self.stay_s_min),
            ("stay_radius_m", self.stay_radius_m),
            ("trip_m_min", self.trip_m_min),
            ("gap_s_max", self.gap_s_max),
        ];
        let mut mistakes: Vec<String> = keys
            .into_iter()
            .filter(|(_, value)| !is_positive(*value))
            .map(|(key, value)| format!("{key} = {value} must be a number above 0"))
            .collect();
        if self.learned_places_max == 0 {
            mistakes.push("learned_places_max = 0 must be at least 1".to_owned());
        }
        for (index, place) in self.named.iter().enumerate() {
            mistakes.extend(place.mistakes().into_iter().map(|mistake| format!("named[{index}]: {mistake}")));
        }
        mistakes
    }
}

/// Fixes that follow one another faster than this are one, in milliseconds: receivers of 10 Hz add nothing here.
const FIX_INTERVAL_MS_MIN: i64 = 900;
/// The shortest stay has no more fixes than this, whatever its length: they are thinned.
const STAY_FIXES_MAX: i64 = 500;
/// A fix away from the place is believed with this many of its kind, over this long …
const AWAY_FIXES_MIN: usize = 3;
const AWAY_MS_MIN: i64 = 10_000;
/// … or over this long, where fixes are rare. A single stray fix ends nothing.
const AWAY_ALONE_MS_MIN: i64 = 30_000;
/// Fixes waiting to be believed, at most; a receiver of one fix a second never has more than 11.
const AWAY_FIXES_MAX: usize = 64;

/// Follows one receiver from place to place.
#[derive(Debug)]
pub struct PlaceTracker {
    config: Config,
    source: SourceId,
    places: KnownPlaces,
    /// The stay that goes on, or that was left and whose end is not told yet.
    stay: Option<Staying>,
    /// The way since the last stay; `None` until the first one.
    way: Option<Way>,
    /// The last stay that was told to have ended.
    origin: Option<Stay>,
    candidate: Candidate,
    /// Fixes away from where the others are, not believed yet.
    away: Vec<Fix>,
    has_left: bool,
    latest: Option<Stamp>,
    observations: VecDeque<PlaceObservation>,
}

impl PlaceTracker {
    /// A tracker that knows the places learned in earlier runs.
    #[must_use]
    pub fn new(config: Config, source: SourceId, learned: Vec<LearnedPlace>) -> Self {
        Self {
            places: KnownPlaces::new(&config, learned),
            candidate: Candidate::new(config.stay_radius_m, millis(config.stay_s_min)),
            config,
            source,
            stay: None,
            way: None,
            origin: None,
            away: Vec::new(),
            has_left: false,
            latest: None,
            observations: VecDeque::new(),
        }
    }

    /// Takes the next fix. One that is no later than the last is left out.
    pub fn handle_fix(&mut self, fix: &Fix) {
        let interval_ms = FIX_INTERVAL_MS_MIN.max(millis(self.config.stay_s_min) / STAY_FIXES_MAX);
        let is_rushed = self.latest.is_some_and(|latest| fix.at.millis_since(latest) < interval_ms);
        // A position known worse than a place is wide says nothing of which place it is.
        let is_vague = fix.accuracy_m.is_some_and(|accuracy_m| accuracy_m > self.config.stay_radius_m);
        if is_rushed || is_vague {
            return;
        }
        self.handle_timeout(fix.at);
        self.latest = Some(fix.at);
        if self.is_near(fix) {
            // What lay between two fixes at the place was astray.
            self.away.clear();
            self.commit(fix);
            return;
        }
        self.away.push(fix.clone());
        if self.is_away_believed() {
            self.handle_departure();
        }
    }

    /// Lets time pass: a stay that nobody has confirmed for too long is over.
    pub fn handle_timeout(&mut self, now: Stamp) {
        let gap_ms = self.latest.map_or(0, |latest| now.millis_since(latest));
        if gap_ms > millis(self.config.gap_s_max) {
            self.believe_away();
            self.end_stay();
        }
    }

    /// When [`Self::handle_timeout`] has something to do next, in monotonic milliseconds.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        let latest = self.stay.as_ref().and(self.latest)?;
        Some(latest.monotonic_ms.saturating_add(millis(self.config.gap_s_max) + 1))
    }

    /// The next observation.
    pub fn poll_observation(&mut self) -> Option<PlaceObservation> {
        self.observations.pop_front()
    }

    /// Ends what is open: there will be no more fixes. A way that has reached no stay is no trip.
    pub fn finish(&mut self) {
        self.end_stay();
    }

    /// The learned places, to be handed to the next run.
    #[must_use]
    pub fn learned(&self) -> &[LearnedPlace] {
        self.places.learned()
    }

    /// Whether the fix goes on with what is: the stay or, on the way, the cluster that may become one.
    fn is_near(&self, fix: &Fix) -> bool {
        match &self.stay {
            Some(stay) if !self.has_left => stay.side(fix) != Side::Outside,
            _ => self.candidate.holds(fix),
        }
    }

    fn is_away_believed(&self) -> bool {
        let (Some(first), Some(last)) = (self.away.first(), self.away.last()) else { return false };
        let span_ms = last.at.millis_since(first.at);
        let is_run = self.away.len() >= AWAY_FIXES_MIN && span_ms >= AWAY_MS_MIN;
        is_run || span_ms >= AWAY_ALONE_MS_MIN || self.away.len() >= AWAY_FIXES_MAX
    }

    fn handle_departure(&mut self) {
        if self.stay.is_some() && !self.has_left {
            self.has_left = true;
            self.candidate.clear();
        }
        self.believe_away();
    }

    fn believe_away(&mut self) {
        for fix in std::mem::take(&mut self.away) {
            self.commit(&fix);
        }
    }

    /// Counts a believed fix.
    fn commit(&mut self, fix: &Fix) {
        if let Some(stay) = self.stay.as_mut().filter(|_| !self.has_left) {
            if stay.side(fix) != Side::Outside {
                let side = stay.count(fix);
                self.follow_within(side, fix);
            }
            return;
        }
        if let Some(way) = &mut self.way {
            way.count(fix);
        }
        if self.is_back(fix) {
            return self.resume_stay(fix);
        }
        if self.way.as_ref().is_some_and(|way| way.length_m() >= self.config.trip_m_min) {
            self.end_stay();
        }
        self.candidate.count(fix);
        if let Some(found) = self.candidate.found() {
            self.begin_stay(found);
        }
    }

    /// A way begins where the middle of the place was left for good; so it is measured from the last fix there.
    fn follow_within(&mut self, side: Side, fix: &Fix) {
        match (&mut self.way, &self.stay) {
            (Some(way), Some(stay)) if side == Side::Middle => way.restart(stay.centre(), fix.at),
            (Some(way), _) => way.count(fix),
            (None, _) => {}
        }
    }

    /// A few steps out of the place and back are no trip, and do not end the stay.
    fn is_back(&self, fix: &Fix) -> bool {
        let is_short = self.way.as_ref().is_some_and(|way| way.length_m() < self.config.trip_m_min);
        is_short && self.stay.as_ref().is_some_and(|stay| stay.side(fix) != Side::Outside)
    }

    fn resume_stay(&mut self, fix: &Fix) {
        self.has_left = false;
        self.candidate.clear();
        if let Some(stay) = &mut self.stay {
            let side = stay.count(fix);
            self.follow_within(side, fix);
        }
    }

    fn begin_stay(&mut self, found: candidate::Found) {
        self.end_stay();
        let place = self.places.place_at(found.centre, found.end.utc);
        let stay = Staying::new(self.source.clone(), place, found, self.config.stay_radius_m);
        let told = stay.told(false);
        if let (Some(origin), Some(way)) = (self.origin.take(), self.way.take()) {
            self.tell_trip(&origin, &way, &told);
        }
        self.way = Some(Way::new(told.centre, told.end));
        self.stay = Some(stay);
        self.has_left = false;
        self.candidate.clear();
        self.observations.push_back(PlaceObservation::StayBegan(told));
    }

    fn tell_trip(&mut self, origin: &Stay, way: &Way, reached: &Stay) {
        let leg = way.until(reached.start, reached.centre);
        if leg.length_m >= self.config.trip_m_min {
            self.observations.push_back(PlaceObservation::Trip(Trip {
                source: self.source.clone(),
                start: origin.end,
                end: reached.start,
                from: origin.place.clone(),
                to: reached.place.clone(),
                distance_m: leg.length_m,
                bounds: leg.bounds,
                unobserved_ms: leg.unobserved_ms,
            }));
        }
    }

    fn end_stay(&mut self) {
        if let Some(stay) = self.stay.take() {
            let told = stay.told(self.has_left);
            self.places.visited(&told);
            self.origin = Some(told.clone());
            self.observations.push_back(PlaceObservation::StayEnded(told));
        }
        if !self.has_left {
            self.candidate.clear();
        }
        self.has_left = true;
    }
}

/// Seconds of the config as whole milliseconds; NaN and less than zero become 0.
fn millis(seconds: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "float casts saturate and send NaN to 0")]
    let millis = (seconds * 1000.0).round() as i64;
    millis.max(0)
}

#[cfg(test)]
mod tests;

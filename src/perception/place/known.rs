//! The places that have a name: by the config, or `place-N` because the device has stayed there before.
//!
//! In: the middle of a stay. Out: its [`Place`]. Never: two numbers for one place, or one number for two.

use super::Config;
use crate::domain::observation::place::Place;
use crate::domain::observation::place::PlaceKind;
use crate::domain::observation::place::Position;
use crate::domain::observation::place::Stay;
use crate::domain::time::Timestamp;
use std::collections::BTreeMap;

/// A place of the config.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedPlace {
    /// What it is called.
    pub name: String,
    /// Degrees north, −90 to 90.
    pub latitude_deg: f64,
    /// Degrees east, −180 to 180.
    pub longitude_deg: f64,
    /// Radius in metres. Where places overlap the smallest one is meant.
    #[serde(default = "default_radius_m")]
    pub radius_m: f64,
}

impl NamedPlace {
    pub(super) fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        if self.name.trim().is_empty() {
            mistakes.push("name is empty".to_owned());
        }
        if Position::new(self.latitude_deg, self.longitude_deg).is_none() {
            mistakes.push(format!("{:?} lies at no position on the Earth", self.name));
        }
        if !(self.radius_m.is_finite() && self.radius_m > 0.0) {
            mistakes.push(format!("radius_m = {} of {:?} must be a number above 0", self.radius_m, self.name));
        }
        mistakes
    }
}

const fn default_radius_m() -> f64 {
    100.0
}

/// A place the device has stayed at, to be kept for the next run.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearnedPlace {
    /// N of `place-N`, from 1.
    pub number: u32,
    /// Mean of its stays.
    pub position: Position,
    /// Stays there.
    pub visits: u32,
    /// End of the last stay.
    pub last_visit: Timestamp,
}

impl LearnedPlace {
    /// `place-N`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("place-{}", self.number)
    }

    /// The places of remembered stays, as (name, middle, end) with the latest first, at most `places_max`: those with the
    /// highest numbers go first, for the highest says which number is next. What is called `place-N` and lies more than
    /// `radius_m` from the latest stay of that name was another place once, and does not count.
    #[must_use]
    pub fn of_stays<'a>(
        stays: impl IntoIterator<Item = (&'a str, Position, Timestamp)>,
        radius_m: f64,
        places_max: usize,
    ) -> Vec<Self> {
        let mut places: BTreeMap<u32, Self> = BTreeMap::new();
        for (name, centre, end) in stays {
            let number = name.strip_prefix("place-").and_then(|number| number.parse().ok());
            let Some(number) = number.filter(|number: &u32| *number > 0 && name == format!("place-{number}")) else {
                continue;
            };
            let place = places.entry(number).or_insert(Self { number, position: centre, visits: 0, last_visit: end });
            if place.position.distance_m(centre) <= radius_m {
                place.visits = place.visits.saturating_add(1);
                place.position = moved(place.position, centre, place.visits);
            }
        }
        places.into_values().rev().take(places_max).collect()
    }
}

#[derive(Debug)]
pub(super) struct KnownPlaces {
    named: Vec<(Position, NamedPlace)>,
    learned: Vec<LearnedPlace>,
    learned_max: usize,
    radius_m: f64,
}

impl KnownPlaces {
    /// Named places at no valid position are left out; [`Config::mistakes`] names them.
    pub(super) fn new(config: &Config, learned: Vec<LearnedPlace>) -> Self {
        let mut named: Vec<_> = config
            .named
            .iter()
            .filter_map(|place| Some((Position::new(place.latitude_deg, place.longitude_deg)?, place.clone())))
            .collect();
        named.sort_by(|(_, a), (_, b)| a.radius_m.total_cmp(&b.radius_m));
        Self { named, learned, learned_max: config.learned_places_max.max(1), radius_m: config.stay_radius_m }
    }

    pub(super) fn learned(&self) -> &[LearnedPlace] {
        &self.learned
    }

    /// What the place around `centre` is called; a new one gets the next number.
    pub(super) fn place_at(&mut self, centre: Position, now: Timestamp) -> Place {
        let named = self.named.iter().find(|(position, place)| position.distance_m(centre) <= place.radius_m);
        if let Some((_, place)) = named {
            return Place { name: place.name.clone(), kind: PlaceKind::Named };
        }
        let distance_m = |place: &LearnedPlace| place.position.distance_m(centre);
        let nearest = self.learned.iter().min_by(|a, b| distance_m(a).total_cmp(&distance_m(b)));
        let name = match nearest.filter(|place| distance_m(place) <= self.radius_m) {
            Some(place) => place.name(),
            None => self.learn(centre, now).name(),
        };
        Place { name, kind: PlaceKind::Learned }
    }

    /// Moves a learned place towards the middle of a stay that ended there.
    pub(super) fn visited(&mut self, stay: &Stay) {
        let is_there = |place: &&mut LearnedPlace| place.name() == stay.place.name;
        let learned = self.learned.iter_mut().filter(|_| stay.place.kind == PlaceKind::Learned);
        if let Some(place) = learned.into_iter().find(is_there) {
            place.visits = place.visits.saturating_add(1);
            place.last_visit = stay.end.utc;
            place.position = moved(place.position, stay.centre, place.visits);
        }
    }

    fn learn(&mut self, position: Position, now: Timestamp) -> LearnedPlace {
        // The highest number stays in use until a higher one is given, so none is given twice.
        let number = self.learned.iter().map(|place| place.number).max().unwrap_or(0).saturating_add(1);
        if self.learned.len() >= self.learned_max {
            let newest = number - 1;
            let least = self.learned.iter().enumerate().filter(|(_, place)| place.number != newest);
            let least = least.min_by_key(|(_, place)| (place.visits, place.last_visit)).map_or(0, |(index, _)| index);
            self.learned.remove(least);
        }
        let place = LearnedPlace { number, position, visits: 0, last_visit: now };
        self.learned.push(place.clone());
        place
    }
}

/// The mean over `visits` stays when the last of them was around `centre`.
fn moved(mean: Position, centre: Position, visits: u32) -> Position {
    let share = 1.0 / f64::from(visits.max(1));
    let north_deg = (centre.latitude_deg - mean.latitude_deg) * share;
    let mut east_deg = centre.longitude_deg - mean.longitude_deg;
    if east_deg.abs() > 180.0 {
        east_deg -= 360.0_f64.copysign(east_deg);
    }
    let longitude_deg = mean.longitude_deg + east_deg * share;
    let longitude_deg =
        if longitude_deg.abs() > 180.0 { longitude_deg - 360.0_f64.copysign(longitude_deg) } else { longitude_deg };
    Position::new(mean.latitude_deg + north_deg, longitude_deg).unwrap_or(centre)
}

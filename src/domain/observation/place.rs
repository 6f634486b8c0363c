//! Where the device was: fixes, what the receiver says of time, and the stays and trips found in the fixes.
//!
//! Positions are WGS 84 degrees and always valid here: finite, latitude −90 to 90, longitude −180 to 180.

use crate::domain::id::SourceId;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;

/// Mean radius of the Earth in metres, (2a + b) / 3 of the WGS 84 ellipsoid (Moritz, Geodetic Reference System 1980).
pub const EARTH_RADIUS_M: f64 = 6_371_008.8;

/// A valid point on the Earth.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Position {
    /// Degrees north, −90 to 90.
    pub latitude_deg: f64,
    /// Degrees east, −180 to 180.
    pub longitude_deg: f64,
}

impl Position {
    /// The point, unless a value is NaN, infinite or outside its range.
    #[must_use]
    pub fn new(latitude_deg: f64, longitude_deg: f64) -> Option<Self> {
        let is_valid = latitude_deg.is_finite()
            && longitude_deg.is_finite()
            && latitude_deg.abs() <= 90.0
            && longitude_deg.abs() <= 180.0;
        is_valid.then_some(Self { latitude_deg, longitude_deg })
    }

    /// Great-circle distance in metres by the haversine formula (R. W. Sinnott, "Virtues of the
    /// Haversine", Sky & Telescope 68, 1984) on a sphere of [`EARTH_RADIUS_M`]: within 0.56 % of
    /// the ellipsoid, and exact down to millimetres between neighbours.
    #[must_use]
    pub fn distance_m(self, other: Self) -> f64 {
        let (latitude, other_latitude) = (self.latitude_deg.to_radians(), other.latitude_deg.to_radians());
        let half_north = ((other_latitude - latitude) / 2.0).sin();
        let half_east = ((other.longitude_deg - self.longitude_deg).to_radians() / 2.0).sin();
        let haversine = half_north * half_north + latitude.cos() * other_latitude.cos() * half_east * half_east;
        2.0 * EARTH_RADIUS_M * haversine.clamp(0.0, 1.0).sqrt().asin()
    }
}

/// The smallest box around some positions. `west` is greater than `east` when it spans the 180th meridian.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Least latitude in degrees.
    pub south_deg: f64,
    /// Longitude of the western edge in degrees.
    pub west_deg: f64,
    /// Greatest latitude in degrees.
    pub north_deg: f64,
    /// Longitude of the eastern edge in degrees.
    pub east_deg: f64,
}

/// A position the receiver vouches for, measured anew.
#[derive(Debug, Clone, PartialEq)]
pub struct Fix {
    /// The receiver.
    pub source: SourceId,
    /// When it was received.
    pub at: Stamp,
    /// Where.
    pub position: Position,
    /// Metres above mean sea level.
    pub altitude_m: Option<f64>,
    /// Estimated horizontal error in metres (95 %); `None` when the receiver gave none.
    pub accuracy_m: Option<f64>,
    /// Metres per second over ground.
    pub speed_mps: Option<f64>,
    /// Degrees from true north.
    pub course_deg: Option<f64>,
    /// The receiver's time as it gave it, believable or not.
    pub receiver_time: Option<Timestamp>,
}

/// What the receiver says of the time, beside a fix.
#[derive(Debug, Clone, PartialEq)]
pub struct ClockObservation {
    /// The receiver.
    pub source: SourceId,
    /// When it was received, by the device's own clock.
    pub at: Stamp,
    /// The receiver's time.
    pub receiver_time: Timestamp,
    /// Whether the clock may be set by it.
    pub verdict: ReceiverTime,
}

/// Whether a receiver's time can be true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReceiverTime {
    /// Nothing speaks against it: it may correct the clock.
    Plausible,
    /// Before the earliest time that can be, by a multiple of 1,024 weeks from a believable
    /// one: the receiver lost count of the weeks. Never sets the clock.
    Rollover,
    /// Before the earliest time that can be (1970, 1980, a cold receiver). Never sets the clock.
    TooEarly,
    /// More than 1,024 weeks after the earliest time that can be. Never sets the clock.
    TooLate,
}

/// How a place got its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlaceKind {
    /// By the config.
    Named,
    /// By us: `place-N`.
    Learned,
}

impl PlaceKind {
    /// The name used in metadata.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::Learned => "learned",
        }
    }
}

/// A place by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The config's name, or `place-N`.
    pub name: String,
    /// Which of the two.
    pub kind: PlaceKind,
}

/// What the fixes amount to.
#[derive(Debug, Clone, PartialEq)]
pub enum PlaceObservation {
    /// The device has been at one place long enough. `end` is the time of the latest fix there.
    StayBegan(Stay),
    /// It has left, or was lost sight of. Same `start` as when it began.
    StayEnded(Stay),
    /// It went from one stay to the next; follows the end of the first and precedes the begin of the second.
    Trip(Trip),
}

/// Some time at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Stay {
    /// The receiver.
    pub source: SourceId,
    /// The first fix at the place.
    pub start: Stamp,
    /// The last fix at the place.
    pub end: Stamp,
    /// Which place.
    pub place: Place,
    /// Mean of the fixes.
    pub centre: Position,
    /// Radius in metres around `centre` that holds about 95 % of the fixes.
    pub radius_m: f64,
    /// Fixes that were counted, at most one a second.
    pub fix_count: u64,
    /// Milliseconds between `start` and `end` for which there was no fix.
    pub unobserved_ms: i64,
}

/// The way from one stay to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Trip {
    /// The receiver.
    pub source: SourceId,
    /// The last fix at the place it left.
    pub start: Stamp,
    /// The first fix at the place it reached.
    pub end: Stamp,
    /// The place it left.
    pub from: Place,
    /// The place it reached.
    pub to: Place,
    /// Length of the way in metres: of the smoothed track, straight where there was no fix.
    pub distance_m: f64,
    /// The box around the way.
    pub bounds: Bounds,
    /// Milliseconds of the way for which there was no fix.
    pub unobserved_ms: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_degree_of_latitude_and_antipodes_have_the_length_of_the_sphere() {
        let degree_m = EARTH_RADIUS_M * std::f64::consts::PI / 180.0;
        let at = |latitude_deg, longitude_deg| Position::new(latitude_deg, longitude_deg).unwrap();

        assert!((at(52.0, 13.0).distance_m(at(53.0, 13.0)) - degree_m).abs() < 1e-3);
        assert!((at(0.0, 179.5).distance_m(at(0.0, -179.5)) - degree_m).abs() < 1e-3);
        assert!((at(60.0, 0.0).distance_m(at(60.0, 0.001)) - degree_m * 0.0005).abs() < 1e-3);
        assert!((at(0.0, 0.0).distance_m(at(0.0, 180.0)) - 180.0 * degree_m).abs() < 1e-3);
        assert!(at(52.5, 13.4).distance_m(at(52.5, 13.4)).abs() < f64::EPSILON);
    }

    #[test]
    fn what_is_no_point_on_the_earth_is_refused() {
        for (latitude_deg, longitude_deg) in
            [(f64::NAN, 0.0), (0.0, f64::NAN), (90.1, 0.0), (-90.1, 0.0), (0.0, 180.1), (0.0, f64::INFINITY)]
        {
            assert_eq!(Position::new(latitude_deg, longitude_deg), None);
        }
        assert!(Position::new(-90.0, -180.0).is_some());
    }
}

//! Plane geometry around a point, and boxes that may span the 180th meridian.
//!
//! In: positions. Out: metres east and north, means, bounds. Never: distances over more than some
//! kilometres, for which the sphere of [`Position::distance_m`] is asked.

use crate::domain::observation::place::Bounds;
use crate::domain::observation::place::EARTH_RADIUS_M;
use crate::domain::observation::place::Position;

/// Mean of positions that lie within some kilometres of each other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mean {
    origin: Position,
    east_m: f64,
    north_m: f64,
    count: u64,
}

impl Mean {
    /// The mean of one.
    pub(super) const fn of(position: Position) -> Self {
        Self { origin: position, east_m: 0.0, north_m: 0.0, count: 1 }
    }

    /// The mean of them all; `None` of none.
    pub(super) fn of_all(mut positions: impl Iterator<Item = Position>) -> Option<Self> {
        let mut mean = Self::of(positions.next()?);
        positions.for_each(|position| mean.count(position));
        Some(mean)
    }

    pub(super) fn count(&mut self, position: Position) {
        let metres_per_deg = EARTH_RADIUS_M.to_radians();
        self.east_m +=
            wrapped_deg(position.longitude_deg - self.origin.longitude_deg) * metres_per_deg * self.shrink_east();
        self.north_m += (position.latitude_deg - self.origin.latitude_deg) * metres_per_deg;
        self.count += 1;
    }

    pub(super) fn position(&self) -> Position {
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
        let count = self.count as f64;
        let metres_per_deg = EARTH_RADIUS_M.to_radians();
        let north_deg = self.north_m / count / metres_per_deg;
        let east_deg = self.east_m / count / metres_per_deg / self.shrink_east();
        Position {
            latitude_deg: (self.origin.latitude_deg + north_deg).clamp(-90.0, 90.0),
            longitude_deg: wrapped_deg(self.origin.longitude_deg + east_deg),
        }
    }

    pub(super) const fn len(&self) -> u64 {
        self.count
    }

    /// How much shorter a degree east is here than on the equator; never quite zero, for the poles.
    fn shrink_east(&self) -> f64 {
        self.origin.latitude_deg.to_radians().cos().max(1e-6)
    }
}

/// The position in the middle of each direction, which a few stray ones do not move; `None` of none.
pub(super) fn median(positions: &[Position]) -> Option<Position> {
    let first = positions.first()?;
    let middle = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        let (upper, lower) = (values.get(values.len() / 2)?, values.get((values.len() - 1) / 2)?);
        Some(f64::midpoint(*upper, *lower))
    };
    let north_deg = middle(positions.iter().map(|position| position.latitude_deg).collect())?;
    let from_first = |position: &Position| wrapped_deg(position.longitude_deg - first.longitude_deg);
    let east_deg = middle(positions.iter().map(from_first).collect())?;
    Some(Position { latitude_deg: north_deg, longitude_deg: wrapped_deg(first.longitude_deg + east_deg) })
}

/// A box that grows. Longitudes run on past 180° inside, so that a way across the meridian stays in one piece.
#[derive(Debug, Clone, Copy)]
pub(super) struct GrowingBounds {
    south_deg: f64,
    north_deg: f64,
    west_deg: f64,
    east_deg: f64,
    latest_deg: f64,
}

impl GrowingBounds {
    pub(super) const fn of(position: Position) -> Self {
        Self {
            south_deg: position.latitude_deg,
            north_deg: position.latitude_deg,
            west_deg: position.longitude_deg,
            east_deg: position.longitude_deg,
            latest_deg: position.longitude_deg,
        }
    }

    pub(super) fn count(&mut self, position: Position) {
        self.latest_deg += wrapped_deg(position.longitude_deg - self.latest_deg);
        self.south_deg = self.south_deg.min(position.latitude_deg);
        self.north_deg = self.north_deg.max(position.latitude_deg);
        self.west_deg = self.west_deg.min(self.latest_deg);
        self.east_deg = self.east_deg.max(self.latest_deg);
    }

    pub(super) fn bounds(&self) -> Bounds {
        let is_around = self.east_deg - self.west_deg >= 360.0;
        Bounds {
            south_deg: self.south_deg,
            north_deg: self.north_deg,
            west_deg: if is_around { -180.0 } else { wrapped_deg(self.west_deg) },
            east_deg: if is_around { 180.0 } else { wrapped_deg(self.east_deg) },
        }
    }
}

/// The same angle within −180 to 180.
fn wrapped_deg(angle_deg: f64) -> f64 {
    if angle_deg.abs() <= 180.0 { angle_deg } else { (angle_deg + 180.0).rem_euclid(360.0) - 180.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(latitude_deg: f64, longitude_deg: f64) -> Position {
        Position::new(latitude_deg, longitude_deg).unwrap()
    }

    #[test]
    fn the_mean_of_two_points_beside_the_meridian_lies_on_it() {
        let mean = Mean::of_all([at(10.0, 179.999), at(10.002, -179.999)].into_iter()).unwrap().position();

        assert!(mean.distance_m(at(10.001, 180.0)) < 0.01);
        assert!(mean.longitude_deg.abs() <= 180.0);
    }

    #[test]
    fn the_median_lies_where_most_are() {
        let positions = [at(1.0, 179.999), at(1.0, -179.999), at(1.001, 180.0), at(9.0, 0.0)];

        let median = median(&positions).unwrap();

        assert!((median.latitude_deg - 1.0005).abs() < 1e-9);
        assert_eq!(super::median(&[]), None);
    }

    #[test]
    fn a_box_across_the_meridian_has_its_west_greater_than_its_east() {
        let mut bounds = GrowingBounds::of(at(-1.0, 179.0));
        bounds.count(at(1.0, -179.0));

        let expected = Bounds { south_deg: -1.0, west_deg: 179.0, north_deg: 1.0, east_deg: -179.0 };
        assert_eq!(bounds.bounds(), expected);
    }
}

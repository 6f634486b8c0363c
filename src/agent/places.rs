//! GPS receivers: from reports to stays and trips.
//!
//! In: readings of receivers, counts of devices near by. Out: drafts, coverage, the receiver's time. Never: I/O.

use crate::domain::coverage::Coverage;
use crate::domain::episode::Draft;
use crate::domain::id::SourceId;
use crate::domain::observation::place::Position;
use crate::domain::observation::place::ReceiverTime;
use crate::domain::observation::presence::PresenceObservation;
use crate::domain::reading::Reading;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;
use crate::episodes::spatial;
use crate::episodes::spatial::SpatialBuilder;
use crate::perception::fix;
use crate::perception::fix::FixTracker;
use crate::perception::place;
use crate::perception::place::LearnedPlace;
use crate::perception::place::PlaceTracker;
use std::collections::BTreeMap;

/// The receivers of one device.
#[derive(Debug)]
pub struct Places {
    fix_config: fix::Config,
    place_config: place::Config,
    earliest: Timestamp,
    receivers: BTreeMap<SourceId, (FixTracker, PlaceTracker)>,
    learned: Vec<LearnedPlace>,
    builder: SpatialBuilder,
    now: Option<Stamp>,
}

impl Places {
    /// No receiver has reported yet. `device` is how the graph calls this device.
    #[must_use]
    pub fn new(
        fix_config: fix::Config,
        place_config: place::Config,
        spatial_config: &spatial::Config,
        device: &str,
        earliest: Timestamp,
    ) -> Self {
        let builder = SpatialBuilder::new(spatial_config, device);
        let (receivers, learned) = (BTreeMap::new(), Vec::new());
        Self { fix_config, place_config, earliest, receivers, learned, builder, now: None }
    }

    /// Takes what earlier runs remembered: the name, middle and end of each stay at a place without a name of its own, the
    /// latest first. Receivers that have reported by now are not told.
    pub fn remember<'a>(&mut self, stays: impl IntoIterator<Item = (&'a str, Position, Timestamp)>) {
        let (radius_m, places_max) = (self.place_config.stay_radius_m, self.place_config.learned_places_max);
        self.learned = LearnedPlace::of_stays(stays, radius_m, places_max);
    }

    /// Takes a reading of a receiver.
    pub fn handle_reading(&mut self, reading: &Reading) {
        self.now = Some(reading.captured_at);
        let (fixes, _) = self.receivers.entry(reading.source.clone()).or_insert_with(|| {
            let source = reading.source.clone();
            (
                FixTracker::new(self.fix_config.clone(), source.clone(), self.earliest),
                PlaceTracker::new(self.place_config.clone(), source, self.learned.clone()),
            )
        });
        fixes.handle_reading(reading);
        self.collect();
    }

    fn collect(&mut self) {
        for (fixes, places) in self.receivers.values_mut() {
            while let Some(fix) = fixes.poll_fix() {
                places.handle_fix(&fix);
            }
            while let Some(observation) = places.poll_observation() {
                self.builder.handle_observation(&observation);
            }
        }
    }

    /// Counts of devices near by become spatial episodes.
    pub fn handle_presence(&mut self, observation: &PresenceObservation) {
        if let PresenceObservation::Crowd(count) = observation {
            self.builder.handle_crowd(count);
        }
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Stamp) {
        self.now = Some(now);
        for (fixes, places) in self.receivers.values_mut() {
            fixes.handle_timeout(now);
            places.handle_timeout(now);
        }
        self.collect();
        self.builder.handle_timeout(now);
    }

    /// When [`Self::handle_timeout`] has something to do, monotonic.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        let receivers =
            self.receivers.values().flat_map(|(fixes, places)| [fixes.poll_timeout(), places.poll_timeout()]);
        receivers.chain([self.builder.poll_timeout()]).flatten().min()
    }

    /// There will be no more readings.
    pub fn finish(&mut self, now: Stamp) {
        for (fixes, places) in self.receivers.values_mut() {
            fixes.finish(now);
            places.finish();
        }
        self.collect();
        self.builder.finish();
    }

    /// The next draft.
    pub fn poll_draft(&mut self) -> Option<Draft> {
        self.builder.poll_draft()
    }

    /// The next blind interval.
    pub fn poll_coverage(&mut self) -> Option<Coverage> {
        self.receivers.values_mut().find_map(|(fixes, _)| fixes.poll_coverage())
    }

    /// A believable time of a receiver.
    pub fn poll_gps_time(&mut self) -> Option<Timestamp> {
        for (fixes, _) in self.receivers.values_mut() {
            while let Some(observation) = fixes.poll_clock() {
                if observation.verdict == ReceiverTime::Plausible {
                    return Some(observation.receiver_time);
                }
            }
        }
        None
    }

    /// The place the device is staying at.
    #[must_use]
    pub fn current_place(&self) -> Option<&str> {
        self.builder.current_place()
    }

    /// Degrees north and east of the latest fix that is not stale.
    #[must_use]
    pub fn position_deg(&self) -> Option<(f64, f64)> {
        let now = self.now?;
        let fix = self.receivers.values().find_map(|(fixes, _)| fixes.current_fix(now))?;
        Some((fix.position.latitude_deg, fix.position.longitude_deg))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::SensorKind;
    use crate::domain::reading::GpsReport;
    use crate::domain::reading::Payload;
    use crate::domain::reading::PositionReport;
    use crate::domain::time::ClockQuality;

    #[test]
    fn a_place_of_an_earlier_run_keeps_its_name_and_a_new_one_gets_the_next() {
        let mut places = Places::new(
            fix::Config::default(),
            place::Config::default(),
            &spatial::Config::default(),
            "device",
            Timestamp::from_millis(0),
        );
        let at = |latitude_deg: f64| Position::new(latitude_deg, 13.4).unwrap();
        let end = Timestamp::from_millis(5);
        places.remember([("place-7", at(52.5), end), ("place-3", at(53.0), end), ("place-7", at(52.6), end)]);

        stand(&mut places, 0..=900, 53.0);
        stand(&mut places, 20_000..=20_900, 54.0);

        let kind = |draft: &Draft| draft.metadata["kind"].as_str() == Some("stay");
        let stays: Vec<Draft> = std::iter::from_fn(|| places.poll_draft()).filter(kind).collect();
        let mut names: Vec<&str> = stays.iter().filter_map(|draft| draft.metadata["place"].as_str()).collect();
        names.dedup();
        assert_eq!(names, ["place-3", "place-8"]);
    }

    fn stand(places: &mut Places, seconds: std::ops::RangeInclusive<i64>, latitude_deg: f64) {
        for second in seconds.step_by(5) {
            let report = PositionReport {
                mode: 3,
                latitude_deg: Some(latitude_deg),
                longitude_deg: Some(13.4),
                ..PositionReport::default()
            };
            let millis = second * 1_000;
            let utc = Timestamp::from_millis(millis);
            places.handle_reading(&Reading {
                source: SourceId::of(SensorKind::Gps, "test"),
                captured_at: Stamp { monotonic_ms: millis, utc, quality: ClockQuality::Network },
                payload: Payload::Position(GpsReport::Position(report)),
            });
        }
    }
}

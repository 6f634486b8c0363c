//! GPS receivers: from reports to stays and trips.
//!
//! In: readings of receivers, counts of devices near by. Out: drafts, coverage, the receiver's time. Never: I/O.

use crate::domain::coverage::Coverage;
use crate::domain::episode::Draft;
use crate::domain::id::SourceId;
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
use crate::perception::place::PlaceTracker;
use std::collections::BTreeMap;

/// The receivers of one device.
#[derive(Debug)]
pub struct Places {
    fix_config: fix::Config,
    place_config: place::Config,
    earliest: Timestamp,
    receivers: BTreeMap<SourceId, (FixTracker, PlaceTracker)>,
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
        Self { fix_config, place_config, earliest, receivers: BTreeMap::new(), builder, now: None }
    }

    /// Takes a reading of a receiver.
    pub fn handle_reading(&mut self, reading: &Reading) {
        self.now = Some(reading.captured_at);
        let (fixes, _) = self.receivers.entry(reading.source.clone()).or_insert_with(|| {
            let source = reading.source.clone();
            (
                FixTracker::new(self.fix_config.clone(), source.clone(), self.earliest),
                PlaceTracker::new(self.place_config.clone(), source, Vec::new()),
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

//! Perception and episode builders of all sensors, each made when its sensor first delivers.
//!
//! In: readings, time. Out: drafts, coverage, the receiver's time, and what is noticed right now.
//! Never: files, the store, the clock.

use crate::agent::people::People;
use crate::agent::places::Places;
use crate::agent::sights::Sights;
use crate::agent::sounds::Sounds;
use crate::agent::surroundings::Surroundings;
use crate::domain::coverage::Coverage;
use crate::domain::episode::Draft;
use crate::domain::id::ModelId;
use crate::domain::id::SensorKind;
use crate::domain::reading::Reading;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;

/// The senses of one device.
pub struct Senses {
    /// Microphones.
    pub sounds: Sounds,
    /// Cameras.
    pub sights: Sights,
    /// GPS receivers.
    pub places: Places,
    /// Bluetooth adapters.
    pub people: People,
}

impl Senses {
    /// The model of the image vectors, when there is one.
    #[must_use]
    pub fn clip_model(&self) -> Option<ModelId> {
        self.sights.clip_model()
    }

    /// Takes a reading of any sensor.
    pub fn handle_reading(&mut self, reading: &Reading) {
        match reading.source.kind() {
            Some(SensorKind::Microphone) => self.sounds.handle_reading(reading),
            Some(SensorKind::Camera) => self.sights.handle_reading(reading),
            Some(SensorKind::Gps) => self.places.handle_reading(reading),
            Some(SensorKind::Bluetooth) => self.people.handle_reading(reading),
            None => {}
        }
        self.settle();
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Stamp) {
        self.sounds.handle_timeout(now);
        self.sights.handle_timeout(now);
        self.places.handle_timeout(now);
        self.people.handle_timeout(now);
        self.settle();
    }

    /// People are met where the device is, and crowds are counted among its places.
    fn settle(&mut self) {
        while let Some(observation) = self.people.poll_observation() {
            self.places.handle_presence(&observation);
            self.people.remember(&observation, self.places.current_place());
        }
    }

    /// When [`Self::handle_timeout`] has something to do, monotonic.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        let due = [
            self.sounds.poll_timeout(),
            self.sights.poll_timeout(),
            self.places.poll_timeout(),
            self.people.poll_timeout(),
        ];
        due.into_iter().flatten().min()
    }

    /// There will be no more readings.
    pub fn finish(&mut self, now: Stamp) {
        self.sounds.finish();
        self.sights.finish();
        // People first: they depart from where the device still is.
        self.people.finish(now);
        self.settle();
        self.places.finish(now);
    }

    /// The next draft.
    pub fn poll_draft(&mut self) -> Option<Draft> {
        self.sounds
            .poll_draft()
            .or_else(|| self.sights.poll_draft())
            .or_else(|| self.places.poll_draft())
            .or_else(|| self.people.poll_draft())
    }

    /// The next blind interval.
    pub fn poll_coverage(&mut self) -> Option<Coverage> {
        self.sounds.poll_coverage().or_else(|| self.sights.poll_coverage()).or_else(|| self.places.poll_coverage())
    }

    /// A believable time from a receiver, once.
    pub fn poll_gps_time(&mut self) -> Option<Timestamp> {
        self.places.poll_gps_time()
    }

    /// Says what is noticed right now.
    pub fn describe(&mut self, surroundings: &mut Surroundings) {
        self.sounds.describe(surroundings);
        self.sights.describe(surroundings);
        surroundings.is_at(self.places.current_place(), self.places.position_deg());
    }
}

//! Bluetooth adapters: from advertisements to meetings and counts.
//!
//! In: readings of adapters. Out: observations for the places (counts), drafts of meetings. Never: I/O, an address.

use crate::domain::episode::Draft;
use crate::domain::id::SourceId;
use crate::domain::observation::presence::PresenceObservation;
use crate::domain::reading::Reading;
use crate::domain::time::Stamp;
use crate::episodes::social::SocialBuilder;
use crate::perception::identity::KnownPeople;
use crate::perception::presence;
use crate::perception::presence::PresenceTracker;
use crate::perception::presence::Salt;
use anyhow::Context as _;
use std::collections::BTreeMap;

/// The adapters of one device.
#[derive(Debug)]
pub struct People {
    config: presence::Config,
    known: KnownPeople,
    salt: Salt,
    adapters: BTreeMap<SourceId, PresenceTracker>,
    builder: SocialBuilder,
}

impl People {
    /// Nobody is near yet.
    #[must_use]
    pub fn new(config: presence::Config, known: KnownPeople, salt: Salt) -> Self {
        Self { config, known, salt, adapters: BTreeMap::new(), builder: SocialBuilder::new() }
    }

    /// Takes a reading of an adapter.
    pub fn handle_reading(&mut self, reading: &Reading) {
        let adapter = self.adapters.entry(reading.source.clone()).or_insert_with(|| {
            PresenceTracker::new(&self.config, reading.source.clone(), self.known.clone(), self.salt.clone())
        });
        adapter.handle_reading(reading);
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Stamp) {
        for adapter in self.adapters.values_mut() {
            adapter.handle_timeout(now);
        }
    }

    /// When [`Self::handle_timeout`] has something to do, monotonic.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        self.adapters.values().filter_map(PresenceTracker::poll_timeout).min()
    }

    /// The next observation.
    pub fn poll_observation(&mut self) -> Option<PresenceObservation> {
        self.adapters.values_mut().find_map(PresenceTracker::poll_observation)
    }

    /// Remembers a meeting, at the place where the device is.
    pub fn remember(&mut self, observation: &PresenceObservation, place: Option<&str>) {
        self.builder.handle_observation(observation, place);
    }

    /// There will be no more readings.
    pub fn finish(&mut self, now: Stamp) {
        for adapter in self.adapters.values_mut() {
            adapter.finish(now);
        }
    }

    /// The next draft.
    pub fn poll_draft(&mut self) -> Option<Draft> {
        self.builder.poll_draft()
    }
}

/// Makes the people of the config known. A key file that cannot be read is an error: a person who is silently not
/// recognised would be counted among the unknown.
///
/// # Errors
/// Names the person and the file.
pub fn known_people(people: &[presence::Person]) -> anyhow::Result<KnownPeople> {
    let mut known = KnownPeople::default();
    for person in people {
        let file = &person.key_file;
        let read = || std::fs::read_to_string(file).with_context(|| format!("key file {file} of {}", person.name));
        let key = if file.is_empty() { None } else { Some(read()?) };
        person
            .introduce(&mut known, key.as_deref().map(str::trim))
            .with_context(|| format!("people: {}", person.name))?;
    }
    Ok(known)
}

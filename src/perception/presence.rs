//! Notices known people and counts unknown devices.
//!
//! In: the [`Reading`]s of one Bluetooth adapter, in order, and the passing of time.
//! Out: [`PresenceObservation`]s: arrival and departure of known people, and a count every `count_s`.
//!
//! An absence shorter than `absence_s` does not end a visit; the departure is the last sighting.
//! Everything but known people is kept only as a token under a [`Salt`] that is replaced every day,
//! and only while it may still be near.
//! Never: an address in an observation, a log line or anything that lasts; I/O, the clock.

mod crowd;
mod device;
mod salt;
mod visits;

pub use salt::Salt;

use crate::domain::id::SourceId;
use crate::domain::observation::presence::CrowdCount;
use crate::domain::observation::presence::PresenceObservation;
use crate::domain::reading::Advertisement;
use crate::domain::reading::Payload;
use crate::domain::reading::Reading;
use crate::domain::time::Stamp;
use crate::perception::identity::Address;
use crate::perception::identity::IdentityError;
use crate::perception::identity::IdentityKey;
use crate::perception::identity::KnownPeople;
use crowd::Crowd;
use salt::Salter;
use std::collections::VecDeque;
use visits::Visits;

/// Who is known, and what counts as a visit and as near.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Seconds without a sighting after which a person has departed.
    pub absence_s: f64,
    /// Seconds after its last advertisement for which a device still counts as near.
    pub window_s: f64,
    /// Seconds between two counts of unknown devices.
    pub count_s: f64,
    /// Unknown devices remembered at once; beyond it the longest unseen are forgotten.
    pub tokens_max: usize,
    /// People present at once; beyond it they count as unknown devices.
    pub people_max: usize,
    /// The people to be recognised.
    #[serde(skip)]
    pub people: Vec<Person>,
}

impl Default for Config {
    fn default() -> Self {
        Self { absence_s: 300.0, window_s: 120.0, count_s: 60.0, tokens_max: 2048, people_max: 256, people: Vec::new() }
    }
}

/// A person of the config.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Person {
    /// What episodes call the person.
    pub name: String,
    /// Addresses of devices that keep theirs: `C0:FF:EE:00:12:34`.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// File that holds the identity resolving key of a device that changes its address; empty: none. See
    /// [`IdentityKey::parse`] for what stands in it.
    #[serde(default)]
    pub key_file: String,
}

impl std::fmt::Debug for Person {
    /// Hides the addresses, so that a dump of the config shows none.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Person").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Person {
    /// Makes the person known, with the text of the key file where there is one.
    ///
    /// # Errors
    /// [`IdentityError`] at the first address or key that is none; what came before it is known.
    pub fn introduce(&self, known: &mut KnownPeople, key: Option<&str>) -> Result<(), IdentityError> {
        for address in &self.addresses {
            known.add_address(&self.name, Address::parse(address)?);
        }
        if let Some(key) = key {
            known.add_key(&self.name, IdentityKey::parse(key)?);
        }
        Ok(())
    }
}

impl Config {
    /// What is wrong with the values, one sentence each. Shows no address.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        let keys = [("absence_s", self.absence_s), ("window_s", self.window_s), ("count_s", self.count_s)];
        let mut mistakes: Vec<String> = keys
            .into_iter()
            .filter(|(_, value)| !(value.is_finite() && *value >= 1.0))
            .map(|(key, value)| format!("{key} = {value} must be a number of at least 1"))
            .collect();
        let bounds = [("tokens_max", self.tokens_max), ("people_max", self.people_max)];
        let zero = bounds.into_iter().filter(|(_, value)| *value == 0);
        mistakes.extend(zero.map(|(key, _)| format!("{key} = 0 must be at least 1")));
        for (index, person) in self.people.iter().enumerate() {
            if person.name.trim().is_empty() {
                mistakes.push(format!("people[{index}]: name is empty"));
            }
            if let Err(error) = person.introduce(&mut KnownPeople::default(), None) {
                mistakes.push(format!("people[{index}].addresses: {error}"));
            }
        }
        mistakes
    }
}

/// What became of the advertisements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PresenceCounts {
    /// Advertisements taken.
    pub advertisements: u64,
    /// Those of known people.
    pub sightings: u64,
    /// Signal strengths that are no measurement (127, 0, above +20 dBm).
    pub rssi_invalid: u64,
    /// Unknown devices forgotten for want of room.
    pub tokens_dropped: u64,
}

/// Follows what one adapter receives.
#[derive(Debug)]
pub struct PresenceTracker {
    source: SourceId,
    known: KnownPeople,
    salter: Salter,
    visits: Visits,
    crowd: Crowd,
    count_ms: i64,
    /// Since when the next count is open; `None` while nothing is near or nothing is received.
    counting_from: Option<Stamp>,
    latest: Option<Stamp>,
    observations: VecDeque<PresenceObservation>,
    counts: PresenceCounts,
}

impl PresenceTracker {
    /// A tracker for one adapter. `salt` is random for a live one and derived from the session for a recorded one.
    #[must_use]
    pub fn new(config: &Config, source: SourceId, known: KnownPeople, salt: Salt) -> Self {
        let window_ms = millis(config.window_s);
        Self {
            visits: Visits::new(source.clone(), millis(config.absence_s), config.people_max),
            crowd: Crowd::new(window_ms, config.tokens_max),
            salter: Salter::new(salt, window_ms),
            count_ms: millis(config.count_s),
            source,
            known,
            counting_from: None,
            latest: None,
            observations: VecDeque::new(),
            counts: PresenceCounts::default(),
        }
    }

    /// Takes the next reading. Readings of other sensors are ignored.
    pub fn handle_reading(&mut self, reading: &Reading) {
        let now = reading.captured_at;
        match &reading.payload {
            Payload::Advertisement(advertisement) => {
                self.handle_timeout(now);
                self.latest = Some(now);
                self.handle_advertisement(advertisement, now);
            }
            Payload::Loss(_) => self.pause(now),
            Payload::Sound(_) | Payload::Picture(_) | Payload::Position(_) => {}
        }
    }

    /// Lets time pass: counts and departures that are due are made in the order they fell due.
    pub fn handle_timeout(&mut self, now: Stamp) {
        while let (Some(due_ms), Some(latest)) = (self.poll_timeout(), self.latest)
            && due_ms <= now.monotonic_ms
        {
            // Told by the clock of the latest reading, so that it makes no difference how often we are woken.
            let due = latest.plus_millis(due_ms - latest.monotonic_ms);
            self.visits.handle_timeout(due);
            self.take_meetings();
            if self.count_due_ms().is_some_and(|count_ms| count_ms <= due_ms) {
                self.count(due);
            }
        }
    }

    /// When [`Self::handle_timeout`] has something to do next, in monotonic milliseconds.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        [self.visits.poll_timeout(), self.count_due_ms()].into_iter().flatten().min()
    }

    /// The next observation.
    pub fn poll_observation(&mut self) -> Option<PresenceObservation> {
        self.observations.pop_front()
    }

    /// Ends what is open at `now`: there will be no more readings.
    pub fn finish(&mut self, now: Stamp) {
        self.pause(now);
        self.visits.finish();
        self.take_meetings();
    }

    /// What became of the advertisements so far.
    #[must_use]
    pub const fn counts(&self) -> PresenceCounts {
        PresenceCounts { tokens_dropped: self.crowd.dropped(), ..self.counts }
    }

    fn handle_advertisement(&mut self, advertisement: &Advertisement, now: Stamp) {
        self.counts.advertisements += 1;
        let rssi_dbm = advertisement.rssi_dbm.and_then(measured);
        self.counts.rssi_invalid += u64::from(advertisement.rssi_dbm.is_some() && rssi_dbm.is_none());
        let person = self.known.recognise(&advertisement.sender);
        if person.is_some_and(|person| self.visits.handle_sighting(person, rssi_dbm, now)) {
            self.counts.sightings += 1;
            return self.take_meetings();
        }
        let tokens = self.salter.tokens(&advertisement.sender, now.monotonic_ms);
        self.crowd.handle_advertisement(tokens, advertisement, rssi_dbm, now.monotonic_ms);
        self.counting_from.get_or_insert(now);
    }

    fn count_due_ms(&self) -> Option<i64> {
        self.counting_from.map(|from| from.monotonic_ms.saturating_add(self.count_ms))
    }

    fn count(&mut self, now: Stamp) {
        let Some(from) = self.counting_from.take() else { return };
        let device_count = self.crowd.estimate(now.monotonic_ms);
        let source = self.source.clone();
        self.observations.push_back(PresenceObservation::Crowd(CrowdCount { source, from, to: now, device_count }));
        // An empty room is told once; the next advertisement opens the next count.
        self.counting_from = (device_count > 0).then_some(now);
    }

    /// Nothing is received from `now` on: what was counted so far is told, and nothing is claimed of the rest.
    fn pause(&mut self, now: Stamp) {
        self.handle_timeout(now);
        if self.counting_from.is_some_and(|from| now.millis_since(from) > 0) {
            self.count(now);
        }
        self.counting_from = None;
    }

    fn take_meetings(&mut self) {
        while let Some(meeting) = self.visits.poll() {
            self.observations.push_back(PresenceObservation::Met(meeting));
        }
    }
}

/// A signal strength in dBm, unless it is a way to say that there is none: adapters report −127 to
/// +20, and 127 for "not available" (Core Specification, Vol 4 Part E 7.7.65.2); drivers send 0 for the same.
fn measured(rssi_dbm: i16) -> Option<i16> {
    ((-127..=20).contains(&rssi_dbm) && rssi_dbm != 0).then_some(rssi_dbm)
}

/// Seconds of the config as whole milliseconds, at least 1; NaN becomes 1.
fn millis(seconds: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "float casts saturate and send NaN to 0")]
    let millis = (seconds * 1000.0).round() as i64;
    millis.max(1)
}

#[cfg(test)]
mod tests;

//! Who is here: a visit lasts from the first sighting to the last one before a long absence.
//!
//! In: sightings of known people. Out: a [`Meeting`] at arrival and again at departure.
//! Never: more than `people_max` visits at once.

use crate::domain::id::SourceId;
use crate::domain::observation::presence::Meeting;
use crate::domain::time::Stamp;
use std::collections::BTreeMap;
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Visits {
    source: SourceId,
    absence_ms: i64,
    people_max: usize,
    present: BTreeMap<String, Visit>,
    meetings: VecDeque<Meeting>,
}

#[derive(Debug)]
struct Visit {
    arrival: Stamp,
    latest: Stamp,
    nearest_rssi_dbm: Option<i16>,
    sightings: u64,
}

impl Visits {
    pub(super) const fn new(source: SourceId, absence_ms: i64, people_max: usize) -> Self {
        Self { source, absence_ms, people_max, present: BTreeMap::new(), meetings: VecDeque::new() }
    }

    /// Counts a sighting. `false` when there is no room for another person.
    pub(super) fn handle_sighting(&mut self, person: &str, rssi_dbm: Option<i16>, now: Stamp) -> bool {
        if let Some(visit) = self.present.get_mut(person) {
            visit.latest = now;
            visit.nearest_rssi_dbm = visit.nearest_rssi_dbm.max(rssi_dbm);
            visit.sightings += 1;
            return true;
        }
        if self.present.len() >= self.people_max {
            return false;
        }
        let visit = Visit { arrival: now, latest: now, nearest_rssi_dbm: rssi_dbm, sightings: 1 };
        self.meetings.push_back(self.meeting(person, &visit, None));
        self.present.insert(person.to_owned(), visit);
        true
    }

    /// Lets people go who have been absent for long enough, the longest absent first.
    pub(super) fn handle_timeout(&mut self, now: Stamp) {
        let is_gone = |visit: &Visit| now.millis_since(visit.latest) >= self.absence_ms;
        let mut gone: Vec<_> = self.present.iter().filter(|(_, visit)| is_gone(visit)).collect();
        gone.sort_by_key(|(person, visit)| (visit.latest.monotonic_ms, person.to_owned()));
        let gone: Vec<String> = gone.into_iter().map(|(person, _)| person.clone()).collect();
        gone.iter().for_each(|person| self.depart(person));
    }

    pub(super) fn poll_timeout(&self) -> Option<i64> {
        self.present.values().map(|visit| visit.latest.monotonic_ms.saturating_add(self.absence_ms)).min()
    }

    pub(super) fn poll(&mut self) -> Option<Meeting> {
        self.meetings.pop_front()
    }

    /// Lets everybody go.
    pub(super) fn finish(&mut self) {
        let all: Vec<String> = self.present.keys().cloned().collect();
        all.iter().for_each(|person| self.depart(person));
    }

    fn depart(&mut self, person: &str) {
        if let Some(visit) = self.present.remove(person) {
            self.meetings.push_back(self.meeting(person, &visit, Some(visit.latest)));
        }
    }

    fn meeting(&self, person: &str, visit: &Visit, departure: Option<Stamp>) -> Meeting {
        Meeting {
            source: self.source.clone(),
            person: person.to_owned(),
            arrival: visit.arrival,
            departure,
            nearest_rssi_dbm: visit.nearest_rssi_dbm,
            sightings: visit.sightings,
        }
    }
}

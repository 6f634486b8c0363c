//! Remembers meetings: one draft at arrival, the same one again at departure.
//!
//! In: [`Meeting`]s, and the place the device is at. Out: [`Draft`]s of kind social, which
//! `moment` makes into the meeting's only row. Never: an address, I/O, the clock.

use crate::domain::episode::Draft;
use crate::domain::episode::Metadata;
use crate::domain::fact::Fact;
use crate::domain::fact::Node;
use crate::domain::fact::NodeKind;
use crate::domain::id::Ordinals;
use crate::domain::modality::Modality;
use crate::domain::observation::presence::Meeting;
use crate::domain::observation::presence::PresenceObservation;
use crate::domain::time::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::VecDeque;

/// People met at once, at most; a meeting beyond it is closed as it stands.
const OPEN_MAX: usize = 1024;

/// Builds an episode of each meeting.
#[derive(Debug, Default)]
pub struct SocialBuilder {
    ordinals: Ordinals,
    open: BTreeMap<(String, String), Open>,
    drafts: VecDeque<Draft>,
}

/// What the second draft must repeat of the first.
#[derive(Debug, Clone)]
struct Open {
    ordinal: u32,
    place: Option<String>,
}

impl SocialBuilder {
    /// A builder that has met nobody.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next observation. `place` is where the device is, when that is known; the one of the arrival counts.
    pub fn handle_observation(&mut self, observation: &PresenceObservation, place: Option<&str>) {
        let PresenceObservation::Met(meeting) = observation else { return };
        let key = (meeting.source.as_str().to_owned(), meeting.person.clone());
        let open = match self.open.remove(&key) {
            Some(open) => Open { place: open.place.or_else(|| place.map(str::to_owned)), ..open },
            None => Open { ordinal: self.ordinals.next(meeting.arrival.utc), place: place.map(str::to_owned) },
        };
        self.drafts.push_back(draft(meeting, &open));
        if meeting.departure.is_none() && self.open.len() < OPEN_MAX {
            self.open.insert(key, open);
        }
    }

    /// The next draft.
    pub fn poll_draft(&mut self) -> Option<Draft> {
        self.drafts.pop_front()
    }
}

/// `person` `appears_in` `place`: the edge a meeting at a known place adds.
#[must_use]
pub fn appears_in(person: &str, place: &str, from: Timestamp) -> Fact {
    Fact::triple(
        Node::new(NodeKind::Person, person),
        "appears_in",
        Node::new(NodeKind::Location, place),
        format!("{person} seen at {place}"),
        from,
    )
}

fn draft(meeting: &Meeting, open: &Open) -> Draft {
    let place = open.place.as_deref();
    Draft {
        modality: Modality::Social,
        source: meeting.source.clone(),
        start: meeting.arrival,
        end: meeting.departure.unwrap_or(meeting.arrival),
        ordinal: open.ordinal,
        tool_name: "multimodal_memory",
        content: format!("Met {}", meeting.person),
        metadata: metadata(meeting, place),
        embeddings: Vec::new(),
        facts: place.map(|place| appears_in(&meeting.person, place, meeting.arrival.utc)).into_iter().collect(),
        media: Vec::new(),
    }
}

fn metadata(meeting: &Meeting, place: Option<&str>) -> Metadata {
    let mut metadata = Metadata::new();
    metadata.insert("person".to_owned(), meeting.person.clone().into());
    metadata.insert("arrival".to_owned(), meeting.arrival.utc.to_string().into());
    if let Some(departure) = meeting.departure {
        metadata.insert("departure".to_owned(), departure.utc.to_string().into());
        metadata.insert("duration_s".to_owned(), seconds(departure.millis_since(meeting.arrival)));
    }
    if let Some(rssi_dbm) = meeting.nearest_rssi_dbm {
        metadata.insert("nearest_rssi_dbm".to_owned(), rssi_dbm.into());
    }
    metadata.insert("sightings".to_owned(), meeting.sightings.into());
    if let Some(place) = place {
        metadata.insert("place".to_owned(), place.into());
    }
    metadata
}

/// Milliseconds as seconds with at most three decimals.
#[expect(clippy::cast_precision_loss, reason = "durations stay far below 2^53 ms")]
fn seconds(millis: i64) -> Value {
    Value::from(millis as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::SourceId;
    use crate::domain::time::ClockQuality;
    use crate::domain::time::Stamp;

    #[test]
    fn a_meeting_is_written_at_arrival_and_completed_at_departure() {
        let mut builder = SocialBuilder::new();

        builder.handle_observation(&met("Alice", 0, None), Some("Kitchen"));
        let arrival = builder.poll_draft().unwrap();
        builder.handle_observation(&met("Alice", 0, Some(882_000)), Some("Office"));
        let departure = builder.poll_draft().unwrap();

        assert_eq!((arrival.content.as_str(), departure.content.as_str()), ("Met Alice", "Met Alice"));
        assert_eq!((arrival.start, arrival.ordinal), (departure.start, departure.ordinal));
        assert_eq!((arrival.end, departure.end), (at(0), at(882_000)));
        assert!(!arrival.metadata.contains_key("departure"));
        assert_eq!(departure.metadata["departure"], "1970-01-01T00:14:42.000Z");
        assert_eq!(departure.metadata["duration_s"], 882.0);
        assert_eq!(departure.metadata["nearest_rssi_dbm"], -48);
        assert_eq!(departure.metadata["place"], "Kitchen");
        assert_eq!(departure.facts, [appears_in("Alice", "Kitchen", at(0).utc)]);
        assert_eq!(builder.poll_draft(), None);
    }

    #[test]
    fn two_people_who_arrive_in_the_same_millisecond_are_two_rows_to_the_end() {
        let mut builder = SocialBuilder::new();
        for (person, departure_ms) in [("Alice", None), ("Bob", None), ("Bob", Some(5)), ("Alice", Some(9))] {
            builder.handle_observation(&met(person, 0, departure_ms), None);
        }

        let drafts: Vec<_> = std::iter::from_fn(|| builder.poll_draft()).collect();

        let rows: Vec<_> = drafts.iter().map(|draft| (draft.content.as_str(), draft.ordinal)).collect();
        assert_eq!(rows, [("Met Alice", 0), ("Met Bob", 1), ("Met Bob", 1), ("Met Alice", 0)]);
    }

    #[test]
    fn nobody_is_said_to_be_at_a_place_nobody_knows() {
        let mut builder = SocialBuilder::new();

        builder.handle_observation(&met("Alice", 0, None), None);

        let draft = builder.poll_draft().unwrap();
        assert!(draft.facts.is_empty() && !draft.metadata.contains_key("place"));
    }

    fn met(person: &str, arrival_ms: i64, departure_ms: Option<i64>) -> PresenceObservation {
        PresenceObservation::Met(Meeting {
            source: SourceId::new("bluetooth:test"),
            person: person.to_owned(),
            arrival: at(arrival_ms),
            departure: departure_ms.map(at),
            nearest_rssi_dbm: Some(-48),
            sightings: 12,
        })
    }

    fn at(millis: i64) -> Stamp {
        Stamp { monotonic_ms: millis, utc: Timestamp::from_millis(millis), quality: ClockQuality::Network }
    }
}

//! What is written of places and of devices near by.

use super::*;
use crate::domain::id::SourceId;
use crate::domain::observation::place::Place;
use crate::domain::observation::place::PlaceKind;
use crate::domain::observation::place::Position;
use crate::domain::time::ClockQuality;
use crate::domain::time::Timestamp;

#[test]
fn a_stay_is_one_row_written_when_it_began_and_when_it_ended() {
    let mut builder = builder();

    builder.handle_observation(&PlaceObservation::StayBegan(stay("Kitchen", 0, 300)));
    let began = builder.poll_draft().unwrap();
    assert_eq!(builder.current_place(), Some("Kitchen"));
    builder.handle_observation(&PlaceObservation::StayEnded(stay("Kitchen", 0, 2_520)));
    let ended = builder.poll_draft().unwrap();
    assert_eq!(builder.current_place(), None);

    assert_eq!((began.start, began.ordinal), (ended.start, ended.ordinal));
    assert_eq!(began.content, "Staying at Kitchen");
    assert_eq!(ended.content, "Stayed at Kitchen for 42 minutes");
    assert_eq!(ended.tool_name, "gps_location");
    assert_eq!(ended.metadata["duration_s"], 2520.0);
    assert_eq!(ended.metadata["latitude_deg"], 52.5);
    assert_eq!(ended.metadata["radius_m"], 19.6);
    let [fact] = &ended.facts[..] else { panic!("{:?}", ended.facts) };
    assert_eq!((fact.relation.as_str(), fact.object.text.as_str()), ("located_at", "Kitchen"));
    assert_eq!((fact.valid_from, fact.valid_to), (at(0).utc, Some(at(2_520).utc)));
    assert_eq!(began.facts[0].valid_to, None);
}

#[test]
fn a_trip_says_from_where_to_where_how_far_and_how_long() {
    let mut builder = builder();

    builder.handle_observation(&PlaceObservation::Trip(trip("Kitchen", "place-1")));
    builder.handle_observation(&PlaceObservation::Trip(trip("Kitchen", "Kitchen")));

    let drafts: Vec<Draft> = std::iter::from_fn(|| builder.poll_draft()).collect();
    assert_eq!(drafts[0].content, "Travelled 1.3 km from Kitchen to place-1 in 12 minutes");
    assert_eq!(drafts[1].content, "Travelled 1.3 km from Kitchen and back in 12 minutes");
    assert_eq!(drafts[0].metadata["distance_m"], 1260.0);
    assert_eq!(drafts[0].metadata["bounds"]["north_deg"], 52.6);
    assert_eq!([drafts[0].ordinal, drafts[1].ordinal], [0, 1]);
}

#[test]
fn devices_near_by_are_one_episode_an_hour() {
    let mut builder = builder();
    for minute in 0..150 {
        builder.handle_crowd(&count(minute, if minute % 10 == 0 { 9 } else { 7 }));
    }
    builder.finish();

    let drafts = crowds(&mut builder);
    assert_eq!(drafts, [(0, 60, 7), (60, 120, 7), (120, 150, 7)]);
}

#[test]
fn a_lasting_change_of_the_count_begins_another_episode_and_a_passing_one_does_not() {
    let mut builder = builder();
    for minute in 0..60 {
        let device_count = if (20..22).contains(&minute) || minute >= 40 { 12 } else { 2 };
        builder.handle_crowd(&count(minute, device_count));
    }
    builder.finish();

    assert_eq!(crowds(&mut builder), [(0, 40, 2), (40, 60, 12)]);
}

#[test]
fn a_restless_count_makes_at_most_six_episodes_an_hour() {
    let mut builder = builder();
    for minute in 0..600 {
        builder.handle_crowd(&count(minute, if minute / 4 % 2 == 0 { 1 } else { 40 }));
    }
    builder.finish();

    assert!(crowds(&mut builder).len() <= 60);
}

#[test]
fn nobody_near_is_no_episode_and_one_device_is_singular() {
    let mut builder = builder();
    builder.handle_crowd(&count(0, 0));
    builder.finish();
    builder.handle_crowd(&count(100, 1));
    builder.handle_timeout(at(102 * 60));
    assert_eq!(builder.poll_draft(), None);
    builder.handle_timeout(at(120 * 60));

    assert_eq!(builder.poll_draft().map(|draft| draft.content).as_deref(), Some("About 1 device near by"));
    assert_eq!((builder.poll_draft(), builder.poll_timeout()), (None, None));
}

fn builder() -> SpatialBuilder {
    SpatialBuilder::new(&Config::default(), "test device")
}

fn stay(name: &str, start_s: i64, end_s: i64) -> Stay {
    Stay {
        source: SourceId::new("gps:test"),
        start: at(start_s),
        end: at(end_s),
        place: place(name),
        centre: Position { latitude_deg: 52.5, longitude_deg: 13.4 },
        radius_m: 19.58,
        fix_count: 300,
        unobserved_ms: 0,
    }
}

fn trip(from: &str, to: &str) -> Trip {
    Trip {
        source: SourceId::new("gps:test"),
        start: at(0),
        end: at(720),
        from: place(from),
        to: place(to),
        distance_m: 1_260.4,
        bounds: Bounds { south_deg: 52.5, west_deg: 13.4, north_deg: 52.6, east_deg: 13.5 },
        unobserved_ms: 0,
    }
}

fn place(name: &str) -> Place {
    Place { name: name.to_owned(), kind: PlaceKind::Named }
}

fn count(minute: i64, device_count: u32) -> CrowdCount {
    CrowdCount {
        source: SourceId::new("bluetooth:test"),
        from: at(60 * minute),
        to: at(60 * minute + 60),
        device_count,
    }
}

/// Start and end in minutes, and number of devices.
fn crowds(builder: &mut SpatialBuilder) -> Vec<(i64, i64, u64)> {
    std::iter::from_fn(|| builder.poll_draft())
        .map(|draft| {
            let minute = |stamp: Stamp| stamp.monotonic_ms / 60_000;
            (minute(draft.start), minute(draft.end), draft.metadata["device_count"].as_u64().unwrap())
        })
        .collect()
}

fn at(second: i64) -> Stamp {
    Stamp { monotonic_ms: second * 1000, utc: Timestamp::from_millis(second * 1000), quality: ClockQuality::Network }
}

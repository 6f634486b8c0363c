//! Who is noticed and how many are counted, named by what the senders do.

use super::*;
use crate::domain::coverage::CoverageReason;
use crate::domain::observation::presence::Meeting;
use crate::domain::reading::AddressType;
use crate::domain::reading::Loss;
use crate::domain::reading::Sender;
use crate::domain::time::ClockQuality;
use crate::domain::time::Timestamp;
use proptest::prelude::*;

#[test]
fn seen_ten_minutes_gone_four_seen_forty_two_seconds_is_one_visit() {
    let mut tracker = tracker();
    for second in (0..=600).chain(840..=882) {
        tracker.handle_reading(&sent(second, &alice(), Some(-60)));
    }
    tracker.handle_timeout(at(3_600));

    let meetings = meetings(&mut tracker);
    assert_eq!(spans(&meetings), [("Alice", 0, None), ("Alice", 0, Some(882))]);
    assert_eq!(meetings[1].sightings, 644);
}

#[test]
fn an_absence_of_five_minutes_ends_a_visit_at_the_last_sighting() {
    let mut tracker = tracker();
    for second in [0, 100, 399, 700] {
        tracker.handle_reading(&sent(second, &alice(), None));
    }
    tracker.finish(at(800));

    let expected = [("Alice", 0, None), ("Alice", 0, Some(399)), ("Alice", 700, None), ("Alice", 700, Some(700))];
    assert_eq!(spans(&meetings(&mut tracker)), expected);
}

#[test]
fn what_is_no_measurement_is_not_the_nearest() {
    let mut tracker = tracker();
    for (second, rssi_dbm) in (0..).zip([-60, -62, 127, 0, 79, -61]) {
        tracker.handle_reading(&sent(second, &alice(), Some(rssi_dbm)));
    }
    tracker.finish(at(6));

    let meetings = meetings(&mut tracker);
    assert_eq!(meetings[1].nearest_rssi_dbm, Some(-60));
    assert_eq!(meetings[1].sightings, 6, "the device was there all the same");
    assert_eq!(tracker.counts().rssi_invalid, 3);
}

#[test]
fn a_measurement_is_minus_127_to_20_and_not_0() {
    let measured: Vec<_> = [-128, -127, -1, 0, 1, 20, 21, 79, 127].into_iter().filter_map(measured).collect();

    assert_eq!(measured, [-127, -1, 1, 20]);
}

#[test]
fn a_known_person_is_recognised_by_key_through_changing_addresses_and_not_counted() {
    let mut known = KnownPeople::default();
    let person = Person {
        name: "Alice".to_owned(),
        addresses: vec!["C0:FF:EE:00:12:34".to_owned()],
        key_file: "alice.key".to_owned(),
    };
    person.introduce(&mut known, Some("ec0234a357c8ad05341010a60a397d9b")).unwrap();
    let mut tracker =
        PresenceTracker::new(&Config::default(), SourceId::new("bluetooth:test"), known, Salt::new([1; 32]));

    tracker.handle_reading(&sent(0, &random([0x70, 0x81, 0x94, 0x0d, 0xfb, 0xaa]), Some(-50)));
    tracker.handle_reading(&sent(10, &random([0xC0, 0xFF, 0xEE, 0x00, 0x12, 0x34]), Some(-40)));
    tracker.finish(at(20));

    let seen: Vec<_> = std::iter::from_fn(|| tracker.poll_observation()).collect();
    let [PresenceObservation::Met(_), PresenceObservation::Met(meeting)] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((meeting.sightings, meeting.nearest_rssi_dbm), (2, Some(-40)));
}

#[test]
fn two_devices_that_change_their_addresses_are_two() {
    let mut tracker = tracker();
    for second in 0..3_600 {
        for device in 0..2 {
            let (address, rssi_dbm) = (second / 900, -60 - 3 * i16::from(device));
            tracker.handle_reading(&sent(second, &resolvable(device, address), Some(rssi_dbm)));
        }
    }
    tracker.finish(at(3_600));

    assert_eq!(counts(&mut tracker), vec![2; 60]);
}

#[test]
fn the_salt_changes_and_nobody_is_counted_twice() {
    let mut tracker = tracker();
    for second in (86_000..87_000).step_by(5).chain(172_000..173_000) {
        for device in 0..5 {
            tracker.handle_reading(&sent(second - 86_000, &fixed(device), Some(-70)));
        }
    }
    tracker.finish(at(87_000));

    let counts = counts(&mut tracker);
    assert!(counts.iter().all(|count| *count == 5 || *count == 0), "{counts:?}");
}

#[test]
fn senders_that_show_different_things_are_different_devices() {
    let mut tracker = tracker();
    for second in 0..60 {
        let mut reading = sent(second, &random([0x01, 0, 0, 0, 0, u8::try_from(second).unwrap()]), None);
        if let Payload::Advertisement(advertisement) = &mut reading.payload {
            advertisement.service_uuids = vec![["fd6f", "feaa"][usize::try_from(second % 2).unwrap()].to_owned()];
        }
        tracker.handle_reading(&reading);
    }
    tracker.finish(at(60));

    assert_eq!(counts(&mut tracker), [2]);
}

#[test]
fn an_empty_room_is_told_once_and_a_loss_is_not_an_empty_room() {
    let mut left = tracker();
    left.handle_reading(&sent(0, &fixed(1), None));
    left.handle_timeout(at(36_000));
    left.finish(at(36_000));
    let mut lost = tracker();
    lost.handle_reading(&sent(0, &fixed(1), None));
    let loss = Loss { length_ms: None, reason: CoverageReason::Unplugged, detail: String::new() };
    lost.handle_reading(&Reading { payload: Payload::Loss(loss), ..sent(30, &fixed(1), None) });
    lost.finish(at(36_000));

    assert_eq!(counts(&mut left), [1, 1, 0]);
    assert_eq!(counts(&mut lost), [1]);
}

#[test]
fn people_beyond_the_bound_count_as_devices() {
    let config = Config { people_max: 2, ..Config::default() };
    let mut tracker =
        PresenceTracker::new(&config, SourceId::new("bluetooth:test"), KnownPeople::default(), Salt::new([1; 32]));
    for person in 0..5 {
        tracker.handle_reading(&sent(0, &Sender::Person(format!("person {person}")), None));
    }
    tracker.finish(at(10));

    assert_eq!(tracker.counts().sightings, 2);
    assert_eq!(counts(&mut tracker), [3]);
}

#[test]
fn a_wrong_config_is_told_without_showing_an_address() {
    let person = Person { name: String::new(), addresses: vec!["C0:FF:EE".to_owned()], key_file: String::new() };
    let config = Config { absence_s: f64::NAN, tokens_max: 0, people: vec![person], ..Config::default() };

    let mistakes = config.mistakes();

    assert_eq!(mistakes.len(), 4, "{mistakes:?}");
    assert!(!format!("{mistakes:?} {config:?}").contains("C0:FF:EE\""));
    assert_eq!(Config::default().mistakes(), [""; 0]);
}

proptest! {
    /// How often the tracker is woken changes nothing that it tells.
    #[test]
    fn waking_the_tracker_more_often_changes_nothing(
        steps in prop::collection::vec((0_i64..400, 0_u8..6, 0_i64..400), 1..150),
    ) {
        let (mut plain, mut woken) = (tracker(), tracker());
        let mut second = 0;
        for (step, who, wake) in steps {
            woken.handle_timeout(at(second + wake.min(step)));
            second += step;
            let sender = if who < 2 { Sender::Person(format!("person {who}")) } else { fixed(who) };
            let reading = sent(second, &sender, Some(-50 - i16::from(who)));
            plain.handle_reading(&reading);
            woken.handle_reading(&reading);
        }
        plain.finish(at(second + 1_000));
        woken.finish(at(second + 1_000));
        let all = |tracker: &mut PresenceTracker| std::iter::from_fn(|| tracker.poll_observation()).collect::<Vec<_>>();
        prop_assert_eq!(all(&mut plain), all(&mut woken));
    }

    /// Whatever is sent, memory stays bounded.
    #[test]
    fn tokens_are_bounded(addresses in prop::collection::vec(any::<[u8; 6]>(), 1..2_000)) {
        let config = Config { tokens_max: 64, ..Config::default() };
        let mut tracker =
            PresenceTracker::new(&config, SourceId::new("bluetooth:test"), KnownPeople::default(), Salt::new([1; 32]));
        for (index, address) in addresses.into_iter().enumerate() {
            tracker.handle_reading(&sent(i64::try_from(index).unwrap() / 100, &random(address), None));
            prop_assert!(tracker.crowd.len() <= 64);
        }
    }
}

fn tracker() -> PresenceTracker {
    PresenceTracker::new(
        &Config::default(),
        SourceId::new("bluetooth:test"),
        KnownPeople::default(),
        Salt::of_session("test"),
    )
}

fn alice() -> Sender {
    Sender::Person("Alice".to_owned())
}

fn fixed(device: u8) -> Sender {
    Sender::Address([0xC0, 0, 0, 0, 0, device], AddressType::Random)
}

fn random(address: [u8; 6]) -> Sender {
    Sender::Address(address, AddressType::Random)
}

fn resolvable(device: u8, address: i64) -> Sender {
    random([0x40, device, 0, 0, 0, u8::try_from(address % 256).unwrap()])
}

fn sent(second: i64, sender: &Sender, rssi_dbm: Option<i16>) -> Reading {
    Reading {
        source: SourceId::new("bluetooth:test"),
        captured_at: at(second),
        payload: Payload::Advertisement(Advertisement {
            sender: sender.clone(),
            rssi_dbm,
            name: None,
            service_uuids: Vec::new(),
            manufacturer_data: Vec::new(),
        }),
    }
}

fn at(second: i64) -> Stamp {
    Stamp { monotonic_ms: second * 1000, utc: Timestamp::from_millis(second * 1000), quality: ClockQuality::Network }
}

fn meetings(tracker: &mut PresenceTracker) -> Vec<Meeting> {
    std::iter::from_fn(|| tracker.poll_observation())
        .filter_map(|observation| match observation {
            PresenceObservation::Met(meeting) => Some(meeting),
            PresenceObservation::Crowd(_) => None,
        })
        .collect()
}

/// Person, arrival and departure in seconds.
fn spans(meetings: &[Meeting]) -> Vec<(&str, i64, Option<i64>)> {
    let second = |stamp: Stamp| stamp.monotonic_ms / 1000;
    let span = |meeting: &Meeting| (second(meeting.arrival), meeting.departure.map(second));
    meetings.iter().map(|meeting| (meeting.person.as_str(), span(meeting).0, span(meeting).1)).collect()
}

fn counts(tracker: &mut PresenceTracker) -> Vec<u32> {
    std::iter::from_fn(|| tracker.poll_observation())
        .filter_map(|observation| match observation {
            PresenceObservation::Crowd(count) => Some(count.device_count),
            PresenceObservation::Met(_) => None,
        })
        .collect()
}

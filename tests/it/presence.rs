//! Crowds of devices that change their addresses, and floods of them: what is counted, and what it costs.

use percept::domain::id::SourceId;
use percept::domain::observation::presence::PresenceObservation;
use percept::domain::reading::AddressType;
use percept::domain::reading::Advertisement;
use percept::domain::reading::Payload;
use percept::domain::reading::Reading;
use percept::domain::reading::Sender;
use percept::domain::time::ClockQuality;
use percept::domain::time::Stamp;
use percept::domain::time::Timestamp;
use percept::episodes::spatial::SpatialBuilder;
use percept::perception::identity::KnownPeople;
use percept::perception::presence::PresenceTracker;
use percept::perception::presence::Salt;

#[test]
fn a_day_of_changing_addresses_counts_about_seven_devices() {
    let mut tracker = tracker();
    let mut noise = Noise(7);
    for second in 0..86_400_i64 {
        // A phone with a new resolvable address every 15 min, a tag with a new non-resolvable one every 10 s.
        let phone = with_top(noise_of(second / 900), 0b01);
        let tag = with_top(noise_of(1_000_000 + second / 10), 0b00);
        tracker.handle_reading(&noise.sent(second * 1000, phone, -65, Some(0x004C)));
        tracker.handle_reading(&noise.sent(second * 1000 + 137, tag, -72, Some(0x0075)));
        for beacon in 0..5 {
            let address = [0xC4, 0x11, 0x22, 0x33, 0x44, beacon];
            tracker.handle_reading(&noise.sent(second * 1000 + 200 + i64::from(beacon), address, -80, Some(0x0059)));
        }
    }
    tracker.finish(at(86_400_000));

    let counts = counts(&mut tracker);
    let near_seven = counts.iter().filter(|count| (7..=8).contains(*count)).count();
    assert_eq!(counts.len(), 1_440);
    assert!(counts.iter().all(|count| (7..=9).contains(count)), "{:?}", counts.iter().max());
    assert!(near_seven * 100 >= counts.len() * 99, "{near_seven} of {}", counts.len());
    let exact = counts.iter().filter(|count| **count == 7).count();
    assert!(exact * 100 >= counts.len() * 90, "{exact} of {}", counts.len());
    assert_eq!(tracker.counts().tokens_dropped, 0);
}

#[test]
fn the_day_reads_as_about_seven_devices_an_hour() {
    let mut tracker = tracker();
    let mut builder = SpatialBuilder::new(&Default::default(), "test device");
    let mut noise = Noise(8);
    for second in 0..7_200_i64 {
        for beacon in 0..7 {
            let address = [0xC4, 0x11, 0x22, 0x33, 0x44, beacon];
            tracker.handle_reading(&noise.sent(second * 1000 + i64::from(beacon), address, -80, None));
        }
    }
    tracker.finish(at(7_200_000));
    while let Some(observation) = tracker.poll_observation() {
        if let PresenceObservation::Crowd(count) = observation {
            builder.handle_crowd(&count);
        }
    }
    builder.finish();

    let told: Vec<String> = std::iter::from_fn(|| builder.poll_draft()).map(|draft| draft.content).collect();
    assert_eq!(told, vec!["About 7 devices near by"; 2]);
}

#[test]
fn fifty_thousand_addresses_seen_once_are_bounded_and_fill_no_store() {
    let mut tracker = tracker();
    let mut noise = Noise(9);
    for index in 0..50_000_i64 {
        let address = with_top(noise_of(index), 0b01);
        tracker.handle_reading(&noise.sent(index * 20, address, -70, None));
    }
    tracker.finish(at(1_000_000));

    // 1,000 s: a count a minute, whatever was sent; and the memory of 2,048 devices.
    assert_eq!(counts(&mut tracker).len(), 17);
    assert!(tracker.counts().tokens_dropped > 40_000);
}

#[test]
fn two_thousand_advertisements_a_second_become_one_count_a_minute_and_one_meeting() {
    let mut tracker = tracker();
    let mut noise = Noise(10);
    for index in 0..120_000_i64 {
        let millis = index / 2;
        let mut reading = noise.sent(millis, [0xC4, 0, 0, 0, 0, u8::try_from(index % 40).unwrap()], -60, None);
        if index % 40 == 0
            && let Payload::Advertisement(advertisement) = &mut reading.payload
        {
            advertisement.sender = Sender::Person("Alice".to_owned());
        }
        tracker.handle_reading(&reading);
    }
    tracker.finish(at(60_000));

    let seen: Vec<_> = std::iter::from_fn(|| tracker.poll_observation()).collect();
    assert_eq!(seen.len(), 3, "{seen:?}");
    let [PresenceObservation::Met(_), PresenceObservation::Crowd(count), PresenceObservation::Met(meeting)] = &seen[..]
    else {
        panic!("{seen:?}")
    };
    assert_eq!((count.device_count, meeting.sightings), (39, 3_000));
}

#[test]
fn no_address_appears_in_what_is_told() {
    let mut tracker = tracker();
    let mut noise = Noise(11);
    let address = [0xC0, 0xFF, 0xEE, 0xAB, 0xCD, 0xEF];
    let reading = noise.sent(0, address, -60, None);
    tracker.handle_reading(&reading);
    let inner = format!("{tracker:?} {reading:?}").to_lowercase();
    tracker.finish(at(10_000));
    let told = format!("{:?}", std::iter::from_fn(|| tracker.poll_observation()).collect::<Vec<_>>()).to_lowercase();

    for text in [inner, told] {
        assert!(!text.contains("192, 255, 238") && !text.contains("c0ffee") && !text.contains("c0:ff:ee"), "{text}");
    }
}

fn tracker() -> PresenceTracker {
    PresenceTracker::new(
        &Default::default(),
        SourceId::new("bluetooth:test"),
        KnownPeople::default(),
        Salt::of_session("test"),
    )
}

fn counts(tracker: &mut PresenceTracker) -> Vec<u32> {
    std::iter::from_fn(|| tracker.poll_observation())
        .filter_map(|observation| match observation {
            PresenceObservation::Crowd(count) => Some(count.device_count),
            PresenceObservation::Met(_) => None,
        })
        .collect()
}

fn at(millis: i64) -> Stamp {
    Stamp {
        monotonic_ms: millis,
        utc: Timestamp::from_millis(1_777_600_000_000 + millis),
        quality: ClockQuality::Network,
    }
}

/// An address that depends on `index` alone.
fn noise_of(index: i64) -> [u8; 6] {
    let [a, b, c, d, e, f, ..] = Noise(u64::try_from(index).unwrap()).bits().to_le_bytes();
    [a, b, c, d, e, f]
}

/// The address with these two highest bits.
fn with_top(mut address: [u8; 6], top: u8) -> [u8; 6] {
    address[0] = address[0] & 0x3F | top << 6;
    address
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Noise(u64);

impl Noise {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// An advertisement whose strength scatters by 6 dB to either side.
    fn sent(&mut self, at_ms: i64, address: [u8; 6], rssi_dbm: i16, company: Option<u16>) -> Reading {
        let scatter = i16::try_from(self.bits() % 13).unwrap() - 6;
        let data = self.bits().to_le_bytes().to_vec();
        Reading {
            source: SourceId::new("bluetooth:test"),
            captured_at: at(at_ms),
            payload: Payload::Advertisement(Advertisement {
                sender: Sender::Address(address, AddressType::Random),
                rssi_dbm: Some(rssi_dbm + scatter),
                name: None,
                service_uuids: Vec::new(),
                manufacturer_data: company.map(|company| (company, data)).into_iter().collect(),
            }),
        }
    }
}

//! Where the device stays and how it travels, named by what its bearer does. The long track is in `tests/it/places.rs`.

use super::*;
use crate::domain::observation::place::Place;
use crate::domain::observation::place::PlaceKind;
use crate::domain::observation::place::Position;
use crate::domain::time::ClockQuality;
use crate::domain::time::Timestamp;
use proptest::prelude::*;

const LATITUDE_DEG: f64 = 52.5;
const LONGITUDE_DEG: f64 = 13.4;
const METRES_PER_DEG: f64 = 111_195.08;

#[test]
fn five_minutes_within_a_hundred_metres_are_a_stay_and_less_are_none() {
    let mut long = tracker(Vec::new());
    stand(&mut long, 0..=300, 0.0);
    let mut short = tracker(Vec::new());
    stand(&mut short, 0..=299, 0.0);

    assert_eq!(told(&mut long), ["began place-1 0-300", "ended place-1 0-300"]);
    assert_eq!(told(&mut short), [""; 0]);
}

#[test]
fn a_walk_is_no_stay_and_a_way_that_reaches_none_is_no_trip() {
    let mut tracker = tracker(Vec::new());
    for second in 0..3_600 {
        tracker.handle_fix(&fix(second, 1.3 * seconds(second), 0.0));
    }

    assert_eq!(told(&mut tracker), [""; 0]);
}

#[test]
fn the_way_between_two_stays_is_a_trip_with_its_length_and_box() {
    let mut tracker = tracker(vec![named("Kitchen", 0.0, 50.0)]);
    stand(&mut tracker, 0..=400, 0.0);
    for second in 401..1_401 {
        tracker.handle_fix(&fix(second, 2.0 * seconds(second - 400), 0.0));
    }
    stand(&mut tracker, 1_401..=2_000, 2_000.0);
    tracker.finish();

    let seen: Vec<_> = std::iter::from_fn(|| tracker.poll_observation()).collect();
    let trips: Vec<&Trip> = seen
        .iter()
        .filter_map(|observation| match observation {
            PlaceObservation::Trip(trip) => Some(trip),
            PlaceObservation::StayBegan(_) | PlaceObservation::StayEnded(_) => None,
        })
        .collect();
    let [trip] = trips[..] else { panic!("{seen:?}") };
    assert_eq!(trip.from, Place { name: "Kitchen".to_owned(), kind: PlaceKind::Named });
    assert_eq!(trip.to, Place { name: "place-1".to_owned(), kind: PlaceKind::Learned });
    assert!((trip.distance_m - 2_000.0).abs() < 20.0, "{}", trip.distance_m);
    assert!((trip.bounds.south_deg - LATITUDE_DEG).abs() < 1e-4);
    assert!((trip.bounds.north_deg - LATITUDE_DEG - 2_000.0 / METRES_PER_DEG).abs() < 1e-4);
    assert_eq!(trip.unobserved_ms, 0);
}

#[test]
fn a_short_way_between_two_stays_is_no_trip() {
    let mut tracker = tracker(Vec::new());
    stand(&mut tracker, 0..=400, 0.0);
    stand(&mut tracker, 500..=900, 200.0);

    assert_eq!(
        told(&mut tracker),
        ["began place-1 0-300", "ended place-1 0-400", "began place-2 500-800", "ended place-2 500-900"]
    );
}

#[test]
fn a_few_steps_out_and_back_do_not_end_a_stay() {
    let mut tracker = tracker(Vec::new());
    stand(&mut tracker, 0..=400, 0.0);
    for second in 0..200 {
        let out_m = if second < 100 { 1.4 * seconds(second) } else { 1.4 * seconds(200 - second) };
        tracker.handle_fix(&fix(401 + second, out_m, 0.0));
    }
    stand(&mut tracker, 601..=900, 0.0);

    assert_eq!(told(&mut tracker), ["began place-1 0-300", "ended place-1 0-900"]);
}

#[test]
fn a_stray_fix_ends_nothing() {
    let mut tracker = tracker(Vec::new());
    for second in 0..=900 {
        let stray_m = if second % 50 == 49 { 400.0 } else { 0.0 };
        tracker.handle_fix(&fix(second, stray_m, 0.0));
    }

    assert_eq!(told(&mut tracker), ["began place-1 0-300", "ended place-1 0-900"]);
}

#[test]
fn half_an_hour_of_eight_metres_of_jitter_is_one_stay_and_no_trip() {
    for seed in 1..=20 {
        let mut noise = Noise(seed);
        let mut tracker = tracker(Vec::new());
        for second in 0..1_800 {
            let (north, east) = noise.pair();
            tracker.handle_fix(&fix(second, 8.0 * north, 8.0 * east));
        }
        tracker.finish();

        let seen: Vec<_> = std::iter::from_fn(|| tracker.poll_observation()).collect();
        let [PlaceObservation::StayBegan(_), PlaceObservation::StayEnded(stay)] = &seen[..] else {
            panic!("seed {seed}: {seen:?}")
        };
        assert_eq!((stay.start, stay.end), (at(0), at(1_799)), "seed {seed}");
        // √(ln 20 · 2) · 8 m holds 95 %.
        assert!((stay.radius_m - 19.6).abs() < 1.5, "seed {seed}: {}", stay.radius_m);
        assert!(stay.centre.distance_m(position(0.0, 0.0)) < 1.5, "seed {seed}");
        assert_eq!(stay.unobserved_ms, 0);
    }
}

#[test]
fn a_repeated_or_vague_fix_claims_no_place() {
    let mut tracker = tracker(Vec::new());
    for second in 0..600 {
        tracker.handle_fix(&fix(5, 0.0, 0.0));
        tracker.handle_fix(&Fix { accuracy_m: Some(500.0), ..fix(second, 0.0, 0.0) });
    }

    assert_eq!(told(&mut tracker), [""; 0]);
}

#[test]
fn a_gap_within_a_stay_is_bridged_and_told_and_a_long_one_ends_it_at_the_last_fix() {
    let mut tracker = tracker(Vec::new());
    stand(&mut tracker, 0..=400, 0.0);
    stand(&mut tracker, 2_000..=2_400, 0.0);
    let due_ms = tracker.poll_timeout().unwrap();
    tracker.handle_timeout(at(0).plus_millis(due_ms));
    let seen: Vec<_> = std::iter::from_fn(|| tracker.poll_observation()).collect();

    let [PlaceObservation::StayBegan(_), PlaceObservation::StayEnded(stay)] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((stay.end, stay.unobserved_ms), (at(2_400), 1_600_000));
    assert_eq!(due_ms, (2_400 + 3_600) * 1000 + 1);
    assert_eq!(tracker.poll_timeout(), None);
}

#[test]
fn two_looks_at_one_place_with_nothing_between_are_no_stay() {
    let mut tracker = tracker(Vec::new());
    stand(&mut tracker, 0..=5, 0.0);
    stand(&mut tracker, 2_000..=2_005, 0.0);

    assert_eq!(told(&mut tracker), [""; 0]);
}

#[test]
fn a_fix_a_minute_is_enough() {
    let mut tracker = tracker(Vec::new());
    for minute in 0..=30 {
        tracker.handle_fix(&fix(60 * minute, 0.0, 0.0));
    }
    for minute in 31..=40 {
        tracker.handle_fix(&fix(60 * minute, 300.0 * seconds(minute - 30), 0.0));
    }
    for minute in 41..=60 {
        tracker.handle_fix(&fix(60 * minute, 3_000.0, 0.0));
    }

    let told = told(&mut tracker);
    assert_eq!(told.len(), 5, "{told:?}");
    assert_eq!((told[1].as_str(), told[2].as_str()), ("ended place-1 0-1800", "trip place-1 place-2 1800-2400 3000 m"));
}

#[test]
fn a_place_met_again_keeps_its_number_within_a_run_and_in_the_next() {
    let mut first = tracker(Vec::new());
    for (turn, north_m) in [0.0, 5_000.0, 10.0].into_iter().enumerate() {
        let start = 2_000 * i64::try_from(turn).unwrap();
        stand(&mut first, start..=start + 600, north_m);
    }
    let names = |told: Vec<String>| {
        let ended = told.into_iter().filter(|line| line.starts_with("ended"));
        ended.map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(told(&mut first)), ["place-1", "place-2", "place-1"]);

    let learned = serde_json::to_string(first.learned()).unwrap();
    let mut second = tracker(Vec::new());
    second.places = KnownPlaces::new(&Config::default(), serde_json::from_str(&learned).unwrap());
    stand(&mut second, 0..=600, 5_020.0);
    stand(&mut second, 2_000..=2_600, 20_000.0);

    assert_eq!(names(told(&mut second)), ["place-2", "place-3"]);
    assert_eq!(first.learned().iter().map(|place| place.visits).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn places_are_remembered_from_stays_and_another_place_of_the_same_name_does_not_count() {
    let at = |north_m: f64| Position::new(52.0 + north_m / 111_195.0, 13.0).unwrap();
    let end = Timestamp::from_millis;
    let stays = [
        ("place-2", at(0.0), end(50)),
        ("place-2", at(20.0), end(40)),
        ("place-2", at(9_000.0), end(30)),
        ("place-7", at(5_000.0), end(20)),
        ("place-02", at(1.0), end(10)),
        ("place-0", at(1.0), end(10)),
        ("place-x", at(1.0), end(10)),
    ];

    let places = LearnedPlace::of_stays(stays, 100.0, 10);
    let newest = LearnedPlace::of_stays(stays, 100.0, 1);

    let told: Vec<_> = places.iter().map(|place| (place.number, place.visits, place.last_visit)).collect();
    assert_eq!(told, [(7, 1, end(20)), (2, 2, end(50))]);
    assert!((places[1].position.distance_m(at(10.0))) < 0.5);
    assert_eq!(newest.iter().map(|place| place.number).collect::<Vec<_>>(), [7]);
}

#[test]
fn where_named_places_overlap_the_smallest_is_meant() {
    let mut tracker = tracker(vec![named("Home", 0.0, 200.0), named("Kitchen", 5.0, 20.0)]);
    stand(&mut tracker, 0..=300, 0.0);
    stand(&mut tracker, 1_000..=1_300, 150.0);

    assert_eq!(told(&mut tracker)[..3], ["began Kitchen 0-300", "ended Kitchen 0-300", "began Home 1000-1300"]);
}

#[test]
fn the_number_of_a_forgotten_place_is_not_given_again() {
    let config = Config { learned_places_max: 2, ..Config::default() };
    let mut tracker = PlaceTracker::new(config, SourceId::new("gps:test"), Vec::new());
    for turn in 0..4 {
        stand(&mut tracker, 2_000 * turn..=2_000 * turn + 600, 5_000.0 * seconds(turn));
    }
    tracker.finish();

    assert_eq!(tracker.learned().iter().map(|place| place.number).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn every_mistake_of_the_config_is_named() {
    let config = Config {
        stay_s_min: 0.0,
        trip_m_min: f64::NAN,
        learned_places_max: 0,
        named: vec![NamedPlace { name: " ".to_owned(), latitude_deg: 91.0, longitude_deg: 0.0, radius_m: -1.0 }],
        ..Config::default()
    };

    assert_eq!(config.mistakes().len(), 6, "{:?}", config.mistakes());
    assert_eq!(Config::default().mistakes(), [""; 0]);
}

proptest! {
    /// How often the tracker is woken changes nothing that it tells.
    #[test]
    fn waking_the_tracker_more_often_changes_nothing(
        steps in prop::collection::vec((1_i64..900, 0_usize..4), 1..200),
        wakes in prop::collection::vec(0_i64..900, 200),
    ) {
        let places_m = [0.0, 60.0, 400.0, 5_000.0];
        let (mut plain, mut woken) = (tracker(Vec::new()), tracker(Vec::new()));
        let mut second = 0;
        for ((step, place), wake) in steps.iter().zip(wakes) {
            woken.handle_timeout(at(second + wake.min(*step)));
            second += step;
            let fix = fix(second, places_m[*place], 0.0);
            plain.handle_fix(&fix);
            woken.handle_fix(&fix);
        }
        prop_assert_eq!(told(&mut plain), told(&mut woken));
    }

    /// Whatever comes, stays and trips follow each other in time, and memory is bounded.
    #[test]
    fn stays_and_trips_never_overlap(
        steps in prop::collection::vec((1_i64..400, -3_000.0_f64..3_000.0, 1_usize..80), 1..60),
    ) {
        let mut tracker = tracker(Vec::new());
        let mut second = 0;
        for (step, north_m, count) in steps {
            for _ in 0..count {
                second += step;
                tracker.handle_fix(&fix(second, north_m, 0.0));
                prop_assert!(tracker.away.len() <= AWAY_FIXES_MAX);
            }
        }
        tracker.finish();
        let mut end = at(0);
        for observation in std::iter::from_fn(|| tracker.poll_observation()) {
            let (start, stop) = match observation {
                PlaceObservation::StayBegan(_) => continue,
                PlaceObservation::StayEnded(stay) => (stay.start, stay.end),
                PlaceObservation::Trip(trip) => (trip.start, trip.end),
            };
            prop_assert!(start >= end && stop >= start);
            end = stop;
        }
    }
}

fn tracker(named: Vec<NamedPlace>) -> PlaceTracker {
    PlaceTracker::new(Config { named, ..Config::default() }, SourceId::new("gps:test"), Vec::new())
}

fn named(name: &str, north_m: f64, radius_m: f64) -> NamedPlace {
    let Position { latitude_deg, longitude_deg } = position(north_m, 0.0);
    NamedPlace { name: name.to_owned(), latitude_deg, longitude_deg, radius_m }
}

/// A fix each second at one point.
fn stand(tracker: &mut PlaceTracker, seconds: std::ops::RangeInclusive<i64>, north_m: f64) {
    seconds.for_each(|second| tracker.handle_fix(&fix(second, north_m, 0.0)));
}

fn position(north_m: f64, east_m: f64) -> Position {
    let shrink = LATITUDE_DEG.to_radians().cos();
    Position::new(LATITUDE_DEG + north_m / METRES_PER_DEG, LONGITUDE_DEG + east_m / METRES_PER_DEG / shrink).unwrap()
}

fn fix(second: i64, north_m: f64, east_m: f64) -> Fix {
    Fix {
        source: SourceId::new("gps:test"),
        at: at(second),
        position: position(north_m, east_m),
        altitude_m: None,
        accuracy_m: None,
        speed_mps: None,
        course_deg: None,
        receiver_time: None,
    }
}

fn at(second: i64) -> Stamp {
    Stamp { monotonic_ms: second * 1000, utc: Timestamp::from_millis(second * 1000), quality: ClockQuality::Network }
}

fn seconds(count: i64) -> f64 {
    f64::from(i32::try_from(count).unwrap())
}

/// What the tracker tells when it is finished: kind, place, seconds.
fn told(tracker: &mut PlaceTracker) -> Vec<String> {
    tracker.finish();
    let span = |start: Stamp, end: Stamp| format!("{}-{}", start.monotonic_ms / 1000, end.monotonic_ms / 1000);
    std::iter::from_fn(|| tracker.poll_observation())
        .map(|observation| match observation {
            PlaceObservation::StayBegan(stay) => format!("began {} {}", stay.place.name, span(stay.start, stay.end)),
            PlaceObservation::StayEnded(stay) => format!("ended {} {}", stay.place.name, span(stay.start, stay.end)),
            PlaceObservation::Trip(trip) => {
                let span = span(trip.start, trip.end);
                format!("trip {} {} {span} {:.0} m", trip.from.name, trip.to.name, trip.distance_m)
            }
        })
        .collect()
}

/// Pairs of standard normal numbers from SplitMix64 (Steele, Lea and Flood 2014) by Box and Muller's transform.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        f64::from(u32::try_from(bits >> 32).unwrap()) / f64::from(u32::MAX)
    }

    fn pair(&mut self) -> (f64, f64) {
        let radius = (-2.0 * self.uniform().max(1e-12).ln()).sqrt();
        let angle = std::f64::consts::TAU * self.uniform();
        (radius * angle.cos(), radius * angle.sin())
    }
}

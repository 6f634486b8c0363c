//! Stays and trips of a day whose truth is written down: from receiver reports to the sentences of the timeline.

use percept::domain::coverage::CoverageReason;
use percept::domain::episode::Draft;
use percept::domain::id::SourceId;
use percept::domain::reading::GpsReport;
use percept::domain::reading::Payload;
use percept::domain::reading::PositionReport;
use percept::domain::reading::Reading;
use percept::domain::time::ClockQuality;
use percept::domain::time::Stamp;
use percept::domain::time::Timestamp;
use percept::episodes::spatial::SpatialBuilder;
use percept::perception::fix::FixTracker;
use percept::perception::place::NamedPlace;
use percept::perception::place::PlaceTracker;

const LATITUDE_DEG: f64 = 52.52;
const LONGITUDE_DEG: f64 = 13.40;
/// Metres of a degree of latitude on the sphere of the design.
const METRES_PER_DEG: f64 = 111_195.08;
const JITTER_M: f64 = 8.0;
/// A stay begins and ends within this many seconds of the truth: half a minute of walking away from the door.
const TOLERANCE_S: i64 = 45;

const HOME: (f64, f64) = (0.0, 0.0);
const STOP: (f64, f64) = (0.0, 420.0);
const OFFICE_STOP: (f64, f64) = (3_000.0, 4_420.0);
const OFFICE: (f64, f64) = (3_180.0, 4_420.0);
const CAFE: (f64, f64) = (3_180.0, 4_900.0);
const CORNER: (f64, f64) = (3_180.0, 5_035.0);

/// One piece of the day, in metres north and east, and what the receiver makes of it.
enum Leg {
    /// Stands there for that many seconds.
    Stand((f64, f64), i64),
    /// Goes there in a straight line at that many metres per second.
    Go((f64, f64), f64),
    /// Goes there, without a fix on the way.
    Tunnel((f64, f64), f64),
    /// Stands there without a fix for that many seconds.
    Indoors((f64, f64), i64),
}

fn day() -> Vec<Leg> {
    use Leg::Go;
    use Leg::Indoors;
    use Leg::Stand;
    use Leg::Tunnel;
    vec![
        Stand(HOME, 4_200),
        Go(STOP, 1.35),
        // Waiting for the bus for less than five minutes is no stay.
        Stand(STOP, 230),
        Go((1_200.0, 420.0), 9.0),
        Stand((1_200.0, 420.0), 40),
        Tunnel((1_200.0, 2_620.0), 11.0),
        Go((3_000.0, 2_620.0), 9.0),
        Stand((3_000.0, 2_620.0), 75),
        Go(OFFICE_STOP, 9.0),
        Go(OFFICE, 1.35),
        Stand(OFFICE, 1_500),
        Indoors(OFFICE, 1_500),
        Stand(OFFICE, 1_200),
        Go(CAFE, 1.35),
        Stand(CAFE, 900),
        // A call on the pavement and back to the table.
        Go(CORNER, 1.4),
        Stand(CORNER, 60),
        Go(CAFE, 1.4),
        Stand(CAFE, 1_200),
        Go(OFFICE, 1.35),
        Stand(OFFICE, 3_600),
        Go(OFFICE_STOP, 1.35),
        Stand(OFFICE_STOP, 120),
        Go((3_000.0, 2_620.0), 9.0),
        Tunnel((1_200.0, 2_620.0), 11.0),
        Go((1_200.0, 420.0), 9.0),
        Go(STOP, 9.0),
        Go(HOME, 1.35),
        Stand(HOME, 3_710),
    ]
}

/// Place, and start and end in seconds.
type StayTruth = (&'static str, i64, i64);
/// From, to, and metres of way.
type TripTruth = (&'static str, &'static str, f64);

struct Track {
    readings: Vec<Reading>,
    stays: Vec<StayTruth>,
    trips: Vec<TripTruth>,
}

#[test]
fn a_day_gives_exactly_its_stays_and_trips() {
    for seed in 1..=24 {
        let track = track(seed);
        let seconds = track.readings.last().unwrap().captured_at.monotonic_ms / 1000;
        assert!((21_500..=21_700).contains(&seconds), "six hours: {seconds}");

        let drafts = remembered(&track.readings);

        let (stays, trips): (Vec<&Draft>, Vec<&Draft>) =
            drafts.iter().partition(|draft| draft.metadata["kind"] == "stay");
        let told: Vec<_> = drafts.iter().map(|draft| draft.content.as_str()).collect();
        assert_eq!((stays.len(), trips.len()), (track.stays.len(), track.trips.len()), "seed {seed}: {told:#?}");
        for (draft, (place, start_s, end_s)) in stays.iter().zip(&track.stays) {
            assert_eq!(draft.metadata["place"], *place, "seed {seed}");
            let (start_off, end_off) = (second(draft.start) - start_s, second(draft.end) - end_s);
            assert!(start_off.abs() <= TOLERANCE_S, "seed {seed}: {place} began {start_off} s off");
            assert!(end_off.abs() <= TOLERANCE_S, "seed {seed}: {place} ended {end_off} s off");
        }
        for (draft, (from, to, length_m)) in trips.iter().zip(&track.trips) {
            assert_eq!((&draft.metadata["from_place"], &draft.metadata["to_place"]), (&(*from).into(), &(*to).into()));
            let share = draft.metadata["distance_m"].as_f64().unwrap() / length_m;
            assert!((0.93..=1.07).contains(&share), "seed {seed}: {from} to {to} {share} of its length");
        }
    }
}

#[test]
fn without_a_fix_there_is_a_coverage_row_and_no_place() {
    let track = track(3);
    let (mut fixes, source) = receiver();
    for reading in &track.readings {
        fixes.handle_reading(reading);
    }
    let rows: Vec<_> = std::iter::from_fn(|| fixes.poll_coverage()).collect();

    // Two tunnels and the office.
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert!(rows.iter().all(|row| row.reason == CoverageReason::NoFix && row.source == source));

    let lost: Vec<Reading> = track.readings.iter().map(lose_fix).collect();
    assert_eq!(remembered(&lost), []);
}

#[test]
fn five_fixes_and_their_repetition_claim_no_place() {
    let track = track(1);
    let mut readings: Vec<Reading> = track.readings[..5].to_vec();
    let last = readings[4].clone();
    for second in 5..605 {
        readings.push(Reading { captured_at: at(second), ..last.clone() });
    }

    assert_eq!(remembered(&readings), []);
}

/// Ten times an hour of jitter: not one trip.
#[test]
fn standing_still_is_never_a_trip() {
    for seed in 100..110 {
        let mut noise = Noise(seed);
        let readings: Vec<Reading> = (0..3_600).map(|second| noise.reading(second, HOME)).collect();

        let drafts = remembered(&readings);

        let told: Vec<_> = drafts.iter().map(|draft| draft.content.as_str()).collect();
        assert_eq!(told, ["Stayed at Home for 1 hour"], "seed {seed}");
    }
}

/// The rows that stand at the end: a draft replaces the earlier one of its start.
fn remembered(readings: &[Reading]) -> Vec<Draft> {
    let (mut fixes, source) = receiver();
    let named = vec![named("Home", HOME), named("Office", OFFICE)];
    let config = percept::perception::place::Config { named, ..Default::default() };
    let mut places = PlaceTracker::new(config, source, Vec::new());
    let mut builder = SpatialBuilder::new(&Default::default(), "test device");
    for reading in readings {
        fixes.handle_reading(reading);
        while let Some(fix) = fixes.poll_fix() {
            places.handle_fix(&fix);
        }
    }
    places.finish();
    while let Some(observation) = places.poll_observation() {
        builder.handle_observation(&observation);
    }
    builder.finish();
    let mut rows: Vec<Draft> = Vec::new();
    while let Some(draft) = builder.poll_draft() {
        rows.retain(|row| (row.start, row.ordinal) != (draft.start, draft.ordinal));
        rows.push(draft);
    }
    rows
}

fn receiver() -> (FixTracker, SourceId) {
    let source = SourceId::new("gps:test");
    (FixTracker::new(Default::default(), source.clone(), Timestamp::parse("2026-01-01T00:00:00Z").unwrap()), source)
}

fn named(name: &str, metres: (f64, f64)) -> NamedPlace {
    let (latitude_deg, longitude_deg) = degrees(metres);
    NamedPlace { name: name.to_owned(), latitude_deg, longitude_deg, radius_m: 60.0 }
}

/// The day as the receiver reports it once a second, with jitter, stray fixes and jumps.
fn track(seed: u64) -> Track {
    let mut noise = Noise(seed);
    let mut track = Track { readings: Vec::new(), stays: Vec::new(), trips: Vec::new() };
    let (mut now, mut here, mut length_m) = (0, HOME, 0.0);
    for leg in day() {
        let (there, duration_s, has_fix) = match leg {
            Leg::Stand(there, duration_s) => (there, duration_s, true),
            Leg::Indoors(there, duration_s) => (there, duration_s, false),
            Leg::Go(there, speed) => (there, whole(distance(here, there) / speed), true),
            Leg::Tunnel(there, speed) => (there, whole(distance(here, there) / speed), false),
        };
        length_m += distance(here, there);
        if here == there {
            note_stay(&mut track, there, (now, now + duration_s), &mut length_m);
        }
        for step in 0..duration_s {
            let share = f64::from(i32::try_from(step).unwrap()) / f64::from(i32::try_from(duration_s).unwrap());
            let metres = (here.0 + share * (there.0 - here.0), here.1 + share * (there.1 - here.1));
            let reading = noise.reading(now + step, metres);
            track.readings.push(if has_fix { reading } else { without_fix(&reading) });
        }
        now += duration_s;
        here = there;
    }
    track
}

/// Writes the truth down: where a stay is one, and the way since the last.
fn note_stay(track: &mut Track, metres: (f64, f64), (start_s, end_s): (i64, i64), length_m: &mut f64) {
    let Some(place) = [(HOME, "Home"), (OFFICE, "Office"), (CAFE, "place-1")]
        .into_iter()
        .find_map(|(known, name)| (known == metres).then_some(name))
    else {
        return;
    };
    match track.stays.last_mut() {
        // The office without a fix, and the pavement before the café: still the same stay.
        Some((last, _, end)) if *last == place => *end = end_s,
        Some((last, _, _)) => {
            track.trips.push((last, place, *length_m));
            track.stays.push((place, start_s, end_s));
        }
        None => track.stays.push((place, start_s, end_s)),
    }
    *length_m = 0.0;
}

/// The same report, position and all, in a mode that says there is no fix.
fn lose_fix(reading: &Reading) -> Reading {
    match &reading.payload {
        Payload::Position(GpsReport::Position(report)) => with(reading, PositionReport { mode: 1, ..*report }),
        Payload::Position(_)
        | Payload::Sound(_)
        | Payload::Picture(_)
        | Payload::Advertisement(_)
        | Payload::Loss(_) => reading.clone(),
    }
}

fn without_fix(reading: &Reading) -> Reading {
    with(reading, PositionReport { mode: 1, ..PositionReport::default() })
}

fn with(reading: &Reading, report: PositionReport) -> Reading {
    Reading { payload: Payload::Position(GpsReport::Position(report)), ..reading.clone() }
}

fn degrees((north_m, east_m): (f64, f64)) -> (f64, f64) {
    let shrink = LATITUDE_DEG.to_radians().cos();
    (LATITUDE_DEG + north_m / METRES_PER_DEG, LONGITUDE_DEG + east_m / METRES_PER_DEG / shrink)
}

fn distance(from: (f64, f64), to: (f64, f64)) -> f64 {
    (to.0 - from.0).hypot(to.1 - from.1)
}

#[expect(clippy::cast_possible_truncation, reason = "seconds of a day")]
fn whole(seconds: f64) -> i64 {
    seconds.round() as i64
}

fn second(stamp: Stamp) -> i64 {
    stamp.monotonic_ms / 1000
}

fn at(second: i64) -> Stamp {
    let utc = Timestamp::parse("2026-05-01T06:00:00Z").unwrap().plus_millis(second * 1000);
    Stamp { monotonic_ms: second * 1000, utc, quality: ClockQuality::Network }
}

/// SplitMix64 (Steele, Lea and Flood 2014), and normal numbers by Box and Muller's transform.
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

    fn normal_pair(&mut self) -> (f64, f64) {
        let radius = (-2.0 * self.uniform().max(1e-12).ln()).sqrt();
        let angle = std::f64::consts::TAU * self.uniform();
        (radius * angle.cos(), radius * angle.sin())
    }

    /// Jitter always; a stray fix of 70 to 150 m once in five minutes; a jump of kilometres once in ten.
    fn reading(&mut self, second: i64, (north_m, east_m): (f64, f64)) -> Reading {
        let (north, east) = self.normal_pair();
        let (chance, size) = (self.uniform(), self.uniform());
        let stray_m = if chance < 1.0 / 600.0 {
            8_000.0 + 40_000.0 * size
        } else if chance < 1.0 / 200.0 {
            70.0 + 80.0 * size
        } else {
            0.0
        };
        let (latitude_deg, longitude_deg) = degrees((north_m + JITTER_M * north + stray_m, east_m + JITTER_M * east));
        let report = PositionReport {
            mode: 3,
            time: Some(at(second).utc),
            latitude_deg: Some(latitude_deg),
            longitude_deg: Some(longitude_deg),
            accuracy_m: Some(16.0),
            ..PositionReport::default()
        };
        Reading {
            source: SourceId::new("gps:test"),
            captured_at: at(second),
            payload: Payload::Position(GpsReport::Position(report)),
        }
    }
}

//! Receiver logs of other people, bare and as a real gpsd tells them: every fix, no false time, no false place.

use percept::domain::reading::GpsReport;
use percept::domain::reading::Payload;
use percept::domain::reading::PositionReport;
use percept::domain::time::ClockQuality;
use percept::domain::time::Timestamp;
use percept::sensors::session::OpenOptions;
use percept::sensors::session::Session;
use percept::sensors::session::SessionError;
use percept::sensors::session::merge;
use serde_json::Value;
use std::path::Path;
use std::path::PathBuf;

/// Logs of receivers that speak a binary protocol: gpsd understands them, a bare file does not.
const BINARY: [&str; 4] = ["bu303-climbing", "bu303-moving", "bu303-nofix", "bu303-stillfix"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn listed(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        println!("SKIPPED: there is no {}", folder.display());
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(ending));
    paths.sort();
    paths
}

/// The logs: `PERCEPT_SHARED/data/gps`, or the same beside the checkout or beside its parent.
fn logs() -> Vec<PathBuf> {
    let candidates = [
        std::env::var_os("PERCEPT_SHARED").map(PathBuf::from),
        Some(root().join("../shared")),
        Some(root().join("../../shared")),
    ];
    let shared =
        candidates.into_iter().flatten().find(|path| path.is_dir()).unwrap_or_else(|| root().join("../shared"));
    listed(&shared.join("data/gps"), ".log")
}

/// What `tests/reference/gpsd.sh` wrote: `PERCEPT_GPSD_OUT`, or `target/gpsd`.
fn played(ending: &str) -> Vec<PathBuf> {
    let out = std::env::var_os("PERCEPT_GPSD_OUT").map_or_else(|| root().join("target/gpsd"), PathBuf::from);
    listed(&out, ending)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().split('.').next().unwrap().to_owned()
}

fn open(path: &Path) -> Result<Session, SessionError> {
    let assumed_now = Timestamp::parse("2026-12-01T00:00:00Z").unwrap();
    Session::open(path, &OpenOptions { started_at: None, assumed_now })
}

fn positions(session: &Session) -> Vec<PositionReport> {
    let position = |payload| {
        let Payload::Position(GpsReport::Position(position)) = payload else { return None };
        Some(position)
    };
    merge(session.sensors()).filter_map(|reading| position(reading.payload)).collect()
}

#[test]
fn every_nmea_log_opens_with_its_fixes() {
    // The number of moments with a fix, counted by hand in the logs: distinct times of RMC or GGA that are not void.
    for log in logs() {
        let name = name(&log);
        if BINARY.contains(&name.as_str()) {
            let error = open(&log).unwrap_err().to_string();
            assert!(error.contains(&name), "{error}");
            continue;
        }
        let session = open(&log).unwrap();

        let found = positions(&session);

        let expected = distinct_times_with_a_fix(&std::fs::read(&log).unwrap());
        let fixes = found.iter().filter(|report| report.mode >= 2).count();
        assert_eq!(fixes, expected, "{name}");
        assert!(found.iter().all(|report| (report.mode >= 2) == report.latitude_deg.is_some()), "{name}");
    }
}

/// Counts times of the day at which an RMC says A or a GGA says more than 0, by plain splitting.
fn distinct_times_with_a_fix(log: &[u8]) -> usize {
    let mut times: Vec<String> = String::from_utf8_lossy(log)
        .lines()
        .filter_map(|line| {
            let fields: Vec<_> = line.split(',').collect();
            let valid = match fields[0].get(3..6)? {
                "RMC" => fields.get(2) == Some(&"A") && fields.get(9)?.len() == 6,
                "GGA" => !matches!(*fields.get(6)?, "0" | ""),
                _ => false,
            };
            valid.then(|| fields[1].to_owned())
        })
        .collect();
    times.sort();
    times.dedup();
    times.len()
}

#[test]
fn bare_logs_start_when_a_believable_fix_says_and_else_when_they_were_written() {
    let expected = [
        // The receiver lost 1,024 weeks: 1999 may be 2019.
        ("april6_2019", None),
        ("gp-320fw-2019-04-06-overflow", Some("2019-04-06T23:57:24.020Z")),
        ("hab-gpspi", Some("2015-06-21T09:28:35.000Z")),
        ("mt3339", Some("2015-04-13T20:26:40.000Z")),
        ("nmea-fuzzy-cases", Some("2020-03-18T13:28:20.600Z")),
        ("sirfstarv-nmea", Some("2019-02-05T02:09:35.000Z")),
        ("ublox-neo-m9n-nmea", Some("2020-07-11T22:37:45.000Z")),
    ];
    for log in logs() {
        let Some((_, expected)) = expected.iter().find(|(known, _)| *known == name(&log)) else { continue };

        let session = open(&log).unwrap();

        let header = session.header();
        match expected {
            Some(time) => assert_eq!(
                (header.started.utc.to_string(), header.started.quality),
                ((*time).to_owned(), ClockQuality::Gps)
            ),
            None => assert_eq!((header.start_is_known, header.started.quality), (false, ClockQuality::Unset)),
        }
    }
}

/// The TPVs of gpsd's output, read without our parser.
fn tpvs(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path)
        .unwrap()
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|report| report["class"] == "TPV")
        .collect()
}

#[test]
fn every_log_played_through_gpsd_gives_the_fixes_that_gpsd_reports() {
    for raw in played(".gpsd.json") {
        let expected = tpvs(&raw);
        let folder = raw.parent().unwrap().join(name(&raw));

        for session in [open(&folder).unwrap(), open(&raw).unwrap()] {
            let found = positions(&session);

            assert_eq!(found.len(), expected.len(), "{}", raw.display());
            for (found, tpv) in found.iter().zip(&expected) {
                assert_eq!(Some(u64::from(found.mode)), tpv["mode"].as_u64(), "{tpv}");
                let time = tpv["time"].as_str().map(|text| Timestamp::parse(text).unwrap());
                assert_eq!(found.time, time, "{tpv}");
                assert_eq!(found.latitude_deg, tpv["lat"].as_f64(), "{tpv}");
                assert_eq!(found.longitude_deg, tpv["lon"].as_f64(), "{tpv}");
                assert_eq!(found.altitude_m, tpv["altMSL"].as_f64(), "{tpv}");
                assert_eq!(found.speed_mps, tpv["speed"].as_f64(), "{tpv}");
                assert_eq!(found.course_deg, tpv["track"].as_f64(), "{tpv}");
            }
        }
    }
}

#[test]
fn logs_without_a_fix_or_with_a_lost_era_give_no_time_and_no_place() {
    for raw in played(".gpsd.json") {
        let session = open(&raw).unwrap();
        let now = Timestamp::parse("2026-12-01T00:00:00Z").unwrap();

        assert!(session.header().started.utc <= now || !session.header().start_is_known, "{}", raw.display());
        if name(&raw) == "bu303-nofix" {
            assert!(!session.header().start_is_known);
            assert!(positions(&session).iter().all(|report| report.mode < 2 && report.latitude_deg.is_none()));
        }
        if matches!(name(&raw).as_str(), "mt3339" | "hab-gpspi") {
            // gpsd itself moved these dates of 2015 to 2034 and 2035: not to be believed.
            assert_eq!(session.header().started.quality, ClockQuality::Unset, "{}", raw.display());
        }
    }
}

#[test]
fn a_bare_nmea_log_agrees_with_gpsd() {
    let played = played(".gpsd.json");
    for log in logs() {
        let Some(raw) = played.iter().find(|raw| name(raw) == name(&log)) else { continue };
        if BINARY.contains(&name(&log).as_str()) {
            continue;
        }
        let ours = positions(&open(&log).unwrap());

        for tpv in tpvs(raw).iter().filter(|tpv| tpv["mode"].as_u64() >= Some(2) && tpv["time"].is_string()) {
            // The time of day: gpsd may have moved the date by 1,024 weeks.
            let of_day = |time: Timestamp| time.as_millis().rem_euclid(86_400_000);
            let time = of_day(Timestamp::parse(tpv["time"].as_str().unwrap()).unwrap());
            let near = ours.iter().filter(|report| report.time.is_some_and(|own| of_day(own) == time));
            let agrees = |report: &PositionReport| {
                let close = |own: Option<f64>, theirs: &Value| (own.unwrap() - theirs.as_f64().unwrap()).abs() < 2e-6;
                report.mode >= 2 && close(report.latitude_deg, &tpv["lat"]) && close(report.longitude_deg, &tpv["lon"])
            };
            assert!(near.clone().any(agrees), "{}: {tpv} is not among {:?}", name(&log), near.collect::<Vec<_>>());
        }
    }
}

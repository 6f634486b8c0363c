//! Joins the NMEA sentences of one moment (an epoch) into one position report.
//!
//! In: lines of a log, of any content. Out: a [`PositionReport`] when an epoch is over, the satellites
//! in view, and what was passed over. An epoch ends when a sentence carries another time, or, where
//! there are no times, when an RMC or GGA comes again from the same talker.
//!
//! There is a fix when no RMC and no GGA of the epoch says void, and GSA does not either.

use super::gpsd_json::sane;
use crate::domain::reading::GpsReport;
use crate::domain::reading::PositionReport;
use crate::domain::time::Timestamp;
use chrono::NaiveDate;
use chrono::NaiveTime;
use chrono::Timelike as _;
use nmea::ParseResult;
use nmea::sentences::FixType;
use nmea::sentences::gsa::GsaMode2;
use nmea::sentences::rmc::RmcStatusOfFix;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A knot in metres per second.
const KNOT_MPS: f64 = 1_852.0 / 3_600.0;
/// Metres of horizontal error (95 %) for each unit of HDOP without and with differential correction:
/// what gpsd 3.22 makes of HDOP (`eph` in the TPVs it gives for such sentences).
const ERROR_M_PER_HDOP: f64 = 19.0;
const ERROR_M_PER_HDOP_DGPS: f64 = 4.75;
/// A time of day that is this much earlier than the one before is of the next day.
const HALF_DAY_MS: i64 = 12 * 3_600 * 1_000;
const DAY_MS: i64 = 2 * HALF_DAY_MS;
/// Talkers whose satellites are counted.
const TALKERS_MAX: usize = 16;

/// The moment that a report is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReportTime {
    /// UTC milliseconds; without a date, milliseconds since some midnight.
    pub(super) millis: i64,
    /// Whether the date is known.
    pub(super) is_dated: bool,
    /// Whether the receiver had a fix.
    pub(super) has_fix: bool,
}

/// A report from a log, with the moment it is about.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LogReport {
    pub(super) report: GpsReport,
    pub(super) time: Option<ReportTime>,
}

impl LogReport {
    fn untimed(report: GpsReport) -> Self {
        Self { report, time: None }
    }
}

/// The epochs of a log.
#[derive(Debug, Default)]
pub(super) struct NmeaEpochs {
    epoch: Epoch,
    /// The last date told by the log, and the time of day of the last epoch.
    date: Option<NaiveDate>,
    last_of_day_ms: Option<i64>,
    /// Midnights passed while no date was known.
    undated_days: i64,
}

#[derive(Debug, Default)]
struct Epoch {
    is_open: bool,
    of_day_ms: Option<i64>,
    date: Option<NaiveDate>,
    position: Option<(f64, f64)>,
    altitude_m: Option<f64>,
    speed_mps: Option<f64>,
    course_deg: Option<f64>,
    hdop: Option<f64>,
    is_differential: bool,
    is_void: bool,
    gsa_mode: Option<u8>,
    used: u32,
    seen: BTreeMap<String, u32>,
    talkers: Vec<String>,
}

impl NmeaEpochs {
    /// Takes a line; answers with what is complete. Blank lines and `#` comments are passed over in silence.
    pub(super) fn feed(&mut self, line: &[u8]) -> Vec<LogReport> {
        let Some(sentence) = sentence_in(line) else {
            let blank = line.iter().all(u8::is_ascii_whitespace) || line.starts_with(b"#");
            let malformed = || LogReport::untimed(GpsReport::Malformed("it holds no NMEA sentence".to_owned()));
            return if blank { Vec::new() } else { vec![malformed()] };
        };
        if !has_right_checksum(sentence) {
            return vec![LogReport::untimed(GpsReport::Malformed("its checksum is wrong".to_owned()))];
        }
        let (talker, kind) = (sentence.get(1..3).unwrap_or_default(), sentence.get(3..6).unwrap_or_default());
        match nmea::parse_str(&without_wrong_date(sentence)) {
            Ok(ParseResult::RMC(rmc)) => {
                let done = self.turn(&format!("{talker}RMC"), rmc.fix_time);
                self.epoch.take_rmc(&rmc);
                done
            }
            Ok(ParseResult::GGA(gga)) => {
                let done = self.turn(&format!("{talker}GGA"), gga.fix_time);
                self.epoch.take_gga(&gga);
                done
            }
            Ok(ParseResult::ZDA(zda)) if zda.utc_time.is_some() => {
                let done = self.turn(&format!("{talker}ZDA"), zda.utc_time);
                self.epoch.date = zda.utc_date().or(self.epoch.date);
                done
            }
            Ok(ParseResult::GSA(gsa)) => {
                let mode = match gsa.mode2 {
                    GsaMode2::NoFix => 1,
                    GsaMode2::Fix2D => 2,
                    GsaMode2::Fix3D => 3,
                };
                self.epoch.gsa_mode = self.epoch.gsa_mode.max(Some(mode));
                Vec::new()
            }
            Ok(ParseResult::GSV(gsv)) => {
                if self.epoch.seen.len() < TALKERS_MAX {
                    self.epoch.seen.insert(talker.to_owned(), u32::from(gsv.sats_in_view));
                }
                Vec::new()
            }
            Ok(_) => Vec::new(),
            // A proprietary sentence ($P…) means what its maker likes.
            Err(_) if !talker.starts_with('P') && matches!(kind, "RMC" | "GGA" | "GSA" | "GSV" | "ZDA") => {
                vec![LogReport::untimed(GpsReport::Malformed(format!("its {kind} sentence does not parse")))]
            }
            Err(_) => vec![LogReport::untimed(GpsReport::Other(format!("{talker}{kind}")))],
        }
    }

    /// What the log ends with.
    pub(super) fn finish(&mut self) -> Vec<LogReport> {
        self.close()
    }

    /// Ends the epoch when a sentence called `name` at `time` is not of it, and puts that sentence into the one then open.
    fn turn(&mut self, name: &str, time: Option<NaiveTime>) -> Vec<LogReport> {
        let of_day_ms = time.map(of_day_ms);
        let other_time = matches!((self.epoch.of_day_ms, of_day_ms), (Some(a), Some(b)) if a != b);
        let again = self.epoch.talkers.iter().any(|known| known == name);
        let untimed = self.epoch.of_day_ms.is_none() || of_day_ms.is_none();
        let done = if other_time || (again && untimed) { self.close() } else { Vec::new() };
        self.epoch.is_open = true;
        self.epoch.of_day_ms = self.epoch.of_day_ms.or(of_day_ms);
        if !self.epoch.talkers.iter().any(|known| known == name) {
            self.epoch.talkers.push(name.to_owned());
        }
        done
    }

    fn close(&mut self) -> Vec<LogReport> {
        let epoch = std::mem::take(&mut self.epoch);
        if !epoch.is_open {
            // Satellites that came before the first epoch belong to it.
            self.epoch = epoch;
            return Vec::new();
        }
        let time = epoch.of_day_ms.map(|of_day_ms| self.date_it(&epoch, of_day_ms));
        let report = epoch.report(time);
        let time = time.map(|(millis, is_dated)| ReportTime { millis, is_dated, has_fix: report.mode >= 2 });
        let mut done = vec![LogReport { report: GpsReport::Position(report), time }];
        let seen = epoch.seen.values().fold(0_u32, |sum, &seen| sum.saturating_add(seen));
        if seen > 0 {
            done.push(LogReport::untimed(GpsReport::Satellites { used: epoch.used, seen }));
        }
        done
    }

    /// The epoch's milliseconds and whether they are of a known date.
    fn date_it(&mut self, epoch: &Epoch, of_day_ms: i64) -> (i64, bool) {
        let past_midnight = self.last_of_day_ms.is_some_and(|last| last - of_day_ms > HALF_DAY_MS);
        self.last_of_day_ms = Some(of_day_ms);
        self.date = match (epoch.date, self.date) {
            (Some(date), _) => Some(date),
            (None, Some(date)) if past_midnight => date.succ_opt(),
            (None, date) => date,
        };
        if let Some(date) = self.date {
            let midnight = date.and_time(NaiveTime::MIN).and_utc().timestamp_millis();
            return (midnight + of_day_ms, true);
        }
        self.undated_days += i64::from(past_midnight);
        (self.undated_days * DAY_MS + of_day_ms, false)
    }
}

impl Epoch {
    fn take_rmc(&mut self, rmc: &nmea::sentences::RmcData) {
        self.date = rmc.fix_date.or(self.date);
        self.is_void |= rmc.status_of_fix == RmcStatusOfFix::Invalid;
        self.position = rmc.lat.zip(rmc.lon).or(self.position);
        self.speed_mps = rmc.speed_over_ground.map(|knots| f64::from(knots) * KNOT_MPS).or(self.speed_mps);
        self.course_deg = rmc.true_course.map(f64::from).or(self.course_deg);
    }

    fn take_gga(&mut self, gga: &nmea::sentences::GgaData) {
        let fix_type = gga.fix_type.unwrap_or(FixType::Invalid);
        self.is_void |= matches!(fix_type, FixType::Invalid | FixType::Simulation);
        self.is_differential |= matches!(fix_type, FixType::DGps | FixType::Rtk | FixType::FloatRtk);
        self.position = gga.latitude.zip(gga.longitude).or(self.position);
        self.altitude_m = gga.altitude.map(f64::from).or(self.altitude_m);
        self.hdop = gga.hdop.map(f64::from).or(self.hdop);
        self.used = self.used.max(gga.fix_satellites.unwrap_or(0));
    }

    fn report(&self, time: Option<(i64, bool)>) -> PositionReport {
        let time = time.filter(|(_, is_dated)| *is_dated).map(|(millis, _)| Timestamp::from_millis(millis));
        let has_fix = !self.is_void && self.position.is_some() && self.gsa_mode != Some(1);
        if !has_fix {
            return PositionReport { mode: 1, time, ..PositionReport::default() };
        }
        let error_m = if self.is_differential { ERROR_M_PER_HDOP_DGPS } else { ERROR_M_PER_HDOP };
        let report = sane(PositionReport {
            mode: self.gsa_mode.unwrap_or(if self.altitude_m.is_some() { 3 } else { 2 }),
            time,
            latitude_deg: self.position.map(|(latitude, _)| latitude),
            longitude_deg: self.position.map(|(_, longitude)| longitude),
            altitude_m: self.altitude_m,
            accuracy_m: self.hdop.map(|hdop| hdop * error_m),
            speed_mps: self.speed_mps,
            course_deg: self.course_deg,
        });
        match report.latitude_deg {
            Some(_) => report,
            None => PositionReport { mode: 1, time, ..PositionReport::default() },
        }
    }
}

fn of_day_ms(time: NaiveTime) -> i64 {
    i64::from(time.num_seconds_from_midnight()) * 1_000 + i64::from(time.nanosecond() / 1_000_000).min(999)
}

/// The sentence in a line that may begin with noise: from the last `$` to two digits behind the `*`.
fn sentence_in(line: &[u8]) -> Option<&str> {
    let start = line.iter().rposition(|&byte| byte == b'$')?;
    let sentence = line.get(start..)?;
    let star = sentence.iter().position(|&byte| byte == b'*')?;
    let sentence = sentence.get(..star + 3)?;
    std::str::from_utf8(sentence).ok().filter(|text| text.is_ascii())
}

/// An RMC whose date is none (a receiver after a rollover wrote `2208-1`) still has its position: it goes without a date.
fn without_wrong_date(sentence: &str) -> Cow<'_, str> {
    const DATE: usize = 9;
    let Some((body, _)) = sentence.trim_start_matches('$').split_once('*') else { return Cow::Borrowed(sentence) };
    let mut fields: Vec<&str> = body.split(',').collect();
    let is_rmc = fields.first().is_some_and(|name| name.get(2..) == Some("RMC"));
    match fields.get_mut(DATE) {
        Some(date) if is_rmc && !date.bytes().all(|byte| byte.is_ascii_digit()) => *date = "",
        _ => return Cow::Borrowed(sentence),
    }
    let body = fields.join(",");
    let sum = body.bytes().fold(0, |all, byte| all ^ byte);
    Cow::Owned(format!("${body}*{sum:02X}"))
}

fn has_right_checksum(sentence: &str) -> bool {
    let Some((body, sum)) = sentence.trim_start_matches('$').split_once('*') else { return false };
    u8::from_str_radix(sum, 16).is_ok_and(|sum| body.bytes().fold(0, |all, byte| all ^ byte) == sum)
}

/// Whether a line holds a sentence with a right checksum: what tells an NMEA log from other files.
pub(super) fn is_sentence(line: &[u8]) -> bool {
    sentence_in(line).is_some_and(has_right_checksum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(body: &str) -> String {
        format!("${body}*{:02X}", body.bytes().fold(0, |all, byte| all ^ byte))
    }

    fn positions(bodies: &[&str]) -> Vec<PositionReport> {
        let mut epochs = NmeaEpochs::default();
        let mut all: Vec<_> = bodies.iter().flat_map(|body| epochs.feed(line(body).as_bytes())).collect();
        all.extend(epochs.finish());
        let position = |log: LogReport| match log.report {
            GpsReport::Position(report) => Some(report),
            GpsReport::Satellites { .. } | GpsReport::Other(_) | GpsReport::Malformed(_) => None,
        };
        all.into_iter().filter_map(position).collect()
    }

    #[test]
    fn the_sentences_of_one_time_are_one_report() {
        let found = positions(&[
            "GPGGA,202640.000,4404.1306,N,12118.8515,W,2,10,0.98,1127.7,M,-19.6,M,0000,0000",
            "GPGSA,A,3,20,16,09,03,07,10,23,19,27,30,,,1.64,0.98,1.31",
            "GPRMC,202640.000,A,4404.1306,N,12118.8515,W,1.0,225.97,130415,,,D",
            "GPRMC,202640.100,A,4404.1306,N,12118.8515,W,1.0,225.97,130415,,,D",
        ]);

        assert_eq!(found.len(), 2);
        assert_eq!(found[0].mode, 3);
        assert_eq!(found[0].time.unwrap().to_string(), "2015-04-13T20:26:40.000Z");
        assert_eq!(found[1].time.unwrap().to_string(), "2015-04-13T20:26:40.100Z");
        assert!((found[0].latitude_deg.unwrap() - (44.0 + 4.1306 / 60.0)).abs() < 1e-9);
        assert!((found[0].speed_mps.unwrap() - 0.514_444).abs() < 1e-4);
        assert!((found[0].accuracy_m.unwrap() - 0.98 * 4.75).abs() < 1e-4);
    }

    #[test]
    fn void_sentences_claim_no_place() {
        let found = positions(&[
            "GPGGA,202640.000,4404.1306,N,12118.8515,W,0,10,0.98,1127.7,M,-19.6,M,0000,0000",
            "GPRMC,202641.000,V,4404.1306,N,12118.8515,W,1.0,225.97,130415,,,N",
        ]);

        assert!(found.iter().all(|report| report.mode == 1 && report.latitude_deg.is_none()), "{found:?}");
    }

    #[test]
    fn without_times_a_sentence_that_comes_again_begins_a_report() {
        let found =
            positions(&["GPGGA,,,,,,0,,,,,,,,", "GPRMC,,V,,,,,,,,,,N", "GPGGA,,,,,,0,,,,,,,,", "GPRMC,,V,,,,,,,,,,N"]);

        assert_eq!(found.len(), 2);
    }

    #[test]
    fn the_date_is_carried_over_midnight() {
        let found = positions(&[
            "GPRMC,235959.000,A,4404.1306,N,12118.8515,W,1.0,225.97,310320,,,D",
            "GPGGA,000000.000,4404.1306,N,12118.8515,W,2,10,0.98,1127.7,M,-19.6,M,0000,0000",
        ]);

        assert_eq!(found[1].time.unwrap().to_string(), "2020-04-01T00:00:00.000Z");
    }

    #[test]
    fn noise_wrong_checksums_and_comments_are_told_apart() {
        let mut epochs = NmeaEpochs::default();
        let good = line("GPRMC,202640.000,A,4404.1306,N,12118.8515,W,1.0,225.97,130415,,,D");
        let kind = |reports: Vec<LogReport>| reports.into_iter().map(|log| log.report).collect::<Vec<_>>();

        assert_eq!(kind(epochs.feed(b"# a comment")), []);
        assert_eq!(kind(epochs.feed(&[&b"\xA0\xA2\x00$GP"[..], good.as_bytes()].concat())), []);
        assert!(matches!(kind(epochs.feed(b"\xA0\xA2\x00\x12"))[..], [GpsReport::Malformed(_)]));
        assert!(matches!(kind(epochs.feed(good.replace("4404", "4405").as_bytes()))[..], [GpsReport::Malformed(_)]));
        assert_eq!(kind(epochs.feed(line("PQGSV,1,1,00").as_bytes())), [GpsReport::Other("PQGSV".to_owned())]);
        assert_eq!(epochs.finish().len(), 1);
    }
}

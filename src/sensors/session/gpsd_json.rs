//! Understands gpsd's JSON reports, those that crate `gpsd_proto` refuses included.
//!
//! In: one JSON object. Out: a [`GpsReport`]. `gpsd_proto` 1.0 knows eight classes and fails on all
//! others, and on fields that do not fit its types (a DEVICE at 115,200 bits per second); such a TPV
//! is taken field by field, any other class is [`GpsReport::Other`]. Positions and numbers that
//! cannot be true are left out. Mode decides whether there is a fix; nothing here second-guesses it.

use crate::domain::reading::GpsReport;
use crate::domain::reading::PositionReport;
use crate::domain::time::Timestamp;
use gpsd_proto::Mode;
use gpsd_proto::Tpv;
use gpsd_proto::UnifiedResponse;
use serde::Deserialize as _;
use serde_json::Value;

/// Longest class name that is kept.
const CLASS_CHARS_MAX: usize = 32;

/// Reads one line of gpsd's JSON.
#[must_use]
pub fn parse_report(line: &[u8]) -> GpsReport {
    match serde_json::from_slice::<Value>(line) {
        Ok(value) => report_of(&value),
        Err(error) => GpsReport::Malformed(format!("it is no JSON ({error})")),
    }
}

/// Reads one report that is already JSON.
#[must_use]
pub fn report_of(value: &Value) -> GpsReport {
    let Some(class) = value.get("class").and_then(Value::as_str) else {
        return GpsReport::Malformed("it has no class".to_owned());
    };
    match UnifiedResponse::deserialize(value) {
        Ok(UnifiedResponse::Tpv(tpv)) => GpsReport::Position(from_tpv(&tpv, value)),
        Ok(UnifiedResponse::Sky(gpsd_proto::Sky { satellites: Some(satellites), .. })) => {
            let used = satellites.iter().filter(|satellite| satellite.used).count();
            satellites_of(used, satellites.len())
        }
        Ok(_) => GpsReport::Other(name(class)),
        Err(_) if class == "TPV" => GpsReport::Position(from_fields(value)),
        Err(_) if class == "SKY" => sky_from_fields(value),
        Err(_) => GpsReport::Other(name(class)),
    }
}

fn name(class: &str) -> String {
    class.chars().take(CLASS_CHARS_MAX).collect()
}

fn satellites_of(used: usize, seen: usize) -> GpsReport {
    let count = |value| u32::try_from(value).unwrap_or(u32::MAX);
    GpsReport::Satellites { used: count(used), seen: count(seen) }
}

fn from_tpv(tpv: &Tpv, value: &Value) -> PositionReport {
    let mode = match tpv.mode {
        // `gpsd_proto` holds modes 0 and 1 for the same.
        Mode::NoFix => mode_of(value).min(1),
        Mode::Fix2d => 2,
        Mode::Fix3d => 3,
    };
    sane(PositionReport {
        mode,
        time: tpv.time.as_deref().and_then(|text| Timestamp::parse(text).ok()),
        latitude_deg: tpv.lat,
        longitude_deg: tpv.lon,
        // Taken as JSON wrote them: the crate holds them with 24 bits.
        altitude_m: altitude(value),
        accuracy_m: accuracy(value),
        speed_mps: number(value, "speed"),
        course_deg: number(value, "track"),
    })
}

/// A TPV that `gpsd_proto` refuses: whatever of it has the right type.
fn from_fields(value: &Value) -> PositionReport {
    sane(PositionReport {
        mode: mode_of(value),
        time: time_of(value),
        latitude_deg: number(value, "lat"),
        longitude_deg: number(value, "lon"),
        altitude_m: altitude(value),
        accuracy_m: accuracy(value),
        speed_mps: number(value, "speed"),
        course_deg: number(value, "track"),
    })
}

/// The mode; anything that is no mode is 0, unknown.
fn mode_of(value: &Value) -> u8 {
    value
        .get("mode")
        .and_then(Value::as_u64)
        .and_then(|mode| u8::try_from(mode).ok())
        .filter(|&mode| mode <= 3)
        .unwrap_or(0)
}

/// RFC 3339, or seconds since 1970 as gpsd wrote before 2.96.
fn time_of(value: &Value) -> Option<Timestamp> {
    match value.get("time")? {
        Value::String(text) => Timestamp::parse(text).ok(),
        Value::Number(seconds) => {
            let millis = (seconds.as_f64()? * 1_000.0).round();
            // Beyond 2^53 milliseconds a double no longer tells one from the next.
            (0.0..9e15).contains(&millis).then(|| {
                #[expect(clippy::cast_possible_truncation, reason = "0 to 9e15 fits i64")]
                Timestamp::from_millis(millis as i64)
            })
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn number(value: &Value, key: &str) -> Option<f64> {
    value.get(key).and_then(Value::as_f64)
}

fn altitude(value: &Value) -> Option<f64> {
    number(value, "altMSL").or_else(|| number(value, "alt"))
}

/// The horizontal error: as a whole, or from its two parts.
fn accuracy(value: &Value) -> Option<f64> {
    number(value, "eph").or_else(|| Some(number(value, "epx")?.hypot(number(value, "epy")?)))
}

fn sky_from_fields(value: &Value) -> GpsReport {
    match value.get("satellites").and_then(Value::as_array) {
        Some(list) => {
            let used = list.iter().filter(|satellite| satellite.get("used") == Some(&Value::Bool(true))).count();
            satellites_of(used, list.len())
        }
        None => GpsReport::Other("SKY".to_owned()),
    }
}

/// Leaves out what cannot be true.
pub(super) fn sane(mut report: PositionReport) -> PositionReport {
    let within = |value: Option<f64>, low: f64, high: f64| value.filter(|value| (low..=high).contains(value));
    report.latitude_deg = within(report.latitude_deg, -90.0, 90.0);
    report.longitude_deg = within(report.longitude_deg, -180.0, 180.0);
    if report.latitude_deg.is_none() || report.longitude_deg.is_none() {
        report.latitude_deg = None;
        report.longitude_deg = None;
    }
    report.altitude_m = within(report.altitude_m, -100_000.0, 100_000_000.0);
    report.accuracy_m = within(report.accuracy_m, 0.0, 100_000_000.0);
    report.speed_mps = within(report.speed_mps, 0.0, 100_000.0);
    report.course_deg = within(report.course_deg, 0.0, 360.0);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(line: &str) -> PositionReport {
        let report = parse_report(line.as_bytes());
        let GpsReport::Position(position) = report else { panic!("{line} is {report:?}") };
        position
    }

    #[test]
    fn other_classes_are_named_and_never_refused() {
        for (line, class) in [
            (
                r#"{"class":"TOFF","device":"/dev/pts/1","real_sec":1,"real_nsec":0,"clock_sec":1,"clock_nsec":0}"#,
                "TOFF",
            ),
            (r#"{"class":"PPS","device":"/dev/pps0"}"#, "PPS"),
            (r#"{"class":"GST","rms":1.5}"#, "GST"),
            (r#"{"class":"ERROR","message":"unrecognised"}"#, "ERROR"),
            (r#"{"class":"ZZZ"}"#, "ZZZ"),
            (r#"{"class":"DEVICE","path":"/dev/ttyACM0","bps":115200}"#, "DEVICE"),
            (r#"{"class":"SKY","hdop":0.9}"#, "SKY"),
        ] {
            assert_eq!(parse_report(line.as_bytes()), GpsReport::Other(class.to_owned()));
        }
    }

    #[test]
    fn a_fix_without_time_and_error_estimates_is_a_fix() {
        let report = position(r#"{"class":"TPV","mode":3,"lat":46.5,"lon":7.5}"#);

        assert_eq!((report.mode, report.time, report.accuracy_m), (3, None, None));
        assert_eq!(report.latitude_deg, Some(46.5));
    }

    #[test]
    fn mode_decides_whatever_status_says() {
        for status in ["", r#""status":0,"#, r#""status":1,"#, r#""status":2,"#, r#""status":9,"#, r#""status":"x","#] {
            assert_eq!(position(&format!(r#"{{"class":"TPV",{status}"mode":3,"lat":1.0,"lon":2.0}}"#)).mode, 3);
        }
        assert_eq!(position(r#"{"class":"TPV","mode":1,"lat":1.0,"lon":2.0}"#).mode, 1);
        assert_eq!(position(r#"{"class":"TPV","lat":1.0,"lon":2.0}"#).mode, 0);
        assert_eq!(position(r#"{"class":"TPV","mode":99,"lat":1.0,"lon":2.0}"#).mode, 0);
    }

    #[test]
    fn impossible_positions_are_left_out() {
        let report = position(r#"{"class":"TPV","mode":3,"lat":91.0,"lon":7.5,"speed":-3,"track":725,"altMSL":1e300}"#);

        assert_eq!(report, PositionReport { mode: 3, ..PositionReport::default() });
    }

    #[test]
    fn a_time_that_is_none_is_none() {
        assert_eq!(position(r#"{"class":"TPV","mode":3,"time":"2026-02-30T00:00:00Z"}"#).time, None);
        assert_eq!(
            position(r#"{"class":"TPV","mode":3,"time":1234567890.5}"#).time,
            Some(Timestamp::from_millis(1_234_567_890_500))
        );
    }

    #[test]
    fn satellites_are_counted() {
        let line =
            r#"{"class":"SKY","satellites":[{"PRN":1,"used":true},{"PRN":2,"used":false},{"PRN":3,"used":true}]}"#;

        assert_eq!(parse_report(line.as_bytes()), GpsReport::Satellites { used: 2, seen: 3 });
    }
}

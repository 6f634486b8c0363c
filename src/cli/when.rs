//! Times as people write them on the command line.
//!
//! In: `2026-05-01T09:30:00+02:00`, `2026-05-01`, `2h`, `yesterday`, `today`, `now`, the present moment and
//! the time zone. Out: an instant. Never: the clock.

use crate::domain::time::Timestamp;
use jiff::ToSpan as _;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Which end of a day a bare date stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// `--since`: its first moment.
    Start,
    /// `--until`: the first moment after it, so that the whole day is in.
    End,
}

/// A text that is no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a time; write 2026-05-01T09:30:00+02:00, a local date (2026-05-01), an age (90s, 15m, 2h, 3d, 1w), today or yesterday"
)]
pub struct WhenError(String);

/// Parses a time.
///
/// # Errors
/// [`WhenError`] when the text is none of the forms.
pub fn parse_when(text: &str, edge: Edge, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, WhenError> {
    let wrong = || WhenError(text.to_owned());
    if let Ok(instant) = Timestamp::parse(text) {
        return Ok(instant);
    }
    let today =
        jiff::Timestamp::from_millisecond(now.as_millis()).map_err(|_| wrong())?.to_zoned_datetime(zone.clone()).date();
    let day = match text {
        "now" => return Ok(now),
        "today" => Some(today),
        "yesterday" => today.yesterday().ok(),
        _ => text.parse::<Date>().ok(),
    };
    if let Some(day) = day {
        return edge_of(day, edge, zone).ok_or_else(wrong);
    }
    parse_age_ms(text).map(|age_ms| now.plus_millis(-age_ms)).ok_or_else(wrong)
}

fn edge_of(day: Date, edge: Edge, zone: &TimeZone) -> Option<Timestamp> {
    let day = match edge {
        Edge::Start => day,
        Edge::End => day.checked_add(1.day()).ok()?,
    };
    let start = day.to_zoned_datetime(zone.clone()).ok()?;
    Some(Timestamp::from_millis(start.timestamp().as_millisecond()))
}

fn parse_age_ms(text: &str) -> Option<i64> {
    let (number, unit_ms) = [("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000)]
        .into_iter()
        .find_map(|(unit, unit_ms)| Some((text.strip_suffix(unit)?, unit_ms)))?;
    number.parse::<u32>().ok().map(|number| i64::from(number) * unit_ms)
}

/// A text that is no length of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a length of time; write 90s, 15m, 2h, 3d or 1w")]
pub struct LengthError(String);

/// Parses a length of time into milliseconds.
///
/// # Errors
/// [`LengthError`] when the text is none.
pub fn parse_length_ms(text: &str) -> Result<i64, LengthError> {
    parse_age_ms(text).filter(|length_ms| *length_ms > 0).ok_or_else(|| LengthError(text.to_owned()))
}

/// `2026-05-01 09:30:00` in that zone.
#[must_use]
pub fn local_time(instant: Timestamp, zone: &TimeZone) -> String {
    jiff::Timestamp::from_millisecond(instant.as_millis()).map_or_else(
        |_| instant.to_string(),
        |instant| instant.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

/// A length of time in two units at most: `350 ms`, `12 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`.
#[must_use]
pub fn duration(millis: i64) -> String {
    let seconds = millis / 1_000;
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_without_summer_time_has_24_hours_and_the_change_has_23() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let now = Timestamp::parse("2026-03-30T10:00:00+02:00").unwrap();

        let start = parse_when("yesterday", Edge::Start, now, &zone).unwrap();
        let end = parse_when("yesterday", Edge::End, now, &zone).unwrap();

        assert_eq!(start.to_string(), "2026-03-28T23:00:00.000Z");
        assert_eq!(end.millis_since(start), 23 * 3_600_000);
    }

    #[test]
    fn an_age_counts_back_from_now() {
        let now = Timestamp::from_millis(10_000_000);

        let parsed = ["90s", "15m", "2h"].map(|text| parse_when(text, Edge::Start, now, &TimeZone::UTC).unwrap());

        assert_eq!(parsed.map(|time| now.millis_since(time)), [90_000, 900_000, 7_200_000]);
    }

    #[test]
    fn anything_else_is_refused_with_the_forms_that_work() {
        let error = parse_when("soon", Edge::Start, Timestamp::from_millis(0), &TimeZone::UTC).unwrap_err();

        assert!(error.to_string().contains("\"soon\" is not a time"));
        assert!(error.to_string().contains("yesterday"));
    }
}

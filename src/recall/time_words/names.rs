//! Names of days, months, units and parts of the day, in English.
//!
//! In: a word in lower case. Out: what it names, if anything.

use crate::recall::time_words::Part;
use jiff::civil::Weekday;

/// A minute.
pub(super) const MINUTE_MS: i64 = 60_000;

/// A part of the day.
pub(super) fn part_named(word: &str) -> Option<Part> {
    let (from, to) = match word {
        "morning" => (5, 12),
        "afternoon" => (12, 18),
        "evening" => (18, 23),
        "night" => (21, 29),
        "noon" | "midday" => (11, 14),
        "midnight" => (23, 25),
        _ => return None,
    };
    Some(Part { from_min: from * 60, to_min: to * 60 })
}

/// Milliseconds of the units that are the same on every day.
pub(super) fn unit_ms(unit: &str) -> Option<i64> {
    match unit {
        "minute" | "minutes" => Some(MINUTE_MS),
        "hour" | "hours" => Some(60 * MINUTE_MS),
        _ => None,
    }
}

/// Days of the units that are counted back from now.
pub(super) fn days_of(unit: &str) -> Option<i64> {
    match unit {
        "day" | "days" => Some(1),
        "week" | "weeks" => Some(7),
        "month" | "months" => Some(30),
        "year" | "years" => Some(365),
        _ => None,
    }
}

/// A day of the week.
pub(super) fn weekday_named(word: &str) -> Option<Weekday> {
    Some(match word {
        "monday" => Weekday::Monday,
        "tuesday" => Weekday::Tuesday,
        "wednesday" => Weekday::Wednesday,
        "thursday" => Weekday::Thursday,
        "friday" => Weekday::Friday,
        "saturday" => Weekday::Saturday,
        "sunday" => Weekday::Sunday,
        _ => return None,
    })
}

/// A month's number.
pub(super) fn month(word: &str) -> Option<i8> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let is_short = word.len() == 3 || word == "sept";
    let place = MONTHS.iter().position(|name| *name == word || (is_short && name.starts_with(word)))?;
    i8::try_from(place + 1).ok()
}

/// A day of a month: `1`, `1st`, `23rd`.
pub(super) fn ordinal(word: &str) -> Option<i8> {
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|ending| word.strip_suffix(ending)).unwrap_or(word);
    digits.parse().ok().filter(|day| (1..=31).contains(day))
}

/// A year that somebody may remember.
pub(super) fn year(word: &str) -> Option<i16> {
    word.parse().ok().filter(|year| word.len() == 4 && (1900..2200).contains(year))
}

/// A small number in letters or digits.
pub(super) fn small_number(word: &str) -> Option<i64> {
    const NAMES: [&str; 13] =
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    let named = NAMES.iter().position(|name| *name == word).and_then(|place| i64::try_from(place).ok());
    named.or_else(|| word.parse().ok().filter(|number| (0..10_000).contains(number)))
}

//! Times, lengths, counts and lists as a person says them.
//!
//! In: numbers, names, the local time zone. Out: words, English. Never: the clock.

use crate::domain::time::Timestamp;
use jiff::ZonedDateTime;
use jiff::tz::TimeZone;

/// Letters of a name that are repeated; a longer one is cut.
const NAME_LETTERS_MAX: usize = 60;

/// `once`, `twice`, `7 times`.
pub(super) fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}

/// `1 day`, `3 days`.
pub(super) fn counted(count: u64, unit: &str) -> String {
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// `45 s`, `12 min`, `1 h 5 min`, `14 h`: nobody wants the minutes of half a day.
pub(super) fn length(millis: i64) -> String {
    let seconds = (millis.max(0) + 500) / 1_000;
    let minutes = (seconds + 30) / 60;
    match minutes {
        _ if seconds < 60 => format!("{seconds} s"),
        ..60 => format!("{minutes} min"),
        60..600 if minutes % 60 > 0 => format!("{} h {} min", minutes / 60, minutes % 60),
        _ => format!("{} h", (minutes + 30) / 60),
    }
}

/// `850 m`, `1.3 km`, `120 km`.
pub(super) fn distance(metres: f64) -> String {
    if metres < 995.0 {
        format!("{:.0} m", (metres / 10.0).round() * 10.0)
    } else if metres < 99_950.0 {
        format!("{:.1} km", metres / 1_000.0)
    } else {
        format!("{:.0} km", metres / 1_000.0)
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// The first `shown` of `parts` and how many others there are.
pub(super) fn list_of_many(mut parts: Vec<String>, shown: usize, others_beyond: u64) -> String {
    let others = others_beyond + parts.len().saturating_sub(shown) as u64;
    parts.truncate(shown);
    if others > 0 {
        parts.push(counted(others, "other"));
    }
    list(&parts)
}

/// A name on one line and not longer than a name is.
pub(super) fn name(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&line, NAME_LETTERS_MAX)
}

/// At most `letters` letters, cut at a word where there is one.
pub(super) fn cut(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    let short: String = text.chars().take(letters.saturating_sub(1)).collect();
    let whole_words = short.rfind(' ').filter(|at| *at * 2 > short.len()).map_or(short.as_str(), |at| &short[..at]);
    format!("{}…", whole_words.trim_end_matches([' ', ',', ';', ':']))
}

/// A class of sound within a sentence: `Child speech, kid speaking` becomes `child speech`. What follows the comma is
/// another word for the same.
pub(super) fn sound(class: &str) -> String {
    let class = name(class);
    let first = class.split(", ").next().unwrap_or_default();
    let mut letters = first.chars();
    let is_acronym = letters.clone().nth(1).is_some_and(char::is_uppercase);
    match letters.next() {
        Some(letter) if !is_acronym => letter.to_lowercase().chain(letters).collect(),
        _ => first.to_owned(),
    }
}

/// That instant in the zone; the epoch when it is beyond what a calendar holds.
pub(super) fn local(at: Timestamp, zone: &TimeZone) -> ZonedDateTime {
    jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or_default().to_zoned_datetime(zone.clone())
}

/// `09:05`.
pub(super) fn clock(at: Timestamp, zone: &TimeZone) -> String {
    local(at, zone).strftime("%H:%M").to_string()
}

/// `Monday 30 November 2026`.
pub(super) fn day(date: jiff::civil::Date) -> String {
    date.strftime("%A %-d %B %Y").to_string()
}

/// `Friday 27 November at 14:10`.
pub(super) fn day_and_clock(at: Timestamp, zone: &TimeZone) -> String {
    local(at, zone).strftime("%A %-d %B at %H:%M").to_string()
}

/// The part of the day: `at night`, `in the morning`, …
pub(super) const PARTS_OF_DAY: [&str; 4] = ["at night", "in the morning", "in the afternoon", "in the evening"];

/// Which of [`PARTS_OF_DAY`] an hour belongs to: night until 5, morning until 12, afternoon until 18.
pub(super) fn part_of_day(at: Timestamp, zone: &TimeZone) -> usize {
    match local(at, zone).hour() {
        ..5 => 0,
        5..12 => 1,
        12..18 => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_read_like_speech() {
        let minute = 60_000;
        let cases = [
            (0, "0 s"),
            (45_000, "45 s"),
            (59_700, "1 min"),
            (12 * minute, "12 min"),
            (65 * minute, "1 h 5 min"),
            (120 * minute, "2 h"),
            (14 * 60 * minute + 20 * minute, "14 h"),
            (-5, "0 s"),
        ];

        for (millis, words) in cases {
            assert_eq!(length(millis), words);
        }
    }

    #[test]
    fn many_are_listed_with_how_many_others_there_are() {
        let parts = |count: usize| (0..count).map(|number| format!("p{number}")).collect::<Vec<_>>();

        assert_eq!(list_of_many(parts(2), 3, 0), "p0 and p1");
        assert_eq!(list_of_many(parts(5), 3, 0), "p0, p1, p2 and 2 others");
        assert_eq!(list_of_many(parts(3), 3, 1), "p0, p1, p2 and 1 other");
    }

    #[test]
    fn classes_of_sound_fit_into_a_sentence() {
        let cases = [
            ("Speech", "speech"),
            ("Child speech, kid speaking", "child speech"),
            ("CD player", "CD player"),
            ("", ""),
        ];

        for (class, words) in cases {
            assert_eq!(sound(class), words);
        }
    }

    #[test]
    fn a_long_text_is_cut_at_a_word() {
        assert_eq!(cut("one two three, four", 15), "one two three…");
        assert_eq!(cut("äöüäöüäöü", 4), "äöü…");
        assert_eq!(cut("short", 5), "short");
    }
}

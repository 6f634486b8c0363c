//! What sort of thing a name stands for, as far as its spelling and its node tell.
//!
//! In: the text of a node, whether its kind is one percept knows. Out: a [`NameSort`].
//!
//! | sort | examples | in a question | in the walk |
//! |---|---|---|---|
//! | common noun | `airport`, `novel` | begins the walk only when nothing else does | a weak bridge: half the store has an airport |
//! | date or amount | `1930`, `21 June`, `two weeks` | as a name | a weak bridge |
//! | name | `Ann Lee`, `Hello Love` | where it is written like one | a bridge |
//! | known thing | `kitchen` (location), `red umbrella` (object) | however it is written | a bridge |
//!
//! Never: a list of names. English only in its words for dates and amounts.

use crate::recall::phrases;
use crate::recall::phrases::Word;

/// The sort of a name. One that is several things (`Speech` the sound, `speech` the word) is the last of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameSort {
    /// A common noun.
    Common,
    /// A date, a time, a number.
    Measure,
    /// It is written like a name.
    Name,
    /// A person, place, sound, object or device.
    Known,
}

/// Words of dates and amounts that are no digits.
const MEASURES: [&str; 62] = [
    "ad",
    "april",
    "august",
    "bc",
    "billion",
    "centuries",
    "century",
    "date",
    "day",
    "days",
    "december",
    "decade",
    "decades",
    "dozen",
    "eight",
    "eleven",
    "february",
    "fifth",
    "first",
    "five",
    "four",
    "fourth",
    "friday",
    "half",
    "hour",
    "hours",
    "hundred",
    "january",
    "july",
    "june",
    "march",
    "may",
    "million",
    "minute",
    "minutes",
    "monday",
    "month",
    "months",
    "nine",
    "november",
    "october",
    "one",
    "percent",
    "saturday",
    "second",
    "seconds",
    "september",
    "seven",
    "six",
    "sunday",
    "ten",
    "third",
    "thousand",
    "three",
    "thursday",
    "time",
    "times",
    "tuesday",
    "twelve",
    "two",
    "wednesday",
    "year",
];

/// What may follow the digits of a number: `1930s`, `21st`, `12km`.
const AFTER_DIGITS: [&str; 14] = ["", "s", "st", "nd", "rd", "th", "ad", "bc", "km", "m", "cm", "mm", "ft", "kg"];

impl NameSort {
    /// The sort of a node. `is_known` says that its kind is person, location, sound, object or device.
    #[must_use]
    pub fn of(text: &str, is_known: bool) -> Self {
        let words = phrases::words(text);
        match () {
            () if is_known => Self::Known,
            () if is_measure(&words) => Self::Measure,
            () if is_written_as_name(&words) => Self::Name,
            () => Self::Common,
        }
    }

    /// As it is stored.
    #[must_use]
    pub const fn as_number(self) -> i64 {
        match self {
            Self::Common => 0,
            Self::Measure => 1,
            Self::Name => 2,
            Self::Known => 3,
        }
    }

    /// What was stored; anything else is a common noun.
    #[must_use]
    pub const fn from_number(number: i64) -> Self {
        match number {
            1 => Self::Measure,
            2 => Self::Name,
            3 => Self::Known,
            _ => Self::Common,
        }
    }
}

/// Whether a word that is no function word begins with a capital or a digit, or is in letters that have no capitals.
pub(crate) fn is_written_as_name(words: &[Word]) -> bool {
    let has_no_case = |word: &Word| word.text.chars().next().is_some_and(|first| !first.is_lowercase());
    words.iter().any(|word| (word.is_capital || has_no_case(word)) && !phrases::is_stop_word(&word.text))
}

fn is_measure(words: &[Word]) -> bool {
    let is_number = |word: &str| {
        let rest = word.trim_start_matches(|letter: char| letter.is_numeric());
        rest.len() < word.len() && AFTER_DIGITS.contains(&rest)
    };
    let is_part = |word: &Word| MEASURES.contains(&word.text.as_str()) || is_number(&word.text);
    words.iter().any(is_part) && words.iter().all(|word| is_part(word) || phrases::is_stop_word(&word.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_tells_names_from_nouns_and_dates() {
        let cases = [
            ("Ann Lee", NameSort::Name),
            ("the Beatles", NameSort::Name),
            ("iPhone 7", NameSort::Name),
            ("日本語", NameSort::Name),
            ("airport", NameSort::Common),
            ("The", NameSort::Common),
            ("", NameSort::Common),
            ("1930", NameSort::Measure),
            ("the 1930s", NameSort::Measure),
            ("21st of June 2008", NameSort::Measure),
            ("Two days", NameSort::Measure),
            ("World War 2", NameSort::Name),
            ("u2", NameSort::Common),
        ];

        for (text, sort) in cases {
            assert_eq!(NameSort::of(text, false), sort, "{text:?}");
            assert_eq!(NameSort::of(text, true), NameSort::Known, "{text:?}");
        }
    }

    #[test]
    fn the_stored_number_is_read_back_and_a_strange_one_is_harmless() {
        for sort in [NameSort::Common, NameSort::Measure, NameSort::Name, NameSort::Known] {
            assert_eq!(NameSort::from_number(sort.as_number()), sort);
        }
        assert_eq!(NameSort::from_number(-7), NameSort::Common);
    }
}

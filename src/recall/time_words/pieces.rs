//! The grammar of time words: which words of a text name a time.
//!
//! In: a text and the local day it was said. Out: the pieces found, each with where it stands. The table in
//! [`crate::recall::time_words`] says what each form means. Patterns are tried from the left, the longest first.
//! Never: instants; a piece is in local days and minutes.

use crate::recall::time_words::Part;
use crate::recall::time_words::Side;
use crate::recall::time_words::names::MINUTE_MS;
use crate::recall::time_words::names::days_of;
use crate::recall::time_words::names::month;
use crate::recall::time_words::names::ordinal;
use crate::recall::time_words::names::part_named;
use crate::recall::time_words::names::small_number;
use crate::recall::time_words::names::unit_ms;
use crate::recall::time_words::names::weekday_named;
use crate::recall::time_words::names::year;
use jiff::ToSpan as _;
use jiff::civil::Date;
use jiff::civil::DateTime;
use jiff::civil::Weekday;
use std::ops::Range;

/// Most words of a text that are looked at.
const TOKENS_MAX: usize = 512;

/// Words before a time that belong to it.
const PREPOSITIONS: [&str; 13] =
    ["on", "in", "at", "during", "over", "the", "of", "from", "within", "around", "about", "early", "late"];

/// What words say about time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Piece {
    /// From the first day on, up to the second.
    Days(Date, Date),
    /// A part of some day.
    Part(Part),
    /// A part of each of these days.
    PartOf(Date, Date, Part),
    /// From so many milliseconds before now to so many.
    Ago(i64, i64),
    /// From so many days before now on, at the same time of day.
    Back(i64),
}

/// A piece, and which words it takes.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) piece: Piece,
    pub(super) side: Option<Side>,
    bytes: Range<usize>,
    is_absolute: bool,
}

/// All pieces of a text.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) found: Vec<Found>,
    today: Date,
}

impl Reading {
    /// The words taken, as written.
    pub(super) fn words(&self, text: &str) -> Vec<String> {
        self.found.iter().filter_map(|found| text.get(found.bytes.clone())).map(str::to_owned).collect()
    }

    /// The text without them.
    pub(super) fn rest(&self, text: &str) -> String {
        let mut rest = String::with_capacity(text.len());
        let mut from = 0;
        for found in &self.found {
            rest.push_str(text.get(from..found.bytes.start).unwrap_or_default());
            from = found.bytes.end;
        }
        rest.push_str(text.get(from..).unwrap_or_default());
        rest.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Whether each of them names its year.
    pub(super) fn is_absolute(&self) -> bool {
        self.found.iter().all(|found| found.is_absolute)
    }

    /// So many days before the day it was said.
    pub(super) fn now_less(&self, days: i64) -> Option<DateTime> {
        self.today.checked_sub(days.days()).ok().map(|day| day.at(0, 0, 0, 0))
    }
}

/// A word in lower case and where it stands.
#[derive(Debug)]
struct Token {
    text: String,
    /// Whether it is followed by more that belongs to it: `yesterday's meeting`.
    is_possessive: bool,
    bytes: Range<usize>,
}

/// A piece of so many words.
struct Match {
    piece: Piece,
    length: usize,
    is_absolute: bool,
}

fn matched(piece: Piece, length: usize) -> Option<Match> {
    Some(Match { piece, length, is_absolute: false })
}

/// Finds the pieces of a text said on that day.
pub(super) fn read(text: &str, today: Date) -> Reading {
    let tokens = tokens(text);
    let words = Words { tokens: &tokens, today };
    let mut found: Vec<Found> = Vec::new();
    let (mut at, mut free) = (0, 0);
    while at < tokens.len() {
        let Some(Match { piece, length, is_absolute }) = words.piece(at, found.last(), free == at) else {
            at += 1;
            continue;
        };
        // `before yesterday's meeting` is not before yesterday.
        let takes_side = tokens.get(at + length - 1).is_some_and(|token| !token.is_possessive);
        let side_of = |word: &str| side_of(word).filter(|_| takes_side);
        let mut first = at;
        let mut side = None;
        while first > free {
            let before = words.text(first - 1);
            side = side.or(side_of(before));
            if side_of(before).is_none() && !PREPOSITIONS.contains(&before) {
                break;
            }
            first -= 1;
        }
        let bytes = tokens[first].bytes.start..tokens[at + length - 1].bytes.end;
        found.push(Found { piece, side, bytes, is_absolute });
        at += length;
        free = at;
    }
    Reading { found, today }
}

fn side_of(word: &str) -> Option<Side> {
    match word {
        "since" => Some(Side::Since),
        "after" => Some(Side::After),
        "before" => Some(Side::Before),
        "until" | "till" => Some(Side::Until),
        _ => None,
    }
}

/// Runs of letters and digits; `:`, `-` and apostrophes within one belong to it. A possessive ending is cut off.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut start = None;
    let mut letters = text.char_indices().peekable();
    while let Some((place, letter)) = letters.next() {
        let joins = matches!(letter, ':' | '-' | '\'' | '’')
            && start.is_some()
            && letters.peek().is_some_and(|(_, next)| next.is_alphanumeric());
        if letter.is_alphanumeric() || joins {
            start = start.or(Some(place));
        } else if let Some(start) = start.take() {
            tokens.push(start..place);
        }
        if tokens.len() == TOKENS_MAX {
            start = None;
            break;
        }
    }
    tokens.extend(start.map(|start| start..text.len()));
    tokens
        .into_iter()
        .map(|bytes| {
            let word = text.get(bytes.clone()).unwrap_or_default().to_lowercase();
            let bare = ["'s", "’s"].iter().find_map(|ending| word.strip_suffix(ending));
            Token { is_possessive: bare.is_some(), text: bare.unwrap_or(&word).to_owned(), bytes }
        })
        .collect()
}

struct Words<'a> {
    tokens: &'a [Token],
    today: Date,
}

impl Words<'_> {
    fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token.text.as_str())
    }

    fn before(&self, at: usize) -> &str {
        at.checked_sub(1).map_or("", |before| self.text(before))
    }

    /// Whether one of these words stands before that place, or before its article.
    fn is_led_by(&self, at: usize, leads: &[&str]) -> bool {
        let lead = match self.before(at) {
            "the" | "early" | "late" => at.checked_sub(2).map_or("", |place| self.text(place)),
            before => before,
        };
        leads.contains(&lead)
    }

    /// The piece that begins at a word. `is_next`: it follows right behind the piece `last`.
    fn piece(&self, at: usize, last: Option<&Found>, is_next: bool) -> Option<Match> {
        let follows_day = is_next && last.is_some_and(|found| matches!(found.piece, Piece::Days(..)));
        self.fixed(at)
            .or_else(|| self.calendar(at))
            .or_else(|| self.rolling(at))
            .or_else(|| self.ago(at))
            .or_else(|| self.date(at))
            .or_else(|| self.weekday(at))
            .or_else(|| self.month_or_year(at))
            .or_else(|| self.clock(at))
            .or_else(|| self.part(at, follows_day))
    }

    fn day(&self, days_ago: i64) -> Option<Piece> {
        whole_day(self.today.checked_sub(days_ago.days()).ok()?)
    }

    /// `today`, `yesterday`, `last night` and the like.
    fn fixed(&self, at: usize) -> Option<Match> {
        const NIGHT_LONG: Part = Part { from_min: 18 * 60, to_min: 29 * 60 };
        match (self.text(at), self.text(at + 1), self.text(at + 2)) {
            ("day", "before", "yesterday") => matched(self.day(2)?, 3),
            ("today", ..) => matched(self.day(0)?, 1),
            ("yesterday", ..) => matched(self.day(1)?, 1),
            ("tonight", ..) => part_of(self.day(0)?, NIGHT_LONG, 1),
            ("last", "night", _) => part_of(self.day(1)?, NIGHT_LONG, 2),
            ("this", word, _) => part_of(self.day(0)?, part_named(word).filter(|_| word != "midnight")?, 2),
            _ => None,
        }
    }

    /// `this week`, `last month`, `last weekend`, `at the weekend`.
    fn calendar(&self, at: usize) -> Option<Match> {
        let back = match self.text(at) {
            "this" => 0,
            "last" | "previous" => 1,
            "weekend" if self.is_led_by(at, &["at", "on", "over", "during"]) => {
                return matched(self.weekend(0)?, 1);
            }
            _ => return None,
        };
        let unit = self.text(at + 1);
        if unit == "weekend" {
            return matched(self.weekend(back)?, 2);
        }
        matched(self.unit_ago(back, unit)?, 2)
    }

    /// The week, month or year so many ago; 0 is the present one.
    fn unit_ago(&self, back: i64, unit: &str) -> Option<Piece> {
        let (from, to) = match unit {
            "week" | "weeks" => {
                let monday = self.monday()?.checked_sub(back.checked_mul(7)?.days()).ok()?;
                (monday, monday.checked_add(7.days()).ok()?)
            }
            "month" | "months" => {
                let first = self.today.first_of_month().checked_sub(back.months()).ok()?;
                (first, first.checked_add(1.month()).ok()?)
            }
            "year" | "years" => {
                let first = self.today.first_of_year().checked_sub(back.years()).ok()?;
                (first, first.checked_add(1.year()).ok()?)
            }
            _ => return None,
        };
        Some(Piece::Days(from, to))
    }

    fn monday(&self) -> Option<Date> {
        self.today.checked_sub(i64::from(self.today.weekday().to_monday_zero_offset()).days()).ok()
    }

    /// The latest Saturday and Sunday that have begun, or those before.
    fn weekend(&self, back: i64) -> Option<Piece> {
        let saturday = self.latest(Weekday::Saturday, true)?;
        let is_weekend = self.today < saturday.checked_add(2.days()).ok()?;
        let weeks = if is_weekend { back } else { 0 };
        let saturday = saturday.checked_sub((weeks * 7).days()).ok()?;
        Some(Piece::Days(saturday, saturday.checked_add(2.days()).ok()?))
    }

    fn latest(&self, weekday: Weekday, with_today: bool) -> Option<Date> {
        let since = i64::from(self.today.weekday().since(weekday));
        let since = if since == 0 && !with_today { 7 } else { since };
        self.today.checked_sub(since.days()).ok()
    }

    /// `the last three days`, `the past hour`.
    fn rolling(&self, at: usize) -> Option<Match> {
        if !matches!(self.text(at), "last" | "past" | "previous") {
            return None;
        }
        let (number, used) = self.number(at + 1).unwrap_or((1, 0));
        let unit = self.text(at + 1 + used);
        let piece = match (unit_ms(unit), days_of(unit)) {
            (Some(unit_ms), _) => Piece::Ago(number.checked_mul(unit_ms)?, 0),
            (None, Some(days)) if used > 0 || self.text(at) == "past" => Piece::Back(number.checked_mul(days)?),
            _ => return None,
        };
        matched(piece, 2 + used)
    }

    /// `two days ago`.
    fn ago(&self, at: usize) -> Option<Match> {
        if (self.text(at), self.text(at + 1), self.text(at + 2), self.text(at + 3)) == ("half", "an", "hour", "ago") {
            return matched(Piece::Ago(45 * MINUTE_MS, 15 * MINUTE_MS), 4);
        }
        let (number, used) = self.number(at)?;
        let unit = self.text(at + used);
        if self.text(at + used + 1) != "ago" {
            return None;
        }
        let piece = if let Some(unit_ms) = unit_ms(unit) {
            let middle = number.checked_mul(unit_ms)?;
            Piece::Ago(middle.checked_add(unit_ms / 2)?, (middle - unit_ms / 2).max(0))
        } else if matches!(unit, "day" | "days") {
            self.day(number)?
        } else {
            self.unit_ago(number, unit)?
        };
        matched(piece, used + 2)
    }

    /// A small number in digits or letters, and how many words it takes.
    fn number(&self, at: usize) -> Option<(i64, usize)> {
        match (self.text(at), self.text(at + 1), self.text(at + 2)) {
            ("a", "couple", "of") => Some((2, 3)),
            ("couple", "of", _) => Some((2, 2)),
            ("a" | "an", ..) => Some((1, 1)),
            (word, ..) => small_number(word).map(|number| (number, 1)),
        }
    }

    /// `2026-05-01`, `1 May 2026`, `1st of May`, `May 1`.
    fn date(&self, at: usize) -> Option<Match> {
        let word = self.text(at);
        if word.len() == 10
            && let Ok(day) = word.parse::<Date>()
        {
            return Some(Match { piece: whole_day(day)?, length: 1, is_absolute: true });
        }
        let of = usize::from(self.text(at + 1) == "of");
        let (day, month, length) = match (ordinal(word), month(self.text(at + 1 + of))) {
            (Some(day), Some(month)) => (day, month, 2 + of),
            _ => (ordinal(self.text(at + 1))?, month(word)?, 2),
        };
        if let Some(year) = year(self.text(at + length)) {
            let piece = whole_day(Date::new(year, month, day).ok()?)?;
            return Some(Match { piece, length: length + 1, is_absolute: true });
        }
        let this_year = Date::new(self.today.year(), month, day).ok().filter(|day| *day <= self.today);
        // Eight years, because of the 29th of February.
        let latest =
            this_year.or_else(|| (1..=8).find_map(|back| Date::new(self.today.year() - back, month, day).ok()))?;
        matched(whole_day(latest)?, length)
    }

    fn weekday(&self, at: usize) -> Option<Match> {
        let (with_today, word, length) = match self.text(at) {
            "last" | "past" => (false, self.text(at + 1), 2),
            "this" => (true, self.text(at + 1), 2),
            word => (true, word, 1),
        };
        let weekday = weekday_named(word)?;
        let is_meant = length == 2
            || matches!(self.before(at), "on" | "since" | "until" | "till" | "before" | "after")
            || part_named(self.text(at + length)).is_some();
        matched(whole_day(self.latest(weekday, with_today)?)?, length).filter(|_| is_meant)
    }

    /// `in May`, `last May`, `in May 2025`, `in 2025`.
    fn month_or_year(&self, at: usize) -> Option<Match> {
        let (is_last, place) = match self.text(at) {
            "last" => (true, at + 1),
            "this" => (false, at + 1),
            _ => (false, at),
        };
        let leads = ["in", "during", "since", "until", "till", "before", "after"];
        let is_meant = place > at || leads.contains(&self.before(at));
        if !is_meant {
            return None;
        }
        let Some(month) = month(self.text(place)) else {
            let first = Date::new(year(self.text(at))?, 1, 1).ok()?;
            let piece = Piece::Days(first, first.checked_add(1.year()).ok()?);
            return Some(Match { piece, length: 1, is_absolute: true });
        };
        let named = year(self.text(place + 1));
        let first = match named {
            Some(year) => Date::new(year, month, 1).ok()?,
            None => {
                let this_year = Date::new(self.today.year(), month, 1).ok()?;
                let is_over = if is_last { this_year < self.today.first_of_month() } else { this_year <= self.today };
                if is_over { this_year } else { this_year.checked_sub(1.year()).ok()? }
            }
        };
        let length = place - at + 1 + usize::from(named.is_some());
        let piece = Piece::Days(first, first.checked_add(1.month()).ok()?);
        Some(Match { piece, length, is_absolute: named.is_some() })
    }

    /// `5 pm`, `5pm`, `17:30`, `5 o'clock`, behind a preposition.
    fn clock(&self, at: usize) -> Option<Match> {
        if !matches!(
            self.before(at),
            "at" | "around" | "about" | "since" | "after" | "before" | "until" | "till" | "by"
        ) {
            return None;
        }
        let (digits, suffix) = match self.text(at).find(|letter: char| letter.is_alphabetic()) {
            Some(place) => self.text(at).split_at(place),
            None => (self.text(at), ""),
        };
        let (hour, minute) = digits.split_once(':').unwrap_or((digits, ""));
        let (hour, minute): (i64, i64) = (hour.parse().ok()?, if minute.is_empty() { 0 } else { minute.parse().ok()? });
        let (half, length) = if suffix.is_empty() { (self.text(at + 1), 2) } else { (suffix, 1) };
        let (hour, length) = match half {
            "am" if (1..=12).contains(&hour) => (hour % 12, length),
            "pm" if (1..=12).contains(&hour) => (hour % 12 + 12, length),
            "o'clock" | "o’clock" => (hour, length),
            _ if digits.contains(':') && suffix.is_empty() => (hour, 1),
            _ => return None,
        };
        let middle = hour.checked_mul(60)?.checked_add(minute)?;
        let is_time = (0..24).contains(&hour) && (0..60).contains(&minute);
        is_time.then_some(())?;
        matched(Piece::Part(Part { from_min: middle - 30, to_min: middle + 30 }), length)
    }

    fn part(&self, at: usize, follows_day: bool) -> Option<Match> {
        let word = self.text(at);
        let part = part_named(word)?;
        let lead = match self.before(at) {
            "the" | "early" | "late" => at.checked_sub(2).map_or("", |place| self.text(place)),
            before => before,
        };
        let is_meant = match word {
            "noon" | "midday" | "midnight" => {
                matches!(lead, "at" | "around" | "about" | "before" | "after" | "since" | "until")
            }
            "night" => matches!(lead, "at" | "in" | "during"),
            _ => matches!(lead, "in" | "during"),
        };
        matched(Piece::Part(part), 1).filter(|_| is_meant || follows_day)
    }
}

fn whole_day(day: Date) -> Option<Piece> {
    Some(Piece::Days(day, day.tomorrow().ok()?))
}

fn part_of(day: Piece, part: Part, length: usize) -> Option<Match> {
    let Piece::Days(from, to) = day else { return None };
    matched(Piece::PartOf(from, to, part), length)
}

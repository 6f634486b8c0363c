//! Time words of a question as spans of local time.
//!
//! In: `Who did I meet yesterday evening?`, the present moment, the time zone. Out: the spans that are meant and the question
//! without the words that say so.
//!
//! | words | meaning |
//! |---|---|
//! | today, yesterday, the day before yesterday, 2026-05-01, 1 May 2026, May 1st | that local day; without a year the latest one that has begun |
//! | on Monday, this Monday; last Monday | the latest one, today included; the latest one before today |
//! | Monday morning | a weekday needs `on`, `last` or `this` before it, or a part of the day behind it |
//! | this week, last month, last year | of the calendar, weeks from Monday |
//! | at the weekend, this weekend; last weekend | the latest Saturday and Sunday that have begun; the latest that are over |
//! | the last 3 days, the past two hours, the past week | from then to now; a month is 30 days, a year 365 |
//! | two hours ago, half an hour ago | half a unit to each side |
//! | three days ago, a week ago, a month ago | that day, week or month of the calendar |
//! | in May, in 2025, in May 2025 | that month or year; a month needs a preposition or a number beside it |
//! | morning 5–12, afternoon 12–18, evening 18–23, night 21–5, noon 11–14, midnight 23–1 | of the day named, else the latest that has begun; without a day they need `in the`, `this`, `at` … before them |
//! | last night, tonight | 18–5 |
//! | at 5 pm, around 17:30, at 5 o'clock | half an hour to each side |
//! | since, after, before, until | from its start on, from its end on, up to its start, up to its end; not before a possessive |
//!
//! A day is what the zone makes of it: 23 or 25 hours long when summer time changes. Two days named make one span from the
//! first to the last. What is not in the table stays an ordinary word: `the Monday demonstrations`, `Salt March`.
//! Never: reads the clock, or takes part of a word for a time.

mod names;
mod pieces;

use crate::domain::time::Timestamp;
use crate::recall::time_words::pieces::Piece;
use crate::recall::time_words::pieces::Reading;
use jiff::ToSpan as _;
use jiff::civil::Date;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Longest run of days whose mornings are told apart; beyond, the part of the day is not looked at.
const DAYS_MAX: usize = 400;

/// From the first instant on, up to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The first instant within.
    pub start: Timestamp,
    /// The first instant after.
    pub end: Timestamp,
}

impl Span {
    /// Whether the instant lies within.
    #[must_use]
    pub fn contains(&self, instant: Timestamp) -> bool {
        self.start <= instant && instant < self.end
    }
}

/// What a text says about time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimeWords {
    /// The spans that are meant, in order, none of them empty; no span at all when the text names no time.
    pub spans: Vec<Span>,
    /// The words that said so, as written.
    pub words: Vec<String>,
    /// The text without them.
    pub rest: String,
    /// Whether every time was named with its year (`in 1930`, `on 1 May 1915`): it may as well be what the question is about.
    pub is_absolute: bool,
}

/// A part of the day, in minutes since its midnight; the end may lie in the next day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    from_min: i64,
    to_min: i64,
}

/// Which side of the time named is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Since,
    After,
    Before,
    Until,
}

/// Reads the time words of `text`.
#[must_use]
pub fn parse(text: &str, now: Timestamp, zone: &TimeZone) -> TimeWords {
    let nothing = || TimeWords { rest: text.to_owned(), ..TimeWords::default() };
    let Some(local) = local(now, zone) else { return nothing() };
    let reading = pieces::read(text, local.date());
    let spans = Meaning::of(&reading).spans(now, local, zone);
    if spans.is_empty() {
        return nothing();
    }
    TimeWords { spans, words: reading.words(text), rest: reading.rest(text), is_absolute: reading.is_absolute() }
}

fn local(now: Timestamp, zone: &TimeZone) -> Option<DateTime> {
    let now = jiff::Timestamp::from_millisecond(now.as_millis()).ok()?;
    Some(now.to_zoned_datetime(zone.clone()).datetime())
}

/// All pieces of one text put together.
#[derive(Debug, Default)]
struct Meaning {
    days: Option<(Date, Date)>,
    part: Option<Part>,
    /// Milliseconds before now.
    ago_ms: Option<(i64, i64)>,
    since: Option<DateTime>,
    side: Option<Side>,
}

impl Meaning {
    fn of(reading: &Reading) -> Self {
        let mut meaning = Self::default();
        for found in &reading.found {
            match found.piece {
                Piece::Days(from, to) => {
                    let (first, last) = meaning.days.unwrap_or((from, to));
                    meaning.days = Some((first.min(from), last.max(to)));
                }
                Piece::Part(part) => meaning.part = meaning.part.or(Some(part)),
                Piece::PartOf(from, to, part) => {
                    meaning.days = meaning.days.or(Some((from, to)));
                    meaning.part = meaning.part.or(Some(part));
                }
                Piece::Ago(from_ms, to_ms) => meaning.ago_ms = meaning.ago_ms.or(Some((from_ms, to_ms))),
                Piece::Back(days) => meaning.since = meaning.since.or(reading.now_less(days)),
            }
            meaning.side = meaning.side.or(found.side);
        }
        meaning
    }

    fn spans(&self, now: Timestamp, local: DateTime, zone: &TimeZone) -> Vec<Span> {
        // What lasts until now has now in it.
        let end = now.plus_millis(1);
        let spans = if let Some((from_ms, to_ms)) = self.ago_ms {
            vec![Span { start: now.plus_millis(-from_ms), end: if to_ms == 0 { end } else { now.plus_millis(-to_ms) } }]
        } else if let Some(since) = self.since {
            let since = since.date().to_datetime(local.time());
            instant(since, zone).map(|start| Span { start, end }).into_iter().collect()
        } else {
            self.calendar(local, zone)
        };
        let spans: Vec<Span> = spans.into_iter().filter(|span| span.start < span.end).collect();
        let (Some(side), Some(first), Some(last)) = (self.side, spans.first(), spans.last()) else { return spans };
        let (start, end) = match side {
            Side::Since => (first.start, Timestamp::from_millis(i64::MAX)),
            Side::After => (last.end, Timestamp::from_millis(i64::MAX)),
            Side::Before => (Timestamp::from_millis(i64::MIN), first.start),
            Side::Until => (Timestamp::from_millis(i64::MIN), last.end),
        };
        vec![Span { start, end }]
    }

    /// Whole days, or the part of each.
    fn calendar(&self, local: DateTime, zone: &TimeZone) -> Vec<Span> {
        match (self.days, self.part) {
            (Some((from, to)), None) => {
                span_of(from.to_datetime(midnight()), to.to_datetime(midnight()), zone).into_iter().collect()
            }
            (Some((from, to)), Some(part)) => {
                let days: Vec<Date> = from.series(1.day()).take_while(|day| *day < to).take(DAYS_MAX + 1).collect();
                if days.len() > DAYS_MAX {
                    return Self { part: None, ..*self }.calendar(local, zone);
                }
                days.into_iter().filter_map(|day| part.of(day, zone)).collect()
            }
            (None, Some(part)) => {
                let minute = i64::from(local.hour()) * 60 + i64::from(local.minute());
                let has_begun = part.from_min <= minute;
                let day = if has_begun { Ok(local.date()) } else { local.date().yesterday() };
                day.ok().and_then(|day| part.of(day, zone)).into_iter().collect()
            }
            (None, None) => Vec::new(),
        }
    }
}

impl Part {
    fn of(self, day: Date, zone: &TimeZone) -> Option<Span> {
        let at = |minutes: i64| day.to_datetime(midnight()).checked_add(minutes.minutes()).ok();
        span_of(at(self.from_min)?, at(self.to_min)?, zone)
    }
}

const fn midnight() -> jiff::civil::Time {
    jiff::civil::Time::midnight()
}

fn span_of(from: DateTime, to: DateTime, zone: &TimeZone) -> Option<Span> {
    Some(Span { start: instant(from, zone)?, end: instant(to, zone)? })
}

/// When the zone's clocks show that time: of two such moments the first, of none the moment they would have shown it.
fn instant(local: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let zoned = local.to_zoned_datetime(zone.clone()).ok()?;
    Some(Timestamp::from_millis(zoned.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests;

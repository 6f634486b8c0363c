//! Sentences and what they mean, in two zones and over changes of summer time.

use super::*;

const BERLIN: &str = "Europe/Berlin";
const NEW_YORK: &str = "America/New_York";

fn read(text: &str, now: &str, zone: &str) -> TimeWords {
    parse(text, Timestamp::parse(now).unwrap(), &TimeZone::get(zone).unwrap())
}

/// `from/to` in UTC, to the minute.
fn spans(text: &str, now: &str, zone: &str) -> Vec<String> {
    let minute = |instant: Timestamp| instant.to_string().get(..16).unwrap_or("?").to_owned();
    read(text, now, zone).spans.iter().map(|span| format!("{}/{}", minute(span.start), minute(span.end))).collect()
}

#[test]
fn each_form_of_the_table_means_what_it_says() {
    // A Wednesday, noon in Berlin.
    let now = "2026-07-15T12:00:00+02:00";
    let cases = [
        ("today", "2026-07-14T22:00/2026-07-15T22:00"),
        ("yesterday", "2026-07-13T22:00/2026-07-14T22:00"),
        ("the day before yesterday", "2026-07-12T22:00/2026-07-13T22:00"),
        ("yesterday's meeting", "2026-07-13T22:00/2026-07-14T22:00"),
        ("two days ago", "2026-07-12T22:00/2026-07-13T22:00"),
        ("a week ago", "2026-07-05T22:00/2026-07-12T22:00"),
        ("a month ago", "2026-05-31T22:00/2026-06-30T22:00"),
        ("2 hours ago", "2026-07-15T07:30/2026-07-15T08:30"),
        ("the past two hours", "2026-07-15T08:00/2026-07-15T10:00"),
        ("the last 3 days", "2026-07-12T10:00/2026-07-15T10:00"),
        ("half an hour ago", "2026-07-15T09:15/2026-07-15T09:45"),
        ("the past week", "2026-07-08T10:00/2026-07-15T10:00"),
        ("at the weekend", "2026-07-10T22:00/2026-07-12T22:00"),
        ("before yesterday's meeting", "2026-07-13T22:00/2026-07-14T22:00"),
        ("last week", "2026-07-05T22:00/2026-07-12T22:00"),
        ("this week", "2026-07-12T22:00/2026-07-19T22:00"),
        ("last month", "2026-05-31T22:00/2026-06-30T22:00"),
        ("last year", "2024-12-31T23:00/2025-12-31T23:00"),
        ("last weekend", "2026-07-10T22:00/2026-07-12T22:00"),
        ("on Wednesday", "2026-07-14T22:00/2026-07-15T22:00"),
        ("last Wednesday", "2026-07-07T22:00/2026-07-08T22:00"),
        ("on Monday", "2026-07-12T22:00/2026-07-13T22:00"),
        ("Monday morning", "2026-07-13T03:00/2026-07-13T10:00"),
        ("this morning", "2026-07-15T03:00/2026-07-15T10:00"),
        ("in the morning", "2026-07-15T03:00/2026-07-15T10:00"),
        ("in the evening", "2026-07-14T16:00/2026-07-14T21:00"),
        ("at night", "2026-07-14T19:00/2026-07-15T03:00"),
        ("last night", "2026-07-14T16:00/2026-07-15T03:00"),
        ("tonight", "2026-07-15T16:00/2026-07-16T03:00"),
        ("yesterday evening", "2026-07-14T16:00/2026-07-14T21:00"),
        ("in the evening of the 1st of July", "2026-07-01T16:00/2026-07-01T21:00"),
        ("yesterday at 5 pm", "2026-07-14T14:30/2026-07-14T15:30"),
        ("yesterday around 17:30", "2026-07-14T15:00/2026-07-14T16:00"),
        ("at 9am", "2026-07-15T06:30/2026-07-15T07:30"),
        ("2026-05-01", "2026-04-30T22:00/2026-05-01T22:00"),
        ("on 1 May 2025", "2025-04-30T22:00/2025-05-01T22:00"),
        ("on May 1st", "2026-04-30T22:00/2026-05-01T22:00"),
        ("on December 24", "2025-12-23T23:00/2025-12-24T23:00"),
        ("in May", "2026-04-30T22:00/2026-05-31T22:00"),
        ("last July", "2025-06-30T22:00/2025-07-31T22:00"),
        ("in February 2025", "2025-01-31T23:00/2025-02-28T23:00"),
        ("in 2025", "2024-12-31T23:00/2025-12-31T23:00"),
        ("yesterday or today", "2026-07-13T22:00/2026-07-15T22:00"),
    ];

    for (text, expected) in cases {
        assert_eq!(spans(text, now, BERLIN), [expected], "{text}");
    }
}

#[test]
fn the_words_of_the_time_leave_the_question_and_the_others_stay() {
    let now = "2026-07-15T12:00:00Z";
    let cases = [
        ("Who did I meet yesterday?", "Who did I meet ?", "yesterday"),
        ("What did Anna say on Monday morning in the kitchen", "What did Anna say in the kitchen", "on Monday|morning"),
        ("the dog that barked during the last week", "the dog that barked", "during the last week"),
        ("Wer war da? — yesterday — ja", "Wer war da? — — ja", "yesterday"),
    ];

    for (text, rest, words) in cases {
        let read = read(text, now, NEW_YORK);
        assert_eq!((read.rest.as_str(), read.words.join("|").as_str()), (rest, words), "{text}");
    }
}

#[test]
fn words_that_only_look_like_times_are_left_alone() {
    let texts = [
        "the Monday demonstrations",
        "who led the Salt March",
        "may I go",
        "Good morning Vietnam",
        "the 1920 Summer Olympics",
        "5 minutes of fame",
        "the last emperor",
        "at 5",
        "at 25:99",
        "99999999999999999999 days ago",
        "a yesterdays",
        "",
        "…",
        "on 31 February",
    ];

    for text in texts {
        let read = read(text, "2026-07-15T12:00:00Z", BERLIN);
        assert_eq!((read.spans.len(), read.rest.as_str()), (0, text), "{text}");
    }
}

#[test]
fn a_day_is_23_or_25_hours_long_when_summer_time_changes() {
    let cases = [
        (BERLIN, "2026-03-30T09:00:00+02:00", "2026-03-28T23:00/2026-03-29T22:00"),
        (BERLIN, "2026-10-26T09:00:00+01:00", "2026-10-24T22:00/2026-10-25T23:00"),
        (NEW_YORK, "2026-03-09T09:00:00-04:00", "2026-03-08T05:00/2026-03-09T04:00"),
        (NEW_YORK, "2026-11-02T09:00:00-05:00", "2026-11-01T04:00/2026-11-02T05:00"),
        // Midnight itself is skipped: the day begins at one.
        ("America/Santiago", "2026-09-07T09:00:00-03:00", "2026-09-06T04:00/2026-09-07T03:00"),
    ];

    for (zone, now, expected) in cases {
        assert_eq!(spans("yesterday", now, zone), [expected], "{zone} {now}");
    }
}

#[test]
fn the_hour_that_comes_twice_belongs_to_the_night_it_is_in() {
    let night = spans("last night", "2026-10-25T12:00:00+01:00", BERLIN);

    assert_eq!(night, ["2026-10-24T16:00/2026-10-25T04:00"]);
}

#[test]
fn a_part_of_several_days_is_one_span_a_day() {
    let mornings = spans("in the morning last weekend", "2026-03-31T12:00:00+02:00", BERLIN);

    assert_eq!(mornings, ["2026-03-28T04:00/2026-03-28T11:00", "2026-03-29T03:00/2026-03-29T10:00"]);
}

#[test]
fn since_and_before_open_one_side() {
    let now = "2026-07-15T12:00:00Z";
    let monday = Timestamp::parse("2026-07-13T00:00:00Z").unwrap();
    let tuesday = Timestamp::parse("2026-07-14T00:00:00Z").unwrap();
    let (never, ever) = (Timestamp::from_millis(i64::MIN), Timestamp::from_millis(i64::MAX));
    let cases = [
        ("since Monday", monday, ever),
        ("since the 13th of July", monday, ever),
        ("after Monday", tuesday, ever),
        ("before Monday", never, monday),
        ("until Monday", never, tuesday),
    ];

    for (text, start, end) in cases {
        let read = read(text, now, "UTC");
        assert_eq!((read.spans, read.rest.as_str()), (vec![Span { start, end }], ""), "{text}");
    }
}

#[test]
fn a_time_is_absolute_when_its_year_is_named() {
    let absolute = ["in 1930", "in May 1930", "May 1 1930", "in May", "yesterday"]
        .map(|text| read(text, "2026-07-15T12:00:00Z", "UTC").is_absolute);

    assert_eq!(absolute, [true, true, true, false, false]);
}

proptest::proptest! {
    #[test]
    fn any_text_at_any_time_is_read_without_a_panic(
        text in "([a-z]{1,9}|last|on|monday|may|[0-9]{1,4}|ago|days|:|é| |-){0,12}",
        now in proptest::num::i64::ANY,
    ) {
        let read = parse(&text, Timestamp::from_millis(now), &TimeZone::get(BERLIN).unwrap());

        proptest::prop_assert!(read.spans.iter().all(|span| span.start < span.end));
        proptest::prop_assert!(read.spans.is_sorted());
    }
}

#[test]
fn on_a_weekend_this_one_has_begun_and_the_last_one_is_over() {
    let saturday = "2026-07-18T12:00:00+02:00";

    assert_eq!(spans("this weekend", saturday, BERLIN), ["2026-07-17T22:00/2026-07-19T22:00"]);
    assert_eq!(spans("last weekend", saturday, BERLIN), ["2026-07-10T22:00/2026-07-12T22:00"]);
}

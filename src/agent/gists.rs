//! Gists, made of what the store holds: as asked, and of each local day once it is over.
//!
//! ```text
//!  clock ──► DailyDuty ──due──► daily(): days without a gist, then the months of who and where they were about
//!  asked ─────────────────────► make()
//! ```
//!
//! In: a data directory to read, dates, the local zone. Out: [`Made`] gists; whoever owns the store's writer writes them.
//! Never: writes by itself, but for [`store`], which takes the store's lock when no agent runs.

use crate::domain::episode::EpisodeRecord;
use crate::domain::id::DeviceId;
use crate::domain::id::EpisodeId;
use crate::domain::time::ClockQuality;
use crate::domain::time::Stamp;
use crate::domain::time::SystemClock;
use crate::memory::error::StoreError;
use crate::memory::reader::Reader;
use crate::memory::store::OpenOptions;
use crate::memory::store::Store;
use crate::memory::writer::Writer;
use crate::recall::gist::Frame;
use crate::recall::gist::Subject;
use anyhow::Context as _;
use jiff::ToSpan as _;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use std::collections::BTreeSet;
use std::path::Path;

/// Days looked back for one without a gist: a device that was off over a week's holiday still tells of the days before.
pub const DAYS_BACK: i32 = 7;

/// Months of people and of places made in one go, of each.
const SUBJECTS_MAX: usize = 8;

/// A day is told this long after its end, in milliseconds, so that what was open at midnight is written.
const SETTLE_MS: i64 = 600_000;

/// The first look comes this long after the start, in milliseconds.
const FIRST_MS: i64 = 5_000;

/// Between two looks at the date, in milliseconds.
const LOOK_MS: i64 = 60_000;

/// A gist that is asked for: body of `POST /v1/gist`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedGist {
    /// Of what.
    pub subject: Subject,
    /// The first local date, `2026-11-30`.
    pub first: String,
    /// The last local date; for a day the same.
    pub last: String,
}

/// What became of a gist.
#[derive(Debug, Clone, PartialEq)]
pub enum Made {
    /// It is to be written, with the episodes that carry it.
    Gist(Box<EpisodeRecord>, Vec<(EpisodeId, f64)>),
    /// There is nothing to tell; one that was written earlier goes.
    Nothing(EpisodeId),
}

impl AskedGist {
    /// What it asks for, in a zone.
    ///
    /// # Errors
    /// When a date is none, or the last one comes before the first.
    pub fn frame(&self, zone: &TimeZone) -> anyhow::Result<Frame> {
        let date = |text: &str| text.parse::<Date>().with_context(|| format!("{text:?} is no date; write 2026-11-30"));
        let (first, last) = (date(&self.first)?, date(&self.last)?);
        anyhow::ensure!(first <= last, "{last} comes before {first}");
        let is_day = self.subject == Subject::Day;
        anyhow::ensure!(!is_day || first == last, "a day's gist is of one date, not of {first} to {last}");
        Frame::dates(self.subject.clone(), first, last, zone).context("the dates are beyond what a calendar holds")
    }
}

impl Made {
    /// The answer for programs.
    #[must_use]
    pub fn answer(&self) -> serde_json::Value {
        match self {
            Self::Gist(record, _) => serde_json::json!({
                "id": record.episode.id.to_string(),
                "timestamp": record.episode.timestamp.as_millis(),
                "ended_at": record.episode.ended_at.as_millis(),
                "content": record.episode.content,
                "metadata": record.episode.metadata,
            }),
            Self::Nothing(id) => serde_json::json!({"id": id.to_string(), "content": null}),
        }
    }

    /// Hands it to the store.
    ///
    /// # Errors
    /// [`StoreError`] of the row.
    pub fn write(self, writer: &Writer) -> Result<(), StoreError> {
        match self {
            Self::Gist(record, sources) => writer.gist(*record, sources),
            Self::Nothing(id) => writer.remove_gist(id),
        }
    }
}

/// Makes the gist of a frame.
///
/// # Errors
/// [`StoreError`] of the read.
pub fn make(reader: &Reader, frame: &Frame) -> Result<Made, StoreError> {
    let device_id = reader.identity()?.device_id;
    Ok(of_frame(reader, frame, &device_id)?.0)
}

type Named = (Vec<String>, Vec<String>);

fn of_frame(reader: &Reader, frame: &Frame, device_id: &DeviceId) -> Result<(Made, Named), StoreError> {
    Ok(match reader.gist(frame)? {
        Some(gist) => {
            let made = Made::Gist(Box::new(gist.record(frame, device_id)), gist.sources);
            (made, (gist.people, gist.places))
        }
        None => (Made::Nothing(frame.id(device_id)), Named::default()),
    })
}

/// Makes what is missing or out of date of the [`DAYS_BACK`] days before `today`, and the months of the people who were
/// met and the places that were stayed at on them.
///
/// # Errors
/// [`StoreError`] of a read.
pub fn daily(data_dir: &Path, today: Date, zone: &TimeZone) -> Result<Vec<Made>, StoreError> {
    let reader = Reader::open(data_dir)?;
    let device_id = reader.identity()?.device_id;
    let (mut made, mut months) = (Vec::new(), BTreeSet::new());
    for back in (1..=DAYS_BACK).rev() {
        let Some(date) = today.checked_sub(back.days()).ok() else { continue };
        let Some(frame) = Frame::day(date, zone) else { continue };
        if !reader.gist_is_due(&frame, frame.id(&device_id))? {
            continue;
        }
        let (day, (people, places)) = of_frame(&reader, &frame, &device_id)?;
        made.push(day);
        let subjects = people.into_iter().take(SUBJECTS_MAX).map(Subject::Person);
        let subjects = subjects.chain(places.into_iter().take(SUBJECTS_MAX).map(Subject::Place));
        months.extend(subjects.map(|subject| (date.first_of_month(), subject)));
    }
    for (month, subject) in months.into_iter().rev().take(2 * SUBJECTS_MAX) {
        if let Some(frame) = Frame::month(subject, month, zone) {
            made.push(of_frame(&reader, &frame, &device_id)?.0);
        }
    }
    Ok(made)
}

/// Makes again every gist that tells of the span: some of its episodes were forgotten or came late.
///
/// # Errors
/// [`StoreError`] of a read.
pub fn again(
    reader: &Reader,
    since: crate::domain::time::Timestamp,
    until: crate::domain::time::Timestamp,
    zone: &TimeZone,
) -> Result<Vec<Made>, StoreError> {
    let mut made = Vec::new();
    for (id, subject, since, until) in reader.gists_overlapping(since, until)? {
        let frame = Frame { subject, since, until, zone: zone.clone() };
        made.push(match reader.gist(&frame)? {
            // Its row keeps the id it has, whatever zone it was first told in.
            Some(gist) => {
                let mut record = gist.record(&frame, &reader.identity()?.device_id);
                record.episode.id = id;
                Made::Gist(Box::new(record), gist.sources)
            }
            None => Made::Nothing(id),
        });
    }
    Ok(made)
}

/// Makes and writes gists while no agent runs.
///
/// # Errors
/// When the store cannot be had or a row not be committed.
pub fn store(frames: &[Frame], data_dir: &Path, options: &OpenOptions) -> anyhow::Result<Vec<serde_json::Value>> {
    let writer = Writer::spawn(Store::open(data_dir, options)?, Box::new(SystemClock::new()))?;
    let reader = Reader::open(data_dir)?;
    let mut answers = Vec::new();
    for frame in frames {
        let made = make(&reader, frame)?;
        answers.push(made.answer());
        made.write(&writer)?;
    }
    writer.flush()?;
    writer.close()?;
    Ok(answers)
}

/// Says once a local day that it is time to tell of the days before.
#[derive(Debug)]
pub struct DailyDuty {
    due_ms: i64,
    done: Option<Date>,
}

impl DailyDuty {
    /// First due a little after the start.
    #[must_use]
    pub fn new(now: Stamp) -> Self {
        Self { due_ms: now.monotonic_ms.saturating_add(FIRST_MS), done: None }
    }

    /// Today's date, when the days before it are to be told: once a date, and only by a clock that is set.
    pub fn handle_timeout(&mut self, now: Stamp, zone: &TimeZone) -> Option<Date> {
        if now.monotonic_ms < self.due_ms {
            return None;
        }
        self.due_ms = now.monotonic_ms.saturating_add(LOOK_MS);
        if now.quality == ClockQuality::Unset {
            return None;
        }
        let settled = now.utc.plus_millis(-SETTLE_MS).as_millis();
        let today = jiff::Timestamp::from_millisecond(settled).ok()?.to_zoned_datetime(zone.clone()).date();
        if self.done == Some(today) {
            return None;
        }
        self.done = Some(today);
        Some(today)
    }

    /// It could not be done: it is due again at the next look.
    pub fn undone(&mut self) {
        self.done = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;

    #[test]
    fn a_day_is_told_once_ten_minutes_after_its_end() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let mut duty = DailyDuty::new(at(0, "2026-11-30T21:00:00+01:00"));
        let mut told = Vec::new();

        // Every minute until the next evening, by hand.
        for minute in 0..1_440 {
            let now = at(minute, "2026-11-30T21:00:00+01:00");
            told.extend(duty.handle_timeout(now, &zone).map(|today| (minute, today.to_string())));
        }

        assert_eq!(told, [(1, "2026-11-30".to_owned()), (190, "2026-12-01".to_owned())]);
    }

    #[test]
    fn a_clock_that_nobody_set_tells_no_day_and_one_set_later_does() {
        let mut duty = DailyDuty::new(at(0, "1970-01-01T00:00:00Z"));
        let unset = Stamp { quality: ClockQuality::Unset, ..at(10, "1970-01-01T00:00:00Z") };

        assert_eq!(duty.handle_timeout(unset, &TimeZone::UTC), None);
        let today = duty.handle_timeout(at(12, "2026-12-01T10:00:00Z"), &TimeZone::UTC);

        assert_eq!(today.map(|today| today.to_string()).as_deref(), Some("2026-12-01"));
        assert_eq!(duty.handle_timeout(at(14, "2026-12-01T10:00:00Z"), &TimeZone::UTC), None);
        duty.undone();
        assert!(duty.handle_timeout(at(16, "2026-12-01T10:00:00Z"), &TimeZone::UTC).is_some());
    }

    #[test]
    fn dates_that_make_no_frame_are_refused_in_words() {
        let asked = |subject: Subject, first: &str, last: &str| {
            let asked = AskedGist { subject, first: first.to_owned(), last: last.to_owned() };
            asked.frame(&TimeZone::UTC).err().map(|error| format!("{error:#}")).unwrap_or_default()
        };
        let cases = [
            (Subject::Day, "2026-11-31", "2026-11-31", "\"2026-11-31\" is no date"),
            (Subject::Day, "2026-11-30", "2026-12-01", "a day's gist is of one date"),
            (Subject::Place("Kitchen".to_owned()), "2026-12-01", "2026-11-30", "2026-11-30 comes before 2026-12-01"),
            (Subject::Place("Kitchen".to_owned()), "2026-11-30", "2026-12-01", ""),
        ];

        for (subject, first, last, expected) in cases {
            let error = asked(subject, first, last);
            assert!(error.starts_with(expected) && error.is_empty() == expected.is_empty(), "{error}");
        }
    }

    fn at(minute: i64, start: &str) -> Stamp {
        let utc = Timestamp::parse(start).unwrap().plus_millis(minute * 60_000);
        Stamp { monotonic_ms: minute * 60_000, utc, quality: ClockQuality::Network }
    }
}

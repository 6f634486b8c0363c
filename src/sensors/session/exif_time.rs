//! When a picture was taken, as far as the picture says so beyond doubt.
//!
//! In: a JPEG or PNG file. Out: the GPS time of its EXIF data, else the camera's own time when it comes
//! with an offset from UTC. A local time without offset is no instant and is not guessed at.

use super::timing::Plausible;
use crate::domain::time::ClockQuality;
use crate::domain::time::Timestamp;
use exif::DateTime;
use exif::Exif;
use exif::In;
use exif::Tag;
use exif::Value;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// The time in a picture file, when it has one that can be believed.
pub(super) fn time_in(path: &Path, plausible: Plausible) -> Option<(Timestamp, ClockQuality)> {
    let mut reader = BufReader::new(File::open(path).ok()?);
    let exif = exif::Reader::new().read_from_container(&mut reader).ok()?;
    let gps = gps_time(&exif).filter(|&time| plausible.believes(time));
    let own = || camera_time(&exif).filter(|&time| plausible.is_past(time));
    gps.map(|time| (time, ClockQuality::Gps)).or_else(|| own().map(|time| (time, ClockQuality::Rtc)))
}

/// `GPSDateStamp` and `GPSTimeStamp`, which are UTC.
fn gps_time(exif: &Exif) -> Option<Timestamp> {
    let date = ascii(exif, Tag::GPSDateStamp)?;
    let Value::Rational(parts) = &exif.get_field(Tag::GPSTimeStamp, In::PRIMARY)?.value else { return None };
    let time: Vec<_> = parts.iter().map(exif::Rational::to_f64).collect();
    let &[hours, minutes, seconds] = time.as_slice() else { return None };
    let date = std::str::from_utf8(date).ok()?.trim().replace(':', "-");
    Timestamp::parse(&format!("{date}T{hours:02.0}:{minutes:02.0}:{:02.0}Z", seconds.floor())).ok()
}

/// `DateTimeOriginal` with `OffsetTimeOriginal` and, when it is there, `SubSecTimeOriginal`.
fn camera_time(exif: &Exif) -> Option<Timestamp> {
    let mut time = DateTime::from_ascii(ascii(exif, Tag::DateTimeOriginal)?).ok()?;
    time.parse_offset(ascii(exif, Tag::OffsetTimeOriginal)?).ok()?;
    let nanos = ascii(exif, Tag::SubSecTimeOriginal).and_then(|part| {
        time.parse_subsec(part).ok()?;
        time.nanosecond
    });
    let offset = i64::from(time.offset?) * 60_000;
    let DateTime { year, month, day, hour, minute, second, .. } = time;
    let local = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z");
    let millis = i64::from(nanos.unwrap_or(0) / 1_000_000);
    Some(Timestamp::parse(&local).ok()?.plus_millis(millis - offset))
}

fn ascii(exif: &Exif, tag: Tag) -> Option<&[u8]> {
    let Value::Ascii(parts) = &exif.get_field(tag, In::PRIMARY)?.value else { return None };
    parts.first().map(Vec::as_slice)
}

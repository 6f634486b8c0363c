//! Reads `session.toml`.
//!
//! In: the file's text. Out: a [`SessionHeader`], or every mistake at once: unknown keys with the
//! nearest known one, missing keys, wrong types, values out of range. Touches no file.

use super::fields::Fields;
use super::header::ClockStep;
use super::header::FORMAT;
use super::header::Gap;
use super::header::SessionHeader;
use super::header::StreamHeader;
use crate::domain::coverage::CoverageReason;
use crate::domain::id::BootId;
use crate::domain::id::DeviceId;
use crate::domain::id::SensorKind;
use crate::domain::id::SessionId;
use crate::domain::id::SourceId;
use crate::domain::time::ClockQuality;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;

/// The name that stands for a stream's source where `session.toml` names none.
const UNNAMED: &str = "recorded";
/// Longest id, source or note.
const TEXT_CHARS_MAX: usize = 1_000;
/// Latest offset: a session is no longer than a year.
pub(super) const OFFSET_MS_MAX: i64 = 366 * 24 * 3_600 * 1_000;
/// Largest clock step: 200 years, so that no sum can overflow.
const STEP_MS_MAX: i64 = 200 * OFFSET_MS_MAX;
/// Most channels a map may name.
const CHANNELS_MAX: usize = 64;

/// What is wrong with a manifest.
#[derive(Debug, PartialEq)]
pub(super) enum ManifestError {
    /// It was written by a later program, so the rest is not judged.
    Newer(i64),
    /// One clause for each mistake.
    Mistakes(Vec<String>),
}

/// Reads the text of `session.toml`. The streams are those it declares.
pub(super) fn parse(text: &str) -> Result<SessionHeader, ManifestError> {
    let table = text.parse::<toml::Table>().map_err(|error| {
        let line = error.span().map_or(0, |span| text.get(..span.start).unwrap_or_default().matches('\n').count());
        ManifestError::Mistakes(vec![format!("line {}: {}", line + 1, error.message().replace('\n', ", "))])
    })?;
    if let Some(found) = table.get("format").and_then(toml::Value::as_integer).filter(|&found| found > FORMAT) {
        return Err(ManifestError::Newer(found));
    }
    let mut mistakes = Vec::new();
    let header = header(&table, &mut mistakes);
    match header {
        Some(header) if mistakes.is_empty() => Ok(header),
        _ => Err(ManifestError::Mistakes(mistakes)),
    }
}

fn header(table: &toml::Table, mistakes: &mut Vec<String>) -> Option<SessionHeader> {
    let known = [
        "format",
        "session_id",
        "device_id",
        "boot_id",
        "started_at",
        "clock_quality",
        "note",
        "clock_steps",
        "microphone",
        "camera",
        "gps",
        "bluetooth",
    ];
    let mut fields = Fields::new(table, "", &known, mistakes);
    let format = fields.required("format", Fields::integer);
    if format.is_some_and(|format| format != FORMAT) {
        fields.mistake("format", &format!("must be {FORMAT}"));
    }
    let session_id = fields.required("session_id", id_text);
    let device_id = fields.optional("device_id", id_text);
    let boot_id = fields.optional("boot_id", id_text);
    let started_at = fields.required("started_at", instant);
    let quality = fields.optional("clock_quality", quality).unwrap_or_default();
    let note = fields.optional("note", Fields::text);
    let clock_steps = fields.tables("clock_steps");
    let streams: Vec<_> = SensorKind::ALL
        .into_iter()
        .filter_map(|kind| Some((kind, fields.optional(kind.as_str(), Fields::table)?)))
        .collect();

    let clock_steps = clock_steps
        .into_iter()
        .enumerate()
        .filter_map(|(index, table)| clock_step(table, &format!("clock_steps[{index}]."), mistakes))
        .collect::<Vec<_>>();
    if !clock_steps.is_sorted_by(|earlier, later| earlier.at_ms < later.at_ms) {
        mistakes.push("clock_steps must be in order of at_ms, each at its own time".to_owned());
    }
    let streams = streams.into_iter().map(|(kind, table)| stream(kind, table, mistakes)).collect();
    let session_id = SessionId::new(session_id?);
    Some(SessionHeader {
        boot_id: BootId::new(boot_id.unwrap_or_else(|| session_id.as_str().to_owned())),
        session_id,
        device_id: device_id.map(DeviceId::new),
        started: Stamp { monotonic_ms: 0, utc: started_at?, quality },
        start_is_known: true,
        note,
        clock_steps,
        streams,
    })
}

fn clock_step(table: &toml::Table, path: &str, mistakes: &mut Vec<String>) -> Option<ClockStep> {
    let mut fields = Fields::new(table, path, &["at_ms", "step_ms", "quality"], mistakes);
    let at_ms = fields.required("at_ms", offset);
    let step_ms = fields.required("step_ms", |value| {
        Fields::integer(value).and_then(|step| {
            if step.abs() <= STEP_MS_MAX { Ok(step) } else { Err("is longer than 200 years".to_owned()) }
        })
    });
    let quality = fields.required("quality", quality);
    Some(ClockStep { at_ms: at_ms?, step_ms: step_ms?, quality: quality? })
}

fn stream(kind: SensorKind, table: &toml::Table, mistakes: &mut Vec<String>) -> StreamHeader {
    let path = format!("{}.", kind.as_str());
    let known: &[&str] = match kind {
        SensorKind::Microphone => &["source", "channel_map", "gaps"],
        SensorKind::Camera | SensorKind::Gps | SensorKind::Bluetooth => &["source", "gaps"],
    };
    let mut fields = Fields::new(table, &path, known, mistakes);
    let source = fields.optional("source", |value| source(value, kind));
    let channel_map = match kind {
        SensorKind::Microphone => fields.optional("channel_map", channel_map),
        SensorKind::Camera | SensorKind::Gps | SensorKind::Bluetooth => None,
    };
    let gaps = fields.tables("gaps");
    let mut gaps: Vec<_> = gaps
        .into_iter()
        .enumerate()
        .filter_map(|(index, table)| gap(table, &format!("{path}gaps[{index}]."), mistakes))
        .collect();
    gaps.sort_by_key(|gap: &Gap| (gap.from_ms, gap.to_ms));
    StreamHeader { kind, source: source.unwrap_or_else(|| SourceId::of(kind, UNNAMED)), channel_map, gaps }
}

fn gap(table: &toml::Table, path: &str, mistakes: &mut Vec<String>) -> Option<Gap> {
    let mut fields = Fields::new(table, path, &["from_ms", "to_ms", "reason", "note"], mistakes);
    let from_ms = fields.required("from_ms", offset);
    let to_ms = fields.required("to_ms", offset);
    let reason = fields.optional("reason", |value| {
        value.clone().try_into::<CoverageReason>().map_err(|error| error.message().replace('\n', ", "))
    });
    let note = fields.optional("note", Fields::text);
    let (from_ms, to_ms) = (from_ms?, to_ms?);
    if to_ms <= from_ms {
        fields.mistake("to_ms", "must be greater than from_ms");
        return None;
    }
    Some(Gap { from_ms, to_ms, reason: reason.unwrap_or(CoverageReason::Recorded), note })
}

fn id_text(value: &toml::Value) -> Result<String, String> {
    let text = Fields::text(value)?;
    match text.trim().is_empty() || text.chars().any(char::is_control) || text.chars().count() > TEXT_CHARS_MAX {
        true => Err(format!("must be 1 to {TEXT_CHARS_MAX} printable characters")),
        false => Ok(text),
    }
}

fn source(value: &toml::Value, kind: SensorKind) -> Result<SourceId, String> {
    let source = SourceId::new(id_text(value)?);
    match source.kind() == Some(kind) && source.as_str().len() > kind.as_str().len() + 1 {
        true => Ok(source),
        false => Err(format!("must begin with {:?} and name the device", format!("{}:", kind.as_str()))),
    }
}

fn offset(value: &toml::Value) -> Result<i64, String> {
    match Fields::integer(value)? {
        offset if (0..=OFFSET_MS_MAX).contains(&offset) => Ok(offset),
        _ => Err("must be milliseconds since the start, from 0 to a year".to_owned()),
    }
}

fn channel_map(value: &toml::Value) -> Result<Vec<u16>, String> {
    let wanted = || format!("must be a list of 1 to {CHANNELS_MAX} channel numbers, counted from 0, each once");
    let list = value.as_array().ok_or_else(wanted)?;
    let channels: Option<Vec<u16>> =
        list.iter().map(|channel| channel.as_integer().and_then(|channel| u16::try_from(channel).ok())).collect();
    let channels = channels.ok_or_else(wanted)?;
    let mut sorted = channels.clone();
    sorted.sort_unstable();
    sorted.dedup();
    match (1..=CHANNELS_MAX).contains(&channels.len()) && sorted.len() == channels.len() {
        true => Ok(channels),
        false => Err(wanted()),
    }
}

fn instant(value: &toml::Value) -> Result<Timestamp, String> {
    let text = match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Datetime(datetime) => datetime.to_string().replace(' ', "T"),
        toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Array(_)
        | toml::Value::Table(_) => {
            return Err("must be a time with an offset, for example 2026-05-01T09:30:00+02:00".to_owned());
        }
    };
    Timestamp::parse(&text).map_err(|error| error.to_string())
}

fn quality(value: &toml::Value) -> Result<ClockQuality, String> {
    let text = Fields::text(value)?;
    [ClockQuality::Unset, ClockQuality::Rtc, ClockQuality::Network, ClockQuality::Gps]
        .into_iter()
        .find(|quality| quality.as_str() == text)
        .ok_or_else(|| "must be unset, rtc, network or gps".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        format = 1
        session_id = "s1"
        device_id = "d1"
        boot_id = "b1"
        started_at = "2026-05-01T09:30:00+02:00"
        clock_quality = "unset"
        note = "a walk; \"$(quoted)\""

        [[clock_steps]]
        at_ms = 600000
        step_ms = 1209600000
        quality = "gps"

        [microphone]
        source = "microphone:usb-0d8c:0014"
        channel_map = [0, 1]
        [[microphone.gaps]]
        from_ms = 1000
        to_ms = 2000
        reason = "muted"

        [gps]
        source = "gps:gpsd"
    "#;

    fn mistakes(text: &str) -> Vec<String> {
        match parse(text) {
            Err(ManifestError::Mistakes(mistakes)) => mistakes,
            other => panic!("expected mistakes, got {other:?}"),
        }
    }

    #[test]
    fn a_right_manifest_is_read_whole() {
        let header = parse(GOOD).unwrap();

        assert_eq!(header.session_id.as_str(), "s1");
        assert_eq!(header.started.utc.to_string(), "2026-05-01T07:30:00.000Z");
        assert_eq!(header.note.as_deref(), Some("a walk; \"$(quoted)\""));
        assert_eq!(header.clock_steps[0].quality, ClockQuality::Gps);
        let microphone = header.stream(SensorKind::Microphone).unwrap();
        assert_eq!(microphone.channel_map.as_deref(), Some(&[0, 1][..]));
        assert_eq!(microphone.gaps[0].reason, CoverageReason::Muted);
        assert_eq!(header.stream(SensorKind::Camera), None);
    }

    #[test]
    fn a_toml_date_with_offset_is_as_good_as_a_text() {
        let text = GOOD.replace("\"2026-05-01T09:30:00+02:00\"", "2026-05-01 09:30:00+02:00");

        assert_eq!(parse(&text).unwrap(), parse(GOOD).unwrap());
    }

    #[test]
    fn all_mistakes_are_told_at_once_with_the_nearest_key() {
        let text = GOOD
            .replace("session_id", "sesion_id")
            .replace("to_ms = 2000", "to_ms = 500")
            .replace("[0, 1]", "[0, 0]")
            .replace("+02:00", "")
            .replace("source = \"gps:gpsd\"", "source = \"microphone:x\"\nchannel_map = [0]");

        let mistakes = mistakes(&text).join("\n");

        for expected in [
            "unknown key `sesion_id` (did you mean `session_id`?)",
            "`session_id` is missing",
            "`started_at` \"2026-05-01T09:30:00\" is not a time with an offset",
            "`microphone.gaps[0].to_ms` must be greater than from_ms",
            "`microphone.channel_map` must be a list",
            "`gps.source` must begin with \"gps:\"",
            "unknown key `gps.channel_map`",
        ] {
            assert!(mistakes.contains(expected), "{expected:?} is not in {mistakes}");
        }
    }

    #[test]
    fn a_right_key_in_the_wrong_table_is_refused_by_path() {
        let mistakes = mistakes(&GOOD.replace("[gps]", "[gps]\nnote = \"x\""));

        assert_eq!(mistakes, ["unknown key `gps.note` (gps takes `source`, `gaps`; `note` belongs at the top)"]);
    }

    #[test]
    fn a_syntax_error_is_told_with_its_line() {
        let mistakes = mistakes("format = 1\nsession_id = \n");

        assert!(mistakes[0].starts_with("line 2: "), "{mistakes:?}");
    }

    #[test]
    fn a_newer_format_is_not_judged_further() {
        assert_eq!(parse("format = 2\nlidar = true"), Err(ManifestError::Newer(2)));
    }

    #[test]
    fn wrong_types_are_named() {
        let mistakes = mistakes("format = \"1\"\nsession_id = 5\nstarted_at = true\nclock_steps = 3\nmicrophone = 1");

        assert_eq!(mistakes.len(), 5, "{mistakes:?}");
        assert!(mistakes.iter().all(|mistake| mistake.contains("must be")), "{mistakes:?}");
    }
}

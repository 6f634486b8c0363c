//! The filters that `episodes` and `search` share: flags in, an [`EpisodeFilter`] out.

use crate::cli::when;
use crate::cli::when::Edge;
use crate::domain::id::DeviceId;
use crate::domain::id::SessionId;
use crate::domain::modality::DecayClass;
use crate::domain::modality::Modality;
use crate::domain::time::Timestamp;
use crate::memory::query::EpisodeFilter;
use jiff::tz::TimeZone;

/// Flags that say which episodes are wanted.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct FilterArgs {
    /// Only this kind [visual, audio, social, spatial, code, tool_result, text, gist]; may be repeated
    #[arg(long, value_name = "M", value_parser = parse_modality)]
    modality: Vec<Modality>,
    /// Only what began at or after: RFC 3339, a local date, an age such as 2h, today, yesterday
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only what began before: as --since; a date includes that day
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only this run or recorded session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only what this device captured
    #[arg(long, value_name = "ID")]
    device: Option<String>,
    /// Only what was at this place, by its exact name
    #[arg(long, value_name = "NAME")]
    place: Option<String>,
    /// Only what is about this person, by the exact name
    #[arg(long, value_name = "NAME")]
    person: Option<String>,
    /// Only sounds with this top class, such as Speech
    #[arg(long, value_name = "CLASS")]
    sound_class: Option<String>,
    /// Only sounds at least this loud, in dBFS (0 is full scale, -30 is loud, -60 is quiet)
    #[arg(long, value_name = "DB", allow_hyphen_values = true, value_parser = parse_level)]
    rms_min: Option<f64>,
    /// Only sounds at most this loud, in dBFS
    #[arg(long, value_name = "DB", allow_hyphen_values = true, value_parser = parse_level)]
    rms_max: Option<f64>,
    /// Only what has exactly this value under this key of its metadata; may be repeated, then all must fit
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    meta: Vec<(String, String)>,
    /// Only this decay class [session, daily, procedural, permanent]
    #[arg(long, value_name = "CLASS", value_parser = parse_decay_class)]
    decay_class: Option<DecayClass>,
}

impl FilterArgs {
    /// The filter they name, without order and limit.
    ///
    /// # Errors
    /// When a time cannot be understood.
    pub fn filter(&self, now: Timestamp, zone: &TimeZone) -> Result<EpisodeFilter, when::WhenError> {
        let time = |text: &Option<String>, edge| {
            text.as_deref().map(|text| when::parse_when(text, edge, now, zone)).transpose()
        };
        Ok(EpisodeFilter {
            modalities: self.modality.clone(),
            since: time(&self.since, Edge::Start)?,
            until: time(&self.until, Edge::End)?,
            session: self.session.clone().map(SessionId::new),
            device: self.device.clone().map(DeviceId::new),
            place: self.place.clone(),
            person: self.person.clone(),
            sound_class: self.sound_class.clone(),
            rms_db_min: self.rms_min,
            rms_db_max: self.rms_max,
            metadata: self.meta.clone(),
            decay_class: self.decay_class,
            ..EpisodeFilter::default()
        })
    }
}

fn parse_modality(name: &str) -> Result<Modality, String> {
    let names = || Modality::ALL.map(Modality::as_str).join(", ");
    Modality::parse(name).ok_or_else(|| format!("known are {}", names()))
}

fn parse_decay_class(name: &str) -> Result<DecayClass, String> {
    let names = || DecayClass::ALL.map(DecayClass::as_str).join(", ");
    DecayClass::parse(name).ok_or_else(|| format!("known are {}", names()))
}

fn parse_level(text: &str) -> Result<f64, String> {
    let level = text.parse::<f64>().ok().filter(|level| level.is_finite());
    level.ok_or_else(|| "a level is a number of dBFS, such as -30".to_owned())
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE, such as sound_class=Speech".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_answered_with_the_known_ones() {
        assert!(parse_modality("sound").unwrap_err().contains("audio"));
        assert!(parse_decay_class("weekly").unwrap_err().contains("daily"));
    }

    #[test]
    fn a_level_is_a_finite_number_and_a_pair_has_a_key() {
        assert_eq!(parse_level("-30.5"), Ok(-30.5));
        for text in ["NaN", "inf", "loud", ""] {
            assert!(parse_level(text).unwrap_err().contains("-30"), "{text}");
        }
        assert_eq!(parse_pair("note=a=b"), Ok(("note".to_owned(), "a=b".to_owned())));
        assert_eq!(parse_pair("note="), Ok(("note".to_owned(), String::new())));
        for text in ["note", "=x", ""] {
            assert!(parse_pair(text).unwrap_err().contains("KEY=VALUE"), "{text}");
        }
    }
}

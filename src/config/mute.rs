//! When and where sensors are mute.

use crate::domain::id::SensorKind;
use jiff::civil::Time;

/// When and where sensors are mute.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Every day between two times.
    pub schedule: Vec<Hours>,
    /// While the device stays at a place.
    pub zones: Vec<Zone>,
}

/// A part of every day.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hours {
    /// Which sensors.
    pub sensors: Vec<SensorKind>,
    /// From this local time on, `22:00`.
    pub from: String,
    /// Until this local time; before `from` it is on the next day.
    pub to: String,
}

/// A place.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Which sensors. A mute GPS would never notice that the place was left: it is not allowed here.
    pub sensors: Vec<SensorKind>,
    /// The place's name.
    pub place: String,
}

impl Config {
    /// Values that cannot be meant, in sentences.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        let times = self.schedule.iter().flat_map(|hours| [&hours.from, &hours.to]);
        let mut mistakes: Vec<String> = times
            .filter(|text| parse_time(text).is_none())
            .map(|text| format!("schedule: {text:?} is no time of day, as 22:00"))
            .collect();
        let blind = self.zones.iter().filter(|zone| zone.sensors.contains(&SensorKind::Gps));
        mistakes.extend(blind.map(|zone| {
            format!("zones: {:?} cannot mute gps: it could not be noticed that the place was left", zone.place)
        }));
        mistakes
    }
}

fn parse_time(text: &str) -> Option<Time> {
    text.trim().parse().ok()
}

impl Hours {
    /// Whether a local time of day lies in it.
    #[must_use]
    pub fn contains(&self, time: Time) -> bool {
        let (Some(from), Some(to)) = (parse_time(&self.from), parse_time(&self.to)) else { return false };
        if from <= to { (from..to).contains(&time) } else { time >= from || time < to }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_time_and_a_zone_that_mutes_gps_are_told() {
        let sensors = vec![SensorKind::Gps];
        let hours = Hours { sensors: sensors.clone(), from: "22:00".to_owned(), to: "25:00".to_owned() };
        let zone = Zone { sensors, place: "Home".to_owned() };
        let config = Config { schedule: vec![hours], zones: vec![zone] };

        let mistakes = config.mistakes();

        assert_eq!(mistakes.len(), 2, "{mistakes:?}");
        assert!(mistakes[0].contains("25:00") && mistakes[1].contains("Home"), "{mistakes:?}");
    }
}

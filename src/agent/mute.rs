//! Which sensors are to be mute: by command, by schedule and by place.
//!
//! In: what the config says, what the user ordered, the time, the place. Out: the kinds of sensor that have to be closed.
//! Never: I/O, the clock.

use crate::config::mute::Config;
use crate::domain::id::SensorKind;
use crate::domain::time::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use std::collections::BTreeSet;

/// What the user ordered, on top of the config.
#[derive(Debug, Clone, Default)]
pub struct Mutes {
    /// Each muted kind and until when (monotonic ms); `None`: until it is unmuted.
    ordered: BTreeMap<SensorKind, Option<i64>>,
    /// Kinds that the user unmuted although schedule or zone mute them; until those end.
    excused: BTreeSet<SensorKind>,
}

impl Mutes {
    /// Mutes sensors, until `until_ms` or for good.
    pub fn mute(&mut self, kinds: &[SensorKind], until_ms: Option<i64>) {
        for kind in kinds {
            self.ordered.insert(*kind, until_ms);
            self.excused.remove(kind);
        }
    }

    /// Unmutes sensors, also against schedule and zone until these end.
    pub fn unmute(&mut self, kinds: &[SensorKind]) {
        for kind in kinds {
            self.ordered.remove(kind);
            self.excused.insert(*kind);
        }
    }

    /// The sensors that have to be mute at this time and place.
    pub fn due(
        &mut self,
        config: &Config,
        now_ms: i64,
        utc: Timestamp,
        zone: &TimeZone,
        place: Option<&str>,
    ) -> BTreeSet<SensorKind> {
        self.ordered.retain(|_, until_ms| until_ms.is_none_or(|until_ms| now_ms < until_ms));
        let mut by_config: BTreeSet<SensorKind> = BTreeSet::new();
        if let Some(time) = local_time(utc, zone) {
            let hours = config.schedule.iter().filter(|hours| hours.contains(time));
            by_config.extend(hours.flat_map(|hours| hours.sensors.iter().copied()));
        }
        let here = config.zones.iter().filter(|zone| Some(zone.place.as_str()) == place);
        by_config.extend(here.flat_map(|zone| zone.sensors.iter().copied()));
        self.excused.retain(|kind| by_config.contains(kind));
        by_config.retain(|kind| !self.excused.contains(kind));
        by_config.extend(self.ordered.keys().copied());
        by_config
    }
}

fn local_time(utc: Timestamp, zone: &TimeZone) -> Option<Time> {
    let instant = jiff::Timestamp::from_millisecond(utc.as_millis()).ok()?;
    Some(zone.to_datetime(instant).time())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::mute::Hours;
    use crate::config::mute::Zone;

    const BOTH: [SensorKind; 2] = [SensorKind::Microphone, SensorKind::Camera];

    #[test]
    fn a_schedule_over_midnight_mutes_the_night_in_local_time() {
        let config = night();
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let mut mutes = Mutes::default();
        let mut muted_at = |text: &str| !mutes.due(&config, 0, Timestamp::parse(text).unwrap(), &zone, None).is_empty();

        assert!(!muted_at("2026-12-01T21:59:00+01:00"));
        assert!(muted_at("2026-12-01T22:00:00+01:00"));
        assert!(muted_at("2026-12-02T06:59:00+01:00"));
        assert!(!muted_at("2026-12-02T07:00:00+01:00"));
    }

    #[test]
    fn an_order_for_an_hour_ends_by_itself() {
        let mut mutes = Mutes::default();
        mutes.mute(&BOTH, Some(3_600_000));
        let mut due = |now_ms| mutes.due(&Config::default(), now_ms, Timestamp::from_millis(0), &TimeZone::UTC, None);

        assert_eq!(due(3_599_999), BTreeSet::from(BOTH));
        assert_eq!(due(3_600_000), BTreeSet::new());
    }

    #[test]
    fn a_zone_mutes_while_the_device_is_there_and_the_user_may_overrule_it_once() {
        let zone = Zone { sensors: vec![SensorKind::Microphone], place: "Clinic".to_owned() };
        let config = Config { schedule: Vec::new(), zones: vec![zone] };
        let mut mutes = Mutes::default();
        let due = |mutes: &mut Mutes, place| {
            !mutes.due(&config, 0, Timestamp::from_millis(0), &TimeZone::UTC, place).is_empty()
        };
        assert!(due(&mut mutes, Some("Clinic")));
        mutes.unmute(&BOTH);
        assert!(!due(&mut mutes, Some("Clinic")));
        assert!(!due(&mut mutes, Some("Home")));

        assert!(due(&mut mutes, Some("Clinic")));
    }

    fn night() -> Config {
        let hours = Hours { sensors: BOTH.to_vec(), from: "22:00".to_owned(), to: "07:00".to_owned() };
        Config { schedule: vec![hours], zones: Vec::new() }
    }
}

//! Names of devices, runs, sensors and rows. Each is its own type, so that none is taken for another.

use crate::domain::modality::Modality;
use crate::domain::time::Timestamp;
use std::fmt;
use uuid::Uuid;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes the text as it is.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// Which device captured something: random at first start, confirmed at enrolment.
    DeviceId
}
text_id! {
    /// Which store wrote a row: random per created or salvaged store.
    StoreId
}
text_id! {
    /// Which run of the agent, or which recorded session.
    SessionId
}
text_id! {
    /// Which boot of the device: rows of one boot share one monotonic clock.
    BootId
}
text_id! {
    /// Which sensor, by a stable identity: `microphone:usb-0d8c:0014`, `gps:gpsd`.
    SourceId
}
text_id! {
    /// Which model made a vector. Vectors of different models are never compared.
    ModelId
}
text_id! {
    /// The caller's own id for an episode handed in from outside.
    ExternalId
}

/// The four kinds of sensor, and how their source ids begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SensorKind {
    /// Sound.
    Microphone,
    /// Pictures.
    Camera,
    /// Positions.
    Gps,
    /// Advertisements of devices near by.
    Bluetooth,
}

impl SensorKind {
    /// The four, in the order of the pipeline.
    pub const ALL: [Self; 4] = [Self::Microphone, Self::Camera, Self::Gps, Self::Bluetooth];

    /// `microphone`, `camera`, `gps`, `bluetooth`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Microphone => "microphone",
            Self::Camera => "camera",
            Self::Gps => "gps",
            Self::Bluetooth => "bluetooth",
        }
    }
}

impl SourceId {
    /// `KIND:NAME`.
    #[must_use]
    pub fn of(kind: SensorKind, name: &str) -> Self {
        Self(format!("{}:{name}", kind.as_str()))
    }

    /// The kind of sensor this source is, when its id begins with one.
    #[must_use]
    pub fn kind(&self) -> Option<SensorKind> {
        let prefix = self.0.split(':').next().unwrap_or_default();
        SensorKind::ALL.into_iter().find(|kind| kind.as_str() == prefix)
    }
}

/// The namespace of every id percept derives (random, chosen once).
const NAMESPACE: Uuid = Uuid::from_u128(0x6f1c_8f0e_93a4_4b57_9d2c_5d0f_0d7a_61e3);

/// The id of an episode: a UUIDv5, derived once at capture and never recomputed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct EpisodeId(Uuid);

/// What tells one captured episode from every other.
#[derive(Debug, Clone, Copy)]
pub struct EpisodeKey<'a> {
    /// The capturing device.
    pub device_id: &'a DeviceId,
    /// The run or recorded session.
    pub session_id: &'a SessionId,
    /// What was observed.
    pub modality: Modality,
    /// The sensor.
    pub source: &'a SourceId,
    /// When the episode began, as stamped at capture: UTC milliseconds; for a recording whose
    /// start nobody knows, milliseconds since its first reading.
    pub started_at: Timestamp,
    /// Counts episodes of one source and modality that began in the same millisecond, from 0.
    pub ordinal: u32,
}

impl EpisodeId {
    /// The id of a captured episode. The same session imported or replayed twice gives the same ids.
    #[must_use]
    pub fn derive(key: &EpisodeKey<'_>) -> Self {
        let started_at = key.started_at.as_millis().to_string();
        let ordinal = key.ordinal.to_string();
        Self(derive_uuid(&[
            "episode",
            key.device_id.as_str(),
            key.session_id.as_str(),
            key.modality.as_str(),
            key.source.as_str(),
            &started_at,
            &ordinal,
        ]))
    }

    /// The id of an episode handed in from outside under its caller's own id.
    #[must_use]
    pub fn of_external(device_id: &DeviceId, external_id: &ExternalId) -> Self {
        Self(derive_uuid(&["external", device_id.as_str(), external_id.as_str()]))
    }

    /// The id of a summary that a device writes of a subject (`day`, `place Kitchen`, …) and a span of local dates. A
    /// later summary of the same is the same row.
    #[must_use]
    pub fn of_gist(device_id: &DeviceId, subject: &str, dates: &str) -> Self {
        Self(derive_uuid(&["gist", device_id.as_str(), subject, dates]))
    }

    /// Reads an id as `percept` prints it.
    ///
    /// # Errors
    /// [`uuid::Error`] when the text is no UUID.
    pub fn parse(text: &str) -> Result<Self, uuid::Error> {
        Uuid::parse_str(text).map(Self)
    }

    /// The UUID itself.
    #[must_use]
    pub const fn as_uuid(&self) -> &Uuid {
        &self.0
    }
}

impl fmt::Display for EpisodeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(formatter)
    }
}

/// UUIDv5 over length-prefixed parts, so that no choice of parts can imitate another.
#[must_use]
pub fn derive_uuid(parts: &[&str]) -> Uuid {
    let mut name = String::new();
    for part in parts {
        name.push_str(&part.len().to_string());
        name.push(':');
        name.push_str(part);
    }
    Uuid::new_v5(&NAMESPACE, name.as_bytes())
}

/// Hands out the ordinal of each episode of one builder, from 0 for each new start time.
#[derive(Debug, Clone, Default)]
pub struct Ordinals {
    last: Option<(Timestamp, u32)>,
}

impl Ordinals {
    /// The ordinal of an episode that began at `started_at`. Starts must not go back by design of
    /// the builders; one that does (a clock step) counts on its own.
    pub fn next(&mut self, started_at: Timestamp) -> u32 {
        let ordinal = match self.last {
            Some((last, ordinal)) if last == started_at => ordinal + 1,
            _ => 0,
        };
        self.last = Some((started_at, ordinal));
        ordinal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_depends_on_every_part_of_its_key() {
        let (device, other) = (DeviceId::new("a"), DeviceId::new("b"));
        let (session, source) = (SessionId::new("s"), SourceId::of(SensorKind::Gps, "gpsd"));
        let key = EpisodeKey {
            device_id: &device,
            session_id: &session,
            modality: Modality::Spatial,
            source: &source,
            started_at: Timestamp::from_millis(1),
            ordinal: 0,
        };

        let id = EpisodeId::derive(&key);

        assert_eq!(id, EpisodeId::derive(&key));
        assert_ne!(id, EpisodeId::derive(&EpisodeKey { device_id: &other, ..key }));
        assert_ne!(id, EpisodeId::derive(&EpisodeKey { modality: Modality::Audio, ..key }));
        assert_ne!(id, EpisodeId::derive(&EpisodeKey { started_at: Timestamp::from_millis(2), ..key }));
        assert_ne!(id, EpisodeId::derive(&EpisodeKey { ordinal: 1, ..key }));
        assert_eq!(EpisodeId::parse(&id.to_string()), Ok(id));
    }

    #[test]
    fn ordinals_count_within_one_start_time() {
        let mut ordinals = Ordinals::default();
        let at = Timestamp::from_millis;

        let given = [at(1), at(1), at(2), at(2), at(2)].map(|start| ordinals.next(start));

        assert_eq!(given, [0, 1, 0, 1, 2]);
    }
}

//! Where the device has stayed before, so that a place keeps its name from run to run.
//!
//! In: a device. Out: its stays at learned places, latest first. What was forgotten or evicted is no place any more.
//! Never: positions of other devices.

use crate::domain::id::DeviceId;
use crate::domain::observation::place::Position;
use crate::domain::time::Timestamp;
use crate::memory::rows;
use rusqlite::Connection;

/// Stays read; years of them.
const STAYS_MAX: u32 = 20_000;

/// A stay at a learned place.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedStay {
    /// What the place was called: `place-N`.
    pub name: String,
    /// The middle of the stay.
    pub centre: Position,
    /// When it ended.
    pub end: Timestamp,
}

/// The stays of the device at learned places, latest first, at most [`STAYS_MAX`]. Rows that are not whole are left out.
pub(crate) fn learned_stays(connection: &Connection, device_id: &DeviceId) -> rusqlite::Result<Vec<LearnedStay>> {
    // '.' follows '-' in ASCII.
    let sql = format!(
        "SELECT {} FROM episodes AS e WHERE e.place >= 'place-' AND e.place < 'place.' AND e.modality = 'spatial'
           AND e.device_id = ?1 ORDER BY e.timestamp DESC, e.id LIMIT {STAYS_MAX}",
        rows::COLUMNS
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([device_id.as_str()])?;
    let mut stays = Vec::new();
    while let Some(row) = rows.next()? {
        let episode = rows::read(row)?;
        let text = |key: &str| episode.metadata.get(key).and_then(serde_json::Value::as_str);
        let degrees = |key: &str| episode.metadata.get(key).and_then(serde_json::Value::as_f64);
        let centre = degrees("latitude_deg").zip(degrees("longitude_deg")).and_then(|(n, e)| Position::new(n, e));
        if let (Some(name), Some(centre), Some("learned")) = (text("place"), centre, text("place_kind")) {
            stays.push(LearnedStay { name: name.to_owned(), centre, end: episode.ended_at });
        }
    }
    Ok(stays)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::modality::Modality;
    use crate::memory::fixture;
    use crate::memory::reader::Reader;
    use serde_json::json;

    #[test]
    fn only_whole_stays_of_this_device_at_learned_places_count_the_latest_first() {
        let dir = tempfile::tempdir().unwrap();
        let writer = fixture::writer(dir.path());
        let whole = json!({"place": "place-1", "place_kind": "learned", "latitude_deg": 52.5, "longitude_deg": 13.4});
        let with = |key: &str, value: serde_json::Value| {
            let mut metadata = whole.clone();
            metadata[key] = value;
            metadata
        };
        let rows = [
            (Modality::Spatial, whole.clone()),
            (Modality::Spatial, with("latitude_deg", json!("north"))),
            (Modality::Spatial, with("latitude_deg", json!(95.0))),
            (Modality::Spatial, with("place_kind", json!("named"))),
            (Modality::Social, whole.clone()),
            (Modality::Spatial, with("place", json!("place-2"))),
        ];
        for (minute, (modality, metadata)) in (0..).zip(rows) {
            let mut record = fixture::episode(minute, modality);
            record.episode.metadata = metadata.as_object().cloned().unwrap();
            writer.append(record).unwrap();
        }
        writer.close().unwrap();
        let stays = |device: &str| {
            let stays = Reader::open(dir.path()).unwrap().learned_stays(&DeviceId::new(device)).unwrap();
            stays.into_iter().map(|stay| stay.name).collect::<Vec<_>>()
        };

        assert_eq!(stays("d"), ["place-2", "place-1"]);
        assert_eq!(stays("other"), Vec::<String>::new());
    }
}

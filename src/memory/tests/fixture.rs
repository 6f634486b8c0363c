//! Rows and stores for the tests of this folder: one device, one session, a sound a minute.

use crate::domain::episode::Embedding;
use crate::domain::episode::EmbeddingKind;
use crate::domain::episode::Episode;
use crate::domain::episode::EpisodeRecord;
use crate::domain::episode::Media;
use crate::domain::episode::MediaKind;
use crate::domain::episode::Metadata;
use crate::domain::episode::unit_length;
use crate::domain::fact::Fact;
use crate::domain::fact::Node;
use crate::domain::fact::NodeKind;
use crate::domain::id::BootId;
use crate::domain::id::DeviceId;
use crate::domain::id::EpisodeId;
use crate::domain::id::ExternalId;
use crate::domain::id::ModelId;
use crate::domain::id::SessionId;
use crate::domain::id::SourceId;
use crate::domain::modality::Modality;
use crate::domain::time::ClockQuality;
use crate::domain::time::SystemClock;
use crate::domain::time::Timestamp;
use crate::memory::store::OpenOptions;
use crate::memory::store::STORE_FILE;
use crate::memory::store::Store;
use crate::memory::writer::Writer;
use rusqlite::Connection;
use std::path::Path;

pub(crate) const MINUTE_MS: i64 = 60_000;

/// A writer on the store in `dir`, of device `d`.
pub(crate) fn writer(dir: &Path) -> Writer {
    let options = OpenOptions { device_id: Some(DeviceId::new("d")), ..OpenOptions::default() };
    Writer::spawn(Store::open(dir, &options).unwrap(), Box::new(SystemClock::new())).unwrap()
}

/// A second connection to the store in `dir`, for what only another program would do.
pub(crate) fn connection(dir: &Path) -> Connection {
    Connection::open(dir.join(STORE_FILE)).unwrap()
}

/// The sound of that minute since 1970.
pub(crate) fn sound(minute: u32) -> EpisodeRecord {
    episode(minute, Modality::Audio)
}

/// An episode of that minute.
pub(crate) fn episode(minute: u32, modality: Modality) -> EpisodeRecord {
    let (device_id, external_id) = (DeviceId::new("d"), ExternalId::new(format!("{}-{minute}", modality.as_str())));
    let start = Timestamp::from_millis(i64::from(minute) * MINUTE_MS);
    let episode = Episode {
        id: EpisodeId::of_external(&device_id, &external_id),
        external_id: Some(external_id),
        device_id,
        session_id: SessionId::new("s"),
        source: SourceId::new("microphone:m"),
        timestamp: start,
        ended_at: start,
        boot_id: BootId::new("b"),
        monotonic_ms: start.as_millis(),
        clock_quality: ClockQuality::Gps,
        modality,
        tool_name: "t".to_owned(),
        content: format!("Sound number {minute}"),
        importance: modality.default_importance(),
        decay_class: modality.default_decay(),
        metadata: Metadata::new(),
    };
    EpisodeRecord { episode, embeddings: Vec::new(), facts: Vec::new(), media: Vec::new() }
}

/// A vector of unit length.
pub(crate) fn vector(minute: u32, dims: u16) -> Embedding {
    let value = |place: u16| 1.0 + f32::from(u16::try_from((minute * 31 + u32::from(place) * 17) % 97).unwrap());
    let values: Vec<f32> = (0..dims).map(value).collect();
    Embedding { model_id: ModelId::new("m"), kind: EmbeddingKind::Audio, vector: unit_length(&values).unwrap() }
}

/// A picture of that many bytes that no other number has.
pub(crate) fn picture(number: u32, bytes: usize) -> Media {
    let content: Vec<u8> = number.to_le_bytes().into_iter().cycle().take(bytes).collect();
    Media { kind: MediaKind::Jpeg, bytes: content.into() }
}

/// Someone is at a place from that minute on.
pub(crate) fn located(person: &str, place: &str, minute: u32) -> Fact {
    let (subject, object) = (Node::new(NodeKind::Person, person), Node::new(NodeKind::Location, place));
    let start = Timestamp::from_millis(i64::from(minute) * MINUTE_MS);
    Fact::triple(subject, "located_at", object, format!("{person} is at {place}"), start)
}

/// A small generator, so that every run does the same.
pub(crate) fn seeded(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}

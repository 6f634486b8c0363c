//! Gives a draft its place in the store: ids, and the importance and decay of its modality.
//!
//! In: drafts from the builders, and whose capture it is. Out: records. Never: I/O, the clock.

use crate::domain::episode::Draft;
use crate::domain::episode::Episode;
use crate::domain::episode::EpisodeRecord;
use crate::domain::id::BootId;
use crate::domain::id::DeviceId;
use crate::domain::id::EpisodeId;
use crate::domain::id::EpisodeKey;
use crate::domain::id::SessionId;
use crate::domain::time::Stamp;
use crate::domain::time::Timestamp;
use crate::episodes::moment;

/// Whose capture it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// The capturing device.
    pub device_id: DeviceId,
    /// The run or recorded session.
    pub session_id: SessionId,
    /// The boot.
    pub boot_id: BootId,
    /// Whether the recording says when it began. If not, its times are guesses and no part of the ids.
    pub start_is_known: bool,
}

impl Capture {
    /// The id of an episode of this capture that was stamped `start` when it began.
    #[must_use]
    pub fn id_of(&self, draft: &Draft) -> EpisodeId {
        EpisodeId::derive(&EpisodeKey {
            device_id: &self.device_id,
            session_id: &self.session_id,
            modality: draft.modality,
            source: &draft.source,
            started_at: self.time_in_id(draft.start),
            ordinal: draft.ordinal,
        })
    }

    fn time_in_id(&self, start: Stamp) -> Timestamp {
        if self.start_is_known { start.utc } else { Timestamp::from_millis(start.monotonic_ms) }
    }

    /// The record of a draft. Its times are as stamped: the store moves what was captured before the clock was right.
    /// An episode in which the clock was set ends as long after its start as the monotonic clock says.
    #[must_use]
    pub fn record(&self, draft: Draft) -> EpisodeRecord {
        let id = self.id_of(&draft);
        let length_ms = draft.end.millis_since(draft.start).max(0);
        let ended_at = draft.start.utc.plus_millis(length_ms);
        let mut metadata = draft.metadata;
        if draft.tool_name == moment::TOOL_NAME {
            metadata.insert("multimodal_episode_id".to_owned(), id.to_string().into());
        }
        let mut facts = draft.facts;
        for fact in facts.iter_mut().filter(|fact| fact.valid_to == Some(draft.end.utc)) {
            fact.valid_to = Some(ended_at);
        }
        let episode = Episode {
            id,
            external_id: None,
            device_id: self.device_id.clone(),
            session_id: self.session_id.clone(),
            source: draft.source,
            timestamp: draft.start.utc,
            ended_at,
            boot_id: self.boot_id.clone(),
            monotonic_ms: draft.start.monotonic_ms,
            clock_quality: draft.start.quality,
            modality: draft.modality,
            tool_name: draft.tool_name.to_owned(),
            content: draft.content,
            importance: draft.modality.default_importance(),
            decay_class: draft.modality.default_decay(),
            metadata,
        };
        EpisodeRecord { episode, embeddings: draft.embeddings, facts, media: draft.media }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::episode::Metadata;
    use crate::domain::id::SensorKind;
    use crate::domain::id::SourceId;
    use crate::domain::modality::DecayClass;
    use crate::domain::modality::Modality;
    use crate::domain::time::ClockQuality;

    #[test]
    fn a_met_person_is_permanent_with_importance_nine() {
        let record = capture(true).record(draft(Modality::Social, 5));

        assert_eq!(record.episode.decay_class, DecayClass::Permanent);
        assert_eq!(record.episode.importance, 9);
        assert_eq!(record.episode.metadata["multimodal_episode_id"], record.episode.id.to_string());
    }

    #[test]
    fn an_unknown_start_is_no_part_of_the_id() {
        let (mut early, mut late) = (draft(Modality::Audio, 5), draft(Modality::Audio, 5));
        early.start.utc = Timestamp::from_millis(1_000);
        late.start.utc = Timestamp::from_millis(2_000);

        assert_eq!(capture(false).id_of(&early), capture(false).id_of(&late));
        assert_ne!(capture(true).id_of(&early), capture(true).id_of(&late));
    }

    #[test]
    fn an_episode_in_which_the_clock_was_set_is_no_longer_than_it_was() {
        let mut draft = draft(Modality::Spatial, 5);
        draft.end = Stamp { monotonic_ms: 65, utc: Timestamp::from_millis(1_000_000), quality: ClockQuality::Gps };

        let episode = capture(true).record(draft).episode;

        assert_eq!(episode.ended_at.millis_since(episode.timestamp), 60);
    }

    fn capture(start_is_known: bool) -> Capture {
        Capture {
            device_id: DeviceId::new("d"),
            session_id: SessionId::new("s"),
            boot_id: BootId::new("b"),
            start_is_known,
        }
    }

    fn draft(modality: Modality, monotonic_ms: i64) -> Draft {
        let at = Stamp { monotonic_ms, utc: Timestamp::from_millis(monotonic_ms), quality: ClockQuality::Network };
        Draft {
            modality,
            source: SourceId::of(SensorKind::Bluetooth, "hci0"),
            start: at,
            end: at,
            ordinal: 0,
            tool_name: moment::TOOL_NAME,
            content: "Met Alice".to_owned(),
            metadata: Metadata::new(),
            embeddings: Vec::new(),
            facts: Vec::new(),
            media: Vec::new(),
        }
    }
}

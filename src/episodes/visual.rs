//! One episode per scene.
//!
//! ```text
//!  frames    S . . . R . . S . ▪ ▪ ▪ . .      S starts a scene, R another look, ▪ blank
//!  episodes  |============| |============|
//!  coverage                   |-------|
//! ```
//!
//! In: [`SceneObservation`]s of any number of cameras, each camera's in the order of capture; frames that could not be read; the
//! passing of time. Out: drafts (at the start of a scene, from time to time while it lasts, and at its end: all of them
//! update one row) and coverage for stretches in which a camera showed nothing.
//! A scene ends where the next begins, or after [`Config::gap_s`] without a usable frame. Never: I/O, the clock.

use crate::domain::coverage::Coverage;
use crate::domain::coverage::CoverageReason;
use crate::domain::coverage::CoverageState;
use crate::domain::episode::Draft;
use crate::domain::episode::Embedding;
use crate::domain::episode::EmbeddingKind;
use crate::domain::episode::Media;
use crate::domain::id::ModelId;
use crate::domain::id::Ordinals;
use crate::domain::id::SourceId;
use crate::domain::modality::Modality;
use crate::domain::observation::scene::LabelScore;
use crate::domain::observation::scene::SceneObservation;
use crate::domain::time::Stamp;
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Labels kept for one scene over all looks at it.
const LABELS_MAX: usize = 5;

/// How scenes become episodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// A scene ends after this many seconds without a usable frame; as in the scene tracker.
    pub gap_s: u32,
    /// A scene that lasts is written again this often, in seconds: what a power cut can take from its end.
    pub checkpoint_s: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { gap_s: 600, checkpoint_s: 300 }
    }
}

/// Builds visual episodes.
#[derive(Debug)]
pub struct VisualBuilder {
    config: Config,
    model_id: Option<ModelId>,
    cameras: BTreeMap<SourceId, CameraState>,
    drafts: VecDeque<Draft>,
    coverage: VecDeque<Coverage>,
}

#[derive(Debug, Default)]
struct CameraState {
    ordinals: Ordinals,
    scene: Option<Scene>,
    /// Since when and until when nothing usable came, and why.
    blind: Option<Blind>,
}

#[derive(Debug)]
struct Blind {
    from: Stamp,
    to: Stamp,
    reason: CoverageReason,
    detail: Option<String>,
}

#[derive(Debug)]
struct Scene {
    start: Stamp,
    end: Stamp,
    ordinal: u32,
    frame_count: u32,
    brightness_sum: f64,
    labels: Vec<LabelScore>,
    embedding: Option<Arc<[f32]>>,
    key_frame: Option<Media>,
    written_at: Stamp,
}

impl VisualBuilder {
    /// A builder whose vectors, when there are any, come from the CLIP model `model_id`.
    #[must_use]
    pub fn new(config: Config, model_id: Option<ModelId>) -> Self {
        Self { config, model_id, cameras: BTreeMap::new(), drafts: VecDeque::new(), coverage: VecDeque::new() }
    }

    /// Takes what was seen in one frame.
    pub fn handle_observation(&mut self, observation: SceneObservation) {
        let source = observation.source.clone();
        if observation.is_blank {
            self.mark_blind(source, observation.at, CoverageReason::NoSignal, None);
            return;
        }
        self.end_blind(&source, Some(observation.at));
        if observation.starts_scene {
            self.close(&source);
            let state = self.cameras.entry(source.clone()).or_default();
            let ordinal = state.ordinals.next(observation.at.utc);
            state.scene = Some(Scene::begin(observation, ordinal));
            self.write(&source);
        } else {
            self.extend(&source, observation);
        }
    }

    /// A frame came that could not be read. `detail` names the cause for the operator.
    pub fn handle_unreadable(&mut self, source: &SourceId, at: Stamp, detail: String) {
        self.mark_blind(source.clone(), at, CoverageReason::Unreadable, Some(detail));
    }

    /// Closes scenes whose camera has shown nothing usable for too long.
    pub fn handle_timeout(&mut self, now: Stamp) {
        let over: Vec<SourceId> = self
            .due_times()
            .filter(|(due_ms, _)| *due_ms <= now.monotonic_ms)
            .map(|(_, source)| source.clone())
            .collect();
        for source in over {
            self.close(&source);
        }
    }

    /// When [`Self::handle_timeout`] has something to do, monotonic milliseconds.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        self.due_times().map(|(due_ms, _)| due_ms).min()
    }

    /// The next draft to be written.
    pub fn poll_draft(&mut self) -> Option<Draft> {
        self.drafts.pop_front()
    }

    /// The next coverage interval.
    pub fn poll_coverage(&mut self) -> Option<Coverage> {
        self.coverage.pop_front()
    }

    /// Closes everything: the capture is over.
    pub fn finish(&mut self) {
        let sources: Vec<SourceId> = self.cameras.keys().cloned().collect();
        for source in sources {
            self.close(&source);
            self.end_blind(&source, None);
        }
    }

    fn due_times(&self) -> impl Iterator<Item = (i64, &SourceId)> {
        let gap_ms = i64::from(self.config.gap_s) * 1000;
        self.cameras.iter().filter_map(move |(source, state)| {
            state.scene.as_ref().map(|scene| (scene.end.monotonic_ms + gap_ms, source))
        })
    }

    fn extend(&mut self, source: &SourceId, observation: SceneObservation) {
        let checkpoint_ms = i64::from(self.config.checkpoint_s) * 1000;
        // A frame without a scene is one that the limit on scenes kept from beginning its own.
        let Some(scene) = self.cameras.get_mut(source).and_then(|state| state.scene.as_mut()) else { return };
        let at = observation.at;
        scene.extend(observation);
        if at.millis_since(scene.written_at) >= checkpoint_ms {
            self.write(source);
        }
    }

    fn mark_blind(&mut self, source: SourceId, at: Stamp, reason: CoverageReason, detail: Option<String>) {
        let state = self.cameras.entry(source.clone()).or_default();
        match &mut state.blind {
            Some(blind) if blind.reason == reason => blind.to = at,
            _ => {
                self.end_blind(&source, Some(at));
                let state = self.cameras.entry(source).or_default();
                state.blind = Some(Blind { from: at, to: at, reason, detail });
            }
        }
    }

    /// `until`: the next frame, which tells that the camera was blind up to it.
    fn end_blind(&mut self, source: &SourceId, until: Option<Stamp>) {
        let Some(blind) = self.cameras.get_mut(source).and_then(|state| state.blind.take()) else { return };
        self.coverage.push_back(Coverage {
            source: source.clone(),
            from: blind.from,
            to: until.unwrap_or(blind.to),
            state: CoverageState::Blind,
            reason: blind.reason,
            detail: blind.detail,
        });
    }

    fn close(&mut self, source: &SourceId) {
        self.write(source);
        if let Some(state) = self.cameras.get_mut(source) {
            state.scene = None;
        }
    }

    fn write(&mut self, source: &SourceId) {
        let Some(scene) = self.cameras.get_mut(source).and_then(|state| state.scene.as_mut()) else { return };
        scene.written_at = scene.end;
        self.drafts.push_back(scene.draft(source, self.model_id.as_ref()));
    }
}

impl Scene {
    fn begin(observation: SceneObservation, ordinal: u32) -> Self {
        Self {
            start: observation.at,
            end: observation.at,
            ordinal,
            frame_count: 1,
            brightness_sum: f64::from(observation.brightness),
            labels: observation.labels,
            embedding: observation.embedding,
            key_frame: observation.key_frame,
            written_at: observation.at,
        }
    }

    fn extend(&mut self, observation: SceneObservation) {
        self.end = observation.at;
        self.frame_count = self.frame_count.saturating_add(1);
        self.brightness_sum += f64::from(observation.brightness);
        self.merge_labels(observation.labels);
        // The first look may have failed; the vector of the scene is that of the first look that did not.
        self.embedding = self.embedding.take().or(observation.embedding);
    }

    /// Each label keeps its best share over all looks.
    fn merge_labels(&mut self, labels: Vec<LabelScore>) {
        for new in labels {
            match self.labels.iter_mut().find(|label| label.label == new.label) {
                Some(known) => known.score = known.score.max(new.score),
                None => self.labels.push(new),
            }
        }
        self.labels.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.label.cmp(&b.label)));
        self.labels.truncate(LABELS_MAX);
    }

    fn brightness(&self) -> f64 {
        self.brightness_sum / f64::from(self.frame_count)
    }

    fn draft(&self, source: &SourceId, model_id: Option<&ModelId>) -> Draft {
        let embedding = model_id.zip(self.embedding.as_ref()).map(|(model_id, vector)| Embedding {
            model_id: model_id.clone(),
            kind: EmbeddingKind::Image,
            vector: Arc::clone(vector),
        });
        Draft {
            modality: Modality::Visual,
            source: source.clone(),
            start: self.start,
            end: self.end,
            ordinal: self.ordinal,
            tool_name: "camera_capture",
            content: self.content(),
            metadata: self.metadata(),
            embeddings: embedding.into_iter().collect(),
            facts: Vec::new(),
            media: self.key_frame.iter().cloned().collect(),
        }
    }

    /// `Saw a dog and grass in bright light for 12 s.`
    fn content(&self) -> String {
        let words: Vec<&str> = self.labels.iter().map(|label| label.label.as_str()).collect();
        let what = match words.as_slice() {
            [] => "a scene".to_owned(),
            [one] => (*one).to_owned(),
            [most @ .., last] => format!("{} and {last}", most.join(", ")),
        };
        format!("Saw {what}{}{}.", light(self.brightness()), duration(self.end.millis_since(self.start)))
    }

    fn metadata(&self) -> crate::domain::episode::Metadata {
        let labels: Vec<serde_json::Value> = self
            .labels
            .iter()
            .map(|label| serde_json::json!({ "label": label.label, "score": rounded(f64::from(label.score)) }))
            .collect();
        let mut metadata = crate::domain::episode::Metadata::new();
        metadata.insert("labels".to_owned(), labels.into());
        metadata.insert("brightness".to_owned(), rounded(self.brightness()).into());
        metadata.insert("frame_count".to_owned(), self.frame_count.into());
        metadata
    }
}

/// Four decimals: more would be noise. Never NaN or infinite.
fn rounded(value: f64) -> f64 {
    if value.is_finite() { (value * 1e4).round() / 1e4 } else { 0.0 }
}

fn light(brightness: f64) -> &'static str {
    match brightness {
        ..0.12 => " in the dark",
        ..0.3 => " in dim light",
        0.7.. => " in bright light",
        _ => "",
    }
}

fn duration(ms: i64) -> String {
    match ms / 1000 {
        0 => String::new(),
        seconds @ 1..120 => format!(" for {seconds} s"),
        seconds @ 120..7200 => format!(" for {} min", seconds / 60),
        seconds => format!(" for {} h", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::episode::MediaKind;
    use crate::domain::id::SensorKind;
    use crate::domain::time::ClockQuality;
    use crate::domain::time::Timestamp;

    #[test]
    fn a_hundred_equal_frames_are_one_episode() {
        let mut builder = builder();
        builder.handle_observation(start(0));
        for second in 1..100 {
            builder.handle_observation(frame(second));
        }
        builder.finish();

        let drafts = drafts(&mut builder);

        let rows: Vec<_> = drafts.iter().map(|draft| (draft.start, draft.ordinal)).collect();
        assert!(rows.iter().all(|row| *row == rows[0]));
        let last = drafts.last().unwrap();
        assert_eq!((last.start, last.end), (at(0), at(99)));
        assert_eq!(last.metadata["frame_count"], 100);
        assert_eq!(last.content, "Saw a scene for 99 s.");
    }

    #[test]
    fn a_new_scene_ends_the_one_before() {
        let mut builder = builder();
        for observation in [start(0), frame(1), start(2), frame(3)] {
            builder.handle_observation(observation);
        }
        builder.finish();

        let spans: Vec<_> = drafts(&mut builder).iter().map(|draft| (draft.start, draft.end)).collect();

        assert_eq!(spans, [(at(0), at(0)), (at(0), at(1)), (at(2), at(2)), (at(2), at(3))]);
    }

    #[test]
    fn a_scene_is_written_at_its_start_and_again_while_it_lasts() {
        let mut builder = builder();
        builder.handle_observation(start(0));
        for second in 1..=700 {
            builder.handle_observation(frame(second));
        }

        let ends: Vec<_> = drafts(&mut builder).iter().map(|draft| draft.end).collect();

        assert_eq!(ends, [at(0), at(300), at(600)]);
    }

    #[test]
    fn labels_vector_and_key_frame_of_the_first_look_belong_to_the_episode() {
        let mut builder = builder();
        let media = Media { kind: MediaKind::Jpeg, bytes: vec![1].into() };
        builder.handle_observation(SceneObservation {
            labels: labels(&[("a dog", 0.7), ("grass", 0.2)]),
            embedding: Some(Arc::from([0.6, 0.8])),
            key_frame: Some(media.clone()),
            brightness: 0.9,
            ..start(0)
        });
        builder.handle_observation(SceneObservation {
            labels: labels(&[("a ball", 0.3), ("a dog", 0.6)]),
            embedding: Some(Arc::from([1.0, 0.0])),
            ..frame(40)
        });
        builder.finish();

        let last = drafts(&mut builder).pop().unwrap();

        assert_eq!(last.content, "Saw a dog, a ball and grass for 40 s.");
        assert_eq!(last.embeddings[0].vector.as_ref(), [0.6, 0.8]);
        assert_eq!((last.embeddings[0].model_id.as_str(), last.embeddings[0].kind), ("clip", EmbeddingKind::Image));
        assert_eq!(last.media, [media]);
        assert_eq!(last.metadata["labels"][0], serde_json::json!({ "label": "a dog", "score": 0.7 }));
        assert_eq!(last.tool_name, "camera_capture");
    }

    #[test]
    fn a_scene_without_frames_ends_by_itself() {
        let mut builder = builder();
        builder.handle_observation(start(0));
        builder.handle_observation(frame(5));
        assert_eq!(builder.poll_timeout(), Some(605_000));

        builder.handle_timeout(at(604));
        assert!(builder.poll_timeout().is_some());
        builder.handle_timeout(at(605));

        assert_eq!(builder.poll_timeout(), None);
        assert_eq!(drafts(&mut builder).last().map(|draft| draft.end), Some(at(5)));
    }

    #[test]
    fn blank_frames_become_coverage_and_no_episode() {
        let mut builder = builder();
        for second in 0..10 {
            builder.handle_observation(blank(second));
        }
        builder.handle_observation(start(10));
        builder.handle_observation(blank(11));
        builder.handle_observation(blank(12));
        builder.finish();

        let rows: Vec<_> = std::iter::from_fn(|| builder.poll_coverage()).collect();

        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].from, rows[0].to, rows[0].reason), (at(0), at(10), CoverageReason::NoSignal));
        assert_eq!((rows[1].from, rows[1].to), (at(11), at(12)));
        assert!(drafts(&mut builder).iter().all(|draft| draft.start == at(10)));
    }

    #[test]
    fn unreadable_frames_become_coverage_with_their_cause() {
        let mut builder = builder();
        builder.handle_observation(start(0));
        for second in 1..4 {
            builder.handle_unreadable(&camera(), at(second), "the frame is cut short".to_owned());
        }
        builder.handle_observation(frame(4));

        let row = builder.poll_coverage().unwrap();

        assert_eq!((row.from, row.to, row.reason), (at(1), at(4), CoverageReason::Unreadable));
        assert_eq!(row.detail.as_deref(), Some("the frame is cut short"));
        assert_eq!(builder.poll_coverage(), None);
    }

    #[test]
    fn cameras_do_not_disturb_each_other() {
        let mut builder = builder();
        let other = SourceId::of(SensorKind::Camera, "back");
        builder.handle_observation(start(0));
        builder.handle_observation(SceneObservation { source: other.clone(), ..start(1) });
        builder.handle_observation(frame(2));
        builder.finish();

        let last: BTreeMap<_, _> =
            drafts(&mut builder).into_iter().map(|draft| (draft.source, (draft.start, draft.end))).collect();

        assert_eq!(last, BTreeMap::from([(camera(), (at(0), at(2))), (other, (at(1), at(1)))]));
    }

    #[test]
    fn light_and_length_are_told_in_words() {
        assert_eq!([0.05, 0.2, 0.5, 0.8].map(light), [" in the dark", " in dim light", "", " in bright light"]);
        assert_eq!([900, 119_000, 120_000, 7_200_000].map(duration), ["", " for 119 s", " for 2 min", " for 2 h"]);
    }

    fn builder() -> VisualBuilder {
        VisualBuilder::new(Config::default(), Some(ModelId::new("clip")))
    }

    fn drafts(builder: &mut VisualBuilder) -> Vec<Draft> {
        std::iter::from_fn(|| builder.poll_draft()).collect()
    }

    fn start(second: i64) -> SceneObservation {
        SceneObservation { starts_scene: true, ..frame(second) }
    }

    fn blank(second: i64) -> SceneObservation {
        SceneObservation { is_blank: true, brightness: 0.0, ..frame(second) }
    }

    fn frame(second: i64) -> SceneObservation {
        SceneObservation {
            source: camera(),
            at: at(second),
            starts_scene: false,
            brightness: 0.5,
            is_blank: false,
            labels: Vec::new(),
            embedding: None,
            key_frame: None,
        }
    }

    fn labels(scores: &[(&str, f32)]) -> Vec<LabelScore> {
        scores.iter().map(|(label, score)| LabelScore { label: (*label).to_owned(), score: *score }).collect()
    }

    fn camera() -> SourceId {
        SourceId::of(SensorKind::Camera, "front")
    }

    fn at(second: i64) -> Stamp {
        let ms = second * 1000;
        Stamp { monotonic_ms: ms, utc: Timestamp::from_millis(ms), quality: ClockQuality::Network }
    }
}

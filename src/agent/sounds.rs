//! Microphones: from chunks of sound to sound episodes.
//!
//! In: readings of microphones. Out: drafts, coverage, what is heard right now. Never: I/O.

use crate::agent::models::YAMNET;
use crate::agent::surroundings::Surroundings;
use crate::config::Config;
use crate::domain::coverage::Coverage;
use crate::domain::coverage::CoverageReason;
use crate::domain::coverage::CoverageState;
use crate::domain::episode::Draft;
use crate::domain::id::ModelId;
use crate::domain::id::SourceId;
use crate::domain::reading::Payload;
use crate::domain::reading::Reading;
use crate::domain::reading::SoundChunk;
use crate::domain::time::Stamp;
use crate::episodes::audio;
use crate::episodes::audio::AudioBuilder;
use crate::episodes::audio::Classes;
use crate::perception::hearing;
use crate::perception::hearing::HearingError;
use crate::perception::hearing::SoundPerception;
use crate::perception::hearing::WindowClassifier;
use crate::perception::log_mel::MelMatrix;
use crate::perception::pcm::ChannelMap;
use crate::perception::sound::SoundClassifier;
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

/// YAMNet, shared by the microphones and sessions of one command.
pub type SharedClassifier = Arc<Mutex<SoundClassifier>>;

/// The microphones of one device.
pub struct Sounds {
    hearing: hearing::Config,
    audio: audio::Config,
    classifier: Option<SharedClassifier>,
    microphones: BTreeMap<SourceId, (SoundPerception, AudioBuilder)>,
    refusals: VecDeque<Coverage>,
    heard: Option<(Stamp, String)>,
}

impl Sounds {
    /// No microphone has delivered yet. A recording's own channel map comes before that of the config.
    #[must_use]
    pub fn new(config: &Config, channel_map: Option<Vec<u16>>, classifier: Option<SharedClassifier>) -> Self {
        let mut hearing = config.microphone.hearing.clone();
        if let Some(channels) = channel_map {
            hearing.channel_map = ChannelMap::of(channels);
        }
        Self {
            hearing,
            audio: config.audio.clone(),
            classifier,
            microphones: BTreeMap::new(),
            refusals: VecDeque::new(),
            heard: None,
        }
    }

    /// Takes a reading of a microphone.
    pub fn handle_reading(&mut self, reading: &Reading) {
        if !self.microphones.contains_key(&reading.source) {
            let made = self.microphone();
            self.microphones.insert(reading.source.clone(), made);
        }
        let Some((hearing, _)) = self.microphones.get_mut(&reading.source) else { return };
        let taken = match &reading.payload {
            Payload::Sound(chunk) => {
                let taken = hearing.handle_chunk(&reading.source, reading.captured_at, chunk);
                self.note_refusal(reading, chunk, taken.as_ref().err());
                taken
            }
            Payload::Loss(_) => hearing.handle_loss(),
            Payload::Picture(_) | Payload::Position(_) | Payload::Advertisement(_) => Ok(()),
        };
        if let Err(error @ (HearingError::Classifier(_) | HearingError::AnswersMissing { .. })) = taken {
            tracing::warn!(source = %reading.source, %error, "sounds go without a class");
        }
        self.collect();
    }

    fn microphone(&self) -> (SoundPerception, AudioBuilder) {
        let classifier = self.classifier.clone().map(|shared| Box::new(shared) as Box<dyn WindowClassifier>);
        let classes = self.classifier.as_ref().map(|shared| Classes {
            model_id: ModelId::new(YAMNET),
            names: Arc::clone(shared.lock().unwrap_or_else(PoisonError::into_inner).class_names()),
        });
        let hearing = SoundPerception::new(self.hearing.clone(), MelMatrix::yamnet(), classifier);
        (hearing, AudioBuilder::new(self.audio.clone(), classes))
    }

    /// A chunk that could not be used is time in which the microphone delivered nonsense.
    fn note_refusal(&mut self, reading: &Reading, chunk: &SoundChunk, error: Option<&HearingError>) {
        let Some(error @ (HearingError::Chunk(_) | HearingError::Rate(_))) = error else { return };
        let frames = i64::try_from(chunk.frame_count()).unwrap_or(i64::MAX);
        let length_ms = frames.saturating_mul(1_000) / i64::from(chunk.sample_rate_hz.max(1));
        self.refusals.push_back(Coverage {
            source: reading.source.clone(),
            from: reading.captured_at,
            to: reading.captured_at.plus_millis(length_ms),
            state: CoverageState::Blind,
            reason: CoverageReason::Invalid,
            detail: Some(error.to_string()),
        });
    }

    fn collect(&mut self) {
        for (hearing, builder) in self.microphones.values_mut() {
            while let Some(observation) = hearing.poll_observation() {
                let end = observation.end;
                builder.handle_observation(observation);
                if let Some(class) = builder.current_class() {
                    self.heard = Some((end, class.to_owned()));
                }
            }
        }
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Stamp) {
        for (_, builder) in self.microphones.values_mut() {
            builder.handle_timeout(now);
        }
    }

    /// When [`Self::handle_timeout`] has something to do, monotonic.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        self.microphones.values().filter_map(|(_, builder)| builder.poll_timeout()).min()
    }

    /// There will be no more readings.
    pub fn finish(&mut self) {
        for (hearing, _) in self.microphones.values_mut() {
            if let Err(error) = hearing.finish() {
                tracing::warn!(%error, "the last sounds go without a class");
            }
        }
        self.collect();
        for (_, builder) in self.microphones.values_mut() {
            builder.finish();
        }
    }

    /// The next draft.
    pub fn poll_draft(&mut self) -> Option<Draft> {
        self.microphones.values_mut().find_map(|(_, builder)| builder.poll_draft())
    }

    /// The next blind interval.
    pub fn poll_coverage(&mut self) -> Option<Coverage> {
        self.refusals
            .pop_front()
            .or_else(|| self.microphones.values_mut().find_map(|(_, builder)| builder.poll_coverage()))
    }

    /// Microphones that run and whose signal is none, with what is wrong.
    #[must_use]
    pub fn complaints(&self) -> Vec<(SourceId, String)> {
        let of = |(source, (_, builder)): (&SourceId, &(SoundPerception, AudioBuilder))| {
            Some((source.clone(), builder.complaint()?.to_owned()))
        };
        self.microphones.iter().filter_map(of).collect()
    }

    /// Says what is heard right now.
    pub fn describe(&mut self, surroundings: &mut Surroundings) {
        if let Some((at, class)) = self.heard.take() {
            surroundings.heard(at, &class);
        }
    }
}

//! Sound episodes: one per sound event.
//!
//! In: [`SoundObservation`]s of one microphone in the order they were captured, and the passing of time.
//! Out: a [`Draft`] per event, and [`Coverage`] where the microphone delivered no signal or nonsense.
//!
//! ```text
//! hops    . S S S . . S S . . . . . . D D d .     S, D: loud enough, Speech or Dog heard; .: quiet
//! events    [ Speech    ]             [Dog]       a pause of up to 2 s does not end an event
//! ```
//!
//! A hop belongs to the open event when the event's class is among its best; another class opens an event
//! of its own once the first has been away for 2 s. An event longer than 60 s is cut. Hops that YAMNet
//! calls silence are quiet unless they are loud. Without a classifier the level gate alone makes events.
//!
//! This module does no I/O and never reads the clock.

mod event;
mod no_signal;

use crate::domain::coverage::Coverage;
use crate::domain::episode::Draft;
use crate::domain::id::ModelId;
use crate::domain::id::Ordinals;
use crate::domain::observation::sound::Signal;
use crate::domain::observation::sound::SoundObservation;
use crate::domain::observation::sound::dbfs_of_mean_square;
use crate::domain::time::Stamp;
use crate::episodes::audio::event::Event;
use crate::episodes::audio::no_signal::SignalLog;
use std::collections::VecDeque;
use std::sync::Arc;

/// The class YAMNet answers with when there is nothing to hear.
const SILENCE: &str = "Silence";

/// Settings of sound episodes.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// A pause or another sound of up to this many milliseconds does not end an event.
    pub join_within_ms: i64,
    /// An event is at most this long, in milliseconds.
    pub length_max_ms: i64,
    /// A class counts as heard from this score (0–1) on.
    pub class_score_min: f32,
    /// A hop belongs to an event when the event's class has at least this share of its best score.
    pub same_class_share: f32,
    /// Classes listed in an episode, at most.
    pub classes_max: usize,
    /// What the classifier calls silence is a sound of unknown class from this level on, in dBFS.
    pub silence_max_dbfs: f64,
    /// No signal for this many milliseconds becomes a coverage row.
    pub no_signal_after_ms: i64,
    /// An event is over when nothing was observed for this many milliseconds: a sensor was lost.
    pub late_max_ms: i64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            join_within_ms: 2_000,
            length_max_ms: 60_000,
            class_score_min: 0.1,
            same_class_share: 0.5,
            classes_max: 5,
            silence_max_dbfs: -40.0,
            no_signal_after_ms: 10_000,
            late_max_ms: 10_000,
        }
    }
}

/// What the scores of the observations mean.
#[derive(Debug, Clone)]
pub struct Classes {
    /// The classifier, as its embeddings are stored.
    pub model_id: ModelId,
    /// The display name of each class, in the order of the scores.
    pub names: Arc<[String]>,
}

/// Builds the sound episodes of one microphone.
#[derive(Debug)]
pub struct AudioBuilder {
    config: Config,
    classes: Option<Classes>,
    silence: Option<usize>,
    open: Option<Event>,
    /// Hops since the open event was last heard; at most [`Config::join_within_ms`] of them.
    aside: Vec<SoundObservation>,
    signal: SignalLog,
    ordinals: Ordinals,
    drafts: VecDeque<Draft>,
}

/// What a hop is to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    Quiet,
    /// A sound, of that class if one was recognised.
    Sound(Option<usize>),
}

impl AudioBuilder {
    /// A builder; without `classes` scores are not looked at.
    #[must_use]
    pub fn new(config: Config, classes: Option<Classes>) -> Self {
        let silence = classes.as_ref().and_then(|classes| classes.names.iter().position(|name| name == SILENCE));
        Self {
            signal: SignalLog::new(config.no_signal_after_ms),
            config,
            classes,
            silence,
            open: None,
            aside: Vec::new(),
            ordinals: Ordinals::default(),
            drafts: VecDeque::new(),
        }
    }

    /// Takes the next hop.
    pub fn handle_observation(&mut self, observation: SoundObservation) {
        self.signal.handle_observation(&observation);
        let mut waiting = VecDeque::from([observation]);
        while let Some(observation) = waiting.pop_front() {
            if self.must_close_before(&observation) {
                // What was set aside is heard again, without the event that kept it waiting.
                self.close();
                waiting.push_front(observation);
                for aside in self.aside.drain(..).rev() {
                    waiting.push_front(aside);
                }
            } else {
                self.place(observation);
            }
        }
    }

    /// Closes the open event when nothing has been observed for a while.
    pub fn handle_timeout(&mut self, now: Stamp) {
        if self.poll_timeout().is_some_and(|due_ms| due_ms <= now.monotonic_ms) {
            self.finish();
        }
    }

    /// When [`Self::handle_timeout`] has something to do, monotonic milliseconds.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        let last_end = self.aside.last().map(|aside| aside.end).or(self.open.as_ref().map(Event::end));
        let last_end = last_end.into_iter().chain(self.signal.open_until()).max()?;
        Some(last_end.monotonic_ms.saturating_add(self.config.join_within_ms + self.config.late_max_ms))
    }

    /// The next episode.
    pub fn poll_draft(&mut self) -> Option<Draft> {
        self.drafts.pop_front()
    }

    /// What is wrong with the microphone's signal at the moment, for its health.
    #[must_use]
    pub fn complaint(&self) -> Option<&str> {
        self.signal.complaint()
    }

    /// The next stretch without signal.
    pub fn poll_coverage(&mut self) -> Option<Coverage> {
        self.signal.poll()
    }

    /// There will be no more observations, or none for long: closes what is open.
    pub fn finish(&mut self) {
        while self.open.is_some() {
            self.close();
            for aside in std::mem::take(&mut self.aside) {
                self.place(aside);
            }
        }
        self.signal.finish();
    }

    /// The class of the event that is open, where one was recognised: what is heard right now.
    #[must_use]
    pub fn current_class(&self) -> Option<&str> {
        let class = self.open.as_ref()?.class()?;
        self.classes.as_ref()?.names.get(class).map(String::as_str)
    }

    fn must_close_before(&self, observation: &SoundObservation) -> bool {
        let Some(event) = &self.open else { return false };
        observation.start.millis_since(event.end()) > self.config.join_within_ms
            || observation.start.monotonic_ms < event.end().monotonic_ms
            || observation.end.millis_since(event.start()) > self.config.length_max_ms
    }

    /// Puts a hop into the open event, aside, or into an event of its own.
    fn place(&mut self, observation: SoundObservation) {
        let heard = self.judge(&observation);
        match (&mut self.open, heard) {
            (None, Heard::Quiet) => {}
            (None, Heard::Sound(class)) => self.open = Some(Event::new(observation, class)),
            (Some(event), Heard::Sound(class))
                if belongs(event.class(), class, &observation, self.config.same_class_share) =>
            {
                for aside in self.aside.drain(..) {
                    event.add(aside);
                }
                event.add(observation);
                event.name(class);
            }
            (Some(_), _) => self.aside.push(observation),
        }
    }

    fn judge(&self, observation: &SoundObservation) -> Heard {
        if !observation.is_active || observation.signal == Signal::Absent {
            return Heard::Quiet;
        }
        let (Some(scores), Some(_)) = (&observation.scores, &self.classes) else { return Heard::Sound(None) };
        let ranked = scores.scores.iter().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b));
        let Some((best, score)) = ranked else { return Heard::Sound(None) };
        if Some(best) == self.silence {
            let is_loud = dbfs_of_mean_square(observation.mean_square) >= self.config.silence_max_dbfs;
            return if is_loud { Heard::Sound(None) } else { Heard::Quiet };
        }
        Heard::Sound((*score >= self.config.class_score_min).then_some(best))
    }

    fn close(&mut self) {
        let Some(event) = self.open.take() else { return };
        let ordinal = self.ordinals.next(event.start().utc);
        let draft = event.into_draft(ordinal, &self.config, self.classes.as_ref(), self.silence);
        self.drafts.push_back(draft);
    }
}

/// Whether a hop in which `heard` was best belongs to an event of class `event`.
fn belongs(event: Option<usize>, heard: Option<usize>, observation: &SoundObservation, share: f32) -> bool {
    let (Some(event), Some(heard)) = (event, heard) else { return true };
    let scores = observation.scores.as_ref().map(|scores| &scores.scores);
    let score = |class: usize| scores.and_then(|scores| scores.get(class)).copied().unwrap_or_default();
    score(event) >= share * score(heard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::SensorKind;
    use crate::domain::id::SourceId;
    use crate::domain::observation::sound::SoundScores;
    use crate::domain::time::ClockQuality;
    use crate::domain::time::Timestamp;

    const SPEECH: usize = 0;
    const DOG: usize = 1;
    const MUSIC: usize = 3;

    #[test]
    fn a_pause_of_two_seconds_does_not_end_an_event_and_a_longer_one_does() {
        let short = spans("SSS....SS");
        let long = spans("SSS.....SS");

        assert_eq!(short, [("Speech".to_owned(), 0, 9 * 480)]);
        assert_eq!(long, [("Speech".to_owned(), 0, 3 * 480), ("Speech".to_owned(), 8 * 480, 10 * 480)]);
    }

    #[test]
    fn a_pause_counts_in_the_mean_level() {
        let draft = &drafts("S...S")[0];

        // Two of five hops at a mean square of 0.05.
        assert_eq!(draft.metadata["rms_db"], -16.99);
    }

    #[test]
    fn another_class_is_another_event() {
        assert_eq!(spans("SSSSSDDDDDDDD"), [("Speech".to_owned(), 0, 5 * 480), ("Dog".to_owned(), 5 * 480, 13 * 480)]);
    }

    #[test]
    fn a_bark_within_a_conversation_does_not_cut_it() {
        let drafts = drafts("SSSSDDSSSS");

        assert_eq!(drafts.len(), 1);
        assert_eq!(drafts[0].metadata["sound_class"], "Speech");
        assert_eq!(drafts[0].metadata["classifications"][1]["class"], "Dog");
        assert_eq!(drafts[0].content, "Heard Speech for 5 seconds");
    }

    #[test]
    fn an_event_is_at_most_a_minute_long() {
        let spans = spans(&"S".repeat(300));

        assert_eq!(
            spans.iter().map(|(_, start, end)| (*start, *end)).collect::<Vec<_>>(),
            [(0, 60_000), (60_000, 120_000), (120_000, 144_000)]
        );
    }

    #[test]
    fn silence_is_no_event_unless_it_is_loud() {
        let mut quiet = builder(true);
        let mut loud = builder(true);

        for index in 0..5 {
            quiet.handle_observation(SoundObservation { mean_square: 1e-6, ..hop(index, 'Q') });
            loud.handle_observation(hop(index, 'Q'));
        }

        assert_eq!(finished(&mut quiet), []);
        let drafts = finished(&mut loud);
        assert_eq!(drafts[0].content, "Heard a sound for 2 seconds");
        assert!(!drafts[0].metadata.contains_key("sound_class"));
    }

    #[test]
    fn the_gate_alone_makes_events_without_a_classifier() {
        let mut builder = builder(false);
        for index in 0..4 {
            builder.handle_observation(SoundObservation { scores: None, ..hop(index, 'S') });
        }

        let drafts = finished(&mut builder);

        assert_eq!(drafts.len(), 1);
        assert_eq!(drafts[0].content, "Heard a sound for 2 seconds");
        assert!(!drafts[0].metadata.contains_key("sound_class"));
        assert!(!drafts[0].metadata.contains_key("classifications"));
        assert_eq!(drafts[0].embeddings, []);
    }

    #[test]
    fn peaks_of_one_frequency_are_one_and_the_strongest_comes_first() {
        let peak =
            |frequency_hz, level_dbfs| crate::domain::observation::sound::SpectralPeak { frequency_hz, level_dbfs };
        let mut builder = builder(false);
        builder.handle_observation(SoundObservation { peaks: vec![peak(440.0, -20.0)], ..hop(0, 'S') });
        builder.handle_observation(SoundObservation {
            peaks: vec![peak(3_000.0, -10.0), peak(441.0, -20.0)],
            ..hop(1, 'S')
        });

        assert_eq!(finished(&mut builder)[0].metadata["peak_frequencies"], serde_json::json!([3000.0, 440.5]));
    }

    #[test]
    fn nonsense_never_reaches_the_metadata() {
        let mut builder = builder(true);
        builder.handle_observation(SoundObservation {
            mean_square: f64::NAN,
            peak: f32::INFINITY,
            band_mean_square: [f64::NAN, f64::INFINITY, 0.0, -1.0, 1e-300],
            ..hop(0, 'S')
        });

        let text = serde_json::to_string(&finished(&mut builder)[0].metadata).unwrap();

        assert!(!text.contains("null"), "{text}");
    }

    #[test]
    fn a_lost_microphone_closes_the_event_after_a_while() {
        let mut builder = builder(true);
        builder.handle_observation(hop(0, 'S'));
        let due_ms = builder.poll_timeout().unwrap();

        builder.handle_timeout(stamp(due_ms - 1));
        assert_eq!(builder.poll_draft(), None);
        builder.handle_timeout(stamp(due_ms));

        assert_eq!(builder.poll_draft().map(|draft| draft.end), Some(stamp(480)));
        assert_eq!(builder.poll_timeout(), None);
    }

    #[test]
    fn a_gap_in_the_recording_ends_the_event_when_it_is_long() {
        let mut builder = builder(true);
        for index in [0, 1, 4, 5, 20, 21] {
            builder.handle_observation(hop(index, 'S'));
        }

        let ends: Vec<i64> = finished(&mut builder).iter().map(|draft| draft.end.monotonic_ms).collect();

        assert_eq!(ends, [6 * 480, 22 * 480]);
    }

    #[test]
    fn the_class_of_the_open_event_is_known_before_it_ends() {
        let mut builder = builder(true);
        assert_eq!(builder.current_class(), None);

        builder.handle_observation(hop(0, 'D'));

        assert_eq!(builder.current_class(), Some("Dog"));
    }

    fn spans(hops: &str) -> Vec<(String, i64, i64)> {
        let class = |draft: &Draft| draft.metadata["sound_class"].as_str().unwrap_or_default().to_owned();
        drafts(hops).iter().map(|draft| (class(draft), draft.start.monotonic_ms, draft.end.monotonic_ms)).collect()
    }

    fn drafts(hops: &str) -> Vec<Draft> {
        let mut builder = builder(true);
        for (index, letter) in (0..).zip(hops.chars()) {
            builder.handle_observation(hop(index, letter));
        }
        finished(&mut builder)
    }

    fn finished(builder: &mut AudioBuilder) -> Vec<Draft> {
        builder.finish();
        std::iter::from_fn(|| builder.poll_draft()).collect()
    }

    fn builder(has_classes: bool) -> AudioBuilder {
        let names = ["Speech", "Dog", "Silence", "Music"].map(str::to_owned).to_vec();
        let classes = Classes { model_id: ModelId::new("yamnet"), names: names.into() };
        AudioBuilder::new(Config::default(), has_classes.then_some(classes))
    }

    /// S speech, D dog, Q what the classifier calls silence, all loud; a dot is quiet.
    fn hop(index: i64, letter: char) -> SoundObservation {
        let mut scores = [0.05_f32; 4];
        match letter {
            'S' => scores[SPEECH] = 0.9,
            'D' => scores[DOG] = 0.8,
            'Q' => scores[2] = 0.99,
            _ => scores[MUSIC] = 0.06,
        }
        let is_active = letter != '.';
        SoundObservation {
            source: SourceId::of(SensorKind::Microphone, "test"),
            start: stamp(index * 480),
            end: stamp((index + 1) * 480),
            mean_square: if is_active { 0.05 } else { 0.0 },
            peak: 0.5,
            band_mean_square: [0.01; 5],
            peaks: Vec::new(),
            is_active,
            signal: Signal::Live,
            scores: is_active.then(|| SoundScores { scores: scores.into(), embedding: [1.0, 2.0].into() }),
        }
    }

    fn stamp(monotonic_ms: i64) -> Stamp {
        Stamp { monotonic_ms, utc: Timestamp::from_millis(monotonic_ms), quality: ClockQuality::Network }
    }
}

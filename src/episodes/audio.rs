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

    /// The scores and peak level heard in the event that is open, for moments: its class and since when.
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

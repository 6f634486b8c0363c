//! Notices that episodes of several modalities began at one time, and makes a moment of them.
//!
//! ```text
//!  audio   ....|====        starts within 5 s of each other → one moment,
//!  visual  ......|=======   at the later start, at most one in 10 min
//! ```
//!
//! In: the starts of episodes with what they observed, in any order and possibly late (a stay is known
//! only after five minutes). Out: moments, a little after the later start so that both parts are known.
//! Never: I/O, the clock.

use crate::domain::modality::Modality;
use crate::domain::time::Stamp;
use crate::episodes::moment::Moment;
use std::collections::VecDeque;

/// Starts remembered for late comers; older ones go first.
const STARTS_MAX: usize = 64;

/// When a moment is made without being asked for.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Starts this close together belong to one moment, in seconds.
    pub together_s: u32,
    /// At most one such moment in this many seconds.
    pub pause_s: u32,
    /// Waiting time after the later start, so that its first observations are in, in seconds.
    pub settle_s: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { together_s: 5, pause_s: 600, settle_s: 2 }
    }
}

/// An episode began.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// What it is about.
    pub modality: Modality,
    /// When it began.
    pub at: Stamp,
    /// What it has observed so far.
    pub parts: Moment,
}

/// Binds starts into moments.
#[derive(Debug)]
pub struct Coincidences {
    config: Config,
    starts: VecDeque<Start>,
    settling: Option<(Stamp, Moment)>,
    ready: Option<(Stamp, Moment)>,
    last_ms: Option<i64>,
}

impl Coincidences {
    /// Knows of no start yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, starts: VecDeque::new(), settling: None, ready: None, last_ms: None }
    }

    /// Takes the start of an episode.
    pub fn handle_start(&mut self, start: Start) {
        let together_ms = i64::from(self.config.together_s) * 1_000;
        if let Some((at, moment)) = &mut self.settling {
            if start.at.millis_since(*at).abs() <= together_ms {
                fill(moment, &start.parts);
            }
        } else {
            let partner =
                self.starts.iter().rev().find(|other| {
                    other.modality != start.modality && start.at.millis_since(other.at).abs() <= together_ms
                });
            if let Some(other) = partner {
                let at = start.at.max(other.at);
                if self.is_due_again(at) {
                    let mut moment = other.parts.clone();
                    fill(&mut moment, &start.parts);
                    self.settling = Some((at, moment));
                }
            }
        }
        self.starts.push_back(start);
        if self.starts.len() > STARTS_MAX {
            self.starts.pop_front();
        }
    }

    fn is_due_again(&self, at: Stamp) -> bool {
        let pause_ms = i64::from(self.config.pause_s) * 1_000;
        self.last_ms.is_none_or(|last_ms| at.monotonic_ms - last_ms >= pause_ms)
    }

    /// When [`Self::handle_timeout`] has something to do, monotonic.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        self.settling.as_ref().map(|(at, _)| at.monotonic_ms + i64::from(self.config.settle_s) * 1_000)
    }

    /// Tells the time.
    pub fn handle_timeout(&mut self, now: Stamp) {
        if self.poll_timeout().is_some_and(|due_ms| due_ms <= now.monotonic_ms) {
            self.finish();
        }
    }

    /// Settles at once whatever is still waiting.
    pub fn finish(&mut self) {
        if let Some((at, moment)) = self.settling.take() {
            self.last_ms = Some(at.monotonic_ms);
            self.ready = Some((at, moment));
        }
    }

    /// The moment that is ready.
    pub fn poll_moment(&mut self) -> Option<(Stamp, Moment)> {
        self.ready.take()
    }
}

/// Adds to `moment` what it does not have yet.
pub fn fill(moment: &mut Moment, more: &Moment) {
    let more = more.clone();
    moment.person = moment.person.take().or(more.person);
    moment.transcript = moment.transcript.take().or(more.transcript);
    moment.sound_class = moment.sound_class.take().or(more.sound_class);
    moment.recording_path = moment.recording_path.take().or(more.recording_path);
    moment.has_image |= more.has_image;
    moment.image_path = moment.image_path.take().or(more.image_path);
    if moment.faces.is_empty() {
        moment.faces = more.faces;
    }
    if moment.objects.is_empty() {
        moment.objects = more.objects;
    }
    moment.image_embedding = moment.image_embedding.take().or(more.image_embedding);
    moment.location = moment.location.take().or(more.location);
    moment.position_deg = moment.position_deg.or(more.position_deg);
    moment.text = moment.text.take().or(more.text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::ClockQuality;
    use crate::domain::time::Timestamp;

    #[test]
    fn two_modalities_within_five_seconds_make_one_moment_with_both_parts() {
        let mut coincidences = Coincidences::new(Config::default());
        coincidences.handle_start(heard(10, "Dog"));
        coincidences.handle_start(seen(14, "garden"));

        coincidences.handle_timeout(at(15));
        assert_eq!(coincidences.poll_moment(), None, "the parts have not settled");
        coincidences.handle_timeout(at(16));

        let (start, moment) = coincidences.poll_moment().unwrap();
        assert_eq!(start, at(14));
        assert_eq!(moment.content(), "Sound: Dog. Objects: garden");
    }

    #[test]
    fn one_modality_alone_or_six_seconds_apart_makes_none() {
        let mut coincidences = Coincidences::new(Config::default());
        coincidences.handle_start(heard(10, "Dog"));
        coincidences.handle_start(heard(12, "Cat"));
        coincidences.handle_start(seen(18, "garden"));

        coincidences.finish();

        assert_eq!(coincidences.poll_moment(), None);
    }

    #[test]
    fn at_most_one_moment_in_ten_minutes() {
        let mut coincidences = Coincidences::new(Config::default());
        let mut moments = Vec::new();
        for second in (0..1_300).step_by(50) {
            coincidences.handle_start(heard(second, "Dog"));
            coincidences.handle_start(seen(second, "garden"));
            coincidences.handle_timeout(at(second + 2));
            moments.extend(coincidences.poll_moment().map(|(start, _)| start.monotonic_ms / 1_000));
        }

        assert_eq!(moments, [0, 600, 1_200]);
    }

    #[test]
    fn a_start_that_becomes_known_late_still_joins() {
        let mut coincidences = Coincidences::new(Config::default());
        coincidences.handle_start(heard(10, "Dog"));
        coincidences.handle_start(heard(200, "Cat"));
        let parts = Moment { location: Some("Kitchen".into()), ..Moment::default() };
        coincidences.handle_start(Start { modality: Modality::Spatial, at: at(12), parts });

        coincidences.handle_timeout(at(320));

        let (start, moment) = coincidences.poll_moment().unwrap();
        assert_eq!((start, moment.content().as_str()), (at(12), "Sound: Dog. Location: Kitchen"));
    }

    fn at(second: i64) -> Stamp {
        let utc = Timestamp::from_millis(second * 1_000);
        Stamp { monotonic_ms: second * 1_000, utc, quality: ClockQuality::Network }
    }

    fn heard(second: i64, class: &str) -> Start {
        let parts = Moment { sound_class: Some(class.into()), ..Moment::default() };
        Start { modality: Modality::Audio, at: at(second), parts }
    }

    fn seen(second: i64, label: &str) -> Start {
        let parts = Moment { has_image: true, objects: vec![label.into()], ..Moment::default() };
        Start { modality: Modality::Visual, at: at(second), parts }
    }
}

//! Hears: joins level, spectrum, gate, log-mel and classifier for one microphone.
//!
//! In: chunks of sound as the device delivers them, and losses. Out: one [`SoundObservation`] per hop of
//! 0.48 s, in order, the same ones however the sound was cut into chunks.
//!
//! Chunks that follow each other form a run. A loss, another sample rate, or a chunk that does not begin
//! where the last one ended starts another run; a step of the wall clock alone does not. A classifier is
//! asked about the window (0.975 s) that begins at each hop for which the gate is open, several windows
//! at once where they follow each other. Without a classifier everything but the scores is the same.
//!
//! Never: files, models, the clock.

mod run;
mod signal;

use crate::domain::disposition::Disposition;
use crate::domain::id::SourceId;
use crate::domain::observation::sound::Signal;
use crate::domain::observation::sound::SoundObservation;
use crate::domain::observation::sound::SoundScores;
use crate::domain::observation::sound::dbfs_of_mean_square;
use crate::domain::reading::SoundChunk;
use crate::domain::time::Stamp;
use crate::perception::gate::Gate;
use crate::perception::hearing::run::Run;
use crate::perception::level;
use crate::perception::log_mel::FRAME_SAMPLES;
use crate::perception::log_mel::HOP_FRAMES;
use crate::perception::log_mel::LogMel;
use crate::perception::log_mel::MEL_BANDS;
use crate::perception::log_mel::MelMatrix;
use crate::perception::log_mel::WINDOW_SAMPLES;
use crate::perception::log_mel::WINDOW_VALUES;
use crate::perception::pcm::ChannelMap;
use crate::perception::pcm::Mono;
use crate::perception::pcm::PcmError;
use crate::perception::pcm::to_mono;
use crate::perception::resample::RateError;
use crate::perception::spectrum::Analyzer;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

/// Samples of a block whose level the gate looks at (0.12 s): short enough that a click stands out.
const GATE_BLOCK_SAMPLES: usize = 1_920;

/// Settings of hearing.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Config {
    /// The channels to listen to, counted from 0; their mean is taken. Empty: the mean of all.
    pub channel_map: ChannelMap,
    /// A chunk that comes this many milliseconds sooner or later than the ones before it say starts a new run.
    pub discontinuity_ms: i64,
    /// Windows given to the classifier at once, 1 to 4. More cost less each but come later (0.48 s each).
    pub windows_max: usize,
    /// The level gate.
    pub gate: crate::perception::gate::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            channel_map: ChannelMap::default(),
            discontinuity_ms: 50,
            windows_max: 4,
            gate: crate::perception::gate::Config::default(),
        }
    }
}

/// Names what is heard in a window. YAMNet is one; tests have others.
pub trait WindowClassifier: Send {
    /// One answer per window, in order. Each window is 96 frames of 64 log-mel values, and the answers
    /// must not depend on how many windows are given at once.
    ///
    /// # Errors
    /// Any; the windows then go without scores.
    fn classify(&mut self, windows: &[&[f32]]) -> Result<Vec<SoundScores>, ClassifierFailure>;
}

/// A classifier that several microphones share.
impl<C: WindowClassifier> WindowClassifier for Arc<Mutex<C>> {
    fn classify(&mut self, windows: &[&[f32]]) -> Result<Vec<SoundScores>, ClassifierFailure> {
        self.lock().unwrap_or_else(PoisonError::into_inner).classify(windows)
    }
}

/// Why a classifier gave no answer.
pub type ClassifierFailure = Box<dyn std::error::Error + Send + Sync>;

/// What went wrong with a chunk. Hearing goes on with the next one in each case.
#[derive(Debug, thiserror::Error)]
pub enum HearingError {
    /// The chunk was left out; the run before it has ended.
    #[error(transparent)]
    Chunk(#[from] PcmError),
    /// The chunk was left out; the run before it has ended.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// The observations are there, but without scores.
    #[error("the sound classifier failed: {0}")]
    Classifier(#[source] ClassifierFailure),
    /// The observations are there, but without scores.
    #[error("the sound classifier gave {found} answers for {wanted} windows")]
    AnswersMissing {
        /// Windows asked about.
        wanted: usize,
        /// Answers given.
        found: usize,
    },
}

impl HearingError {
    /// What the caller should do.
    #[must_use]
    pub fn disposition(&self) -> Disposition {
        match self {
            Self::Chunk(error) => error.disposition(),
            Self::Rate(_) => Disposition::SetAside,
            Self::Classifier(_) | Self::AnswersMissing { .. } => Disposition::Degrade,
        }
    }
}

/// What hearing has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HearingCounts {
    /// Runs begun.
    pub runs: u64,
    /// Chunks left out because they could not be used.
    pub chunks_refused: u64,
    /// Frames with a NaN or infinite value.
    pub frames_invalid: u64,
    /// Windows the classifier answered for.
    pub windows_classified: u64,
    /// Hops that the gate spared the classifier.
    pub windows_spared: u64,
    /// Windows the classifier failed on.
    pub windows_failed: u64,
}

/// Hears through one microphone.
pub struct SoundPerception {
    config: Config,
    classifier: Option<Box<dyn WindowClassifier>>,
    log_mel: LogMel,
    analyzer: Analyzer,
    gate: Gate,
    mono: Mono,
    run: Option<Run>,
    /// Measured hops, of which the first may still wait for their scores.
    pending: VecDeque<Pending>,
    batch: Vec<Vec<f32>>,
    /// The newest window, whose second half the next one begins with: its hop and its values.
    last_window: Option<(u64, Vec<f32>)>,
    ready: VecDeque<SoundObservation>,
    counts: HearingCounts,
}

struct Pending {
    hop: u64,
    observation: SoundObservation,
    state: WindowState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WindowState {
    /// Its window is not complete.
    Open,
    /// Its window lies in the batch.
    Batched,
    /// It has its scores, or will never have any.
    Settled,
}

impl SoundPerception {
    /// Hearing by those settings; without a classifier observations carry no scores.
    #[must_use]
    pub fn new(config: Config, matrix: MelMatrix, classifier: Option<Box<dyn WindowClassifier>>) -> Self {
        Self {
            gate: Gate::new(config.gate),
            config,
            classifier,
            log_mel: LogMel::new(matrix),
            analyzer: Analyzer::new(),
            mono: Mono::default(),
            run: None,
            pending: VecDeque::new(),
            batch: Vec::new(),
            last_window: None,
            ready: VecDeque::new(),
            counts: HearingCounts::default(),
        }
    }

    /// Takes a chunk whose first frame was captured at `captured_at`.
    ///
    /// # Errors
    /// [`HearingError`]; whatever can be heard in spite of it comes out of [`Self::poll_observation`].
    pub fn handle_chunk(
        &mut self,
        source: &SourceId,
        captured_at: Stamp,
        chunk: &SoundChunk,
    ) -> Result<(), HearingError> {
        let mut mono = std::mem::take(&mut self.mono);
        let taken = self.take_chunk(source, captured_at, chunk, &mut mono);
        self.mono = mono;
        taken
    }

    fn take_chunk(
        &mut self,
        source: &SourceId,
        captured_at: Stamp,
        chunk: &SoundChunk,
        mono: &mut Mono,
    ) -> Result<(), HearingError> {
        if let Err(error) = to_mono(chunk, &self.config.channel_map, mono) {
            self.counts.chunks_refused += 1;
            self.finish()?;
            return Err(error.into());
        }
        self.counts.frames_invalid += mono.invalid_frames.len() as u64;
        let rate_hz = chunk.sample_rate_hz;
        let follows = |run: &Run| run.is_followed_by(source, captured_at, rate_hz, self.config.discontinuity_ms);
        let mut ended = Ok(());
        if !self.run.as_ref().is_some_and(follows) {
            ended = self.finish();
            self.run = Some(
                Run::start(source.clone(), captured_at, rate_hz).inspect_err(|_| self.counts.chunks_refused += 1)?,
            );
            self.counts.runs += 1;
        }
        if let Some(run) = &mut self.run {
            run.push(captured_at, mono);
        }
        ended.and(self.advance(false))
    }

    /// Nothing was delivered for a while: the run ends here.
    ///
    /// # Errors
    /// As for [`Self::finish`].
    pub fn handle_loss(&mut self) -> Result<(), HearingError> {
        self.finish()
    }

    /// Ends the run: what is left of it is observed, a window with at least half its sound being filled
    /// up with zeros. Another chunk may follow.
    ///
    /// # Errors
    /// [`HearingError::Classifier`] or [`HearingError::AnswersMissing`].
    pub fn finish(&mut self) -> Result<(), HearingError> {
        let Some(run) = &mut self.run else { return Ok(()) };
        run.end();
        let advanced = self.advance(true);
        self.run = None;
        self.last_window = None;
        advanced
    }

    /// The next hop, in order of time.
    pub fn poll_observation(&mut self) -> Option<SoundObservation> {
        self.ready.pop_front()
    }

    /// What was done so far.
    #[must_use]
    pub const fn counts(&self) -> HearingCounts {
        self.counts
    }

    /// Measures the hops that are complete, then settles their windows.
    fn advance(&mut self, is_over: bool) -> Result<(), HearingError> {
        let Some(mut run) = self.run.take() else { return Ok(()) };
        while let Some(hop) = run.next_hop(is_over) {
            self.measure(&run, hop);
        }
        let settled = self.settle_windows(&run, is_over);
        let first_needed = self.pending.front().map_or_else(|| run.hops_taken(), |pending| pending.hop);
        run.forget_before(first_needed);
        self.run = Some(run);
        settled
    }

    fn measure(&mut self, run: &Run, hop: run::Hop) {
        let samples = run.samples_of(&hop);
        let level = level::measure(samples);
        let mut observation = SoundObservation {
            source: run.source().clone(),
            start: run.stamp_at(hop.start),
            end: run.stamp_at(hop.start + samples.len() as u64),
            mean_square: 0.0,
            peak: level.peak,
            band_mean_square: Default::default(),
            peaks: Vec::new(),
            is_active: false,
            signal: hop.signal,
            scores: None,
        };
        if hop.signal == Signal::Absent {
            self.gate.handle_no_signal();
        } else {
            let spectrum = self.analyzer.analyze(samples);
            observation.mean_square = level.mean_square;
            observation.band_mean_square = spectrum.band_mean_square;
            observation.peaks = spectrum.peaks;
            observation.is_active = self.gate.handle_hop(&block_levels(samples));
        }
        self.pending.push_back(Pending { hop: hop.index, observation, state: WindowState::Open });
    }

    fn settle_windows(&mut self, run: &Run, is_over: bool) -> Result<(), HearingError> {
        let mut outcome = Ok(());
        let mut next = self.pending.iter().take_while(|pending| pending.state != WindowState::Open).count();
        while next < self.pending.len() {
            let (hop, is_active) = (self.pending[next].hop, self.pending[next].observation.is_active);
            let state = if is_active && self.classifier.is_some() {
                match run.window(hop, is_over) {
                    run::Window::Incomplete => break,
                    run::Window::TooShort => WindowState::Settled,
                    run::Window::Samples(samples) => {
                        let window = self.log_mel_window(hop, &samples);
                        self.batch.push(window);
                        WindowState::Batched
                    }
                }
            } else {
                self.counts.windows_spared += u64::from(self.classifier.is_some());
                WindowState::Settled
            };
            self.pending[next].state = state;
            next += 1;
            if state == WindowState::Settled || self.batch.len() >= self.config.windows_max.max(1) {
                outcome = outcome.and(self.classify_batch());
                next = 0;
                self.give_out();
            }
        }
        if is_over {
            outcome = outcome.and(self.classify_batch());
        }
        self.give_out();
        outcome
    }

    /// The log-mel values of a window, its first half taken from the window before where there was one.
    fn log_mel_window(&mut self, hop: u64, samples: &[f32]) -> Vec<f32> {
        let mut values = Vec::with_capacity(WINDOW_VALUES);
        let mut first_sample = 0;
        if let Some((last_hop, last)) = &self.last_window
            && last_hop + 1 == hop
        {
            values.extend_from_slice(&last[HOP_FRAMES * MEL_BANDS..]);
            first_sample = crate::perception::log_mel::HOP_SAMPLES;
        }
        self.log_mel.extend(&samples[first_sample..], &mut values);
        debug_assert_eq!(values.len(), WINDOW_VALUES, "a window has {WINDOW_SAMPLES} samples");
        self.last_window = Some((hop, values.clone()));
        values
    }

    fn classify_batch(&mut self) -> Result<(), HearingError> {
        let windows = std::mem::take(&mut self.batch);
        let Some(classifier) = &mut self.classifier else { return Ok(()) };
        if windows.is_empty() {
            return Ok(());
        }
        let views: Vec<&[f32]> = windows.iter().map(Vec::as_slice).collect();
        let answers = classifier.classify(&views).map_err(HearingError::Classifier).and_then(|answers| {
            let (wanted, found) = (views.len(), answers.len());
            if wanted == found { Ok(answers) } else { Err(HearingError::AnswersMissing { wanted, found }) }
        });
        let count = if answers.is_ok() { &mut self.counts.windows_classified } else { &mut self.counts.windows_failed };
        *count += views.len() as u64;
        let (answers, outcome) = match answers {
            Ok(answers) => (answers, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        let mut answers = answers.into_iter();
        for pending in self.pending.iter_mut().filter(|pending| pending.state == WindowState::Batched) {
            pending.observation.scores = answers.next();
            pending.state = WindowState::Settled;
        }
        outcome
    }

    fn give_out(&mut self) {
        while self.pending.front().is_some_and(|pending| pending.state == WindowState::Settled) {
            self.ready.extend(self.pending.pop_front().map(|pending| pending.observation));
        }
    }
}

impl std::fmt::Debug for SoundPerception {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SoundPerception").field("counts", &self.counts).finish_non_exhaustive()
    }
}

/// dBFS of each block; a rest too short to be measured counts only where there is nothing else.
fn block_levels(samples: &[f32]) -> Vec<f64> {
    let blocks = samples.chunks(GATE_BLOCK_SAMPLES).enumerate();
    let measured = blocks.filter(|(index, block)| *index == 0 || block.len() >= FRAME_SAMPLES);
    measured.map(|(_, block)| dbfs_of_mean_square(level::measure(block).mean_square)).collect()
}

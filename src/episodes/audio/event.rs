//! One sound event while it lasts, and the draft it becomes.

use crate::domain::episode::Draft;
use crate::domain::episode::Embedding;
use crate::domain::episode::EmbeddingKind;
use crate::domain::episode::Metadata;
use crate::domain::episode::unit_length;
use crate::domain::id::SourceId;
use crate::domain::modality::Modality;
use crate::domain::observation::sound::BAND_COUNT;
use crate::domain::observation::sound::SoundObservation;
use crate::domain::observation::sound::SoundScores;
use crate::domain::observation::sound::SpectralPeak;
use crate::domain::observation::sound::dbfs_of_mean_square;
use crate::domain::time::Stamp;
use crate::episodes::audio::Classes;
use crate::episodes::audio::Config;
use serde_json::Value;
use serde_json::json;

/// Peaks of two hops closer than this are one, in Hz or as a share of their frequency.
const SAME_PEAK_HZ: f64 = 16.0;
const SAME_PEAK_SHARE: f64 = 0.02;
/// Different peaks kept of one event; the weakest give way.
const PEAKS_KEPT_MAX: usize = 64;
/// Peaks reported.
const PEAKS_MAX: usize = 5;
/// Another class is named in the sentence from this mean score on.
const MENTION_SCORE: f64 = 0.3;
/// Other classes named in the sentence, at most.
const MENTIONS_MAX: usize = 2;

/// An event that is not over.
#[derive(Debug)]
pub(super) struct Event {
    source: SourceId,
    start: Stamp,
    end: Stamp,
    class: Option<usize>,
    /// Sums over the hops, each weighted by its length in milliseconds.
    length_ms: f64,
    mean_square: f64,
    bands: [f64; BAND_COUNT],
    peak: f32,
    peaks: Vec<Peak>,
    /// Sums over the hops with scores.
    scored: f64,
    scores: Vec<f64>,
    embedding: Vec<f64>,
}

/// A peak over several hops: its energy, and its frequency weighted by it.
#[derive(Debug, Clone, Copy)]
struct Peak {
    energy: f64,
    energy_hz: f64,
}

impl Peak {
    fn frequency_hz(self) -> f64 {
        self.energy_hz / self.energy
    }
}

impl Event {
    pub(super) fn new(first: SoundObservation, class: Option<usize>) -> Self {
        let mut event = Self {
            source: first.source.clone(),
            start: first.start,
            end: first.end,
            class,
            length_ms: 0.0,
            mean_square: 0.0,
            bands: [0.0; BAND_COUNT],
            peak: 0.0,
            peaks: Vec::new(),
            scored: 0.0,
            scores: Vec::new(),
            embedding: Vec::new(),
        };
        event.add(first);
        event
    }

    pub(super) const fn start(&self) -> Stamp {
        self.start
    }

    pub(super) const fn end(&self) -> Stamp {
        self.end
    }

    pub(super) const fn class(&self) -> Option<usize> {
        self.class
    }

    /// Gives an event of unknown class the first class recognised in it.
    pub(super) const fn name(&mut self, class: Option<usize>) {
        if self.class.is_none() {
            self.class = class;
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a hop's length in milliseconds")]
    pub(super) fn add(&mut self, hop: SoundObservation) {
        let length_ms = hop.end.millis_since(hop.start).max(0) as f64;
        self.end = hop.end;
        self.length_ms += length_ms;
        self.mean_square += length_ms * hop.mean_square;
        for (sum, band) in self.bands.iter_mut().zip(hop.band_mean_square) {
            *sum += length_ms * band;
        }
        self.peak = self.peak.max(hop.peak);
        for peak in &hop.peaks {
            self.add_peak(peak, length_ms);
        }
        if let Some(scores) = &hop.scores {
            self.add_scores(scores);
        }
    }

    fn add_peak(&mut self, peak: &SpectralPeak, length_ms: f64) {
        let frequency_hz = f64::from(peak.frequency_hz);
        let energy = 10_f64.powf(f64::from(peak.level_dbfs) / 10.0) * length_ms;
        if !(energy > 0.0 && energy.is_finite() && frequency_hz.is_finite()) {
            return;
        }
        let added = Peak { energy, energy_hz: energy * frequency_hz };
        let within_hz = SAME_PEAK_HZ.max(SAME_PEAK_SHARE * frequency_hz);
        match self.peaks.iter_mut().find(|peak| (peak.frequency_hz() - frequency_hz).abs() <= within_hz) {
            Some(peak) => {
                peak.energy += added.energy;
                peak.energy_hz += added.energy_hz;
            }
            None => self.peaks.push(added),
        }
        if self.peaks.len() > PEAKS_KEPT_MAX {
            self.peaks.sort_by(|a, b| b.energy.total_cmp(&a.energy));
            self.peaks.truncate(PEAKS_KEPT_MAX / 2);
        }
    }

    fn add_scores(&mut self, scores: &SoundScores) {
        self.scored += 1.0;
        add_to(&mut self.scores, &scores.scores);
        add_to(&mut self.embedding, &scores.embedding);
    }

    pub(super) fn into_draft(
        self,
        ordinal: u32,
        config: &Config,
        classes: Option<&Classes>,
        silence: Option<usize>,
    ) -> Draft {
        let ranked = self.ranked(config, classes, silence);
        let sound_class = ranked.first().map(|(name, _)| name.as_str());
        Draft {
            modality: Modality::Audio,
            start: self.start,
            end: self.end,
            ordinal,
            tool_name: "audio_capture",
            content: self.content(&ranked),
            metadata: self.metadata(&ranked, sound_class, classes.is_some() && self.scored > 0.0),
            embeddings: self.mean_embedding(classes).into_iter().collect(),
            facts: Vec::new(),
            media: Vec::new(),
            source: self.source,
        }
    }

    /// Classes by their mean score, best first. The one the event was opened for comes even when the
    /// mean is below the least score: it was heard, if not for long.
    fn ranked(&self, config: &Config, classes: Option<&Classes>, silence: Option<usize>) -> Vec<(String, f64)> {
        let Some(classes) = classes else { return Vec::new() };
        let mean = |class: usize| self.scores.get(class).map_or(0.0, |sum| sum / self.scored.max(1.0));
        let mut ranked: Vec<usize> = (0..self.scores.len().min(classes.names.len()))
            .filter(|class| Some(*class) != silence)
            .filter(|class| mean(*class) >= f64::from(config.class_score_min) || Some(*class) == self.class)
            .collect();
        ranked.sort_by(|a, b| mean(*b).total_cmp(&mean(*a)));
        ranked.truncate(config.classes_max);
        ranked.into_iter().map(|class| (classes.names[class].clone(), mean(class))).collect()
    }

    fn content(&self, ranked: &[(String, f64)]) -> String {
        let what = ranked.first().map_or("a sound", |(name, _)| name.as_str());
        let seconds = (self.end.millis_since(self.start) + 500) / 1_000;
        let duration = if seconds <= 1 { "1 second".to_owned() } else { format!("{seconds} seconds") };
        let mentioned = ranked.iter().skip(1).filter(|(_, score)| *score >= MENTION_SCORE).take(MENTIONS_MAX);
        let others: Vec<&str> = mentioned.map(|(name, _)| name.as_str()).collect();
        match others.as_slice() {
            [] => format!("Heard {what} for {duration}"),
            others => format!("Heard {what} for {duration}, with {}", others.join(" and ")),
        }
    }

    fn metadata(&self, ranked: &[(String, f64)], sound_class: Option<&str>, was_scored: bool) -> Metadata {
        let mean = |sum: f64| if self.length_ms > 0.0 { sum / self.length_ms } else { 0.0 };
        let peak = f64::from(self.peak);
        let mut metadata = Metadata::new();
        let mut put = |key: &str, value: Value| metadata.insert(key.to_owned(), value);
        put("rms_db", json!(round(dbfs_of_mean_square(mean(self.mean_square)), 2)));
        put("peak_db", json!(round(dbfs_of_mean_square(peak * peak), 2)));
        put("band_energy", self.bands.iter().map(|band| round(dbfs_of_mean_square(mean(*band)), 2)).collect());
        put("peak_frequencies", self.strongest_peaks_hz().into_iter().map(|hz| round(hz, 1)).collect());
        if let Some(sound_class) = sound_class {
            put("sound_class", json!(sound_class));
        }
        if was_scored {
            let classification = |(name, score): &(String, f64)| json!({"class": name, "score": round(*score, 4)});
            put("classifications", ranked.iter().map(classification).collect());
        }
        metadata
    }

    fn strongest_peaks_hz(&self) -> Vec<f64> {
        let mut peaks = self.peaks.clone();
        peaks.sort_by(|a, b| b.energy.total_cmp(&a.energy));
        peaks.into_iter().take(PEAKS_MAX).map(Peak::frequency_hz).collect()
    }

    fn mean_embedding(&self, classes: Option<&Classes>) -> Option<Embedding> {
        #[expect(clippy::cast_possible_truncation, reason = "sums of a few f32")]
        let sum: Vec<f32> = self.embedding.iter().map(|value| (value / self.scored.max(1.0)) as f32).collect();
        let vector = unit_length(&sum)?;
        Some(Embedding { model_id: classes?.model_id.clone(), kind: EmbeddingKind::Audio, vector })
    }
}

/// Adds `values` to `sums` place by place; values that are not finite count as 0.
fn add_to(sums: &mut Vec<f64>, values: &[f32]) {
    sums.resize(sums.len().max(values.len()), 0.0);
    for (sum, value) in sums.iter_mut().zip(values) {
        if value.is_finite() {
            *sum += f64::from(*value);
        }
    }
}

fn round(value: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (value * scale).round() / scale
}

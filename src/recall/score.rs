//! The score of a found episode (DESIGN section 5), in parts that can be shown.
//!
//! ```text
//! score = recency (0–1) + importance / 10 (0–1) + 2 · relevance (0–2) + strength bonus (0–1)
//! ```
//!
//! Relevance is the greater of two: how like the query it is (a cosine between two marks) and how well its words fit (BM25
//! over the best BM25 of the query). With filters alone it is 0.

use crate::domain::episode::EmbeddingKind;
use crate::domain::modality::DecayClass;

/// What relevance counts more than the other parts.
pub const RELEVANCE_WEIGHT: f64 = 2.0;

/// What is known of an episode without any query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// Time since its capture; below zero counts as 0.
    pub age_ms: i64,
    /// How fast it fades.
    pub decay_class: DecayClass,
    /// 0–10.
    pub importance: u8,
    /// How often searches returned it, from 1.0; `None` and less than 1 count as 1.
    pub strength: Option<f64>,
}

/// Which of the two made the relevance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RelevantBy {
    /// The words fit best.
    Words,
    /// A vector is alike.
    Likeness,
}

/// A score and its parts.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Score {
    /// The sum, 0–5.
    pub total: f64,
    /// 0–1.
    pub recency: f64,
    /// Importance over 10, 0–1.
    pub importance: f64,
    /// 0–1, before it is doubled.
    pub relevance: f64,
    /// 0–1.
    pub strength: f64,
    /// What made the relevance; `None` when it is 0.
    pub relevant_by: Option<RelevantBy>,
}

impl Standing {
    /// The same after searches returned it so many more times.
    #[must_use]
    pub fn stronger_by(self, times: u32) -> Self {
        let strength = if times == 0 {
            self.strength
        } else {
            Some(self.strength.filter(|strength| strength.is_finite()).unwrap_or(1.0).max(1.0) + f64::from(times))
        };
        Self { strength, ..self }
    }

    /// The score without any relevance, 0–3.
    #[must_use]
    pub fn worth(self) -> f64 {
        self.score(0.0, 0.0).total
    }

    /// The score of an episode whose words fit by `words` and that is alike by `likeness`, each 0–1.
    #[must_use]
    pub fn score(self, words: f64, likeness: f64) -> Score {
        let (words, likeness) = (unit(words), unit(likeness));
        let relevance = words.max(likeness);
        let by = if words >= likeness { RelevantBy::Words } else { RelevantBy::Likeness };
        let recency = self.decay_class.recency(self.age_ms);
        let importance = f64::from(self.importance.min(10)) / 10.0;
        let strength = strength_bonus(self.strength);
        Score {
            total: recency + importance + RELEVANCE_WEIGHT * relevance + strength,
            recency,
            importance,
            relevance,
            strength,
            relevant_by: (relevance > 0.0).then_some(by),
        }
    }
}

fn unit(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) }
}

/// `min(1, log2(max(1, strength)))`; no strength and 0 count as 1 (ruling 3.3).
#[must_use]
pub fn strength_bonus(strength: Option<f64>) -> f64 {
    strength.filter(|strength| !strength.is_nan()).unwrap_or(1.0).max(1.0).log2().min(1.0)
}

/// Between which cosines likeness goes from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(into = "[f64; 2]", from = "[f64; 2]")]
pub struct Marks {
    /// Up to here nothing is alike.
    pub low: f64,
    /// From here on it is the same.
    pub high: f64,
}

impl From<[f64; 2]> for Marks {
    fn from([low, high]: [f64; 2]) -> Self {
        Self { low, high }
    }
}

impl From<Marks> for [f64; 2] {
    fn from(marks: Marks) -> Self {
        [marks.low, marks.high]
    }
}

impl Marks {
    /// Likeness, 0–1.
    #[must_use]
    pub fn likeness(self, cosine: f64) -> f64 {
        let span = self.high - self.low;
        if span <= 0.0 || span.is_nan() {
            return f64::from(u8::from(cosine >= self.high));
        }
        unit((cosine - self.low) / span)
    }
}

/// The marks for each pair of kinds of vector.
///
/// CLIP's sentences and pictures lie on two sides of a gap (Liang et al. 2022, "Mind the Gap"): what belongs together has a
/// cosine of 0.2 to 0.35, while two sentences that have nothing in common already have 0.5.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Pairs {
    /// A sentence and a picture.
    pub image_text: Marks,
    /// Two sentences.
    pub text_text: Marks,
    /// Two pictures.
    pub image_image: Marks,
    /// Two sounds.
    pub audio_audio: Marks,
}

impl Default for Pairs {
    fn default() -> Self {
        Self {
            image_text: Marks { low: 0.15, high: 0.35 },
            text_text: Marks { low: 0.5, high: 1.0 },
            image_image: Marks { low: 0.5, high: 1.0 },
            audio_audio: Marks { low: 0.5, high: 1.0 },
        }
    }
}

impl Pairs {
    /// The pairs whose marks are no interval of cosines.
    fn mistakes(&self) -> Vec<&'static str> {
        let pairs = [
            ("image_text", self.image_text),
            ("text_text", self.text_text),
            ("image_image", self.image_image),
            ("audio_audio", self.audio_audio),
        ];
        let is_right = |marks: Marks| marks.low <= marks.high && marks.low >= -1.0 && marks.high <= 1.0;
        pairs.into_iter().filter(|(_, marks)| !is_right(*marks)).map(|(name, _)| name).collect()
    }
}

/// Marks of one model that differ.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct ModelMarks {
    /// The model's id.
    pub id: String,
    /// Its marks.
    #[serde(flatten)]
    pub pairs: Pairs,
}

/// `[search]` of the config.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Config {
    /// The marks of every model not named below.
    #[serde(flatten)]
    pub pairs: Pairs,
    /// Models with marks of their own.
    pub models: Vec<ModelMarks>,
}

impl Config {
    /// Values that are well-formed and still cannot be meant.
    #[must_use]
    pub fn mistakes(&self) -> Vec<String> {
        let general = self.pairs.mistakes().into_iter().map(str::to_owned);
        let single = self.models.iter().enumerate().flat_map(|(number, model)| {
            model.pairs.mistakes().into_iter().map(move |name| format!("models[{number}].{name}"))
        });
        general.chain(single).map(|name| format!("{name} must be two cosines, the lower one first")).collect()
    }

    /// The marks for comparing vectors of these kinds of one model; `None` for kinds that share no space.
    #[must_use]
    pub fn marks(&self, model_id: &str, one: EmbeddingKind, other: EmbeddingKind) -> Option<Marks> {
        let pairs = self.models.iter().find(|model| model.id == model_id).map_or(&self.pairs, |model| &model.pairs);
        match (one, other) {
            (EmbeddingKind::Image, EmbeddingKind::Image) => Some(pairs.image_image),
            (EmbeddingKind::Text, EmbeddingKind::Text) => Some(pairs.text_text),
            (EmbeddingKind::Audio, EmbeddingKind::Audio) => Some(pairs.audio_audio),
            (EmbeddingKind::Image, EmbeddingKind::Text) | (EmbeddingKind::Text, EmbeddingKind::Image) => {
                Some(pairs.image_text)
            }
            (EmbeddingKind::Audio, _) | (_, EmbeddingKind::Audio) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEK_MS: i64 = 7 * 24 * 3_600_000;

    fn standing(decay_class: DecayClass, age_ms: i64) -> Standing {
        Standing { age_ms, decay_class, importance: 5, strength: None }
    }

    #[test]
    fn recency_after_seven_days_and_in_the_future() {
        let cases = [
            (DecayClass::Daily, WEEK_MS, 0.0078),
            (DecayClass::Procedural, WEEK_MS, 0.8507),
            (DecayClass::Permanent, WEEK_MS, 1.0),
            (DecayClass::Session, -5_000, 1.0),
        ];
        for (class, age_ms, recency) in cases {
            assert!((standing(class, age_ms).score(0.0, 0.0).recency - recency).abs() < 1e-4, "{class:?}");
        }
    }

    #[test]
    fn the_bonus_of_strength_is_the_table_of_the_issue() {
        let strengths = [None, Some(0.0), Some(1.0), Some(2.0), Some(3.0), Some(4.0), Some(10.0)];

        assert_eq!(strengths.map(strength_bonus), [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!(strength_bonus(Some(f64::NAN)), 0.0);
        assert!((strength_bonus(Some(1.5)) - 1.5_f64.log2()).abs() < 1e-12);
    }

    #[test]
    fn the_greater_relevance_counts_twice() {
        let score = standing(DecayClass::Permanent, 0).score(0.25, 0.75);

        assert_eq!(score.relevant_by, Some(RelevantBy::Likeness));
        assert!((score.total - (1.0 + 0.5 + 1.5)).abs() < 1e-12, "{score:?}");
        assert_eq!(standing(DecayClass::Permanent, 0).score(f64::NAN, 0.0).relevant_by, None);
    }

    #[test]
    fn cosines_lie_between_the_marks_of_their_pair() {
        let config = Config {
            models: vec![ModelMarks {
                id: "other".to_owned(),
                pairs: Pairs { image_text: Marks { low: 0.0, high: 0.5 }, ..Pairs::default() },
            }],
            ..Config::default()
        };
        let likeness = |model: &str, one, other, cosine| config.marks(model, one, other).unwrap().likeness(cosine);

        assert!((likeness("clip", EmbeddingKind::Text, EmbeddingKind::Image, 0.25) - 0.5).abs() < 1e-12);
        assert!((likeness("other", EmbeddingKind::Text, EmbeddingKind::Image, 0.25) - 0.5).abs() < 1e-12);
        assert!((likeness("other", EmbeddingKind::Image, EmbeddingKind::Text, 0.5) - 1.0).abs() < 1e-12);
        assert!((likeness("clip", EmbeddingKind::Text, EmbeddingKind::Text, 0.4)).abs() < 1e-12);
        assert_eq!(config.marks("clip", EmbeddingKind::Text, EmbeddingKind::Audio), None);
        assert_eq!(config.mistakes(), [""; 0]);
        assert!((Marks { low: 0.3, high: 0.3 }.likeness(0.3) - 1.0).abs() < 1e-12, "marks in one place are a step");
    }

    #[test]
    fn marks_that_are_no_interval_of_cosines_are_mistakes() {
        let wrong = Pairs { image_image: Marks { low: 0.5, high: 0.4 }, ..Pairs::default() };
        let beyond = Pairs { audio_audio: Marks { low: 0.0, high: 7.0 }, ..Pairs::default() };
        let models = vec![ModelMarks { id: "m".to_owned(), pairs: beyond }];

        let mistakes = Config { pairs: wrong, models }.mistakes();

        assert_eq!(mistakes.len(), 2);
        assert!(mistakes[0].starts_with("image_image must be two cosines"), "{mistakes:?}");
        assert!(mistakes[1].starts_with("models[0].audio_audio must"), "{mistakes:?}");
    }
}

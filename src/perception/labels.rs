//! Zero-shot labels: which words of a vocabulary fit a picture.
//!
//! In: the vectors of the vocabulary's sentences (computed once by the text tower) and of a picture. Out: labels with
//! their shares, best first. Pure.

use std::sync::Arc;

use crate::domain::observation::scene::LabelScore;
use crate::domain::time::Stamp;
use crate::perception::clip::ClipError;
use crate::perception::clip::Config;
use crate::perception::text::TextTower;

/// Cosines are multiplied by this before the softmax: CLIP's trained logit scale, which its authors cap at 100 and which all
/// published models reach.
pub const LOGIT_SCALE: f32 = 100.0;

/// The vocabulary of a config as vectors.
#[derive(Debug, Clone, Default)]
pub struct Vocabulary {
    labels: Vec<(String, Arc<[f32]>)>,
    labels_max: usize,
    score_min: f32,
}

impl Vocabulary {
    /// Embeds every word of the config, put into its prompt.
    ///
    /// # Errors
    /// [`ClipError`] when the text tower cannot be used: pictures then go without labels.
    pub fn embed(config: &Config, tower: &mut TextTower, now: Stamp) -> Result<Self, ClipError> {
        let labels = config
            .vocabulary
            .iter()
            .map(|label| Ok((label.clone(), tower.embed(&config.prompt.replace("{}", label), now)?)))
            .collect::<Result<_, ClipError>>()?;
        Ok(Self { labels, labels_max: config.labels_max, score_min: config.label_score_min })
    }

    /// The labels whose share reaches the minimum, best first. Shares are a softmax over the whole vocabulary.
    #[must_use]
    pub fn scores(&self, image: &[f32]) -> Vec<LabelScore> {
        let logits: Vec<f32> = self.labels.iter().map(|(_, vector)| LOGIT_SCALE * dot(vector, image)).collect();
        let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let shares: Vec<f32> = logits.iter().map(|logit| (logit - highest).exp()).collect();
        let total: f32 = shares.iter().sum();
        let mut scores: Vec<LabelScore> = self
            .labels
            .iter()
            .zip(shares)
            .map(|((label, _), share)| LabelScore { label: label.clone(), score: share / total })
            .filter(|label| label.score >= self.score_min)
            .collect();
        scores.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.label.cmp(&b.label)));
        scores.truncate(self.labels_max);
        scores
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_softmax_with_scale_100() {
        let vocabulary = vocabulary(&[("a dog", [1.0, 0.0]), ("a cat", [0.6, 0.8])], 3, 0.0);

        // Cosines 0.30 and 0.29 with the scale of 100 are one apart: e / (e + 1).
        let scores = vocabulary.scores(&[0.30, (0.29 - 0.18) / 0.8]);

        assert_eq!(scores[0].label, "a dog");
        assert!((scores[0].score - 0.731_059).abs() < 1e-4, "{}", scores[0].score);
    }

    #[test]
    fn weak_labels_and_those_beyond_the_maximum_are_left_out() {
        let words = [("a", [1.0, 0.0]), ("b", [1.0, 0.0]), ("c", [1.0, 0.0]), ("d", [0.0, 1.0])];

        let labels = |max, min| vocabulary(&words, max, min).scores(&[1.0, 0.0]).len();

        assert_eq!([labels(9, 0.0), labels(9, 0.1), labels(2, 0.1), labels(9, 0.5)], [4, 3, 2, 0]);
        assert!(Vocabulary::default().scores(&[1.0, 0.0]).is_empty());
    }

    fn vocabulary(words: &[(&str, [f32; 2])], labels_max: usize, score_min: f32) -> Vocabulary {
        let labels = words.iter().map(|(word, vector)| ((*word).to_owned(), Arc::from(&vector[..]))).collect();
        Vocabulary { labels, labels_max, score_min }
    }
}

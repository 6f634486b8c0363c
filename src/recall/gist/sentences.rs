//! Chooses the few sentences that stand for many.
//!
//! In: what was said, noted and reported, sentence by sentence. Out: the chosen ones in order of time.
//!
//! ```text
//! value = importance / 10 × (0.6 + 0.4 × centrality)      centrality: LexRank, the best of all is 1
//! ```
//!
//! LexRank (Erkan and Radev 2004) is the `PageRank` of sentences that resemble each other: what many others say, too,
//! stands for them. A sentence too like one already chosen is passed over. At most [`KEPT_MAX`] sentences are held: of
//! more, the most important ones, and among equals a fair sample (by the bits of their ids), so that the choice does not
//! depend on the order they come in. Never: a sentence nobody wrote.

use crate::domain::id::EpisodeId;
use crate::domain::time::Timestamp;
use crate::recall::gist::words;
use std::collections::BTreeMap;
use std::collections::BTreeSet;

/// Sentences held; comparing each with each stays far below a millisecond a pair.
const KEPT_MAX: usize = 200;

/// Bytes of one episode that are looked at, from its beginning.
const BYTES_MAX: usize = 8_192;

/// Sentences taken of one episode.
const OF_ONE_MAX: usize = 12;

/// Letters of a chosen sentence; a longer one is cut.
const LETTERS_MAX: usize = 180;

/// Fewest words of a sentence that is no quotation.
const WORDS_MIN: usize = 4;

/// Least share of letters and blanks in a sentence; numbers and code read badly.
const LETTER_SHARE_MIN: f64 = 0.75;

/// Sentences this alike (cosine of their rarity-weighted words) say the same.
const ALIKE: f64 = 0.5;

/// Least likeness that counts as resembling, as in the paper.
const RESEMBLES: f64 = 0.1;

/// The paper's damping.
const DAMPING: f64 = 0.85;

/// Rounds of `PageRank`; 0.85^40 is 0.0015, less than the difference that decides.
const ROUNDS: usize = 40;

/// Part of a sentence's value that its centrality decides.
const CENTRALITY_SHARE: f64 = 0.4;

/// Words without meaning of their own.
const STOP_WORDS: [&str; 60] = [
    "a", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did", "do", "for", "from", "had",
    "has", "have", "he", "her", "his", "how", "if", "in", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or",
    "our", "she", "so", "that", "the", "their", "them", "then", "there", "they", "this", "to", "up", "was", "we",
    "were", "what", "when", "which", "who", "will", "with", "would", "you", "your",
];

/// A sentence with where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sentence {
    pub(super) id: EpisodeId,
    pub(super) at: Timestamp,
    pub(super) importance: u8,
    pub(super) text: String,
    /// Whether somebody said it.
    pub(super) is_quotation: bool,
}

/// The sentences held: by importance, then by the bits of the id, then as they follow each other.
#[derive(Debug, Default)]
pub(super) struct Sentences {
    kept: BTreeMap<(u8, u128, usize), Sentence>,
}

impl Sentences {
    /// Takes the sentences of a text. `model` says whose they are; its text is not looked at.
    pub(super) fn add(&mut self, text: &str, model: &Sentence) {
        let found = split(head(text)).into_iter().filter(|sentence| is_readable(sentence, model.is_quotation));
        for (number, sentence) in found.take(OF_ONE_MAX).enumerate() {
            let text = words::cut(&sentence, LETTERS_MAX);
            let key = (model.importance, model.id.as_uuid().as_u128(), number);
            self.kept.insert(key, Sentence { text, ..model.clone() });
            if self.kept.len() > KEPT_MAX {
                self.kept.pop_first();
            }
        }
    }

    /// The best `count`, in order of time.
    pub(super) fn choose(&self, count: usize) -> Vec<Sentence> {
        let sentences: Vec<&Sentence> = self.kept.values().collect();
        let vectors = vectors(&sentences);
        let centralities = centralities(&vectors);
        let value = |index: usize| {
            let centrality = centralities.get(index).copied().unwrap_or_default();
            f64::from(sentences[index].importance) * (1.0 - CENTRALITY_SHARE + CENTRALITY_SHARE * centrality)
        };
        let mut order: Vec<usize> = (0..sentences.len()).collect();
        order.sort_by(|one, other| {
            let key = |index: usize| (sentences[index].at, sentences[index].id);
            value(*other).total_cmp(&value(*one)).then_with(|| key(*one).cmp(&key(*other))).then_with(|| one.cmp(other))
        });
        let mut chosen: Vec<usize> = Vec::new();
        for index in order {
            if chosen.len() < count && chosen.iter().all(|other| likeness(&vectors[index], &vectors[*other]) < ALIKE) {
                chosen.push(index);
            }
        }
        chosen.sort_by_key(|index| (sentences[*index].at, *index));
        chosen.into_iter().map(|index| sentences[index].clone()).collect()
    }
}

fn head(text: &str) -> &str {
    let mut end = text.len().min(BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Sentences end at `.`, `!` or `?` before a blank, and at line ends; not after an initial or a title (`J.`, `Dr.`).
fn split(text: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    for line in text.lines() {
        let mut from = 0;
        for (at, mark) in line.char_indices().filter(|(_, letter)| matches!(letter, '.' | '!' | '?')) {
            let end = at + mark.len_utf8();
            let is_last = line[end..].chars().next().is_none_or(char::is_whitespace);
            let word = line[from..at].rsplit(char::is_whitespace).next().unwrap_or_default();
            let is_title = mark == '.' && word.chars().count() <= 2 && word.chars().all(char::is_alphabetic);
            if is_last && !is_title {
                sentences.push(line[from..end].to_owned());
                from = end;
            }
        }
        sentences.push(line[from..].to_owned());
    }
    let tidy = |sentence: String| sentence.split_whitespace().collect::<Vec<_>>().join(" ");
    sentences.into_iter().map(tidy).filter(|sentence| !sentence.is_empty()).collect()
}

fn is_readable(sentence: &str, is_quotation: bool) -> bool {
    let letters = sentence.chars().filter(|letter| letter.is_alphabetic() || letter.is_whitespace()).count();
    #[expect(clippy::cast_precision_loss, reason = "a sentence is at most 8,192 bytes long")]
    let share = letters as f64 / sentence.chars().count().max(1) as f64;
    let words = sentence.split_whitespace().count();
    let words_min = if is_quotation { 1 } else { WORDS_MIN };
    words >= words_min && share >= LETTER_SHARE_MIN && !sentence.starts_with(['{', '[', '<', '|', '`'])
}

type Vector = BTreeMap<String, f64>;

/// The words of each sentence, weighted by how rare they are among all, of unit length.
#[expect(clippy::cast_precision_loss, reason = "counts of at most 200 sentences")]
fn vectors(sentences: &[&Sentence]) -> Vec<Vector> {
    let tokens: Vec<BTreeSet<String>> = sentences.iter().map(|sentence| tokens(&sentence.text)).collect();
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    tokens.iter().flatten().for_each(|token| *count.entry(token).or_default() += 1);
    let total = sentences.len() as f64;
    let weigh = |tokens: &BTreeSet<String>| {
        let weight = |token: &str| (1.0 + total / count.get(token).copied().unwrap_or(1) as f64).ln();
        let norm = tokens.iter().map(|token| weight(token).powi(2)).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
        tokens.iter().map(|token| (token.clone(), weight(token) / norm)).collect::<Vector>()
    };
    tokens.iter().map(weigh).collect()
}

fn tokens(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).map(str::to_lowercase);
    words.filter(|word| word.chars().count() >= 2 && !STOP_WORDS.contains(&word.as_str())).collect()
}

fn likeness(one: &Vector, other: &Vector) -> f64 {
    one.iter().filter_map(|(token, weight)| Some(weight * other.get(token)?)).sum()
}

/// `PageRank` over the sentences that resemble each other, the greatest scaled to 1.
fn centralities(vectors: &[Vector]) -> Vec<f64> {
    let count = vectors.len();
    let resemblance = |one: usize, other: usize| {
        let alike = if one == other { 0.0 } else { likeness(&vectors[one], &vectors[other]) };
        if alike >= RESEMBLES { alike } else { 0.0 }
    };
    let edges: Vec<Vec<f64>> =
        (0..count).map(|one| (0..count).map(|other| resemblance(one, other)).collect()).collect();
    let degrees: Vec<f64> = edges.iter().map(|row| row.iter().sum()).collect();
    let mut ranks = vec![1.0; count];
    for _ in 0..ROUNDS {
        let given: Vec<f64> =
            ranks.iter().zip(&degrees).map(|(rank, degree)| if *degree > 0.0 { rank / degree } else { 0.0 }).collect();
        let taken = |index: usize| edges[index].iter().zip(&given).map(|(edge, rank)| edge * rank).sum::<f64>();
        ranks = (0..count).map(|index| 1.0 - DAMPING + DAMPING * taken(index)).collect();
    }
    let best = ranks.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    ranks.into_iter().map(|rank| rank / best).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::DeviceId;
    use crate::domain::id::ExternalId;

    #[test]
    fn what_many_say_is_chosen_once_and_in_order_of_time() {
        let mut sentences = Sentences::default();
        let said = [
            "The review moves to Thursday afternoon.",
            "Somebody left an umbrella in the hall.",
            "We agreed that the review moves to Thursday.",
            "The budget of the project was approved.",
            "So the review is on Thursday, then.",
        ];
        for (number, text) in (0_i64..).zip(said) {
            sentences.add(text, &of(number, 5));
        }

        let chosen: Vec<String> = sentences.choose(2).into_iter().map(|sentence| sentence.text).collect();

        assert_eq!(chosen.iter().filter(|text| text.contains("Thursday")).count(), 1, "{chosen:?}");
        assert_eq!(chosen.len(), 2);
    }

    #[test]
    fn importance_outweighs_centrality() {
        let mut sentences = Sentences::default();
        for number in 0..20 {
            sentences.add(&format!("The build number {number} of the project is green again."), &of(number, 4));
        }
        sentences.add("Mother has her birthday on Sunday.", &of(50, 9));

        assert_eq!(sentences.choose(1)[0].text, "Mother has her birthday on Sunday.");
    }

    #[test]
    fn numbers_code_and_fragments_are_no_sentences() {
        let mut sentences = Sentences::default();
        let text = "{\"rms_db\": -31.2, \"peak\": 0.5}\n12:30 44.1 5512 0x3f 99 %\nDone.\nlet x = foo(bar[3], 7) + 12 * (y - 4);";
        sentences.add(text, &of(0, 5));

        assert_eq!(sentences.choose(5), []);
    }

    #[test]
    fn a_title_does_not_end_a_sentence_and_a_line_does() {
        assert_eq!(
            split("Met Dr. J. Smith today. It went well!\nNext time at 9.30 sharp"),
            ["Met Dr. J. Smith today.", "It went well!", "Next time at 9.30 sharp"]
        );
    }

    #[test]
    fn what_is_held_is_bounded_and_does_not_depend_on_the_order() {
        let text = |number: i64| format!("Sentence about the topic number {} and others.", number % 17);
        let (mut forward, mut backward) = (Sentences::default(), Sentences::default());
        (0..1_000).for_each(|number| forward.add(&text(number), &of(number, 5)));
        (0..1_000).rev().for_each(|number| backward.add(&text(number), &of(number, 5)));

        assert_eq!(forward.kept.len(), KEPT_MAX);
        assert_eq!(forward.choose(3), backward.choose(3));
    }

    fn of(number: i64, importance: u8) -> Sentence {
        let id = EpisodeId::of_external(&DeviceId::new("d"), &ExternalId::new(number.to_string()));
        let at = Timestamp::from_millis(number);
        Sentence { id, at, importance, text: String::new(), is_quotation: false }
    }
}

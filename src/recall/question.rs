//! What kind of episode a question asks for.
//!
//! In: `Who did I meet yesterday?` Out: social episodes.
//!
//! | words, in this order, others between them | kind |
//! |---|---|
//! | `who`/`whom` … `I`/`we` … meet, met, see, saw, seen, visit, visited; `who` … `with`/`near` … `me`/`us` | social |
//! | `who`/`whom` … `met` or `visited` … `me`/`us` | social |
//! | `where` … `I`/`we` (`am`, `was`, `were`, `go`, `went`, `been`, `stay`, `stayed`, at the end) | spatial |
//! | `what`/`which` … `I`/`we` … hear, heard; `did I hear` | audio |
//! | `what`/`which` … `I`/`we` … see, saw, seen; `did I see` | visual |
//!
//! Only the wearer's own experience is meant: `Who met Napoleon?` and `Where did Anna meet Bob?` ask for no kind, and
//! `Where did I meet Anna?` is answered by the meeting, not by the place alone. English only.
//! Never: a guess; when in doubt every kind is searched.

use crate::domain::modality::Modality;
use crate::recall::phrases::Word;

/// Words of a question that are looked at.
const WORDS_MAX: usize = 32;

/// The kind a question asks for, and which of its words (by place) say only that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// The kind.
    pub modality: Modality,
    /// The place of the verb; everything else in the pattern is a stop word anyway.
    pub verb: usize,
}

/// Reads the question.
#[must_use]
pub fn hint(words: &[Word]) -> Option<Hint> {
    let words: Vec<&str> = words.iter().take(WORDS_MAX).map(|word| word.text.as_str()).collect();
    let place = |from: usize, wanted: &[&str]| {
        words.iter().skip(from).position(|word| wanted.contains(word)).map(|place| place + from)
    };
    let found = |modality, verb| Some(Hint { modality, verb });
    let asks = place(0, &["who", "whom", "where", "what", "which", "did", "have"])?;
    let subject = place(asks + 1, &["i", "we"]);
    let verb = |wanted: &[&str]| subject.and_then(|subject| place(subject + 1, wanted));
    match *words.get(asks)? {
        "who" | "whom" => {
            if let Some(verb) = verb(&["meet", "met", "see", "saw", "seen", "visit", "visited"]) {
                return found(Modality::Social, verb);
            }
            let near = place(asks + 1, &["with", "near", "met", "visited"])?;
            place(near + 1, &["me", "us"]).filter(|me| *me == near + 1).and_then(|_| found(Modality::Social, near))
        }
        "where" => {
            let subject = subject?;
            let is_copula = words.get(asks + 1..subject)?.iter().any(|word| matches!(*word, "am" | "was" | "were"));
            let last = words.len() - 1;
            let is_last = subject == last && is_copula;
            let goes = verb(&["go", "went", "been", "stay", "stayed", "gone"]).filter(|verb| *verb == last);
            if is_last { found(Modality::Spatial, subject) } else { found(Modality::Spatial, goes?) }
        }
        _ => match verb(&["hear", "heard", "see", "saw", "seen"]) {
            Some(verb) if words.get(verb).is_some_and(|word| word.starts_with("hear")) => found(Modality::Audio, verb),
            Some(verb) => found(Modality::Visual, verb),
            None => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::phrases;

    #[test]
    fn a_question_about_ones_own_day_names_its_kind_and_another_does_not() {
        let cases = [
            ("Who did I meet?", Some(Modality::Social)),
            ("who have we met at the office", Some(Modality::Social)),
            ("Who did I see in the kitchen", Some(Modality::Social)),
            ("who was with me", Some(Modality::Social)),
            ("who met us", Some(Modality::Social)),
            ("Who met Napoleon?", None),
            ("who was with the president of Ghana", None),
            ("Where was I?", Some(Modality::Spatial)),
            ("where did we go", Some(Modality::Spatial)),
            ("Where did I meet Anna?", None),
            ("Where was I when Anna called", None),
            ("Where did Anna meet Bob?", None),
            ("what did I hear", Some(Modality::Audio)),
            ("What sounds have I heard in the garden?", Some(Modality::Audio)),
            ("did I hear a dog", Some(Modality::Audio)),
            ("what did I see near the station", Some(Modality::Visual)),
            ("What can be heard in Beijing?", None),
            ("I met Anna", None),
            ("who", None),
            ("where", None),
            ("", None),
        ];

        for (text, modality) in cases {
            assert_eq!(hint(&phrases::words(text)).map(|hint| hint.modality), modality, "{text}");
        }
    }

    #[test]
    fn the_verb_is_named_so_that_it_can_leave_the_query() {
        assert_eq!(hint(&phrases::words("Whom did we at last meet there?")).map(|hint| hint.verb), Some(5));
    }
}

//! Where a name stands in a text.
//!
//! In: a name, phrases that are to be kept, a text. Out: the places where the name stands, or the text without it.
//!
//! | text | is it Alice? |
//! |---|---|
//! | `Alice`, `alice`, `ALICE`, `Alice's`, `"Alice"`, `alice_1.jpg` | yes: whole word, any letter case |
//! | `Alicent`, `Malice`, `Alices`, `Alice2` | no: another word |
//! | `Port Alice` | yes, unless that phrase is kept |
//!
//! A word ends where no letter, digit or combining mark follows; scripts that write without spaces know no such end, and
//! every occurrence counts there. Composed and decomposed spellings of one letter are the same. Spaces inside a name also
//! match `_` and `-`, as file names have them.
//! Never: parts of a name (forgetting `Alice Smith` leaves `Alice`), nicknames, misspellings.

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_normalizer::DecomposingNormalizerBorrowed;
use std::ops::Range;

/// Longest name, in letters.
pub const NAME_LETTERS_MAX: usize = 200;

/// A name that cannot be looked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is no letter and no digit in it.
    #[error("{0:?} is no name: it has no letter and no digit")]
    Empty(String),
    /// It is too long to be one.
    #[error("a name has at most {NAME_LETTERS_MAX} letters")]
    TooLong,
    /// What forgotten names are replaced by.
    #[error("{0:?} is what percept writes in the place of forgotten names; it cannot be forgotten itself")]
    Placeholder(String),
}

/// A name to look for.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    /// Lower-case letters of each spelling; a space stands for any run of separators.
    spellings: Vec<Vec<char>>,
    kept: Vec<Name>,
    is_capitalised: bool,
}

impl Name {
    /// The name, with phrases in which it means something else.
    pub(crate) fn new(text: &str, kept: &[String]) -> Result<Self, NameError> {
        let text = text.trim();
        if !text.chars().any(char::is_alphanumeric) {
            return Err(NameError::Empty(text.to_owned()));
        }
        if text.chars().count() > NAME_LETTERS_MAX {
            return Err(NameError::TooLong);
        }
        let composed = ComposingNormalizerBorrowed::new_nfc().normalize(text).into_owned();
        let decomposed = DecomposingNormalizerBorrowed::new_nfd().normalize(text).into_owned();
        let mut spellings = [text, &composed, &decomposed].map(folded).to_vec();
        spellings.sort();
        spellings.dedup();
        let kept = kept.iter().map(|phrase| Self::new(phrase, &[])).collect::<Result<_, _>>()?;
        Ok(Self { spellings, kept, is_capitalised: text.chars().next().is_some_and(char::is_uppercase) })
    }

    /// Whether the whole text is the name.
    pub(crate) fn is(&self, text: &str) -> bool {
        let text = text.trim();
        self.spellings.iter().any(|spelling| match_at(text, spelling) == Some(text.len()))
    }

    /// Whether the name stands in the text.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        !self.places(text).is_empty()
    }

    /// Whether it stands there as one calls it: with a capital letter if it has one. `I will` does not call Will.
    pub(crate) fn is_called_in(&self, text: &str) -> bool {
        let begins_capital = |place: &Range<usize>| text[place.start..].starts_with(char::is_uppercase);
        self.places(text).iter().any(|place| !self.is_capitalised || begins_capital(place))
    }

    /// The text with something else in the place of the name; `None` when the name is not in it.
    pub(crate) fn replaced(&self, text: &str, with: &str) -> Option<String> {
        let places = self.places(text);
        if places.is_empty() {
            return None;
        }
        let (mut result, mut from) = (String::with_capacity(text.len()), 0);
        for place in places {
            result.push_str(&text[from..place.start]);
            result.push_str(with);
            from = place.end;
        }
        result.push_str(&text[from..]);
        Some(result)
    }

    /// Where it stands, in bytes, from left to right.
    fn places(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = self.places_anywhere(text);
        if !found.is_empty() && !self.kept.is_empty() {
            let kept: Vec<Range<usize>> = self.kept.iter().flat_map(|phrase| phrase.places_anywhere(text)).collect();
            found.retain(|place| !kept.iter().any(|kept| kept.start <= place.start && place.end <= kept.end));
        }
        found
    }

    fn places_anywhere(&self, text: &str) -> Vec<Range<usize>> {
        let (mut found, mut before, mut skip_to) = (Vec::new(), None, 0);
        for (at, letter) in text.char_indices() {
            if at >= skip_to && may_part(before, letter) {
                let end = self.spellings.iter().find_map(|spelling| whole_word_at(text, at, spelling));
                if let Some(end) = end {
                    found.push(at..end);
                    skip_to = end;
                }
            }
            before = Some(letter);
        }
        found
    }
}

/// Lower case, with one space for each run of separators.
fn folded(text: &str) -> Vec<char> {
    let mut letters: Vec<char> = Vec::new();
    for letter in text.chars().flat_map(char::to_lowercase) {
        let letter = if is_separator(letter) { ' ' } else { letter };
        if letter != ' ' || letters.last() != Some(&' ') {
            letters.push(letter);
        }
    }
    letters
}

fn is_separator(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '_' | '-')
}

/// The end of the spelling if it stands at that place as a whole word.
fn whole_word_at(text: &str, at: usize, spelling: &[char]) -> Option<usize> {
    let end = at + match_at(&text[at..], spelling)?;
    let last = text[..end].chars().next_back();
    let next = text[end..].chars().next();
    next.is_none_or(|next| may_part(last, next)).then_some(end)
}

/// How many bytes of the text's beginning are the spelling.
fn match_at(text: &str, spelling: &[char]) -> Option<usize> {
    let (mut wanted, mut letters) = (spelling.iter().copied().peekable(), text.char_indices().peekable());
    while let Some(want) = wanted.peek().copied() {
        let (_, letter) = letters.next()?;
        if want == ' ' {
            if !is_separator(letter) {
                return None;
            }
            while letters.next_if(|(_, letter)| is_separator(*letter)).is_some() {}
            wanted.next();
            continue;
        }
        // One letter may be several in lower case.
        for lower in letter.to_lowercase() {
            if wanted.next() != Some(lower) {
                return None;
            }
        }
    }
    Some(letters.peek().map_or(text.len(), |(at, _)| *at))
}

/// Whether a word may end between two letters.
fn may_part(before: Option<char>, after: char) -> bool {
    let Some(before) = before else { return true };
    !is_word(before) || !is_word(after) || (is_unspaced(before) && !is_mark(after)) || is_unspaced(after)
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || is_mark(letter)
}

/// The combining marks that decomposed Latin, Greek and Cyrillic letters have.
fn is_mark(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}')
}

/// Scripts without spaces between words, and Korean, which hangs its particles on to names.
fn is_unspaced(letter: char) -> bool {
    matches!(u32::from(letter),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF
        | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0x2_0000..=0x3_FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(text: &str) -> Name {
        Name::new(text, &[]).unwrap()
    }

    #[test]
    fn whole_words_in_any_case_are_the_name_and_longer_words_are_not() {
        let cases = [
            ("Alice", "Met Alice. Said: \"hello\"", "Met X. Said: \"hello\""),
            ("Alice", "ALICE and alice's dog", "X and X's dog"),
            ("Alice", "Alice’s hat, (Alice) [alice]", "X’s hat, (X) [X]"),
            ("Alice", "media/alice_portrait-1.jpg", "media/X_portrait-1.jpg"),
            ("Alice", "alicealice Alice", "alicealice X"),
            ("alice", "Alice", "X"),
            ("Alice Smith", "alice  smith, alice_smith.png, Alice-Smith", "X, X.png, X"),
            ("Zoë", "Zoe\u{308} and ZOË", "X and X"),
            ("Zoe\u{308}", "Zoë", "X"),
            ("O'Neill", "Mr O'Neill's", "Mr X's"),
            ("田中", "今日田中さんに会った", "今日Xさんに会った"),
            ("İpek", "İpek geldi", "X geldi"),
        ];

        for (wanted, text, expected) in cases {
            assert_eq!(name(wanted).replaced(text, "X").as_deref(), Some(expected), "{wanted} in {text}");
        }
        for (wanted, text) in [
            ("Alice", "Alicent, malice, Alices, Alice2, 2alice"),
            ("Zoe", "Zoë and Zoe\u{308}"),
            ("Alice Smith", "Alice, Smith"),
            ("Ann", "Anne Annika Hann"),
        ] {
            assert!(!name(wanted).is_in(text), "{wanted} in {text}");
        }
    }

    #[test]
    fn a_kept_phrase_keeps_its_name() {
        let name = Name::new("Alice", &["Port Alice".to_owned()]).unwrap();

        assert_eq!(name.replaced("Alice went to port alice", "X").as_deref(), Some("X went to port alice"));
        assert!(!name.is_in("Port Alice"));
    }

    #[test]
    fn a_verb_does_not_call_will() {
        assert!(name("Will").is_in("I will go") && !name("Will").is_called_in("I will go"));
        assert!(name("Will").is_called_in("Ask Will") && name("will").is_called_in("ask will"));
        assert!(name("Alice").is(" alice ") && !name("Alice").is("Alice Smith"));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        assert!(matches!(Name::new(" .. ", &[]), Err(NameError::Empty(_))));
        assert!(matches!(Name::new(&"a".repeat(201), &[]), Err(NameError::TooLong)));
    }

    proptest! {
        #[test]
        fn after_a_replacement_the_name_is_gone(wanted in "\\PC{1,12}", text in "\\PC{0,60}", at in 0_usize..60) {
            prop_assume!(!wanted.to_lowercase().contains('~'));
            let Ok(name) = Name::new(&wanted, &[]) else { return Ok(()) };
            let split = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let told = format!("{} {} {}", &text[..split], wanted.trim(), &text[split..]);

            let without = name.replaced(&told, "~");

            prop_assert!(without.is_some(), "{wanted:?} was not found in {told:?}");
            prop_assert!(!name.is_in(&without.unwrap()), "{wanted:?} is left in {told:?}");
        }
    }
}

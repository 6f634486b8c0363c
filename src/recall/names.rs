//! One name for what is only spelt differently, and where names stand in a text.
//!
//! In: names, texts. Out: keys: `The Beatles`, `Beatles` and `beatles'` have the same.
//! Never: guesses that two names mean the same thing; that is left to the graph.

use crate::recall::name_sort;
use crate::recall::phrases;
use crate::recall::phrases::Word;

/// Words of the longest name that is looked for in a text.
pub const NAME_WORDS_MAX: usize = phrases::NAME_WORDS_MAX;

/// Fewest letters and digits of a name that is looked for in a text: shorter ones are in every other text by chance.
const LETTERS_MIN: usize = 3;

/// Words that a name may begin with or not.
const ARTICLES: [&str; 3] = ["a", "an", "the"];

/// The words of a text as they stand in keys, at most [`phrases::TEXT_WORDS_MAX`].
#[must_use]
pub fn tokens(text: &str) -> Vec<String> {
    phrases::words(text).iter().map(token).collect()
}

/// A word as it stands in keys.
#[must_use]
pub fn token(word: &Word) -> String {
    phrases::singular(&word.text).to_owned()
}

/// The name without an article before it, unless it is nothing else.
#[must_use]
pub fn without_article(name: &str) -> &str {
    let name = name.trim();
    match name.split_once(char::is_whitespace) {
        Some((first, rest)) if ARTICLES.contains(&first.to_ascii_lowercase().as_str()) && !key_of(rest).is_empty() => {
            rest
        }
        _ => name,
    }
}

/// The key of a name: its words, one space apart, without an article before them. Empty for a name without letters.
#[must_use]
pub fn key(name: &str) -> String {
    key_of(without_article(name))
}

fn key_of(name: &str) -> String {
    tokens(name).join(" ")
}

/// Whether it is a name rather than a common noun: a word that is no function word begins with a capital or a digit, or is
/// written in letters that have no capitals.
#[must_use]
pub fn is_name(text: &str) -> bool {
    name_sort::is_written_as_name(&phrases::words(text))
}

/// Whether texts are searched for it: a name, neither too short nor too long to be meant where it stands.
#[must_use]
pub fn is_sought(name: &str) -> bool {
    let words = phrases::words(name);
    let letters: usize = words.iter().map(|word| word.text.chars().count()).sum();
    is_name(name) && letters >= LETTERS_MIN && words.len() <= NAME_WORDS_MAX
}

/// Whether the tokens of a key stand in those of a text, one after the other.
#[must_use]
pub fn contains(text: &[String], key: &str) -> bool {
    let key: Vec<&str> = key.split(' ').collect();
    text.windows(key.len()).any(|window| window.iter().zip(&key).all(|(one, other)| one == other))
}

/// Whether the text goes on with that key.
#[must_use]
pub fn begins_with(text: &[String], key: &str) -> bool {
    let mut words = text.iter();
    key.split(' ').all(|wanted| words.next().is_some_and(|word| word == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_name_have_one_key() {
        for [one, other] in [
            ["The Beatles", "beatles"],
            ["Café Zürich", "cafe  zurich"],
            ["countries", "Country"],
            ["U2", "u2"],
            ["a", "A"],
        ] {
            assert_eq!(key(one), key(other), "{one}");
        }
        assert_ne!(key("Anna"), key("Ann"));
        assert_eq!(key("?!"), "");
    }

    #[test]
    fn a_name_is_sought_when_it_stands_out() {
        let cases = [
            ("Alice", true),
            ("iPhone 7", true),
            ("airport", false),
            ("The", false),
            ("Al", false),
            ("日本語", true),
            ("", false),
        ];

        for (name, expected) in cases {
            assert_eq!(is_sought(name), expected, "{name}");
        }
        assert!(!is_sought("One Two Three Four Five Six Seven Eight Nine"));
    }

    #[test]
    fn a_name_is_in_a_text_as_whole_words_in_order() {
        let text = tokens("I met Ann Lee at the old countries' fair");

        for (name, expected) in [("Ann Lee", true), ("Lee Ann", false), ("An", false), ("country fair", true)] {
            assert_eq!(contains(&text, &key(name)), expected, "{name}");
        }
        assert!(begins_with(&text[2..], &key("Ann Lee")) && !begins_with(&text[7..], &key("country fair market")));
    }
}

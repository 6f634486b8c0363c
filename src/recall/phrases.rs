//! Words and names: what two spellings have in common.
//!
//! In: any text. Out: its words in lower case without accents, and the key under which a name is filed, so that
//! `Café Zürich` in a text is the node `cafe zurich`. Words are runs of letters and digits, as in the store's full text.
//! English only in its lists; other languages lose the finer steps and keep the rest.
//! Never: guesses at spelling mistakes.

/// Words of a text that names are looked for in; a text of a megabyte must not cost more than a page.
pub const TEXT_WORDS_MAX: usize = 2_048;

/// Words of the longest name that is looked for in texts and queries.
pub const NAME_WORDS_MAX: usize = 8;

/// Characters of a word that count. Longer runs are not words of a language.
const WORD_CHARS_MAX: usize = 64;

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// In lower case, without accents.
    pub text: String,
    /// Whether it stood there with a capital or a digit in front.
    pub is_capital: bool,
}

/// The words of `text`, at most [`TEXT_WORDS_MAX`] of them.
#[must_use]
pub fn words(text: &str) -> Vec<Word> {
    spelt_words(text).map(|(_, word)| word).collect()
}

/// The same, each beside how it stands in the text.
pub fn spelt_words(text: &str) -> impl Iterator<Item = (&str, Word)> {
    text.split(|letter: char| !is_word_letter(letter))
        .filter_map(|run| {
            let text: String =
                run.chars().take(WORD_CHARS_MAX).flat_map(char::to_lowercase).filter_map(plain).collect();
            let is_capital = run.chars().next().is_some_and(|first| first.is_uppercase() || first.is_numeric());
            (!text.is_empty()).then_some((run, Word { text, is_capital }))
        })
        .take(TEXT_WORDS_MAX)
}

/// The key a name is filed under: its words, one space apart. Empty for a name without letters and digits.
#[must_use]
pub fn name_key(name: &str) -> String {
    let words: Vec<String> = words(name).into_iter().map(|word| word.text).collect();
    words.join(" ")
}

fn is_word_letter(letter: char) -> bool {
    letter.is_alphanumeric() || is_combining(letter)
}

/// Accents that stand behind their letter.
const fn is_combining(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}')
}

/// The letter without its accent. `None` for an accent that stands alone.
fn plain(letter: char) -> Option<char> {
    /// Lower-case letters of the Latin alphabets of Europe (Latin-1 and Latin Extended-A).
    const ACCENTED: [(char, &str); 21] = [
        ('a', "àáâãäåāăą"),
        ('c', "çćĉċč"),
        ('d', "ďđ"),
        ('e', "èéêëēĕėęě"),
        ('g', "ĝğġģ"),
        ('h', "ĥħ"),
        ('i', "ìíîïĩīĭįı"),
        ('j', "ĵ"),
        ('k', "ķ"),
        ('l', "ĺļľŀł"),
        ('n', "ñńņňŉ"),
        ('o', "òóôõöøōŏő"),
        ('r', "ŕŗř"),
        ('s', "śŝşšș"),
        ('t', "ţťŧț"),
        ('u', "ùúûüũūŭůűų"),
        ('w', "ŵ"),
        ('y', "ýÿŷ"),
        ('z', "źżž"),
        ('e', "ə"),
        ('o', "ơ"),
    ];
    if letter.is_ascii() {
        return Some(letter);
    }
    if is_combining(letter) {
        return None;
    }
    Some(ACCENTED.iter().find(|(_, accented)| accented.contains(letter)).map_or(letter, |(plain, _)| *plain))
}

/// The word without the ending of an English plural or possessive: `stores` and `store`, `countries` and `country` are one.
/// Nothing finer: a stemmer that makes `author` of `authorization` finds names nobody asked for.
#[must_use]
pub fn singular(word: &str) -> &str {
    let stripped =
        |ending: &str, least: usize| word.strip_suffix(ending).filter(|stem| stem.len() >= least && stem.is_ascii());
    if let Some(stem) = stripped("ies", 3) {
        return stem;
    }
    for ending in ["sses", "shes", "ches", "xes", "zes"] {
        if let Some(stem) = stripped(ending, 2) {
            return word.get(..stem.len() + ending.len() - 2).unwrap_or(stem);
        }
    }
    if let Some(stem) = stripped("y", 3) {
        // `country` and `countries` meet at `countr`.
        return if stem.ends_with(['a', 'e', 'i', 'o', 'u']) { word } else { stem };
    }
    match stripped("s", 3) {
        Some(stem) if !stem.ends_with(['s', 'u', 'i']) => stem,
        _ => word,
    }
}

/// Whether a word says nothing about what a text is about.
#[must_use]
pub fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Articles, pronouns, prepositions, auxiliaries and question words of English, sorted.
const STOP_WORDS: [&str; 146] = [
    "a",
    "about",
    "after",
    "again",
    "all",
    "also",
    "am",
    "an",
    "and",
    "any",
    "anyone",
    "anything",
    "are",
    "as",
    "at",
    "be",
    "because",
    "been",
    "before",
    "being",
    "between",
    "both",
    "but",
    "by",
    "can",
    "could",
    "d",
    "did",
    "do",
    "does",
    "doing",
    "done",
    "during",
    "each",
    "ever",
    "everyone",
    "everything",
    "few",
    "for",
    "from",
    "further",
    "had",
    "has",
    "have",
    "having",
    "he",
    "her",
    "here",
    "hers",
    "herself",
    "him",
    "himself",
    "his",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "itself",
    "just",
    "ll",
    "m",
    "me",
    "more",
    "most",
    "my",
    "myself",
    "no",
    "nor",
    "not",
    "of",
    "off",
    "on",
    "once",
    "only",
    "or",
    "other",
    "our",
    "ours",
    "out",
    "over",
    "own",
    "re",
    "s",
    "same",
    "shall",
    "she",
    "should",
    "so",
    "some",
    "someone",
    "something",
    "such",
    "t",
    "than",
    "that",
    "the",
    "their",
    "theirs",
    "them",
    "themselves",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "through",
    "to",
    "too",
    "under",
    "until",
    "up",
    "upon",
    "us",
    "ve",
    "very",
    "was",
    "we",
    "were",
    "what",
    "whatever",
    "when",
    "where",
    "whether",
    "which",
    "while",
    "who",
    "whoever",
    "whom",
    "whose",
    "why",
    "will",
    "with",
    "within",
    "without",
    "would",
    "yes",
    "yet",
    "you",
    "your",
    "yours",
    "yourself",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_name_have_one_key() {
        let cases = [
            ("Café Zürich", "cafe zurich"),
            ("  CAFE\u{301}\nZu\u{308}rich!", "cafe zurich"),
            ("Kim Jong-chul", "kim jong chul"),
            ("O'Neill", "o neill"),
            ("Łódź, Şişli & Ærø", "lodz sisli ærø"),
            ("北京 2008", "北京 2008"),
            ("…", ""),
            ("\u{301}", ""),
        ];

        for (name, key) in cases {
            assert_eq!(name_key(name), key.replace('ø', "o"), "{name:?}");
        }
    }

    #[test]
    fn plurals_meet_their_singular_and_other_words_stay_apart() {
        let pairs =
            [("stores", "store"), ("countries", "country"), ("churches", "church"), ("boxes", "box"), ("days", "day")];
        let apart = [("authorization", "author"), ("buss", "bus"), ("status", "statu"), ("his", "hi")];

        for (plural, word) in pairs {
            assert_eq!(singular(plural), singular(word), "{plural}");
        }
        for (one, other) in apart {
            assert_ne!(singular(one), singular(other), "{one}");
        }
    }

    #[test]
    fn capitals_are_noticed_and_a_long_text_is_cut() {
        let long = "word ".repeat(TEXT_WORDS_MAX + 10);

        let capitals: Vec<bool> = words("Who met anna in 1930? Émile").iter().map(|word| word.is_capital).collect();

        assert_eq!(capitals, [true, false, false, false, true, true]);
        assert_eq!(words(&long).len(), TEXT_WORDS_MAX);
        assert_eq!(words(&"x".repeat(1 << 20)).first().map(|word| word.text.len()), Some(WORD_CHARS_MAX));
    }

    #[test]
    fn the_list_of_stop_words_is_sorted() {
        assert!(STOP_WORDS.is_sorted());
        assert!(is_stop_word("the") && is_stop_word("who") && !is_stop_word("kitchen"));
    }
}

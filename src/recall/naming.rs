//! What a question names: which known names it means, and where it names something that is not known by that name.
//!
//! In: the words of the question, the known names that stand in it. Out: a [`Naming`].
//!
//! ```text
//! How many Publix stores are in the state where Hello Love's performer lived?
//!          ~~~~~~                               ~~~~~~~~~~                      meant: written like names
//!                                                            ^^^^^^^^^          `Performer` the film is not
//! Where did Hayek teach?
//!           ~~~~~                               open: `Friedrich Hayek` is known, `Hayek` alone is not
//! ```
//!
//! Longest first: a name within a longer one is not meant. A question written with capitals means a name only where it has
//! one; a question all in small letters, as speech comes, means every name in it. Things of a known kind need no capital.
//! The same holds for the names in the text of an episode: [`Text::names`].
//! Never: names that are not in the graph.

use crate::recall::name_sort;
use crate::recall::name_sort::NameSort;
use crate::recall::names;
use crate::recall::phrases;
use crate::recall::phrases::Word;

/// Most spans of a question that are looked up by their parts.
const OPEN_MAX: usize = 4;

/// Words that may stand within a name.
const JOINTS: [&str; 7] = ["and", "at", "for", "in", "of", "on", "the"];

/// A name that the graph knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownName {
    /// `names.name_id`.
    pub name_id: i64,
    /// Its key.
    pub key: String,
    /// What it stands for.
    pub sort: NameSort,
}

/// Words written like a name of which no known name is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSpan {
    /// The tokens of all its words that say something.
    pub tokens: Vec<String>,
    /// Those of them that are part of no meant name.
    pub open: Vec<String>,
}

/// What a question names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Naming {
    /// The places of the meant names in the list of known ones, in the order of the question.
    pub meant: Vec<usize>,
    /// For each word of the question, whether it is part of a meant name.
    pub is_named: Vec<bool>,
    /// What it names under another name.
    pub open: Vec<OpenSpan>,
}

impl Naming {
    /// Reads a question.
    #[must_use]
    pub fn of(words: &[Word], known: &[KnownName]) -> Self {
        let question = Text::of(words);
        let names = question.meant(known, |sort| sort > NameSort::Common);
        if !names.meant.is_empty() {
            return Self { open: question.open(&names.is_named), ..names };
        }
        // Nothing is named: what it is about must do.
        let nouns = question.meant(known, |sort| sort == NameSort::Common);
        Self { open: question.open(&vec![false; words.len()]), ..nouns }
    }
}

/// A text that names stand in.
#[derive(Debug, Clone)]
pub struct Text<'a> {
    words: &'a [Word],
    tokens: Vec<String>,
    /// Whether capitals mean something in it.
    is_cased: bool,
}

impl<'a> Text<'a> {
    /// A text of these words.
    #[must_use]
    pub fn of(words: &'a [Word]) -> Self {
        // The first word has a capital in any case, and so has `I`.
        let is_telling = |word: &Word| {
            word.is_capital && word.text != "i" && word.text.chars().next().is_some_and(char::is_alphabetic)
        };
        Self { words, tokens: words.iter().map(names::token).collect(), is_cased: words.iter().skip(1).any(is_telling) }
    }

    /// Whether the text means that name in some place.
    #[must_use]
    pub fn names(&self, name: &KnownName) -> bool {
        let length = name.key.split(' ').count();
        (0..self.tokens.len())
            .any(|place| names::begins_with(&self.tokens[place..], &name.key) && self.says(place, length, name.sort))
    }

    fn meant(&self, known: &[KnownName], is_wanted: impl Fn(NameSort) -> bool) -> Naming {
        let mut places: Vec<(usize, usize, usize)> = Vec::new();
        for (number, name) in known.iter().enumerate().filter(|(_, name)| is_wanted(name.sort)) {
            let length = name.key.split(' ').count();
            let begins = |place: &usize| names::begins_with(&self.tokens[*place..], &name.key);
            let spans = (0..self.tokens.len()).filter(begins).filter(|place| self.says(*place, length, name.sort));
            places.extend(spans.map(|place| (length, place, number)));
        }
        places.sort_by(|one, other| other.0.cmp(&one.0).then(one.cmp(other)));
        let mut is_named = vec![false; self.tokens.len()];
        let mut meant = Vec::new();
        for (length, place, number) in places {
            let span = &mut is_named[place..place + length];
            if span.iter().all(|is_named| *is_named) {
                continue;
            }
            span.fill(true);
            meant.push((place, number));
        }
        meant.sort_unstable();
        let mut seen = std::collections::BTreeSet::new();
        let meant = meant.into_iter().map(|(_, number)| number).filter(|number| seen.insert(*number)).collect();
        Naming { meant, is_named, open: Vec::new() }
    }

    /// Whether a name of that sort can be meant by these words.
    fn says(&self, place: usize, length: usize, sort: NameSort) -> bool {
        let words = &self.words[place..place + length];
        let needs_capital = self.is_cased && matches!(sort, NameSort::Name | NameSort::Measure);
        words.iter().any(|word| !phrases::is_stop_word(&word.text))
            && (!needs_capital || name_sort::is_written_as_name(words))
    }

    fn open(&self, is_named: &[bool]) -> Vec<OpenSpan> {
        let mut spans = Vec::new();
        let mut place = 0;
        while self.is_cased && place < self.words.len() && spans.len() < OPEN_MAX {
            if !self.begins_name(place) {
                place += 1;
                continue;
            }
            let end = self.end_of_name(place);
            let tokens = |is_open: bool| -> Vec<String> {
                let is_left_out =
                    |at: &usize| phrases::is_stop_word(&self.words[*at].text) || (is_open && is_named[*at]);
                (place..end).filter(|at| !is_left_out(at)).map(|at| self.tokens[at].clone()).collect()
            };
            let open = tokens(true);
            if !open.is_empty() {
                spans.push(OpenSpan { tokens: tokens(false), open });
            }
            place = end;
        }
        spans
    }

    fn begins_name(&self, place: usize) -> bool {
        self.words[place].is_capital && !phrases::is_stop_word(&self.words[place].text)
    }

    /// The place after the last capital of the name that begins here.
    fn end_of_name(&self, place: usize) -> usize {
        let mut end = place + 1;
        for (at, word) in self.words.iter().enumerate().skip(place + 1) {
            if word.is_capital {
                end = at + 1;
            } else if !JOINTS.contains(&word.text.as_str()) {
                break;
            }
        }
        end
    }
}

/// How far two names are one, 0–1: the part of their rarity that they share. `rarity` is of a token.
#[must_use]
pub fn likeness(one: &[String], other: &[&str], rarity: impl Fn(&str) -> f64) -> f64 {
    let shared: f64 = one.iter().filter(|token| other.contains(&token.as_str())).map(|token| rarity(token)).sum();
    let both: f64 =
        one.iter().map(|token| rarity(token)).sum::<f64>() + other.iter().map(|token| rarity(token)).sum::<f64>();
    if both > shared { shared / (both - shared) } else { f64::from(u8::from(shared > 0.0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [(&str, NameSort); 11] = [
        ("Publix", NameSort::Name),
        ("Hello Love", NameSort::Name),
        ("Love", NameSort::Name),
        ("Performer", NameSort::Name),
        ("airport", NameSort::Common),
        ("1930", NameSort::Measure),
        ("kitchen", NameSort::Known),
        ("New York", NameSort::Name),
        ("York Minster", NameSort::Name),
        ("The Who", NameSort::Name),
        ("Ann", NameSort::Name),
    ];

    #[test]
    fn a_question_means_what_it_writes_like_a_name() {
        let cases: [(&str, &[&str]); 10] = [
            ("How many Publix stores did Hello Love's performer own?", &["Publix", "Hello Love"]),
            ("how many publix stores did hello love's performer own", &["Publix", "Hello Love", "Performer"]),
            ("Which airport did Ann use in 1930?", &["Ann", "1930"]),
            ("which airport is it", &["airport"]),
            ("Was Ann in the kitchen?", &["Ann", "kitchen"]),
            ("Is New York Minster in New York?", &["New York", "York Minster"]),
            ("Who are the who?", &[]),
            ("Who are The Who?", &[]),
            ("I love the airport", &["Love"]),
            ("", &[]),
        ];
        for (question, expected) in cases {
            let naming = read(question);

            let known = known();
            let meant: Vec<&str> = naming.meant.iter().map(|number| known[*number].key.as_str()).collect();
            let expected: Vec<String> = expected.iter().map(|name| names::key(name)).collect();
            assert_eq!(meant, expected, "{question}");
        }
    }

    #[test]
    fn what_is_named_and_unknown_is_open_with_what_is_known_of_it() {
        let open = |question: &str| -> Vec<(String, String)> {
            read(question).open.iter().map(|span| (span.tokens.join(" "), span.open.join(" "))).collect()
        };
        let pair = |tokens: &str, open: &str| (tokens.to_owned(), open.to_owned());

        assert_eq!(open("Where did Hayek teach?"), [pair("hayek", "hayek")]);
        assert_eq!(open("Where is the Bank of Ann Nett?"), [pair("bank ann nett", "bank nett")]);
        assert_eq!(open("Where is Hello Love?"), []);
        assert_eq!(open("where did hayek teach"), []);
        assert_eq!(open("Who is A B C, D, E x F x G x H x J x K x L").len(), OPEN_MAX);
    }

    #[test]
    fn a_text_with_capitals_means_a_name_only_where_it_has_one() {
        let cases = [
            ("He saw The Terminal twice", NameSort::Name, true),
            ("He waits at the terminal in Oslo", NameSort::Name, false),
            ("he waits at the terminal", NameSort::Name, true),
            ("He waits at the terminal in Oslo", NameSort::Known, true),
            ("Terminals are in Oslo", NameSort::Name, true),
            ("He waits", NameSort::Known, false),
        ];
        for (text, sort, expected) in cases {
            let name = KnownName { name_id: 1, key: names::key("The Terminal"), sort };

            assert_eq!(Text::of(&phrases::words(text)).names(&name), expected, "{text}");
        }
    }

    #[test]
    fn names_are_alike_by_what_is_rare_in_both() {
        let rarity = |token: &str| if token == "of" { 0.01 } else { 5.0 };
        let one = ["botanical".to_owned(), "garden".to_owned()];

        assert!((likeness(&one, &["botanical", "garden"], rarity) - 1.0).abs() < 1e-12);
        assert!((likeness(&one, &["garden"], rarity) - 0.5).abs() < 1e-12);
        assert!(likeness(&one, &["of", "garden"], rarity) > 0.49);
        assert!(likeness(&one, &["castle"], rarity).abs() < 1e-12 && likeness(&[], &[], rarity).abs() < 1e-12);
    }

    fn known() -> Vec<KnownName> {
        let known = |(number, (text, sort)): (usize, &(&str, NameSort))| KnownName {
            name_id: i64::try_from(number).unwrap(),
            key: names::key(text),
            sort: *sort,
        };
        KNOWN.iter().enumerate().map(known).collect()
    }

    fn read(question: &str) -> Naming {
        Naming::of(&phrases::words(question), &known())
    }
}

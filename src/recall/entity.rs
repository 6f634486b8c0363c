//! Which entity is meant by a word a person typed.
//!
//! In: the word, and the names that are known, one by one. Out: the names that fit best, or those it may have meant.
//!
//! | fit | `bob` and |
//! |---|---|
//! | whole | `Bob` |
//! | words | `Bob Miller`: its letters stand at the start of a word |
//! | part | `Skateboboard` |
//!
//! Only the best kind of fit counts: who asks for `Bob` does not mean `Bob Miller` when there is a `Bob`. Letters of
//! either case are equal. Never: I/O.

/// Names that fit, at most; what comes after them is counted.
pub const FITTING_MAX: usize = 32;

/// Names suggested when none fits.
pub const SUGGESTIONS_MAX: usize = 3;

/// Least likeness (Jaro–Winkler, 0–1) of a suggested name: two letters swapped or left out in a word of five still reach
/// it, another word of the same beginning does not.
const LIKENESS_MIN: f64 = 0.82;

/// Letters of a name that are compared; a longer one is no name.
const LETTERS_MAX: usize = 200;

/// How well a name fits, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Part,
    Words,
    Whole,
}

/// Collects the names that fit a word.
#[derive(Debug)]
pub struct Finder<K> {
    wanted: String,
    best: Option<Fit>,
    fitting: Vec<K>,
    fitting_total: usize,
    alike: Vec<(f64, String)>,
}

impl<K> Finder<K> {
    /// Nothing looked at yet.
    #[must_use]
    pub fn new(wanted: &str) -> Self {
        let wanted = folded(wanted.trim());
        Self { wanted, best: None, fitting: Vec::new(), fitting_total: 0, alike: Vec::new() }
    }

    /// Looks at a name; `key` is what [`Self::fitting`] gives back.
    pub fn look_at(&mut self, name: &str, key: K) {
        let name = name.trim();
        let letters = folded(name);
        let Some(fit) = fit(&self.wanted, &letters) else {
            self.compare(name, &letters);
            return;
        };
        if self.best.is_none_or(|best| fit > best) {
            self.best = Some(fit);
            self.fitting.clear();
            self.fitting_total = 0;
        }
        if self.best == Some(fit) {
            self.fitting_total += 1;
            if self.fitting.len() < FITTING_MAX {
                self.fitting.push(key);
            }
        }
    }

    fn compare(&mut self, name: &str, letters: &str) {
        if self.best.is_some() {
            return;
        }
        let words = letters.split_whitespace().chain([letters]);
        let likeness = words.map(|word| strsim::jaro_winkler(&self.wanted, word)).fold(0.0, f64::max);
        if likeness < LIKENESS_MIN || self.alike.iter().any(|(_, known)| known == name) {
            return;
        }
        self.alike.push((likeness, name.to_owned()));
        self.alike.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        self.alike.truncate(SUGGESTIONS_MAX);
    }

    /// The keys of the names that fit best, at most [`FITTING_MAX`], in the order they were looked at.
    #[must_use]
    pub fn fitting(&self) -> &[K] {
        &self.fitting
    }

    /// How many fit.
    #[must_use]
    pub fn fitting_total(&self) -> usize {
        self.fitting_total
    }

    /// What may have been meant, when nothing fits: the likest name first.
    #[must_use]
    pub fn suggestions(&self) -> Vec<String> {
        if self.best.is_some() { Vec::new() } else { self.alike.iter().map(|(_, name)| name.clone()).collect() }
    }
}

fn folded(text: &str) -> String {
    text.chars().take(LETTERS_MAX).flat_map(char::to_lowercase).collect()
}

fn fit(wanted: &str, name: &str) -> Option<Fit> {
    if wanted.is_empty() {
        return None;
    }
    if wanted == name {
        return Some(Fit::Whole);
    }
    let starts_word = |at: usize| !name[..at].chars().next_back().is_some_and(char::is_alphanumeric);
    let mut places = name.match_indices(wanted).map(|(at, _)| at).peekable();
    places.peek()?;
    Some(if places.any(starts_word) { Fit::Words } else { Fit::Part })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 6] = ["Alice", "Bob", "Bob Miller", "Skateboboard", "Café Älpli", "Speech"];

    #[test]
    fn only_the_best_kind_of_fit_counts() {
        let cases: [(&str, &[&str]); 7] = [
            ("bob", &["Bob"]),
            ("BOB M", &["Bob Miller"]),
            ("mill", &["Bob Miller"]),
            ("obo", &["Skateboboard"]),
            ("älp", &["Café Älpli"]),
            (" alice ", &["Alice"]),
            ("nobody", &[]),
        ];

        for (wanted, expected) in cases {
            assert_eq!(found(wanted).fitting(), expected, "{wanted}");
        }
    }

    #[test]
    fn a_name_written_wrong_is_suggested_and_a_right_one_is_not() {
        let cases: [(&str, &[&str]); 5] =
            [("alcie", &["Alice"]), ("milller", &["Bob Miller"]), ("speach", &["Speech"]), ("xyz", &[]), ("bob", &[])];

        for (wanted, expected) in cases {
            assert_eq!(found(wanted).suggestions(), expected, "{wanted}");
        }
    }

    #[test]
    fn an_empty_word_fits_nothing_and_what_fits_is_bounded() {
        assert_eq!(found(" ").fitting_total(), 0);
        let mut finder = Finder::new("a");

        (0..100).for_each(|number| finder.look_at(&format!("a{number}"), number));

        assert_eq!((finder.fitting().len(), finder.fitting_total()), (FITTING_MAX, 100));
    }

    fn found(wanted: &str) -> Finder<&'static str> {
        let mut finder = Finder::new(wanted);
        NAMES.iter().for_each(|name| finder.look_at(name, *name));
        finder
    }
}

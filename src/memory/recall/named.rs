//! What a question names, looked up: the names it means, those that are like what it says, and how much each counts.
//!
//! In: the question; the episodes its words fit. Out: [`Named`], [`NameFound`]s.
//! Every look is bounded: counts end at [`COUNTED_MAX`], alike names come from the episodes that fit best. Never: writes.

use crate::memory::mentions;
use crate::recall::name_sort::NameSort;
use crate::recall::naming;
use crate::recall::naming::KnownName;
use crate::recall::naming::Naming;
use crate::recall::naming::OpenSpan;
use crate::recall::phrases;
use crate::recall::phrases::Word;
use crate::recall::seeds;
use crate::recall::seeds::EpisodeFound;
use crate::recall::seeds::NameFound;
use crate::recall::weights;
use crate::recall::weights::Bond;
use rusqlite::Connection;
use rusqlite::Row;
use std::collections::BTreeMap;
use std::collections::BTreeSet;

/// Episodes with a name or a word are counted up to so many; what more have is common either way.
const COUNTED_MAX: i64 = 2_000;

/// Episodes whose names may be like what the question says: of those its words fit best. On the multi-hop questions the
/// names of all episodes gave nothing more.
const ALIKE_FROM: usize = 30;

/// Names of one such episode that are looked at.
const ALIKE_NAMES_MAX: usize = 256;

/// What a question names.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// The names it means.
    pub(super) found: Vec<NameFound>,
    /// Its words.
    pub(super) said: Said,
    /// What it names under other names.
    open: Vec<OpenSpan>,
    rarities: Rarities,
}

/// The words of a question, each in one of the two.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Those of the names it means.
    pub(super) names: String,
    /// The others; all of them when the others say nothing.
    pub(super) rest: String,
}

impl Said {
    fn of(text: &str, words: &[Word], spelt: &[&str], is_named: &[bool]) -> Self {
        let others: BTreeSet<&str> = words
            .iter()
            .zip(is_named)
            .filter(|(_, is_named)| !**is_named)
            .map(|(word, _)| word.text.as_str())
            .collect();
        if others.iter().all(|word| phrases::is_stop_word(word)) {
            return Self { names: String::new(), rest: text.to_owned() };
        }
        let spelt_of = |is_rest: bool| {
            let is_wanted = |(word, _): &(&Word, &&str)| others.contains(word.text.as_str()) == is_rest;
            words.iter().zip(spelt).filter(is_wanted).map(|(_, spelt)| *spelt).collect::<Vec<_>>().join(" ")
        };
        Self { names: spelt_of(false), rest: spelt_of(true) }
    }
}

impl Named {
    pub(super) fn of(connection: &Connection, text: &str) -> rusqlite::Result<Self> {
        let (spelt, words): (Vec<&str>, Vec<Word>) = phrases::spelt_words(text).unzip();
        let known: Vec<KnownName> = mentions::names_in(connection, text)?.into_iter().map(|known| known.name).collect();
        let naming = Naming::of(&words, &known);
        let mut rarities = Rarities::of(connection)?;
        let mut found = Vec::with_capacity(naming.meant.len());
        for name in naming.meant.iter().filter_map(|number| known.get(*number)) {
            found.push(rarities.name(connection, name, 1.0)?);
        }
        let said = Said::of(text, &words, &spelt, &naming.is_named);
        Ok(Self { found, said, open: naming.open, rarities })
    }

    /// Adds names that are like what the question says and that the episodes have which its words fit best.
    pub(super) fn add_alike(&mut self, connection: &Connection, by_words: &[EpisodeFound]) -> rusqlite::Result<()> {
        if self.open.is_empty() {
            return Ok(());
        }
        let mut near: BTreeMap<i64, KnownName> = BTreeMap::new();
        for episode in by_words.iter().take(ALIKE_FROM) {
            let names = mentions::names_of(connection, episode.id, ALIKE_NAMES_MAX)?;
            near.extend(names.into_iter().map(|name| (name.name_id, name)));
        }
        let mut taken: BTreeSet<i64> = self.found.iter().map(|found| found.name_id).collect();
        for span in std::mem::take(&mut self.open) {
            for (part, name) in self.alike(connection, &span, near.values(), &taken)? {
                taken.insert(name.name_id);
                self.found.push(self.rarities.name(connection, name, seeds::of_alike(part))?);
            }
        }
        Ok(())
    }

    /// The names most like the span, with the part they share with it.
    fn alike<'a>(
        &mut self,
        connection: &Connection,
        span: &OpenSpan,
        names: impl Iterator<Item = &'a KnownName>,
        taken: &BTreeSet<i64>,
    ) -> rusqlite::Result<Vec<(f64, &'a KnownName)>> {
        let mut alike = Vec::new();
        for name in names.filter(|name| name.sort > NameSort::Common && !taken.contains(&name.name_id)) {
            let tokens: Vec<&str> = name.key.split(' ').collect();
            if !span.open.iter().any(|open| tokens.contains(&open.as_str())) {
                continue;
            }
            for token in span.tokens.iter().map(String::as_str).chain(tokens.iter().copied()) {
                self.rarities.learn(connection, token)?;
            }
            let part = naming::likeness(&span.tokens, &tokens, |token| self.rarities.known(token));
            if part >= seeds::ALIKE_MIN {
                alike.push((part, name));
            }
        }
        alike.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.name_id.cmp(&other.1.name_id)));
        alike.truncate(seeds::ALIKE_MAX);
        Ok(alike)
    }
}

/// How rare tokens are, each looked up once.
#[derive(Debug, Default)]
struct Rarities {
    episodes: usize,
    of_token: BTreeMap<String, f64>,
}

impl Rarities {
    /// Episodes are counted roughly: counting them truly would take as long as there are many.
    fn of(connection: &Connection) -> rusqlite::Result<Self> {
        let span: i64 = connection
            .prepare_cached(
                "SELECT coalesce((SELECT max(row_id) FROM episodes) - (SELECT min(row_id) FROM episodes) + 1, 0)",
            )?
            .query_row([], |row| row.get(0))?;
        Ok(Self { episodes: usize::try_from(span).unwrap_or(0), of_token: BTreeMap::new() })
    }

    fn name(&mut self, connection: &Connection, name: &KnownName, likeness: f64) -> rusqlite::Result<NameFound> {
        let tokens: BTreeSet<&str> = name.key.split(' ').collect();
        for token in &tokens {
            self.learn(connection, token)?;
        }
        let rarity = tokens.iter().map(|token| self.known(token)).sum();
        let episodes = connection
            .prepare_cached(
                "SELECT coalesce(sum(CASE is_fact WHEN 1 THEN ?3 ELSE ?4 END), 0.0)
                 FROM (SELECT is_fact FROM mentions WHERE name_id = ?1 LIMIT ?2)",
            )?
            .query_row(
                (name.name_id, COUNTED_MAX, weights::weight(Bond::States), weights::weight(Bond::Mentions)),
                |row| row.get(0),
            )?;
        Ok(NameFound { name_id: name.name_id, key: name.key.clone(), likeness, episodes, rarity })
    }

    /// Function words are not rare, and take no look.
    fn known(&self, token: &str) -> f64 {
        self.of_token.get(token).copied().unwrap_or_default()
    }

    fn learn(&mut self, connection: &Connection, token: &str) -> rusqlite::Result<()> {
        if !self.of_token.contains_key(token) && !phrases::is_stop_word(token) {
            let rarity = seeds::rarity(episodes_with(connection, token)?, self.episodes);
            self.of_token.insert(token.to_owned(), rarity);
        }
        Ok(())
    }
}

/// A token has lost its ending, and so have the words of the full text, each in its own way: what is not there as it stands
/// is looked for as a beginning.
fn episodes_with(connection: &Connection, token: &str) -> rusqlite::Result<usize> {
    let mut statement = connection
        .prepare_cached("SELECT count(*) FROM (SELECT 1 FROM episodes_fts WHERE episodes_fts MATCH ?1 LIMIT ?2)")?;
    let exact = statement.query_row((format!("\"{token}\""), COUNTED_MAX), count)?;
    if exact > 0 { Ok(exact) } else { statement.query_row((format!("\"{token}\"*"), COUNTED_MAX), count) }
}

fn count(row: &Row<'_>) -> rusqlite::Result<usize> {
    Ok(usize::try_from(row.get::<_, i64>(0)?).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_of_a_question_is_said_once() {
        let cases: [(&str, &[&str], &str, &str); 4] = [
            ("Who runs New York now?", &["new", "york"], "New York", "Who runs now"),
            ("Is York near New York", &["new"], "New", "Is York near York"),
            ("Who is Ann?", &["ann"], "", "Who is Ann?"),
            ("rain", &[], "", "rain"),
        ];
        for (text, named, names, rest) in cases {
            let (spelt, words): (Vec<&str>, Vec<Word>) = phrases::spelt_words(text).unzip();
            let is_named: Vec<bool> = words.iter().map(|word| named.contains(&word.text.as_str())).collect();

            let said = Said::of(text, &words, &spelt, &is_named);

            assert_eq!((said.names.as_str(), said.rest.as_str()), (names, rest), "{text}");
        }
    }
}

//! Words of a query in the full text: what fits, by BM25.
//!
//! In: text as a user wrote it. Out: rows with their BM25 over the best one, 0–1.
//! Every character is plain text: what FTS5 would read as an operator is only a separator here. Any word of the query makes a
//! row fit; rarer words and more of them count more. Words that carry no meaning of their own ("the", "did") are left out
//! unless there are no others.

use rusqlite::Connection;
use std::collections::BTreeSet;

/// Words of a query that count; further ones are left out.
pub(super) const WORDS_MAX: usize = 64;

/// Bytes of a word that count.
const WORD_BYTES_MAX: usize = 256;

/// English function words: articles, prepositions, pronouns, auxiliaries and question words.
const FUNCTION_WORDS: &[&str] = &[
    "a", "about", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did", "do", "does",
    "for", "from", "had", "has", "have", "he", "her", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its",
    "me", "my", "of", "on", "or", "our", "she", "that", "the", "their", "them", "there", "they", "this", "to", "us",
    "was", "we", "were", "what", "when", "where", "which", "who", "whom", "whose", "why", "will", "with", "would",
    "you", "your",
];

/// The rows in which a word of the text is, with their BM25: above 0, the greater the better. It is a sum over the words, so
/// the BM25 of a text is that of its parts together.
pub(crate) fn weights(connection: &Connection, text: &str) -> rusqlite::Result<Vec<(i64, f64)>> {
    let Some(expression) = expression(text) else { return Ok(Vec::new()) };
    // FTS5's bm25() is the better the smaller it is, and below 0.
    connection
        .prepare_cached("SELECT rowid, -bm25(episodes_fts) FROM episodes_fts WHERE episodes_fts MATCH ?1")?
        .query_map([expression], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

/// The rows in which a word of the text is, with their BM25 over the best of them. The best has 1.
pub(crate) fn matches(connection: &Connection, text: &str) -> rusqlite::Result<Vec<(i64, f64)>> {
    let mut rows = weights(connection, text)?;
    let best = rows.iter().map(|row| row.1).fold(0.0, f64::max);
    for (_, words) in &mut rows {
        *words = if best > 0.0 { *words / best } else { 1.0 };
    }
    Ok(rows)
}

/// The text as an expression of FTS5; `None` when there is no word in it.
pub(crate) fn expression(text: &str) -> Option<String> {
    let mut seen = BTreeSet::new();
    let all: Vec<String> = text
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty() && word.len() <= WORD_BYTES_MAX)
        .map(str::to_lowercase)
        .filter(|word| seen.insert(word.clone()))
        .take(4 * WORDS_MAX)
        .collect();
    let telling: Vec<&String> = all.iter().filter(|word| !FUNCTION_WORDS.contains(&word.as_str())).collect();
    let words = if telling.is_empty() { all.iter().collect() } else { telling };
    let quoted: Vec<String> = words.into_iter().take(WORDS_MAX).map(|word| format!("\"{word}\"")).collect();
    (!quoted.is_empty()).then(|| quoted.join(" OR "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_and_quotes_are_plain_text() {
        let cases = [
            ("dog", Some(r#""dog""#)),
            ("NEAR(dog, 2) AND cat*", Some(r#""near" OR "dog" OR "2" OR "cat""#)),
            (r#"content:"x" OR ""#, Some(r#""content" OR "x""#)),
            ("Who did I meet", Some(r#""meet""#)),
            ("who is it", Some(r#""who" OR "is" OR "it""#)),
            ("'; DROP TABLE episodes; --", Some(r#""drop" OR "table" OR "episodes""#)),
            ("\"*()^:-", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(expression(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_megabyte_of_text_makes_a_bounded_expression() {
        let text: String = (0..200_000).map(|number| format!("w{number} ")).collect();

        let expression = expression(&text).unwrap();

        assert_eq!(expression.split(" OR ").count(), WORDS_MAX);
    }
}

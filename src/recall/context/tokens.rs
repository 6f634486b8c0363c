//! How many tokens a language model makes of a text, estimated on the safe side without its vocabulary.
//!
//! In: a text. Out: a count that the byte-pair vocabularies o200k and cl100k do not exceed on JSON of the kind this module
//! writes (the table below was measured with both), and that is never less than a quarter of its bytes.

/// Letters of a word that make one token: common words are one whole, rare and foreign ones fall apart into such pieces.
const LETTERS: usize = 4;

/// Digits that make one token: vocabularies join up to three, but digits among letters fall apart.
const DIGITS: usize = 2;

/// Signs in a row that make one token, such as `":` and `},`.
const SIGNS: usize = 2;

/// The rule of thumb that some callers count by; never less than this.
const BYTES: usize = 4;

/// What a run of characters is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letter,
    Digit,
    Sign,
    /// A blank joins the word behind it.
    Blank,
    /// One by one: a letter with an accent makes one token, a CJK character up to two, an emoji up to three.
    Other,
}

/// The estimate.
pub(super) fn estimate(text: &str) -> usize {
    let (mut tokens, mut run, mut last) = (0, 0, Kind::Blank);
    for character in text.chars() {
        let kind = kind_of(character);
        if kind != last {
            tokens += of_run(last, run);
            (run, last) = (0, kind);
        }
        run += if kind == Kind::Other { character.len_utf8() - 1 } else { 1 };
    }
    (tokens + of_run(last, run)).max(text.len().div_ceil(BYTES))
}

fn kind_of(character: char) -> Kind {
    match character {
        ' ' => Kind::Blank,
        'a'..='z' | 'A'..='Z' => Kind::Letter,
        '0'..='9' => Kind::Digit,
        _ if character.is_ascii() => Kind::Sign,
        _ => Kind::Other,
    }
}

fn of_run(kind: Kind, length: usize) -> usize {
    match kind {
        Kind::Letter => length.div_ceil(LETTERS),
        Kind::Digit => length.div_ceil(DIGITS),
        Kind::Sign => length.div_ceil(SIGNS),
        Kind::Blank => length.saturating_sub(1),
        Kind::Other => length,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counted with o200k_base and cl100k_base; the greater of the two.
    const MEASURED: [(&str, usize); 8] = [
        (
            r#"{"now":"2026-11-30T10:00+01:00","place":{"name":"Kitchen","what":"Staying at Kitchen","since":"09:10"},"people":[{"name":"Alice","here_since":"09:15"}],"heard":[{"at":"09:55","what":"A kettle whistled","id":"5bcb99aa"}],"left_out":3}"#,
            84,
        ),
        (
            r#"{"at":"09:55","what":"Zwei Personen sprechen über die Fähre nach Göteborg und trinken Tee","id":"5bcb99aa"}"#,
            36,
        ),
        (r#"{"at":"09:55","what":"他在厨房里和两个人谈论天气，然后喝了一杯茶","id":"5bcb99aa"}"#, 46),
        (r#"{"at":"09:55","what":"Он говорит на кухне о погоде и пьёт чай с лимоном","id":"5bcb99aa"}"#, 46),
        (
            r#"{"at":"2026-11-29 21:40","what":"Someone talks. {\"rmsDb\": -21.5, \"classes\": [{\"label\": \"Speech\", \"confidence\": 0.91}]}","id":"002f3e88"}"#,
            58,
        ),
        (r#"{"at":"09:55","what":"🔊🔊🔊 🎉🦀 wow","id":"002f3e88"}"#, 34),
        ("5bcb99aa-963c-5f76-a04d-09a37ff4ea09", 23),
        ("", 0),
    ];

    #[test]
    fn the_estimate_is_not_below_what_was_counted_and_not_far_above() {
        for (text, counted) in MEASURED {
            let estimated = estimate(text);
            assert!(estimated >= counted, "{estimated} of {counted}: {text}");
            assert!(estimated <= counted * 9 / 5, "{estimated} of {counted}: {text}");
        }
    }

    #[test]
    fn it_is_never_less_than_a_quarter_of_the_bytes() {
        for text in ["a b c d e f g h i j", "word word word word", "internationalisation"] {
            assert!(estimate(text) * BYTES >= text.len(), "{text}");
        }
    }
}

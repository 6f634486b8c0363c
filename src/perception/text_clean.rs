//! The text cleaning that CLIP's tokenizer was trained behind.
//!
//! In: any sentence. Out: the same sentence as open_clip's `_clean_lower` gives it to the byte-pair encoder, short of
//! lowercasing: `ftfy.fix_text` (HTML entities, ligatures, character widths, straight quotes, line breaks, control
//! characters, NFC), `html.unescape` twice, single spaces. Of ftfy's repair of wrongly decoded
//! text only the common case is done: a whole line of UTF-8 that was read as Latin-1 or Windows-1252.
//! Pure; never fails.

use std::borrow::Cow;

use icu_normalizer::ComposingNormalizerBorrowed;

/// ftfy repeats its fixes until nothing changes; each pass shortens or settles the text, so a few are enough.
const PASSES_MAX: usize = 16;

/// What Windows-1252 has at 0x80–0x9F, where Latin-1 has control characters (holes keep the control character).
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Cleans a sentence. Case is left alone: the encoder lowers it.
#[must_use]
pub fn clean(text: &str) -> String {
    let fixed = fix_text(text);
    let plain = unescape(&unescape(&fixed));
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `ftfy.fix_text` line by line. Once a line holds `<` it is taken for markup, and entities of it and of the lines after it are kept.
fn fix_text(text: &str) -> String {
    let mut unescapes = true;
    text.split_inclusive('\n')
        .map(|line| {
            unescapes &= !line.contains('<');
            fix_line(line, unescapes)
        })
        .collect()
}

fn fix_line(line: &str, unescapes: bool) -> String {
    let mut text = line.to_owned();
    for _ in 0..PASSES_MAX {
        let unescaped = if unescapes { unescape_closed(&text) } else { text.clone() };
        let fixed = fix_characters(&decode_again(&unescaped).unwrap_or(unescaped));
        if fixed == text {
            break;
        }
        text = fixed;
    }
    text
}

/// What a line says when its characters are bytes of UTF-8 that were read as Latin-1 or Windows-1252 (`schÃ¶n`).
fn decode_again(line: &str) -> Option<String> {
    let byte_of = |character: char| match u8::try_from(u32::from(character)) {
        Ok(byte) => Some(byte),
        Err(_) => WINDOWS_1252.iter().position(|&known| known == character).and_then(|at| u8::try_from(at + 0x80).ok()),
    };
    let bytes: Vec<u8> = restore_a0(line).chars().map(byte_of).collect::<Option<_>>()?;
    String::from_utf8(bytes).ok()
}

/// `à` whose second byte, a no-break space, somebody turned into a plain one: ftfy's special case, with its exceptions
/// (Portuguese words and a plural s).
fn restore_a0(line: &str) -> Cow<'_, str> {
    if !line.contains("Ã ") {
        return Cow::Borrowed(line);
    }
    let mut restored = String::with_capacity(line.len() + 2);
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("Ã ") {
        restored.push_str(before);
        let is_word = [" ", "quele", "quela", "quilo", "s "].iter().any(|word| after.starts_with(word));
        restored.push_str(if is_word { "Ã " } else { "Ã\u{a0} " });
        rest = after;
    }
    restored.push_str(rest);
    Cow::Owned(restored)
}

/// The character-by-character fixes of ftfy in its order, then NFC.
fn fix_characters(text: &str) -> String {
    let mut fixed = String::with_capacity(text.len());
    for character in text.chars().map(windows_1252) {
        match character {
            '\u{3000}' | '\u{ff01}'..='\u{ffef}' => fixed.push_str(&usual_width(character)),
            '\u{2bc}' | '\u{2018}'..='\u{201b}' => fixed.push('\''),
            '\u{201c}'..='\u{201f}' => fixed.push('"'),
            '\u{2028}' | '\u{2029}' | '\u{85}' => fixed.push('\n'),
            _ => match ligature(character) {
                Some(letters) => fixed.push_str(letters),
                None => fixed.push(character),
            },
        }
    }
    let fixed = remove_terminal_escapes(&fixed.replace("\r\n", "\n").replace('\r', "\n"));
    let kept: String = fixed.chars().filter(|character| !is_unwanted_control(*character)).collect();
    ComposingNormalizerBorrowed::new_nfc().normalize(&kept).into_owned()
}

fn windows_1252(character: char) -> char {
    match u32::from(character) {
        code @ 0x80..=0x9f => WINDOWS_1252[code as usize - 0x80],
        _ => character,
    }
}

/// Full-width letters and half-width kana in their usual width (NFKC of the one character).
fn usual_width(character: char) -> String {
    if character == '\u{3000}' {
        return " ".to_owned();
    }
    let mut buffer = [0; 4];
    ComposingNormalizerBorrowed::new_nfkc().normalize(character.encode_utf8(&mut buffer)).into_owned()
}

fn ligature(character: char) -> Option<&'static str> {
    Some(match character {
        'Ĳ' => "IJ",
        'ĳ' => "ij",
        'ŉ' => "ʼn",
        'Ǳ' => "DZ",
        'ǲ' => "Dz",
        'ǳ' => "dz",
        'Ǆ' => "DŽ",
        'ǅ' => "Dž",
        'ǆ' => "dž",
        'Ǉ' => "LJ",
        'ǈ' => "Lj",
        'ǉ' => "lj",
        'Ǌ' => "NJ",
        'ǋ' => "Nj",
        'ǌ' => "nj",
        'ﬀ' => "ff",
        'ﬁ' => "fi",
        'ﬂ' => "fl",
        'ﬃ' => "ffi",
        'ﬄ' => "ffl",
        'ﬅ' => "ſt",
        'ﬆ' => "st",
        _ => return None,
    })
}

fn is_unwanted_control(character: char) -> bool {
    matches!(
        character,
        '\0'..='\u{8}' | '\u{b}' | '\u{e}'..='\u{1f}' | '\u{7f}' | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffc}'
    )
}

/// Removes `ESC [ digits and semicolons LETTER`.
fn remove_terminal_escapes(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        let (before, escape) = rest.split_at(at);
        kept.push_str(before);
        let body = escape[2..].trim_start_matches(|c: char| c.is_numeric() || c == ';');
        rest = match body.chars().next() {
            Some(letter) if letter.is_ascii_alphabetic() => &body[1..],
            _ => {
                kept.push_str(&escape[..2]);
                &escape[2..]
            }
        };
    }
    kept + rest
}

/// ftfy's careful unescaping: only references that end in a semicolon, and capitals (`&NTILDE;`) for small names.
fn unescape_closed(text: &str) -> String {
    replace_references(text, |rest| {
        let body = rest.strip_prefix('#').unwrap_or(rest);
        let length = body.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let is_closed = (1..=24).contains(&length) && body.as_bytes().get(length) == Some(&b';');
        if !is_closed {
            return None;
        }
        let end = rest.len() - body.len() + length + 1;
        let reference = &rest[..end];
        let replaced = if reference.starts_with('#') {
            Some(numeric(reference)?.0).filter(|_| numeric(reference).is_some_and(|(_, used)| used == end))
        } else {
            closed_name(reference)
        };
        replaced.map(|replaced| (replaced, end))
    })
}

fn closed_name(reference: &str) -> Option<String> {
    if let Some(found) = exact_name(reference) {
        return Some(found);
    }
    // Capitals stand for a small name only if no part of them is a reference of its own (`&LTDOT;` begins with `&LT`).
    let is_capital = reference == reference.to_uppercase() && !is_reference(reference);
    is_capital.then(|| exact_name(&reference.to_lowercase())).flatten().map(|found| found.to_uppercase())
}

fn is_reference(reference: &str) -> bool {
    let text = format!("&{reference}");
    htmlize::unescape(text.as_str()) != text
}

/// The value of a name that is in the HTML table as a whole, semicolon included.
fn exact_name(reference: &str) -> Option<String> {
    let text = format!("&{reference}");
    let value = htmlize::unescape(text.as_str());
    let is_whole = value != text && (!value.ends_with(';') || reference == "semi;");
    is_whole.then(|| value.into_owned())
}

/// Python's `html.unescape`: the rules of HTML 5, with or without semicolon.
fn unescape(text: &str) -> String {
    replace_references(text, |rest| {
        if rest.starts_with('#') {
            return numeric(rest);
        }
        let length = rest.chars().take(32).take_while(|c| !"\t\n\u{c} <&#;".contains(*c)).map(char::len_utf8).sum();
        let end = if rest[length..].starts_with(';') && length > 0 { length + 1 } else { length };
        let reference = format!("&{}", &rest[..end]);
        Some((htmlize::unescape(reference.as_str()).into_owned(), end))
    })
}

/// Walks the `&`s of a text; `replace` sees what follows one and says what stands for how many bytes of it.
fn replace_references(text: &str, replace: impl Fn(&str) -> Option<(String, usize)>) -> String {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        done.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match replace(rest) {
            Some((replacement, used)) => {
                done.push_str(&replacement);
                rest = &rest[used..];
            }
            None => done.push('&'),
        }
    }
    done + rest
}

/// The character of `#123;` or `#x1F;` (semicolon optional) and the bytes used, by Python's rules for bad numbers.
fn numeric(reference: &str) -> Option<(String, usize)> {
    let body = reference.strip_prefix('#')?;
    let (radix, digits) = match body.strip_prefix(['x', 'X']) {
        Some(digits) => (16, digits),
        None => (10, body),
    };
    let length = digits.chars().take_while(|c| c.is_digit(radix)).count();
    if length == 0 {
        return None;
    }
    let start = reference.len() - digits.len();
    let used = start + length + usize::from(digits[length..].starts_with(';'));
    let code = u32::from_str_radix(&digits[..length], radix).unwrap_or(u32::MAX);
    Some((character_of(code).into_owned(), used))
}

fn character_of(code: u32) -> Cow<'static, str> {
    let is_dropped = matches!(code, 0x1..=0x8 | 0xb | 0xe..=0x1f | 0x7f | 0xfdd0..=0xfdef)
        || (code <= 0x10_ffff && code & 0xfffe == 0xfffe);
    match code {
        0 => Cow::Borrowed("\u{fffd}"),
        0x80..=0x9f => Cow::Owned(WINDOWS_1252[code as usize - 0x80].to_string()),
        _ if is_dropped => Cow::Borrowed(""),
        _ => char::from_u32(code).map_or(Cow::Borrowed("\u{fffd}"), |character| Cow::Owned(character.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_usual_dirt_is_cleaned() {
        for (dirty, expected) in [
            ("  a \t photo\u{a0}of\n\na  dog ", "a photo of a dog"),
            ("a dog &amp; a cat", "a dog & a cat"),
            ("&lt;b&gt; &amp;lt;", "<b> <"),
            ("caf&eacute; P&EACUTE;REZ", "café PÉREZ"),
            ("cafe\u{301}", "café"),
            ("“curly” ‘quotes’", "\"curly\" 'quotes'"),
            ("ﬁne ＬＯＵＤ　ﾀ", "fine LOUD タ"),
            ("\u{1b}[36;44mblue\u{1b}[0m", "blue"),
            ("this&notit; AT&T &#x41;&#66", "this¬it; AT&T AB"),
            ("schÃ¶n, itâ€™s", "schön, it's"),
            ("&#128; &#150; &#0;", "€ – \u{fffd}"),
        ] {
            assert_eq!(clean(dirty), expected, "{dirty:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_cleaned_without_a_panic(text in "\\PC{0,40}|(&|#|x|;|<|[a-z]|[0-9]|\u{1b}|\\[){0,30}") {
            let cleaned = clean(&text);

            prop_assert!(!cleaned.contains("  ") && cleaned.trim() == cleaned);
        }
    }
}

//! Reads Rust source just well enough to check it: code apart from comments and texts, production apart from tests.

/// One source file.
#[derive(Debug)]
pub(super) struct Source {
    /// Path below the repository, with forward slashes: `src/domain/time.rs`.
    pub(super) path: String,
    /// The lines as written.
    pub(super) lines: Vec<String>,
    /// The same lines with comments and the insides of texts blanked.
    pub(super) code: Vec<String>,
    /// How many lines stand before the file's test module; none in a file that is all tests.
    pub(super) production: usize,
}

impl Source {
    pub(super) fn parse(path: &str, text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let code: Vec<String> = blank(text).lines().map(str::to_owned).collect();
        let all_tests = path.starts_with("tests/") || path.ends_with("/tests.rs") || path.contains("/tests/");
        let test_module = code.iter().position(|line| line.trim() == "#[cfg(test)]");
        let production = if all_tests { 0 } else { test_module.unwrap_or(lines.len()) };
        Self { path: path.to_owned(), lines, code, production }
    }

    /// Module path parts below the crate: `src/domain/time.rs` is `["domain", "time"]`.
    pub(super) fn module(&self) -> Vec<&str> {
        let inner = self.path.trim_start_matches("src/").trim_end_matches(".rs");
        inner.split('/').filter(|part| !matches!(*part, "mod" | "lib" | "main")).collect()
    }

    /// Lines of production code with their numbers, from 1.
    pub(super) fn production_code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.iter().take(self.production).enumerate().map(|(index, line)| (index + 1, line.as_str()))
    }

    /// All lines of code with their numbers, from 1.
    pub(super) fn all_code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.iter().enumerate().map(|(index, line)| (index + 1, line.as_str()))
    }
}

/// Where the scanner stands.
enum State {
    Code,
    LineComment,
    BlockComment { depth: usize },
    Text { hashes: Option<usize> },
}

/// Replaces comments and the insides of texts by spaces; line ends stay.
fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut state = State::Code;
    let mut at = 0;
    while at < chars.len() {
        let (next, taken, shown) = step(&state, &chars, at);
        for &character in &chars[at..at + taken] {
            out.push(if shown || character == '\n' { character } else { ' ' });
        }
        state = next.unwrap_or(state);
        at += taken;
    }
    out
}

/// From one place: the next state when it changes, how many characters were read, whether they are code.
fn step(state: &State, chars: &[char], at: usize) -> (Option<State>, usize, bool) {
    let here =
        |text: &str| text.chars().enumerate().all(|(offset, character)| chars.get(at + offset) == Some(&character));
    match state {
        State::Code if here("//") => (Some(State::LineComment), 2, false),
        State::Code if here("/*") => (Some(State::BlockComment { depth: 1 }), 2, false),
        State::Code if here("\"") => (Some(State::Text { hashes: None }), 1, true),
        State::Code if chars[at] == '\'' => (None, char_literal(chars, at), true),
        State::Code => match raw_text(chars, at) {
            Some((hashes, taken)) => (Some(State::Text { hashes: Some(hashes) }), taken, true),
            None => (None, 1, true),
        },
        State::LineComment if here("\n") => (Some(State::Code), 1, false),
        State::LineComment => (None, 1, false),
        State::BlockComment { depth } if here("/*") => (Some(State::BlockComment { depth: depth + 1 }), 2, false),
        State::BlockComment { depth: 1 } if here("*/") => (Some(State::Code), 2, false),
        State::BlockComment { depth } if here("*/") => (Some(State::BlockComment { depth: depth - 1 }), 2, false),
        State::BlockComment { .. } => (None, 1, false),
        State::Text { hashes: None } if here("\\") => (None, 2.min(chars.len() - at), false),
        State::Text { hashes: None } if here("\"") => (Some(State::Code), 1, true),
        State::Text { hashes: Some(count) } if here(&format!("\"{}", "#".repeat(*count))) => {
            (Some(State::Code), count + 1, true)
        }
        State::Text { .. } => (None, 1, false),
    }
}

/// Length of the character literal at a quote; 1 when the quote begins a lifetime.
fn char_literal(chars: &[char], at: usize) -> usize {
    if chars.get(at + 1) == Some(&'\\') {
        let end = chars[at + 3..].iter().position(|&character| character == '\'');
        return end.map_or(1, |offset| offset + 4);
    }
    if chars.get(at + 2) == Some(&'\'') { 3 } else { 1 }
}

/// The number of hashes and the length of a raw text's opening, where one stands.
fn raw_text(chars: &[char], at: usize) -> Option<(usize, usize)> {
    let word_before = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    if chars[at] != 'r' || (word_before && chars[at - 1] != 'b') {
        return None;
    }
    let hashes = chars[at + 1..].iter().take_while(|&&character| character == '#').count();
    (chars.get(at + 1 + hashes) == Some(&'"')).then_some((hashes, hashes + 2))
}

#[test]
fn comments_and_texts_are_no_code() {
    let source = Source::parse(
        "src/domain/id.rs",
        "//! crate::memory\nlet a = \"crate::cli // \\\" x\"; // crate::agent\nlet c = '\"'; let r = r#\"crate::x \"\"#; f::<'a>(crate::domain)\n/* crate::y\n */ crate::z\n",
    );

    let code = source.code.join("\n");

    assert!(code.contains("crate::domain") && code.contains("crate::z"), "{code}");
    for hidden in ["crate::memory", "crate::cli", "crate::agent", "crate::x", "crate::y"] {
        assert!(!code.contains(hidden), "{hidden} is shown: {code}");
    }
    assert_eq!(source.code.len(), source.lines.len());
}

#[test]
fn production_ends_where_the_test_module_begins() {
    let text = "//! A.\nfn a() {}\n#[cfg(test)]\nmod tests {\n}\n";

    assert_eq!(Source::parse("src/domain/id.rs", text).production, 2);
    assert_eq!(Source::parse("src/domain/tests.rs", text).production, 0);
    assert_eq!(Source::parse("src/domain/id.rs", text).module(), ["domain", "id"]);
}

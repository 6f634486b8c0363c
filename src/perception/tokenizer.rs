//! CLIP's tokenizer: a sentence as 77 token ids.
//!
//! In: any text. Out: ids exactly as open_clip's `SimpleTokenizer` gives them (start, at most 75 tokens, end, zeros),
//! proven on sentences under `tests/fixtures`. The vocabulary is compiled in; building it takes some milliseconds and
//! megabytes, so one is kept with the text tower and let go with it.

use instant_clip_tokenizer::Token;
use instant_clip_tokenizer::Tokenizer;

use crate::perception::text_clean;

/// Tokens the text towers read.
pub const CONTEXT_LENGTH: usize = 77;
/// Characters of a text that are looked at; far more than 75 tokens can hold unless one word goes on for thousands of letters.
const TEXT_CHARS_MAX: usize = 8_192;

/// Turns sentences into token ids.
pub struct ClipTokenizer {
    inner: Tokenizer,
}

impl std::fmt::Debug for ClipTokenizer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ClipTokenizer")
    }
}

impl Default for ClipTokenizer {
    fn default() -> Self {
        Self::new()
    }
}

impl ClipTokenizer {
    /// Builds the merge table from the compiled-in vocabulary.
    #[must_use]
    pub fn new() -> Self {
        Self { inner: Tokenizer::new() }
    }

    /// The ids of `text`: start of text, its tokens (cut to fit), end of text, then zeros.
    #[must_use]
    pub fn encode(&self, text: &str) -> [i64; CONTEXT_LENGTH] {
        let text: String = text.chars().take(TEXT_CHARS_MAX).collect();
        let mut tokens = vec![self.inner.start_of_text()];
        self.inner.encode(&text_clean::clean(&text), &mut tokens);
        tokens.truncate(CONTEXT_LENGTH - 1);
        tokens.push(self.inner.end_of_text());
        let mut ids = [0; CONTEXT_LENGTH];
        for (id, token) in ids.iter_mut().zip(tokens.into_iter().map(Token::to_u16)) {
            *id = i64::from(token);
        }
        ids
    }
}

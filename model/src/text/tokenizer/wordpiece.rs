//! WordPiece: each word is split into the longest pieces of the vocabulary. A word that cannot be split completely is
//! unknown.
//!
//! *Source*: Devlin et al., "BERT", 2019, and its published tokenizer.

use super::TokenizerError;
use super::normalize::decomposed;
use super::pattern::Pattern;
use super::spm::SPACE;
use super::vocab::Vocab;
use crate::gguf::Metadata;

/// Most characters of a word; longer ones are unknown, as in the published tokenizer. It bounds the work for each byte
/// of text.
const MAX_CHARS: usize = 100;

/// Invisible characters that are removed, except for white space.
const UNSEEN: &str = r"[[\x00\x{FFFD}\p{Cc}\p{Cf}\p{Co}]--[\t\n\r]]+";
/// Invisible characters and accents that are removed, except for white space.
const UNSEEN_OR_ACCENT: &str = r"[[\x00\x{FFFD}\p{Cc}\p{Cf}\p{Co}\p{Mn}]--[\t\n\r]]+";

/// Characters that are words by themselves: punctuation, ASCII symbols, and ideographs.
macro_rules! single {
    () => {
        concat!(
            r"\p{P}$+<=>^`|~\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2B73F}",
            r"\x{2B740}-\x{2B81F}\x{2B820}-\x{2CEAF}\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F}"
        )
    };
}
const WORD: &str = concat!("[", single!(), r"]|[^\s", single!(), "]+");

#[derive(Debug)]
pub(super) struct WordPiece {
    unseen: Pattern,
    word: Pattern,
    lowercase: bool,
    strip_accents: bool,
    unknown: Option<u32>,
}

impl WordPiece {
    /// Builds the tokenizer.
    ///
    /// *Errors*: the description is malformed.
    pub fn from_metadata(metadata: &Metadata, unknown: Option<u32>) -> Result<WordPiece, TokenizerError> {
        let flag = |key: &str| metadata.get::<bool>(&format!("tokenizer.ggml.normalizer.{key}"));
        let lowercase = flag("lowercase")?.unwrap_or(true);
        let strip_accents = flag("strip_accents")?.unwrap_or(lowercase);
        Ok(WordPiece {
            unseen: Pattern::new(&[if strip_accents { UNSEEN_OR_ACCENT } else { UNSEEN }])?,
            word: Pattern::new(&[WORD])?,
            lowercase,
            strip_accents,
            unknown,
        })
    }

    /// Tokenizes a text that has no special tokens.
    pub fn encode(&self, vocab: &Vocab, text: &str, out: &mut Vec<u32>) {
        let text = self.normalize(text);
        for word in self.word.find_all(&text) {
            self.encode_word(vocab, &text[word], out);
        }
    }

    /// Removes invisible characters and, depending on the vocabulary, case and accents.
    fn normalize(&self, text: &str) -> String {
        let decomposed = if self.strip_accents { decomposed(text) } else { text.into() };
        let mut seen = String::with_capacity(decomposed.len());
        let mut end = 0;
        for unseen in self.unseen.find_all(&decomposed) {
            seen.push_str(&decomposed[end..unseen.start]);
            end = unseen.end;
        }
        seen.push_str(&decomposed[end..]);
        if self.lowercase { seen.chars().flat_map(char::to_lowercase).collect() } else { seen }
    }

    fn encode_word(&self, vocab: &Vocab, word: &str, out: &mut Vec<u32>) {
        let before = out.len();
        if word.chars().nth(MAX_CHARS).is_none() {
            let marked = format!("{SPACE}{word}");
            let mut rest = &marked[..];
            while let Some((id, len)) = vocab.longest_prefix(rest) {
                out.push(id);
                rest = &rest[len..];
            }
            if rest.is_empty() {
                return;
            }
        }
        out.truncate(before);
        out.extend(self.unknown);
    }
}

//! BPE of characters: the characters of a line, including spaces, merge in the order of their ranks. Characters without
//! a token become bytes.
//!
//! *Source*: the tokenizer of Gemma 4. It has SentencePiece's vocabulary and an explicit list of merges.

use super::TokenizerError;
use super::merges::Merges;
use super::spm::SPACE;
use super::vocab::Vocab;
use crate::gguf::Metadata;

/// First symbol that stands for a character without a token: the character is the rest after subtraction. No vocabulary
/// is as large.
const CHARACTER: u32 = 1 << 31;

#[derive(Debug)]
pub(super) struct CharBpe {
    merges: Merges,
    /// Token of each byte.
    bytes: [Option<u32>; 256],
}

impl CharBpe {
    pub fn from_metadata(metadata: &Metadata, vocab: &Vocab, unknown: Option<u32>) -> Result<CharBpe, TokenizerError> {
        let bytes = std::array::from_fn(|b| vocab.id(&format!("<0x{b:02X}>")).or(unknown));
        Ok(CharBpe { merges: Merges::from_metadata(metadata, vocab)?, bytes })
    }

    pub fn encode(&self, vocab: &Vocab, text: &str, out: &mut Vec<u32>) {
        for run in runs(&text.replace(' ', SPACE)) {
            // A run of newlines is not merged step by step if there is a token for it.
            match vocab.id(run).filter(|_| run.starts_with('\n')) {
                Some(id) => out.push(id),
                None => self.merge(vocab, run, out),
            }
        }
    }

    fn merge(&self, vocab: &Vocab, run: &str, out: &mut Vec<u32>) {
        let symbol = |c: char| {
            let known = self.merges.find(vocab, c.encode_utf8(&mut [0; 4]));
            known.unwrap_or(CHARACTER + u32::from(c))
        };
        let spell = |text: &str, out: &mut Vec<u32>| {
            for c in text.chars() {
                let mut utf8 = [0; 4];
                let c = c.encode_utf8(&mut utf8);
                match vocab.id(c) {
                    Some(id) => out.push(id),
                    None => out.extend(c.bytes().filter_map(|b| self.bytes[usize::from(b)])),
                }
            }
        };
        for symbol in self.merges.apply(run.chars().map(symbol)) {
            match (symbol.checked_sub(CHARACTER).and_then(char::from_u32), self.merges.text(symbol)) {
                (Some(c), _) => spell(c.encode_utf8(&mut [0; 4]), out),
                (None, Some(text)) => spell(text, out),
                (None, None) => out.push(symbol),
            }
        }
    }
}

/// Splits a text into its lines and the runs of newlines between them.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let newlines = rest.starts_with('\n');
        let end = rest.find(|c| (c == '\n') != newlines).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        (!run.is_empty()).then_some(run)
    })
}

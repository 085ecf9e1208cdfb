//! Unigram: the text is normalized, and then split into the tokens whose scores have the highest sum.
//!
//! *Source*: Kudo, "Subword Regularization", 2018, and SentencePiece. The published vocabularies are those of T5 and
//! XLM-R.

use super::TokenizerError;
use super::charsmap::Charsmap;
use super::spm::{SPACE, scores};
use super::trie::Trie;
use super::vocab::{TokenKind, Vocab};
use crate::gguf::Metadata;

/// How much lower the score of an unknown character is than that of any token.
const UNKNOWN_PENALTY: f32 = 10.0;

#[derive(Debug)]
pub(super) struct Unigram {
    charsmap: Charsmap,
    /// User-defined tokens. Normalization leaves even their beginnings as they are.
    user: Trie,
    add_space_prefix: bool,
    /// Whether white space at the ends and repeated white space are removed.
    remove_spaces: bool,
    tokens: Trie,
    scores: Vec<f32>,
    unknown: u32,
    unknown_score: f32,
}

/// The best way to split a text up to some place.
#[derive(Clone, Copy)]
struct Best {
    score: f64,
    /// Where its last token begins.
    start: u32,
    /// Its last token.
    id: u32,
}

impl Unigram {
    pub fn from_metadata(
        metadata: &Metadata,
        vocab: &Vocab,
        unknown: Option<u32>,
        add_space_prefix: bool,
    ) -> Result<Unigram, TokenizerError> {
        let malformed = |key, reason| TokenizerError::Malformed { key, reason };
        let mut scores = scores(metadata, vocab)?;
        if scores.iter().any(|score| !score.is_finite()) {
            return Err(malformed("tokenizer.ggml.scores", "has a score that is not finite"));
        }
        let mut lowest = f32::MAX;
        for (id, score) in scores.iter_mut().enumerate() {
            match vocab.kind(id as u32) {
                TokenKind::Normal => lowest = lowest.min(*score),
                TokenKind::User => *score = 0.0,
                _ => {}
            }
        }
        let trie = |kinds: &[TokenKind]| Trie::of_tokens(vocab, &|id| kinds.contains(&vocab.kind(id)));
        Ok(Unigram {
            charsmap: Charsmap::from_metadata(metadata)?,
            user: trie(&[TokenKind::User]),
            add_space_prefix,
            remove_spaces: metadata.get::<bool>("tokenizer.ggml.remove_extra_whitespaces")?.unwrap_or(false),
            tokens: trie(&[TokenKind::Normal, TokenKind::User, TokenKind::Unused]),
            scores,
            unknown: unknown.ok_or(malformed("tokenizer.ggml.unknown_token_id", "names no token"))?,
            unknown_score: lowest - UNKNOWN_PENALTY,
        })
    }

    /// Tokenizes a text that has no special tokens. It may contain invalid UTF-8.
    pub fn encode(&self, text: &[u8], out: &mut Vec<u32>) {
        let text = self.normalize(text);
        let mut best = vec![Best { score: f64::MIN, start: 0, id: self.unknown }; text.len() + 1];
        best[0].score = 0.0;
        let mut start = 0;
        while start < text.len() {
            let score = best[start].score;
            let mut offer = |len: usize, id: u32, added: f32| {
                let found = Best { score: score + f64::from(added), start: start as u32, id };
                let best = &mut best[start + len];
                if found.score > best.score {
                    *best = found;
                }
            };
            let char = char_len(text[start]).min(text.len() - start);
            let mut known = false;
            for (len, id) in self.tokens.prefixes(&text[start..]) {
                known |= len == char;
                offer(len, id, self.scores[id as usize]);
            }
            if !known {
                offer(char, self.unknown, self.unknown_score);
            }
            start += char;
        }
        // Neighbouring unknown characters are one token.
        let from = out.len();
        let mut end = text.len();
        while end > 0 {
            let Best { start, id, .. } = best[end];
            if id != self.unknown || out.len() == from || out.last() != Some(&id) {
                out.push(id);
            }
            end = start as usize;
        }
        out[from..].reverse();
    }

    /// Replaces what the map replaces, and spaces by U+2581.
    fn normalize(&self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len() + text.len() / 4 + SPACE.len());
        let (mut in_word, mut prefixed) = (false, false);
        let mut rest = text;
        while !rest.is_empty() {
            let (len, piece) = match self.user.shared(rest) {
                0 => self.charsmap.longest(rest).unwrap_or_else(|| match valid_len(rest) {
                    Some(len) => (len, &rest[..len]),
                    None => (1, "\u{FFFD}".as_bytes()),
                }),
                len => (len, &rest[..len]),
            };
            rest = &rest[len..];
            for &byte in piece {
                let begins = byte != b' ' && !in_word;
                in_word = byte != b' ';
                if begins && (self.remove_spaces || self.add_space_prefix && !prefixed) {
                    out.extend(SPACE.bytes());
                    prefixed = true;
                }
                if in_word {
                    out.push(byte);
                } else if !self.remove_spaces {
                    out.extend(SPACE.bytes());
                }
            }
        }
        out
    }
}

/// Returns the number of bytes that the first byte of a character promises.
fn char_len(first: u8) -> usize {
    match first {
        0..=0xBF => 1,
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xFF => 4,
    }
}

/// Returns the length of the first character, if all its bytes are there. Like SentencePiece, does not check that it is
/// the shortest form of a character.
fn valid_len(text: &[u8]) -> Option<usize> {
    let first = *text.first()?;
    let len = char_len(first);
    let continues = |byte: &u8| byte & 0xC0 == 0x80;
    (!continues(&first) && first < 0xF8 && text.get(1..len)?.iter().all(continues)).then_some(len)
}

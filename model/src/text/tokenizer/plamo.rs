//! PLaMo 2: the text is split into the tokens whose costs have the lowest sum. Costs are whole numbers, and characters
//! without a token become bytes.
//!
//! *Source*: the published tokenizer of PLaMo 2.

use super::TokenizerError;
use super::spm::{byte_of, scores};
use super::trie::Trie;
use super::vocab::{TokenKind, Vocab};
use crate::gguf::Metadata;

/// Units of cost in a score of 1.
const UNITS: f32 = 10_000.0;
/// Tokens of at least this cost are not used.
const UNUSABLE: i32 = 20_000_000;
/// Cost of a character that becomes bytes.
const UNKNOWN: i64 = 10_000_000;

#[derive(Debug)]
pub(super) struct Plamo {
    tokens: Trie,
    costs: Vec<i32>,
    /// Token of each byte.
    bytes: [u32; 256],
}

impl Plamo {
    pub fn from_metadata(metadata: &Metadata, vocab: &Vocab) -> Result<Plamo, TokenizerError> {
        let costs: Vec<i32> = scores(metadata, vocab)?.iter().map(|score| -(score * UNITS).round() as i32).collect();
        let mut bytes = [0; 256];
        let of_byte = |id: u32| byte_of(vocab.text(id)).filter(|_| vocab.kind(id) == TokenKind::Byte);
        for id in 0..vocab.len() as u32 {
            of_byte(id).into_iter().for_each(|byte| bytes[usize::from(byte)] = id);
        }
        if bytes.contains(&0) {
            let reason = "lacks a token for some byte, or has it as its first token";
            return Err(TokenizerError::Malformed { key: "tokenizer.ggml.tokens", reason });
        }
        let usable = |id| vocab.kind(id) != TokenKind::Byte && costs[id as usize] < UNUSABLE;
        Ok(Plamo { tokens: Trie::of_tokens(vocab, &usable), costs, bytes })
    }

    /// Tokenizes a text that has no special tokens.
    pub fn encode(&self, text: &str, out: &mut Vec<u32>) {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        // Lowest cost from each place to the end, and the length and id of the token there.
        let mut best: Vec<(i64, u32, Option<u32>)> = vec![(0, 0, None); text.len() + 1];
        for (start, c) in text.char_indices().rev() {
            let mut lowest = (i64::MAX, 0, None);
            for (len, id) in self.tokens.prefixes(&text.as_bytes()[start..]) {
                let cost = best[start + len].0 + i64::from(self.costs[id as usize]);
                // Of equal costs, the longest token counts.
                if cost <= lowest.0 {
                    lowest = (cost, len as u32, Some(id));
                }
            }
            let cost = best[start + c.len_utf8()].0 + UNKNOWN;
            if cost < lowest.0 {
                lowest = (cost, c.len_utf8() as u32, None);
            }
            best[start] = lowest;
        }
        let mut start = 0;
        while start < text.len() {
            let (_, len, id) = best[start];
            let len = len as usize;
            match id {
                Some(id) => out.push(id),
                None => out.extend(text[start..][..len].bytes().map(|byte| self.bytes[usize::from(byte)])),
            }
            start += len;
        }
    }
}

//! SentencePiece BPE: neighbours merge into the token with the highest score. Characters without a token become bytes.
//!
//! *Source*: Kudo and Richardson 2018 (SentencePiece), byte fallback as in its later versions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::TokenizerError;
use super::vocab::{Vocab, check_len};
use crate::gguf::Metadata;

/// U+2581, which stands for a space.
pub(super) const SPACE: &str = "\u{2581}";

/// Marker of a missing neighbour.
const NONE: usize = usize::MAX;

#[derive(Debug)]
pub(super) struct Spm {
    /// Scores, mapped to integers of the same order.
    scores: Vec<i32>,
    /// Token of each byte.
    bytes: [Option<u32>; 256],
}

/// Range of the text; empty once it was merged into its left neighbour.
struct Symbol {
    start: usize,
    len: usize,
    prev: usize,
    next: usize,
}

impl Spm {
    pub fn from_metadata(metadata: &Metadata, vocab: &Vocab, unknown: Option<u32>) -> Result<Spm, TokenizerError> {
        let bytes = std::array::from_fn(|b| {
            let raw = [b as u8];
            let raw = std::str::from_utf8(&raw).ok().and_then(|text| vocab.id(text));
            vocab.id(&format!("<0x{b:02X}>")).or(raw).or(unknown)
        });
        Ok(Spm { scores: scores(metadata, vocab)?.into_iter().map(ordered).collect(), bytes })
    }

    /// Tokenizes `text`, whose spaces are already replaced.
    pub fn encode(&self, vocab: &Vocab, text: &str, out: &mut Vec<u32>) {
        let mut symbols: Vec<Symbol> = Vec::new();
        for (i, (start, c)) in text.char_indices().enumerate() {
            symbols.push(Symbol { start, len: c.len_utf8(), prev: i.checked_sub(1).unwrap_or(NONE), next: i + 1 });
        }
        let Some(last) = symbols.last_mut() else { return };
        last.next = NONE;

        let mut queue = BinaryHeap::new();
        let offer = |queue: &mut BinaryHeap<_>, symbols: &[Symbol], left: usize| {
            let Some(right) = symbols.get(symbols[left].next) else { return };
            let len = symbols[left].len + right.len;
            let Some(id) = vocab.id(&text[symbols[left].start..][..len]) else { return };
            let score = self.scores.get(id as usize).copied().unwrap_or(i32::MIN);
            queue.push((score, Reverse(left), len));
        };
        for left in 0..symbols.len() {
            offer(&mut queue, &symbols, left);
        }
        while let Some((_, Reverse(left), len)) = queue.pop() {
            let right = symbols[left].next;
            // The entry is stale if either symbol was merged since.
            if right == NONE || symbols[left].len == 0 || symbols[left].len + symbols[right].len != len {
                continue;
            }
            let after = symbols[right].next;
            symbols[left].len = len;
            symbols[left].next = after;
            symbols[right].len = 0;
            if after != NONE {
                symbols[after].prev = left;
            }
            if symbols[left].prev != NONE {
                offer(&mut queue, &symbols, symbols[left].prev);
            }
            offer(&mut queue, &symbols, left);
        }

        for symbol in symbols.iter().filter(|s| s.len > 0) {
            let part = &text[symbol.start..][..symbol.len];
            match vocab.id(part) {
                Some(id) => out.push(id),
                None => out.extend(part.bytes().filter_map(|b| self.bytes[usize::from(b)])),
            }
        }
    }
}

/// Reads the scores of tokens. Without them in the file, all are zero.
pub(super) fn scores(metadata: &Metadata, vocab: &Vocab) -> Result<Vec<f32>, TokenizerError> {
    let key = "tokenizer.ggml.scores";
    let scores = metadata.get::<Vec<f32>>(key)?.unwrap_or_else(|| vec![0.0; vocab.len()]);
    check_len(key, scores.len(), vocab.len())?;
    Ok(scores)
}

/// Maps a float to an integer of the same order; both zeros are equal.
fn ordered(score: f32) -> i32 {
    let bits = (score + 0.0).to_bits().cast_signed();
    bits ^ ((bits >> 31) & i32::MAX)
}

/// Parses the byte of a token such as `<0x0A>`.
pub(super) fn byte_of(text: &str) -> Option<u8> {
    u8::from_str_radix(text.strip_prefix("<0x")?.strip_suffix('>')?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_keep_their_order() {
        let scores = [f32::NEG_INFINITY, -1e9, -1.0, -0.5, 0.0, 1e-30, 2.0, f32::INFINITY];
        assert!(scores.windows(2).all(|w| ordered(w[0]) < ordered(w[1])));
        assert_eq!(ordered(-0.0), ordered(0.0));
        assert_eq!((byte_of("<0x0A>"), byte_of("<0xZZ>"), byte_of("a")), (Some(10), None, None));
    }
}

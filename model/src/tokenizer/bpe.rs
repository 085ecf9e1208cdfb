//! Byte-level BPE: bytes become printable characters, and neighbours merge by rank.
//!
//! *Source*: Sennrich et al. 2016; the byte alphabet is GPT-2's.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use super::TokenizerError;
use super::pre::{Pre, Splitter};
use super::vocab::Vocab;
use crate::gguf::{Metadata, StringArray};

/// Stands for "no neighbour".
const NONE: usize = usize::MAX;

#[derive(Debug)]
pub(super) struct Bpe {
    splitter: Splitter,
    ignore_merges: bool,
    /// The symbol of each byte.
    bytes: [u32; 256],
    /// Rank and result of merging two symbols.
    merges: HashMap<(u32, u32), (u32, u32)>,
    /// Symbols below this are tokens; those from it on are only texts that merges pass through.
    tokens: u32,
    /// Texts of the symbols that are not tokens.
    extra: Vec<Box<str>>,
}

struct Symbol {
    id: u32,
    prev: usize,
    next: usize,
}

impl Bpe {
    pub fn from_metadata(metadata: &Metadata, vocab: &Vocab, pre: &Pre) -> Result<Bpe, TokenizerError> {
        let splitter = Splitter::new(pre)?;
        let mut extra = Vec::new();
        let mut known: HashMap<Box<str>, u32> = HashMap::new();
        let mut intern = |text: &str| {
            vocab.id(text).unwrap_or_else(|| {
                *known.entry(text.into()).or_insert_with(|| {
                    extra.push(text.into());
                    (vocab.len() + extra.len() - 1) as u32
                })
            })
        };
        let bytes = std::array::from_fn(|b| intern(byte_char(b as u8).encode_utf8(&mut [0; 4])));
        let mut merges = HashMap::new();
        let lines = metadata.require::<&Arc<StringArray>>("tokenizer.ggml.merges")?;
        let mut whole = String::new();
        for (rank, line) in lines.iter().enumerate() {
            // A symbol may itself begin with a space.
            let Some(space) = line.bytes().skip(1).position(|b| b == b' ') else { continue };
            let (left, right) = (&line[..space + 1], &line[space + 2..]);
            whole.clear();
            whole.extend([left, right]);
            let pair = (intern(left), intern(right));
            let result = intern(&whole);
            merges.entry(pair).or_insert((rank as u32, result));
        }
        Ok(Bpe { splitter, ignore_merges: pre.ignore_merges, bytes, merges, tokens: vocab.len() as u32, extra })
    }

    pub fn encode(&self, vocab: &Vocab, text: &str, out: &mut Vec<u32>) {
        for piece in self.splitter.split(text) {
            if self.ignore_merges {
                let mapped: String = piece.bytes().map(byte_char).collect();
                if let Some(id) = vocab.id(&mapped) {
                    out.push(id);
                    continue;
                }
            }
            self.merge(vocab, piece, out);
        }
    }

    /// Merges the pair of lowest rank, leftmost first, until none is left. A queue keeps long pieces at n log n.
    fn merge(&self, vocab: &Vocab, piece: &str, out: &mut Vec<u32>) {
        let count = piece.len();
        let mut symbols: Vec<Symbol> = piece
            .bytes()
            .enumerate()
            .map(|(i, b)| Symbol {
                id: self.bytes[usize::from(b)],
                prev: i.checked_sub(1).unwrap_or(NONE),
                next: if i + 1 < count { i + 1 } else { NONE },
            })
            .collect();
        let mut queue = BinaryHeap::new();
        let offer = |queue: &mut BinaryHeap<_>, symbols: &[Symbol], left: usize| {
            let Some(pair) = pair_at(symbols, left) else { return };
            if let Some(&(rank, _)) = self.merges.get(&pair) {
                queue.push(Reverse((rank, left, pair)));
            }
        };
        for left in 0..count {
            offer(&mut queue, &symbols, left);
        }
        while let Some(Reverse((_, left, pair))) = queue.pop() {
            // The entry is stale if either symbol has merged since.
            if pair_at(&symbols, left) != Some(pair) {
                continue;
            }
            let Some(&(_, merged)) = self.merges.get(&pair) else { continue };
            let right = symbols[left].next;
            let after = symbols[right].next;
            symbols[left].id = merged;
            symbols[left].next = after;
            symbols[right].next = right;
            if after != NONE {
                symbols[after].prev = left;
            }
            if symbols[left].prev != NONE {
                offer(&mut queue, &symbols, symbols[left].prev);
            }
            offer(&mut queue, &symbols, left);
        }
        let mut at = if symbols.is_empty() { NONE } else { 0 };
        while at != NONE {
            self.emit(vocab, symbols[at].id, out);
            at = symbols[at].next;
        }
    }

    /// A symbol that is not a token is spelled by its characters, as far as those are tokens.
    fn emit(&self, vocab: &Vocab, id: u32, out: &mut Vec<u32>) {
        if id < self.tokens {
            out.push(id);
        } else if let Some(text) = self.extra.get((id - self.tokens) as usize) {
            out.extend(text.chars().filter_map(|c| vocab.id(c.encode_utf8(&mut [0; 4]))));
        }
    }
}

/// The symbols at `left` and after it. A symbol that was merged away points at itself and has none.
fn pair_at(symbols: &[Symbol], left: usize) -> Option<(u32, u32)> {
    let symbol = symbols.get(left)?;
    let right = symbols.get(symbol.next)?;
    (symbol.next != left).then_some((symbol.id, right.id))
}

/// Bytes that are printable in Latin-1 stand for themselves, the others for U+0100 and on, in order.
fn is_printable(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff)
}

const fn alphabet() -> [char; 256] {
    let mut table = ['\0'; 256];
    let mut next = 0x100;
    let mut byte = 0;
    while byte < 256 {
        let code = match byte {
            0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => byte as u32,
            _ => {
                next += 1;
                next - 1
            }
        };
        if let Some(c) = char::from_u32(code) {
            table[byte] = c;
        }
        byte += 1;
    }
    table
}

const ALPHABET: [char; 256] = alphabet();

fn byte_char(byte: u8) -> char {
    ALPHABET[usize::from(byte)]
}

/// Appends the bytes that a token's characters stand for; characters outside the alphabet stand for themselves.
pub(super) fn decode(text: &str, out: &mut Vec<u8>) {
    for c in text.chars() {
        let byte = match u8::try_from(u32::from(c)) {
            Ok(b) if is_printable(b) => Some(b),
            _ => ALPHABET.iter().position(|&a| a == c).map(|b| b as u8),
        };
        match byte {
            Some(b) => out.push(b),
            None => out.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_is_gpt2s() {
        assert_eq!([b' ', b'\n', b'a', 0, 0xad].map(byte_char), ['Ġ', 'Ċ', 'a', 'Ā', '\u{143}']);
        let all: String = (0..=255).map(byte_char).collect();
        let mut bytes = Vec::new();
        decode(&all, &mut bytes);
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert!((0..=255).all(|b| is_printable(b) == (u32::from(byte_char(b)) == u32::from(b))));
    }
}

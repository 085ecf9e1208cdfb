//! Merges of byte-pair encoding: neighbours become one symbol, lowest rank first.
//!
//! *Source*: Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units", 2016.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use super::TokenizerError;
use super::vocab::Vocab;
use crate::gguf::{Metadata, StringArray};

/// Marker of a missing neighbour.
const NONE: usize = usize::MAX;

/// Merge table. A symbol is a token, by its id, or an intermediate text of merges.
#[derive(Debug)]
pub(super) struct Merges {
    /// Rank and result of each pair.
    pairs: HashMap<(u32, u32), (u32, u32)>,
    /// First symbol that is not a token.
    tokens: u32,
    /// Texts of the symbols that are not tokens.
    extra: Vec<Box<str>>,
    known: HashMap<Box<str>, u32>,
}

struct Symbol {
    id: u32,
    prev: usize,
    next: usize,
}

impl Merges {
    pub fn from_metadata(metadata: &Metadata, vocab: &Vocab) -> Result<Merges, TokenizerError> {
        let lines = metadata.require::<&Arc<StringArray>>("tokenizer.ggml.merges")?;
        let mut merges =
            Merges { pairs: HashMap::new(), tokens: vocab.len() as u32, extra: Vec::new(), known: HashMap::new() };
        let mut whole = String::new();
        for (rank, line) in lines.iter().enumerate() {
            // A symbol may begin with a space.
            let Some(space) = line.bytes().skip(1).position(|b| b == b' ') else { continue };
            let (left, right) = (&line[..space + 1], &line[space + 2..]);
            whole.clear();
            whole.extend([left, right]);
            let pair = (merges.intern(vocab, left), merges.intern(vocab, right));
            let result = merges.intern(vocab, &whole);
            merges.pairs.entry(pair).or_insert((rank as u32, result));
        }
        Ok(merges)
    }

    /// Returns the symbol of a text; makes one if there is none.
    pub fn intern(&mut self, vocab: &Vocab, text: &str) -> u32 {
        self.find(vocab, text).unwrap_or_else(|| {
            let id = self.tokens + self.extra.len() as u32;
            self.extra.push(text.into());
            self.known.insert(text.into(), id);
            id
        })
    }

    /// Returns the symbol of a text, if there is one.
    pub fn find(&self, vocab: &Vocab, text: &str) -> Option<u32> {
        vocab.id(text).or_else(|| self.known.get(text).copied())
    }

    /// Returns the text of a symbol that is not a token.
    pub fn text(&self, symbol: u32) -> Option<&str> {
        self.extra.get(symbol.checked_sub(self.tokens)? as usize).map(|text| &**text)
    }

    /// Merges the pair of lowest rank, leftmost first, until none is left. A priority queue bounds the time by n log n.
    pub fn apply(&self, symbols: impl Iterator<Item = u32>) -> impl Iterator<Item = u32> {
        let mut symbols: Vec<Symbol> = symbols
            .enumerate()
            .map(|(i, id)| Symbol { id, prev: i.checked_sub(1).unwrap_or(NONE), next: i + 1 })
            .collect();
        if let Some(last) = symbols.last_mut() {
            last.next = NONE;
        }
        let mut queue = BinaryHeap::new();
        let offer = |queue: &mut BinaryHeap<_>, symbols: &[Symbol], left: usize| {
            let Some(pair) = pair_at(symbols, left) else { return };
            if let Some(&(rank, _)) = self.pairs.get(&pair) {
                queue.push(Reverse((rank, left, pair)));
            }
        };
        for left in 0..symbols.len() {
            offer(&mut queue, &symbols, left);
        }
        while let Some(Reverse((_, left, pair))) = queue.pop() {
            // The entry is stale if either symbol was merged since.
            if pair_at(&symbols, left) != Some(pair) {
                continue;
            }
            let Some(&(_, merged)) = self.pairs.get(&pair) else { continue };
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
        std::iter::from_fn(move || {
            let symbol = symbols.get(at)?;
            at = symbol.next;
            Some(symbol.id)
        })
    }
}

/// Returns the symbols at `left` and after it. A symbol that was merged away points at itself; it returns nothing.
fn pair_at(symbols: &[Symbol], left: usize) -> Option<(u32, u32)> {
    let symbol = symbols.get(left)?;
    let right = symbols.get(symbol.next)?;
    (symbol.next != left).then_some((symbol.id, right.id))
}

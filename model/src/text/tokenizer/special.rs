//! Splitting of a text at special tokens.

use std::collections::BTreeMap;
use std::mem;

use backend_api::sort_by_key;

use super::vocab::{TokenKind, Vocab};

/// Most bytes of a special token that is searched for. Known ones are shorter, and the limit bounds the work for each
/// byte of text.
const MAX_BYTES: usize = 256;

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fragment<'t> {
    Text(&'t str),
    Token(u32),
}

/// Tokens that take the white space next to them. GGUF does not have a key for it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Strips {
    /// Whether the mask token takes the white space before it.
    pub before_mask: bool,
    /// Whether tokens take the white space after them, except those that SentencePiece has.
    pub after: bool,
}

#[derive(Debug)]
pub(super) struct Specials {
    /// Control, unknown and user-defined tokens, ordered by text.
    ids: Vec<u32>,
    /// Index of the longest other token that is a prefix of each.
    shorter: Vec<Option<usize>>,
    strips: Strips,
}

impl Specials {
    /// Collects the special tokens.
    pub fn new(vocab: &Vocab, strips: Strips) -> Specials {
        let special = |id: &u32| {
            matches!(vocab.kind(*id), TokenKind::Control | TokenKind::Unknown | TokenKind::User)
                && vocab.text(*id).len() <= MAX_BYTES
        };
        let ids: Vec<u32> = vocab.by_text().iter().copied().filter(special).collect();
        Specials { shorter: shorter(vocab, &ids), ids, strips }
    }

    /// Splits a text at special tokens. Longer tokens take precedence over shorter ones, wherever they are; among those
    /// of equal length, the leftmost does. Control and unknown tokens count only with `parse_special`.
    pub fn partition<'t>(&self, vocab: &Vocab, text: &'t str, parse_special: bool) -> Vec<Fragment<'t>> {
        let counts = |place: &usize| parse_special || vocab.kind(self.ids[*place]) == TokenKind::User;
        let length = |place: usize| vocab.text(self.ids[place]).len();
        // At each position of the text, the longest candidate token waits in the list of its length.
        let mut waiting: Vec<Vec<(usize, usize)>> = vec![Vec::new(); MAX_BYTES + 1];
        for start in 0..text.len() {
            if let Some(longest) = self.longest(vocab, &text.as_bytes()[start..])
                && let Some(token) = self.not_longer(longest).find(counts)
            {
                waiting[length(token)].push((start, token));
            }
        }

        // Claimed ranges by start, with their end and token. Stripped white space does not have a token.
        let mut taken: BTreeMap<usize, (usize, Option<u32>)> = BTreeMap::new();
        for bytes in (1..=MAX_BYTES).rev() {
            let mut places = mem::take(&mut waiting[bytes]);
            sort_by_key(&mut places, |(start, _)| *start as u64);
            for (start, token) in places {
                let free = taken.range(..=start).next_back().map_or(0, |(_, &(taken_end, _))| taken_end);
                if free > start {
                    continue;
                }
                let limit = taken.range(start..).next().map_or(text.len(), |(&next, _)| next);
                let (end, id) = (start + bytes, self.ids[token]);
                if end > limit {
                    // A shorter token may fit before the next claimed range.
                    let fits = |place: &usize| length(*place) <= limit - start && counts(place);
                    if let Some(token) = self.not_longer(token).find(fits) {
                        waiting[length(token)].push((start, token));
                    }
                    continue;
                }
                let is_space = |b: &u8| *b == b' ' || (9..=13).contains(b);
                if self.strips.after && !matches!(vocab.text(id), "<unk>" | "<s>" | "<|endoftext|>") {
                    let space = text[end..limit].bytes().take_while(is_space).count();
                    if space > 0 {
                        taken.insert(end, (end + space, None));
                    }
                }
                if self.strips.before_mask && vocab.text(id) == "<mask>" {
                    let space = text[free..start].bytes().rev().take_while(is_space).count();
                    if space > 0 {
                        taken.insert(start - space, (start, None));
                    }
                }
                taken.insert(start, (end, Some(id)));
            }
        }

        let mut fragments = Vec::new();
        let mut at = 0;
        for (start, (end, token)) in taken {
            if start > at {
                fragments.push(Fragment::Text(&text[at..start]));
            }
            fragments.extend(token.map(Fragment::Token));
            at = end;
        }
        if at < text.len() {
            fragments.push(Fragment::Text(&text[at..]));
        }
        fragments
    }

    /// Iterates over a token and its prefixes among the special tokens, longest first.
    fn not_longer(&self, token: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(token), |token| self.shorter[*token])
    }

    /// Returns the longest special token that is a prefix of `rest`. The ordered list is narrowed byte by byte.
    fn longest(&self, vocab: &Vocab, rest: &[u8]) -> Option<usize> {
        let (mut begin, mut end) = (0, self.ids.len());
        let text = |place: usize| vocab.text(self.ids[place]).as_bytes();
        let mut last = text(end.checked_sub(1)?);
        let mut first = text(0);
        let mut found = None;
        for (depth, byte) in rest.iter().enumerate() {
            let search = |from: usize, to: usize, holds: &dyn Fn(Option<&u8>) -> bool| {
                from + self.ids[from..to].partition_point(|id| holds(vocab.text(*id).as_bytes().get(depth)))
            };
            // Only the first one can end here, since all texts differ.
            if first.len() == depth {
                begin += 1;
                first = if begin < end { text(begin) } else { break };
            }
            if first.get(depth) != Some(byte) {
                begin = search(begin, end, &|found| found < Some(byte));
                first = if begin < end { text(begin) } else { break };
            }
            if last.get(depth) != Some(byte) {
                end = search(begin, end, &|found| found == Some(byte));
                last = if begin < end { text(end - 1) } else { break };
            }
            if first.len() == depth + 1 {
                found = Some(begin);
            }
        }
        found
    }
}

/// Returns for each token, in the order of texts, the index of the longest other one that is a prefix of it.
fn shorter(vocab: &Vocab, ids: &[u32]) -> Vec<Option<usize>> {
    // These are the last token and its prefixes.
    let mut open: Vec<usize> = Vec::new();
    let mut out = Vec::with_capacity(ids.len());
    for (place, &id) in ids.iter().enumerate() {
        while open.pop_if(|last| !vocab.text(id).starts_with(vocab.text(ids[*last]))).is_some() {}
        out.push(open.last().copied());
        open.push(place);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::sync::Arc;

    use super::*;
    use crate::gguf::{Metadata, Value};

    fn vocab(texts: &[&str], kinds: &[i32]) -> Vocab {
        let mut metadata = Metadata::default();
        metadata.insert("tokenizer.ggml.tokens", Value::Strings(Arc::new(texts.iter().collect())));
        metadata.insert("tokenizer.ggml.token_type", Value::Ints(kinds.to_vec()));
        Vocab::from_metadata(&metadata).unwrap()
    }

    /// Reference implementation: considers all tokens at all positions, longest first, and keeps those that do not
    /// overlap an earlier one.
    fn plainly<'t>(vocab: &Vocab, text: &'t str, all: bool) -> Vec<Fragment<'t>> {
        let mut found: Vec<(usize, u32)> = Vec::new();
        for &id in vocab.by_text() {
            let counts = vocab.kind(id) == TokenKind::User || all && vocab.kind(id) == TokenKind::Control;
            let is_there = |at: &usize| counts && text[*at..].starts_with(vocab.text(id));
            found.extend((0..text.len()).filter(is_there).map(|at| (at, id)));
        }
        found.sort_by_key(|&(at, id)| (Reverse(vocab.text(id).len()), at));
        let mut taken: Vec<(usize, usize, u32)> = Vec::new();
        for (at, id) in found {
            let end = at + vocab.text(id).len();
            if taken.iter().all(|&(from, to, _)| end <= from || to <= at) {
                taken.push((at, end, id));
            }
        }
        taken.sort_unstable();
        let (mut fragments, mut at) = (Vec::new(), 0);
        for (from, to, id) in taken {
            if from > at {
                fragments.push(Fragment::Text(&text[at..from]));
            }
            fragments.push(Fragment::Token(id));
            at = to;
        }
        if at < text.len() {
            fragments.push(Fragment::Text(&text[at..]));
        }
        fragments
    }

    #[test]
    fn tokens_within_tokens_are_found_as_defined() {
        let texts = ["a", "aa", "aaa", "aab", "ab", "aba", "abab", "b", "ba", "bab", "bb", "c", "ca", "cab", "x"];
        let mut state = 1u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % below
        };
        for _ in 0..2000 {
            let kinds: Vec<i32> = texts.iter().map(|_| [1, 3, 4][random(3) as usize]).collect();
            let vocab = vocab(&texts, &kinds);
            let specials = Specials::new(&vocab, Strips::default());
            let text: String = (0..random(24)).map(|_| ['a', 'b', 'c', 'd'][random(4) as usize]).collect();
            for all in [false, true] {
                assert_eq!(specials.partition(&vocab, &text, all), plainly(&vocab, &text, all), "{text} {kinds:?}");
            }
        }
    }
}

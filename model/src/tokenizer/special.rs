//! Cuts text at special tokens.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::vocab::{TokenKind, Vocab};

/// Longer special tokens are not searched for: none is known, and the work for each byte of text stays bounded.
const MAX_BYTES: usize = 256;

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fragment<'t> {
    Text(&'t str),
    Token(u32),
}

#[derive(Debug)]
pub(super) struct Specials {
    /// Control, unknown and user-defined tokens, ordered by text.
    ids: Vec<u32>,
    /// Tokens that swallow the white space after them, ordered.
    rstrip: Vec<u32>,
}

impl Specials {
    /// `rstrip` says whether a special token of that text swallows the white space after it.
    pub fn new(vocab: &Vocab, rstrip: impl Fn(&str) -> bool) -> Specials {
        let special = |id: &u32| {
            matches!(vocab.kind(*id), TokenKind::Control | TokenKind::Unknown | TokenKind::User)
                && vocab.text(*id).len() <= MAX_BYTES
        };
        let ids: Vec<u32> = vocab.by_text().iter().copied().filter(special).collect();
        let mut rstrip: Vec<u32> = ids.iter().copied().filter(|&id| rstrip(vocab.text(id))).collect();
        rstrip.sort_unstable();
        Specials { ids, rstrip }
    }

    /// Longer tokens win over shorter ones, wherever they stand; among equals the leftmost wins. Control and unknown
    /// tokens count only with `parse_special`.
    pub fn partition<'t>(&self, vocab: &Vocab, text: &'t str, parse_special: bool) -> Vec<Fragment<'t>> {
        let mut found: Vec<(usize, u32)> = Vec::new();
        for at in 0..text.len() {
            self.matches_at(vocab, &text.as_bytes()[at..], &mut |id| {
                if parse_special || vocab.kind(id) == TokenKind::User {
                    found.push((at, id));
                }
            });
        }
        found.sort_unstable_by_key(|&(at, id)| (Reverse(vocab.text(id).len()), at));

        // Start of each claimed range, with its end and token; swallowed white space has none.
        let mut taken: BTreeMap<usize, (usize, Option<u32>)> = BTreeMap::new();
        for (start, id) in found {
            let end = start + vocab.text(id).len();
            let before = taken.range(..end).next_back();
            if before.is_some_and(|(_, &(taken_end, _))| taken_end > start) {
                continue;
            }
            if self.rstrip.binary_search(&id).is_ok() {
                let limit = taken.range(end..).next().map_or(text.len(), |(&next, _)| next);
                let space = text[end..limit].bytes().take_while(|&b| b == b' ' || (9..=13).contains(&b)).count();
                if space > 0 {
                    taken.insert(end, (end + space, None));
                }
            }
            taken.insert(start, (end, Some(id)));
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

    /// All special tokens that `rest` begins with: the ordered list is narrowed byte by byte.
    fn matches_at(&self, vocab: &Vocab, rest: &[u8], found: &mut dyn FnMut(u32)) {
        let mut ids = &self.ids[..];
        for (depth, byte) in rest.iter().enumerate() {
            let byte_at = |id: &u32| vocab.text(*id).as_bytes().get(depth).copied();
            let from = ids.partition_point(|id| byte_at(id) < Some(*byte));
            ids = &ids[from..];
            ids = &ids[..ids.partition_point(|id| byte_at(id) == Some(*byte))];
            match ids.first() {
                Some(&first) if vocab.text(first).len() == depth + 1 => found(first),
                Some(_) => {}
                None => return,
            }
        }
    }
}

//! Trie of byte strings: finds those that begin at a place of a text, in time by the length of the longest.

use super::vocab::Vocab;

/// Value of nodes where no string ends.
const NONE: u32 = u32::MAX;

/// Set of byte strings with a number each.
#[derive(Debug)]
pub(super) struct Trie {
    /// Where the children of each node begin; they end where those of the next node begin.
    first: Vec<u32>,
    /// Byte that leads to each node, in ascending order among the children of a node.
    bytes: Vec<u8>,
    /// Number of the string that ends at each node.
    values: Vec<u32>,
}

impl Trie {
    /// Builds the trie of the tokens that are wanted.
    pub fn of_tokens(vocab: &Vocab, wanted: &dyn Fn(u32) -> bool) -> Trie {
        let ids = vocab.by_text().iter().copied().filter(|id| wanted(*id));
        Trie::new(&ids.map(|id| (vocab.text(id).as_bytes(), id)).collect::<Vec<_>>())
    }

    /// Builds the trie of strings that are ordered. Of equal ones, the first counts. No number is `u32::MAX`.
    pub fn new(strings: &[(&[u8], u32)]) -> Trie {
        let mut trie = Trie { first: Vec::new(), bytes: vec![0], values: Vec::new() };
        // Strings below each node of a level. Levels follow each other, so that children lie side by side.
        let all = 0..strings.len();
        let mut level = vec![all];
        let mut depth = 0;
        while !level.is_empty() {
            let mut next = Vec::new();
            for range in level {
                let ends = strings[range.clone()].iter().take_while(|(text, _)| text.len() == depth).count();
                trie.values.push(if ends > 0 { strings[range.start].1 } else { NONE });
                trie.first.push(trie.bytes.len() as u32);
                let mut start = range.start + ends;
                while start < range.end {
                    let byte = strings[start].0[depth];
                    let end = start + strings[start..range.end].iter().take_while(|(t, _)| t[depth] == byte).count();
                    trie.bytes.push(byte);
                    next.push(start..end);
                    start = end;
                }
            }
            (level, depth) = (next, depth + 1);
        }
        trie.first.push(trie.bytes.len() as u32);
        trie.first.shrink_to_fit();
        trie.bytes.shrink_to_fit();
        trie.values.shrink_to_fit();
        trie
    }

    /// Iterates over the strings that `text` begins with, shortest first: their lengths and numbers.
    pub fn prefixes<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = (usize, u32)> + 't {
        self.walk(text).map(|(len, node)| (len, self.values[node])).filter(|&(_, value)| value != NONE)
    }

    /// Returns how many bytes `text` has in common with the string that shares the most.
    pub fn shared(&self, text: &[u8]) -> usize {
        self.walk(text).last().map_or(0, |(len, _)| len)
    }

    /// Follows a text from the root: the number of bytes, and the node.
    fn walk<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = (usize, usize)> + 't {
        let (mut node, mut len) = (0, 0);
        std::iter::from_fn(move || {
            let begin = self.first[node] as usize;
            let children = &self.bytes[begin..self.first[node + 1] as usize];
            node = begin + children.binary_search(text.get(len)?).ok()?;
            len += 1;
            Some((len, node))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_within_strings_are_found() {
        let strings: [&[u8]; 6] = [b"a", b"ab", b"ab", b"abc", b"b", b"bcd\xff"];
        let trie = Trie::new(&strings.into_iter().zip(0..).collect::<Vec<_>>());
        let found = |text: &[u8]| trie.prefixes(text).collect::<Vec<_>>();
        assert_eq!(found(b"abcd"), [(1, 0), (2, 1), (3, 3)], "of equal strings the first");
        assert_eq!(found(b"bcd\xff\xff"), [(1, 4), (4, 5)]);
        assert_eq!((found(b"c"), found(b"")), (vec![], vec![]));
        assert_eq!([&b"bce"[..], b"bcd", b"", b"x"].map(|text| trie.shared(text)), [2, 3, 0, 0]);
        let empty = Trie::new(&[]);
        assert_eq!((empty.shared(b"a"), empty.prefixes(b"a").count()), (0, 0));
    }
}

//! Map of normalization that SentencePiece precompiles: longest matches of byte strings and their replacements, in a
//! double array.
//!
//! *Source*: SentencePiece's `normalizer` (`precompiled_charsmap`), and the double array of darts-clone.

use super::TokenizerError;
use crate::gguf::Metadata;

const KEY: &str = "tokenizer.ggml.precompiled_charsmap";

/// Most bytes of a match. Known ones are shorter; the limit bounds the work for each byte of text.
const MAX_MATCH: usize = 256;
/// Most bytes of a replacement. Known ones are shorter; the limit bounds how much a text grows.
const MAX_REPLACEMENT: usize = 256;

/// Unit of the double array: a node, or the value of the node that leads to it.
#[derive(Debug, Clone, Copy)]
struct Unit(u32);

impl Unit {
    /// Byte that leads to the node. That of a value is larger than any byte.
    fn label(self) -> u32 {
        self.0 & 0x8000_00FF
    }

    /// Whether a match ends at the node.
    fn ends(self) -> bool {
        self.0 >> 8 & 1 == 1
    }

    /// Distance to the children of the node, as bits to invert in its place.
    fn offset(self) -> usize {
        ((self.0 >> 10) << ((self.0 & 1 << 9) >> 6)) as usize
    }

    /// Place of a replacement among the texts.
    fn value(self) -> usize {
        (self.0 & 0x7FFF_FFFF) as usize
    }
}

#[derive(Debug, Default)]
pub(super) struct Charsmap {
    units: Vec<Unit>,
    /// Replacements, each with a zero byte at its end.
    texts: Vec<u8>,
}

impl Charsmap {
    /// Reads the map of a file; one without matches if the file does not have a map.
    ///
    /// *Errors*: the map is malformed.
    pub fn from_metadata(metadata: &Metadata) -> Result<Charsmap, TokenizerError> {
        let malformed = |reason| TokenizerError::Malformed { key: KEY, reason };
        let Some(bytes) = metadata.get::<Vec<u8>>(KEY)? else { return Ok(Charsmap::default()) };
        if bytes.is_empty() {
            return Ok(Charsmap::default());
        }
        let split = bytes.split_first_chunk::<4>().and_then(|(len, rest)| {
            let len = u32::from_le_bytes(*len) as usize;
            len.is_multiple_of(4).then_some(())?;
            rest.split_at_checked(len)
        });
        let (units, texts) = split.ok_or(malformed("is cut off"))?;
        let units = units.as_chunks().0.iter().map(|unit| Unit(u32::from_le_bytes(*unit))).collect();
        let map = Charsmap { units, texts: texts.to_vec() };
        map.check().map_err(malformed)?;
        Ok(map)
    }

    /// Visits all nodes, each once, and checks that their values have a replacement.
    fn check(&self) -> Result<(), &'static str> {
        let root = self.units.first().ok_or("has no nodes")?;
        let mut seen = vec![false; self.units.len() / 256 * 256 + 256];
        let mut waiting = vec![root.offset()];
        while let Some(children) = waiting.pop() {
            match seen.get_mut(children) {
                None => return Err("leads outside of its nodes"),
                Some(true) => continue,
                Some(seen) => *seen = true,
            }
            for byte in 1..=255 {
                let Some((unit, children)) = self.step(children, byte) else { continue };
                if unit.ends() {
                    let value = self.units.get(children).ok_or("leads outside of its nodes")?;
                    let replacement = self.replacement(*value).ok_or("has a replacement without an end")?;
                    if replacement.len() > MAX_REPLACEMENT {
                        return Err("has a replacement of more than 256 bytes");
                    }
                }
                waiting.push(children);
            }
        }
        Ok(())
    }

    /// Goes from a node's children to the one that a byte leads to: the child, and the place of its children.
    fn step(&self, children: usize, byte: u8) -> Option<(Unit, usize)> {
        let at = children ^ usize::from(byte);
        let unit = *self.units.get(at)?;
        (unit.label() == u32::from(byte)).then_some((unit, at ^ unit.offset()))
    }

    fn replacement(&self, value: Unit) -> Option<&[u8]> {
        let text = self.texts.get(value.value()..)?;
        text.get(..text.iter().position(|byte| *byte == 0)?)
    }

    /// Returns the longest match at the beginning of a text: its length and its replacement.
    pub fn longest(&self, text: &[u8]) -> Option<(usize, &[u8])> {
        let mut children = self.units.first()?.offset();
        let mut longest = None;
        for (before, &byte) in text.iter().take(MAX_MATCH).take_while(|byte| **byte != 0).enumerate() {
            let Some((unit, next)) = self.step(children, byte) else { break };
            if unit.ends() {
                longest = self.units.get(next).map(|value| (before + 1, *value));
            }
            children = next;
        }
        let (len, value) = longest?;
        Some((len, self.replacement(value)?))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::gguf::Value;

    /// Makes a map in the form of files. Each node has a block of units for its children.
    pub fn charsmap(pairs: &[(&str, &str)]) -> Vec<u8> {
        let (mut units, mut texts) = (vec![0u32; 512], Vec::new());
        units[0] = 256 << 10;
        let mut nodes = BTreeMap::from([(&b""[..], (0, 256))]);
        for (text, replacement) in pairs {
            let text = text.as_bytes();
            for end in 1..=text.len() {
                let (_, children) = nodes[&text[..end - 1]];
                let at = children ^ usize::from(text[end - 1]);
                let place = units.len();
                nodes.entry(&text[..end]).or_insert_with(|| {
                    units.resize(place + 256, 0);
                    units[at] = ((at ^ place) as u32) << 10 | u32::from(text[end - 1]);
                    (at, place)
                });
            }
            let (at, children) = nodes[text];
            units[at] |= 1 << 8;
            units[children] = 1 << 31 | texts.len() as u32;
            texts.extend(replacement.bytes().chain([0]));
        }
        let len = (4 * units.len() as u32).to_le_bytes();
        len.into_iter().chain(units.iter().flat_map(|unit| unit.to_le_bytes())).chain(texts).collect()
    }

    fn read(map: &[u8]) -> Result<Charsmap, TokenizerError> {
        let mut metadata = Metadata::default();
        metadata.insert(KEY, Value::Ints(map.iter().map(|byte| i32::from(byte.cast_signed())).collect()));
        Charsmap::from_metadata(&metadata)
    }

    #[test]
    fn the_longest_match_is_replaced() {
        let map = read(&charsmap(&[("a", "b"), ("abc", ""), ("\u{e9}", "e\u{301}"), ("é!", "x")])).unwrap();
        let longest = |text: &str| map.longest(text.as_bytes()).map(|(len, text)| (len, String::from_utf8_lossy(text)));
        assert_eq!(longest("abd"), Some((1, "b".into())));
        assert_eq!(longest("abcd"), Some((3, "".into())));
        assert_eq!(longest("é?"), Some((2, "e\u{301}".into())));
        assert_eq!(longest("é!"), Some((3, "x".into())));
        assert_eq!((longest("b"), longest("\0"), longest("")), (None, None, None));
        assert!(Charsmap::default().longest(b"a").is_none());
    }

    #[test]
    fn a_map_is_checked_before_its_use() {
        let good = charsmap(&[("a", "b"), ("ab", "c")]);
        let units = u32::from_le_bytes(*good.first_chunk().unwrap()) as usize;
        let changed = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut map = good.clone();
            change(&mut map);
            read(&map).map(|_| ()).expect_err("malformed").to_string()
        };
        assert!(changed(&|map| map.truncate(4 + units)).contains("replacement without an end"));
        assert!(changed(&|map| map.truncate(units)).contains("cut off"));
        assert!(changed(&|map| map[4 + 4 * (256 + 97) + 3] = 0x7F).contains("leads outside"));
        let long = "b".repeat(MAX_REPLACEMENT + 1);
        assert!(read(&charsmap(&[("a", &long)])).unwrap_err().to_string().contains("256 bytes"));
        assert!(read(&charsmap(&[("a", &long[1..])])).is_ok());
        // A node that leads to itself: no end is searched for.
        let mut map = charsmap(&[("a", "b")]);
        map[4 + 4 * (256 + 97)..][..4].copy_from_slice(&(97u32 << 10 | 97).to_le_bytes());
        let map = read(&map).unwrap();
        assert!(map.longest(&[b'a'; 1000]).is_none());
    }
}

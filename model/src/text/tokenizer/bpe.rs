//! Byte-level BPE: each byte is written as a printable character, and neighbours merge in the order of their ranks.
//!
//! *Source*: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019.

use super::TokenizerError;
use super::merges::Merges;
use super::normalize::composed;
use super::pre::{Pre, Splitter};
use super::vocab::Vocab;
use crate::gguf::Metadata;

#[derive(Debug)]
pub(super) struct Bpe {
    splitter: Splitter,
    ignore_merges: bool,
    composes: bool,
    /// Symbol of each byte.
    bytes: [u32; 256],
    merges: Merges,
}

impl Bpe {
    pub fn from_metadata(metadata: &Metadata, vocab: &Vocab, pre: &Pre) -> Result<Bpe, TokenizerError> {
        let splitter = Splitter::new(pre)?;
        let mut merges = Merges::from_metadata(metadata, vocab)?;
        let bytes = std::array::from_fn(|b| merges.intern(vocab, byte_char(b as u8).encode_utf8(&mut [0; 4])));
        Ok(Bpe { splitter, ignore_merges: pre.ignore_merges, composes: pre.composes, bytes, merges })
    }

    /// How many times shorter a text may become before it is cut.
    ///
    /// *Source*: Unicode Standard Annex 15: NFC makes at most three bytes of UTF-8 one.
    pub fn most_shrinking(&self) -> usize {
        if self.composes { 3 } else { 1 }
    }

    pub fn encode(&self, vocab: &Vocab, text: &str, out: &mut Vec<u32>) {
        let text = if self.composes { composed(text) } else { text.into() };
        for piece in self.splitter.split(&text) {
            if self.ignore_merges {
                let mapped: String = piece.iter().copied().map(byte_char).collect();
                if let Some(id) = vocab.id(&mapped) {
                    out.push(id);
                    continue;
                }
            }
            for symbol in self.merges.apply(piece.iter().map(|b| self.bytes[usize::from(*b)])) {
                // A symbol that is not a token is replaced by the tokens of its characters, as far as these exist.
                match self.merges.text(symbol) {
                    None => out.push(symbol),
                    Some(text) => out.extend(text.chars().filter_map(|c| vocab.id(c.encode_utf8(&mut [0; 4])))),
                }
            }
        }
    }
}

/// Returns whether a byte stands for itself: printable Latin-1. The other bytes are mapped to U+0100 and up, in order.
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

/// Appends the bytes that a token's characters stand for. Characters outside the alphabet stand for themselves.
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

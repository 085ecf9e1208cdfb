//! RWKV: the longest token, from the left to the right. Texts of tokens are escaped, since they may be any bytes.
//!
//! *Source*: the published tokenizer of RWKV World.

use super::TokenizerError;
use super::trie::Trie;
use super::vocab::{Vocab, sorted};

#[derive(Debug)]
pub(super) struct Rwkv {
    tokens: Trie,
    unknown: Option<u32>,
}

impl Rwkv {
    pub fn new(vocab: &Vocab, unknown: Option<u32>) -> Result<Rwkv, TokenizerError> {
        let reason = "has a token whose \\x is not followed by two hexadecimal digits";
        let malformed = TokenizerError::Malformed { key: "tokenizer.ggml.tokens", reason };
        let ids = 0..vocab.len() as u32;
        let bytes: Vec<Vec<u8>> = ids.map(|id| unescape(vocab.text(id))).collect::<Option<_>>().ok_or(malformed)?;
        let bytes_of = |id: u32| &bytes[id as usize][..];
        let tokens: Vec<(&[u8], u32)> =
            sorted(vocab.len(), &bytes_of).into_iter().map(|id| (bytes_of(id), id)).collect();
        Ok(Rwkv { tokens: Trie::new(&tokens), unknown })
    }

    /// Tokenizes a text that has no special tokens. A byte that no token begins with is unknown.
    pub fn encode(&self, text: &[u8], out: &mut Vec<u32>) {
        let mut rest = text;
        while !rest.is_empty() {
            let longest = self.tokens.prefixes(rest).last();
            out.extend(longest.map(|(_, id)| id).or(self.unknown));
            rest = &rest[longest.map_or(1, |(len, _)| len)..];
        }
    }
}

/// Returns the bytes that an escaped text stands for; nothing if an escape is malformed.
pub(super) fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(mut c) = chars.next() {
        if c == '\\' {
            match chars.next() {
                Some('t') => c = '\t',
                Some('n') => c = '\n',
                Some('r') => c = '\r',
                Some('x') => {
                    let mut digit = || chars.next()?.to_digit(16);
                    out.push((digit()? << 4 | digit()?) as u8);
                    continue;
                }
                // A backslash at the end stands for itself.
                escaped => c = escaped.unwrap_or(c),
            }
        }
        out.extend(c.encode_utf8(&mut [0; 4]).bytes());
    }
    Some(out)
}

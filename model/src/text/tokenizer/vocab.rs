//! Vocabulary: texts and kinds of tokens, and the lookup from text to id.

use std::sync::Arc;

use super::TokenizerError;
use crate::gguf::{Metadata, StringArray};

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// Text, in the tokenizer's encoding.
    Normal,
    /// Placeholder for text that the vocabulary cannot express.
    Unknown,
    /// Control token, such as the end of a turn; not shown.
    Control,
    /// User-defined text that is always one token.
    User,
    /// A single byte.
    Byte,
    /// A token that is never shown.
    Unused,
    /// A token whose kind is not known; treated like an unused one.
    Undefined,
}

impl TokenKind {
    /// Converts a value of `tokenizer.ggml.token_type`.
    fn from_gguf(value: u32) -> TokenKind {
        match value {
            1 => TokenKind::Normal,
            2 => TokenKind::Unknown,
            3 => TokenKind::Control,
            4 => TokenKind::User,
            5 => TokenKind::Unused,
            6 => TokenKind::Byte,
            _ => TokenKind::Undefined,
        }
    }
}

#[derive(Debug)]
pub(super) struct Vocab {
    tokens: Arc<StringArray>,
    kinds: Vec<TokenKind>,
    /// Whether the file has the kinds of tokens.
    has_kinds: bool,
    /// Ids ordered by text. Among equal texts, only the last id. It takes a quarter of the memory of a hash map, and is
    /// fast enough.
    by_text: Vec<u32>,
}

impl Vocab {
    pub fn from_metadata(metadata: &Metadata) -> Result<Vocab, TokenizerError> {
        let mut tokens = Arc::clone(metadata.require::<&Arc<StringArray>>("tokenizer.ggml.tokens")?);
        if tokens.iter().any(str::is_empty) {
            let named = |(i, t): (usize, &str)| if t.is_empty() { format!("[EMPTY_{i}]") } else { t.to_owned() };
            tokens = Arc::new(tokens.iter().enumerate().map(named).collect());
        }
        let key = "tokenizer.ggml.token_type";
        let types = metadata.get::<Vec<u32>>(key)?;
        let has_kinds = types.is_some();
        let kinds = match types {
            Some(types) => types.into_iter().map(TokenKind::from_gguf).collect(),
            None => vec![TokenKind::Normal; tokens.len()],
        };
        check_len(key, kinds.len(), tokens.len())?;

        let text = |id: u32| tokens.get(id as usize).unwrap_or_default().as_bytes();
        let mut by_text = sorted(tokens.len(), &text);
        by_text.dedup_by(|a, b| text(*a) == text(*b));
        Ok(Vocab { tokens, kinds, has_kinds, by_text })
    }

    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Returns the text as stored; empty for ids out of range.
    pub fn text(&self, id: u32) -> &str {
        self.tokens.get(id as usize).unwrap_or_default()
    }

    pub fn kind(&self, id: u32) -> TokenKind {
        self.kinds.get(id as usize).copied().unwrap_or(TokenKind::Undefined)
    }

    /// Returns whether the file has the kinds of tokens.
    pub fn has_kinds(&self) -> bool {
        self.has_kinds
    }

    pub fn set_kind(&mut self, id: u32, kind: TokenKind) {
        if let Some(slot) = self.kinds.get_mut(id as usize) {
            *slot = kind;
        }
    }

    /// Returns the token with exactly this text.
    pub fn id(&self, text: &str) -> Option<u32> {
        let at = self.by_text.binary_search_by(|&id| self.text(id).cmp(text)).ok()?;
        self.by_text.get(at).copied()
    }

    /// Returns the longest token that is a prefix of a text, and its bytes. The ordered list is narrowed byte by byte.
    pub fn longest_prefix(&self, text: &str) -> Option<(u32, usize)> {
        let mut ids = &self.by_text[..];
        let mut longest = None;
        for (depth, byte) in text.bytes().enumerate() {
            let byte_at = |id: &u32| self.text(*id).as_bytes().get(depth).copied();
            ids = &ids[ids.partition_point(|id| byte_at(id) < Some(byte))..];
            ids = &ids[..ids.partition_point(|id| byte_at(id) == Some(byte))];
            let Some(&first) = ids.first() else { break };
            if self.text(first).len() == depth + 1 {
                longest = Some((first, depth + 1));
            }
        }
        longest
    }

    /// Returns the ids ordered by text.
    pub fn by_text(&self) -> &[u32] {
        &self.by_text
    }
}

/// Returns the ids ordered by what they stand for; of equal ones, the last comes first.
pub(super) fn sorted<'t>(len: usize, bytes: &dyn Fn(u32) -> &'t [u8]) -> Vec<u32> {
    let mut ids: Vec<u32> = (0..len as u32).collect();
    ids.sort_unstable_by(|a, b| bytes(*a).cmp(bytes(*b)).then(b.cmp(a)));
    ids
}

pub(super) fn check_len(key: &'static str, found: usize, tokens: usize) -> Result<(), TokenizerError> {
    if found == tokens { Ok(()) } else { Err(TokenizerError::Length { key, found, tokens }) }
}

//! Pairs of texts, such as a query and a document, as rerankers read them.

use super::{Algorithm, Tokenizer};
use crate::gguf::{GgufError, Metadata};

/// Names of pre-tokenizers whose families put a separator between two texts if files do not say it.
const SEPARATED: [&str; 3] = ["jina-v1-en", "jina-v2-code", "roberta-bpe"];

/// How two texts are joined.
#[derive(Debug, Default)]
pub(super) struct Pair {
    /// A text with places for both.
    template: Option<String>,
    /// Tokens before the first text, after either, and between them, where there are some.
    bos: Option<u32>,
    eos: Option<u32>,
    sep: Option<u32>,
}

impl Pair {
    /// Reads how a file's family joins texts. `bos` and `eos` are the marks of a text, and whether texts begin with
    /// one by default.
    ///
    /// *Errors*: metadata is of the wrong type.
    pub fn from_metadata(
        metadata: &Metadata,
        algorithm: Algorithm,
        (bos, begins): (Option<u32>, bool),
        (eos, ends): (Option<u32>, bool),
    ) -> Result<Pair, GgufError> {
        let key = |name: &str| format!("tokenizer.ggml.{name}");
        let is_wordpiece = algorithm == Algorithm::WordPiece;
        let sep = metadata.get::<u32>(&key("seperator_token_id"))?.or(eos.filter(|_| is_wordpiece));
        let separated = metadata.get::<&str>(&key("pre"))?.is_some_and(|pre| SEPARATED.contains(&pre));
        let separates = metadata.get::<bool>(&key("add_sep_token"))?.unwrap_or(is_wordpiece || separated);
        Ok(Pair {
            template: metadata.get::<&str>("tokenizer.chat_template.rerank")?.map(Into::into),
            bos: bos.filter(|_| begins),
            eos: eos.or(sep).filter(|_| ends),
            sep: sep.filter(|_| separates),
        })
    }
}

impl Tokenizer {
    /// Tokenizes a query and a document for a reranker, as its file says: by a template, or joined by special tokens.
    pub fn encode_pair(&self, query: &str, document: &str) -> Vec<u32> {
        let Pair { template, bos, eos, sep } = &self.pair;
        if let Some(template) = template {
            let text = template.replace("{query}", query).replace("{document}", document);
            return self.encode(&text, false, true);
        }
        let mut tokens: Vec<u32> = bos.iter().copied().collect();
        tokens.extend(self.encode(query, false, false));
        tokens.extend(eos.iter().chain(sep));
        tokens.extend(self.encode(document, false, false));
        tokens.extend(eos);
        tokens
    }
}

//! Pairs of texts, such as a query and a document, as rerankers read them.

use super::Tokenizer;

/// How two texts are joined: by a template, or as `bos`, the first text, `eos`, `sep`, the second text, and `eos` again.
#[derive(Debug, Default)]
pub(super) struct Pair {
    /// A text with places for both.
    pub template: Option<String>,
    /// Begins the sequence. As the others, it is absent if the file does not add it.
    pub bos: Option<u32>,
    /// Ends each text. It is the separator if the file has no other end.
    pub eos: Option<u32>,
    /// Separates the texts.
    pub sep: Option<u32>,
}

impl Tokenizer {
    /// Tokenizes a query and a document for a reranker, as its file says.
    pub fn encode_pair(&self, query: &str, document: &str) -> Vec<u32> {
        let Pair { template, bos, eos, sep } = &self.pair;
        if let Some(template) = template {
            let text = template.replace("{query}", query).replace("{document}", document);
            return self.encode(&text, false, true);
        }
        let [query, document] = [query, document].map(|text| self.encode(text, false, false));
        let mut tokens = Vec::from_iter(*bos);
        tokens.extend(query.into_iter().chain(*eos).chain(*sep).chain(document).chain(*eos));
        tokens
    }
}

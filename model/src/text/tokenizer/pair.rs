//! Pairs of texts, such as a query and a document, as rerankers read them.

use super::{Tokenizer, TokenizerError};
use crate::gguf::Metadata;

/// Key of the template.
const KEY: &str = "tokenizer.chat_template.rerank";
/// Places for the texts in a template.
const PLACES: [&str; 2] = ["{query}", "{document}"];
/// Most places in a template, so that a short file does not make long texts of short ones.
const MOST_PLACES: usize = 8;

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

/// Reads the template of a file, if it has one.
///
/// *Errors*: the wrong type, or more than [`MOST_PLACES`].
pub(super) fn template(metadata: &Metadata) -> Result<Option<String>, TokenizerError> {
    let Some(template) = metadata.get::<&str>(KEY)? else { return Ok(None) };
    if PLACES.iter().map(|place| template.matches(place).count()).sum::<usize>() > MOST_PLACES {
        let reason = "has more than 8 places for the query and the document";
        return Err(TokenizerError::Malformed { key: KEY, reason });
    }
    Ok(Some(template.into()))
}

/// Puts a query and then a document into a template. So a query that names the document's place gets it too, as
/// elsewhere; but one that does so in more than [`MOST_PLACES`] keeps its words.
fn filled(template: &str, query: &str, document: &str) -> String {
    let text = template.replace(PLACES[0], query);
    if text.matches(PLACES[1]).nth(MOST_PLACES).is_none() {
        return text.replace(PLACES[1], document);
    }
    let parts: Vec<String> = template.split(PLACES[0]).map(|part| part.replace(PLACES[1], document)).collect();
    parts.join(query)
}

impl Tokenizer {
    /// Tokenizes a query and a document for a reranker, as its file says.
    pub fn encode_pair(&self, query: &str, document: &str) -> Vec<u32> {
        let Pair { template, bos, eos, sep } = &self.pair;
        if let Some(template) = template {
            return self.encode(&filled(template, query, document), false, true);
        }
        let [query, document] = [query, document].map(|text| self.encode(text, false, false));
        let mut tokens = Vec::from_iter(*bos);
        tokens.extend(query.into_iter().chain(*eos).chain(*sep).chain(document).chain(*eos));
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf::Gguf;
    use crate::gguf::writer::{Writer, string};

    #[test]
    fn a_query_may_name_the_place_of_the_document_a_few_times() {
        let template = "Q: {query} D: {document} Q: {query}";
        let query = "{document}".repeat(1000);
        assert_eq!(filled(template, "a", "b"), "Q: a D: b Q: a");
        assert_eq!(filled(template, "a {document}", "{query}"), "Q: a {query} D: {query} Q: a {query}");
        assert_eq!(filled(template, &query, "{query}"), format!("Q: {query} D: {{query}} Q: {query}"));
    }

    #[test]
    fn templates_with_many_places_are_refused() {
        let read = |template: &str| {
            let file = Writer::default().pair(KEY, 8, &string(template.as_bytes())).bytes();
            super::template(&Gguf::from_bytes(&file).unwrap().metadata)
        };
        assert_eq!(read("{query} {document}").unwrap().unwrap(), "{query} {document}");
        assert!(read(&"{query}{document}".repeat(4)).is_ok());
        let refused = read(&"{query}{document}".repeat(5)).unwrap_err().to_string();
        assert!(refused.contains(KEY) && refused.contains("more than 8 places"), "{refused}");
    }
}

//! Requests to rank documents by a query, as Jina's, Cohere's and llama.cpp's servers have them, and Hugging Face's.

use crate::error::Refusal;
use crate::fields::Kind::{Boolean, Checked, Integer, Text};
use crate::fields::Rule::{Ignored, Only, Use};
use crate::fields::{Notes, Table, check, refused};
use crate::request::{MOST, MOST_TEXTS, Prompt, Sound};
use serde_json::{Value, json};

/// Kind of a list of documents, in errors.
const DOCUMENTS: &str = "an array of strings";

/// Fields of a request to rank documents.
pub const RERANK: Table = &[
    ("query", Use(Text)),
    ("documents", Use(Checked(DOCUMENTS, check_documents))),
    ("texts", Use(Checked(DOCUMENTS, check_documents))),
    ("model", Use(Text)),
    ("top_n", Use(Integer(1, MOST))),
    ("return_documents", Use(Boolean)),
    ("return_text", Use(Boolean)),
    ("raw_scores", Ignored),
    ("truncate", Only(&["false"], "documents are read as a whole; shorten those that do not fit")),
    ("user", Ignored),
];

/// Parses documents: strings, or objects with a text.
fn documents(name: &str, value: &Value) -> Result<Vec<String>, Refusal> {
    let documents = value.as_array().ok_or_else(|| refused(name, DOCUMENTS, value))?;
    if documents.len() > MOST_TEXTS {
        return Err(Refusal::new(format!("{name} can have {MOST_TEXTS} texts, not {}", documents.len())).about(name));
    }
    let text = |(at, document): (usize, &Value)| {
        let text = document.as_str().or_else(|| document.get("text")?.as_str());
        text.map(Into::into).ok_or_else(|| refused(&format!("{name}[{at}]"), "a string", document))
    };
    documents.iter().enumerate().map(text).collect()
}

fn check_documents(name: &str, value: &Value, _: &Notes) -> Result<(), Refusal> {
    documents(name, value).map(|_| ())
}

/// A request to rank documents.
#[derive(Debug, Clone, PartialEq)]
pub struct RerankRequest {
    /// The query.
    pub query: String,
    /// The documents.
    pub documents: Vec<String>,
    /// Most results.
    pub top_n: usize,
    /// Whether results have their documents.
    pub with_documents: bool,
    /// Name of the model.
    pub model: Option<String>,
    /// Whether the documents were called texts. Then the answer is a bare list, as Hugging Face's server gives it.
    pub bare: bool,
}

impl RerankRequest {
    /// Reads and validates a request.
    ///
    /// *Errors*: a field is invalid or missing; the error names it.
    pub fn read(value: &Value, notes: &Notes) -> Result<RerankRequest, Refusal> {
        let sound = Sound(check("", value, &[RERANK], notes)?);
        let query = sound.string("query").ok_or_else(|| refused("query", "a string", &Value::Null))?;
        let bare = sound.get("documents").is_none() && sound.get("texts").is_some();
        let name = if bare { "texts" } else { "documents" };
        let documents = documents(name, sound.get(name).unwrap_or(&Value::Null))?;
        Ok(RerankRequest {
            query: query.into(),
            top_n: sound.size("top_n").unwrap_or(documents.len()),
            documents,
            with_documents: sound.is_true("return_documents") || sound.is_true("return_text"),
            model: sound.string("model").map(Into::into),
            bare,
        })
    }

    /// Returns the query with each document.
    pub fn pairs(&self) -> Vec<Prompt> {
        self.documents.iter().map(|document| Prompt::Pair(self.query.clone(), document.clone())).collect()
    }

    /// Returns the answer for the documents' scores.
    pub fn answer(&self, scores: &[f32], model: &str, prompt_tokens: usize) -> Value {
        let result = |(index, score): (usize, f32)| {
            let document = self.documents.get(index).filter(|_| self.with_documents);
            match (self.bare, document) {
                (true, None) => json!({ "index": index, "score": score }),
                (true, Some(text)) => json!({ "index": index, "score": score, "text": text }),
                (false, None) => json!({ "index": index, "relevance_score": score }),
                (false, Some(text)) => {
                    json!({ "index": index, "relevance_score": score, "document": { "text": text } })
                }
            }
        };
        let results: Vec<Value> = ranked(scores, self.top_n).into_iter().map(result).collect();
        if self.bare {
            return json!(results);
        }
        let usage = json!({ "prompt_tokens": prompt_tokens, "total_tokens": prompt_tokens });
        json!({ "object": "list", "model": model, "results": results, "usage": usage })
    }
}

/// Returns the indices and scores of the best documents, at most `top_n`: the best first, of equals the first first.
pub fn ranked(scores: &[f32], top_n: usize) -> Vec<(usize, f32)> {
    let mut best: Vec<(usize, f32)> = scores.iter().copied().enumerate().collect();
    best.sort_by(|a, b| b.1.total_cmp(&a.1));
    best.truncate(top_n);
    best
}

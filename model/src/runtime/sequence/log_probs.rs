//! Log probabilities of chosen tokens and of their alternatives.

use backend_api::run::{Host, finish_read};
use backend_api::{Backend, Error, ReadId, StorageId};
use serde::Serialize;

use crate::arch::MAX_TOP;
use crate::text::tokenizer::Tokenizer;

/// Logarithm that stands for smaller ones and for probability 0.
const LEAST: f32 = -9999.0;

/// Natural logarithms of the probabilities of the chosen token and of the likeliest ones at its position, before
/// temperature, penalties and biases.
#[derive(Debug, Clone, PartialEq)]
pub struct LogProb {
    /// The chosen token.
    pub token: u32,
    /// Logarithm of its probability.
    pub log_prob: f32,
    /// The likeliest tokens, best first.
    pub top: Vec<(u32, f32)>,
}

impl LogProb {
    /// Converts it to OpenAI's format: an entry of `logprobs.content`.
    pub fn entry(&self, tokenizer: Option<&Tokenizer>) -> LogProbEntry {
        let top_logprobs = self.top.iter().map(|(id, logprob)| TokenEntry::new(*id, *logprob, tokenizer));
        LogProbEntry {
            chosen: TokenEntry::new(self.token, self.log_prob, tokenizer),
            top_logprobs: top_logprobs.collect(),
        }
    }
}

/// Entry of `logprobs.content` in OpenAI's API.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogProbEntry {
    /// The chosen token.
    #[serde(flatten)]
    pub chosen: TokenEntry,
    /// The likeliest tokens.
    pub top_logprobs: Vec<TokenEntry>,
}

/// A token with its probability, in OpenAI's format.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TokenEntry {
    /// The text; U+FFFD stands for incomplete characters.
    pub token: String,
    /// Natural logarithm of the probability.
    pub logprob: f32,
    /// The bytes. A character may be spread over several tokens.
    pub bytes: Vec<u8>,
}

impl TokenEntry {
    fn new(id: u32, logprob: f32, tokenizer: Option<&Tokenizer>) -> TokenEntry {
        let mut bytes = Vec::new();
        tokenizer.into_iter().for_each(|tokenizer| tokenizer.write_piece(id, true, &mut bytes));
        TokenEntry { token: String::from_utf8_lossy(&bytes).into_owned(), logprob, bytes }
    }
}

/// Outputs of a step with a head that reports probabilities: those of the chosen token and of the likeliest ones, and
/// the ids of the latter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told<T> {
    pub values: T,
    pub ids: T,
}

impl Told<StorageId> {
    /// Begins to read a row of the outputs.
    pub fn begin(self, row: usize, backend: &dyn Backend) -> Result<Told<ReadId>, Error> {
        Ok(Told { values: backend.read(self.values, row, 1)?, ids: backend.read(self.ids, row, 1)? })
    }
}

impl Told<ReadId> {
    /// Waits for the reads. The outputs have `likeliest` tokens, of which the first `top` are returned.
    pub async fn finish(
        self,
        (likeliest, top): (usize, usize),
        token: u32,
        backend: &dyn Backend,
        host: &dyn Host,
    ) -> Result<LogProb, Error> {
        let (mut values, mut ids) = ([0f32; 1 + MAX_TOP], [0u32; MAX_TOP]);
        let read =
            finish_read(backend, self.values, bytemuck::cast_slice_mut(&mut values[..1 + likeliest]), host).await;
        // This also runs after a failure: unfinished reads hold memory.
        finish_read(backend, self.ids, bytemuck::cast_slice_mut(&mut ids[..likeliest]), host).await.and(read)?;
        let log = |p: f32| p.ln().max(LEAST);
        let [chosen, others @ ..] = values;
        let top = ids.into_iter().zip(others.map(log)).take(top.min(likeliest)).collect();
        Ok(LogProb { token, log_prob: log(chosen), top })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_those_of_the_api() {
        let told = LogProb { token: 3, log_prob: -0.5, top: vec![(3, -0.5), (4, LEAST)] };
        let entry = serde_json::to_string(&told.entry(None)).unwrap();
        let none = r#"{"token":"","logprob":-9999.0,"bytes":[]}"#;
        let one = r#""token":"","logprob":-0.5,"bytes":[]"#;
        assert_eq!(entry, format!(r#"{{{one},"top_logprobs":[{{{one}}},{none}]}}"#));
    }
}

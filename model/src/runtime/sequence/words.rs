//! Conversion of generated tokens to text.

use super::stop::StopFilter;
use crate::text::tokenizer::{StreamDecoder, Tokenizer};

/// Text of generated tokens. Characters may be spread over several tokens, and text that may be the beginning of a stop
/// string is held back.
#[derive(Debug)]
pub struct Words {
    decoder: StreamDecoder,
    filter: StopFilter,
    decoded: String,
    text: String,
}

impl Words {
    /// Makes an empty text. The control tokens in `shown` are part of it, and it ends before any string of `stop`.
    pub fn new(shown: &[u32], stop: &[String]) -> Words {
        Words {
            decoder: StreamDecoder::showing(shown),
            filter: StopFilter::new(stop.to_vec()),
            decoded: String::new(),
            text: String::new(),
        }
    }

    /// Takes a token. Returns the text that is final by now, and whether a stop string has come.
    pub fn push(&mut self, tokenizer: &Tokenizer, token: u32) -> (&str, bool) {
        let shown = self.text.len();
        self.decoded.clear();
        self.decoder.push(tokenizer, token, &mut self.decoded);
        let stopped = self.filter.push(&self.decoded, &mut self.text);
        (&self.text[shown..], stopped)
    }

    /// Ends the text, and returns the held rest.
    pub fn finish(&mut self) -> &str {
        let shown = self.text.len();
        self.decoded.clear();
        self.decoder.finish(&mut self.decoded);
        self.filter.push(&self.decoded, &mut self.text);
        self.filter.finish(&mut self.text);
        &self.text[shown..]
    }

    /// Takes all text.
    pub fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

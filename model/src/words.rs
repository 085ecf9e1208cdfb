//! Tokens become text.

use crate::request::GenerateOptions;
use crate::stop::StopFilter;
use crate::tokenizer::{StreamDecoder, Tokenizer};

/// The text of tokens as they come: characters may be spread over several of them, and what may turn out to be the
/// beginning of a stop string is held back.
#[derive(Debug)]
pub struct Words {
    decoder: StreamDecoder,
    filter: StopFilter,
    decoded: String,
    text: String,
}

impl Words {
    /// No text yet, of an answer that options ask for.
    pub fn new(options: &GenerateOptions) -> Words {
        Words {
            decoder: StreamDecoder::showing(&options.shown),
            filter: StopFilter::new(options.stop.clone()),
            decoded: String::new(),
            text: String::new(),
        }
    }

    /// Takes a token. Gives text that is certain by now, and whether a stop string has come.
    pub fn push(&mut self, tokenizer: &Tokenizer, token: u32) -> (&str, bool) {
        let shown = self.text.len();
        self.decoded.clear();
        self.decoder.push(tokenizer, token, &mut self.decoded);
        let stopped = self.filter.push(&self.decoded, &mut self.text);
        (&self.text[shown..], stopped)
    }

    /// Gives what was held back: the text ends.
    pub fn finish(&mut self) -> &str {
        let shown = self.text.len();
        self.decoded.clear();
        self.decoder.finish(&mut self.decoded);
        self.filter.push(&self.decoded, &mut self.text);
        self.filter.finish(&mut self.text);
        &self.text[shown..]
    }

    /// All text that was given.
    pub fn into_text(self) -> String {
        self.text
    }
}

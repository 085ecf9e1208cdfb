//! Decoding of tokens that are generated one by one.

use super::Tokenizer;

/// Incremental decoder of tokens. An incomplete character waits for the next token.
///
/// White space and punctuation are not cleaned up as in [`Tokenizer::decode`], since earlier output cannot be changed.
#[derive(Debug, Clone, Default)]
pub struct StreamDecoder {
    held: Vec<u8>,
    shown: Vec<u32>,
}

impl StreamDecoder {
    /// Makes a decoder that shows these control tokens, and no others.
    pub fn showing(shown: &[u32]) -> StreamDecoder {
        StreamDecoder { held: Vec::new(), shown: shown.to_vec() }
    }

    /// Takes a token, and appends to `out` the text that is final by now.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: u32, out: &mut String) {
        tokenizer.write_piece(id, self.shown.contains(&id), &mut self.held);
        let used = drain_chars(&self.held, out);
        self.held.drain(..used);
    }

    /// Ends the text: an incomplete character becomes U+FFFD.
    pub fn finish(&mut self, out: &mut String) {
        if !self.held.is_empty() {
            out.push(char::REPLACEMENT_CHARACTER);
            self.held.clear();
        }
    }
}

/// Appends complete characters, and U+FFFD for invalid bytes. Returns the number of bytes that were used.
fn drain_chars(bytes: &[u8], out: &mut String) -> usize {
    let mut used = 0;
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        used += chunk.valid().len();
        let invalid = chunk.invalid();
        let incomplete =
            used + invalid.len() == bytes.len() && std::str::from_utf8(invalid).is_err_and(|e| e.error_len().is_none());
        if !invalid.is_empty() && !incomplete {
            out.push(char::REPLACEMENT_CHARACTER);
            used += invalid.len();
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_characters_wait() {
        let llama = "🦙".as_bytes();
        for cut in 1..llama.len() {
            let mut out = String::new();
            assert_eq!(drain_chars(&llama[..cut], &mut out), 0);
            assert_eq!(drain_chars(llama, &mut out), 4);
            assert_eq!(out, "🦙");
        }
        let mut out = String::new();
        assert_eq!(drain_chars(b"a\xffb\xc3", &mut out), 3);
        assert_eq!(out, "a\u{fffd}b");
        let mut decoder = StreamDecoder { held: vec![0xc3], ..StreamDecoder::default() };
        decoder.finish(&mut out);
        assert_eq!(out, "a\u{fffd}b\u{fffd}");
    }
}

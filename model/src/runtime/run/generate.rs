//! Generation of a text: a sequence is run to its end.

use backend_api::run::Host;

use super::Run;
use crate::error::ModelError;
use crate::runtime::sequence::{GenerateOptions, Generation, OnPiece, Sequence};
use crate::runtime::session::Session;
use crate::text::tokenizer::Tokenizer;

impl Session {
    /// Makes the sequence that continues a text, whose last tokens are those of `options.done`.
    ///
    /// *Errors*: options out of range; a text that does not fit the context.
    pub fn sequence(
        &self,
        text: &[u32],
        options: &GenerateOptions,
        tokenizer: Option<&Tokenizer>,
    ) -> Result<Sequence, ModelError> {
        Sequence::new(text, options, tokenizer, self.model().recipe().sizes())
    }

    /// Adds a prompt to the session's text and generates the continuation, as [`Self::generate_after`] does.
    ///
    /// *Errors*: as [`Self::generate_after`].
    pub async fn generate(
        &mut self,
        prompt: &[u32],
        options: &GenerateOptions,
        tokenizer: Option<&Tokenizer>,
        host: &dyn Host,
        on_piece: &mut OnPiece<'_>,
    ) -> Result<Generation, ModelError> {
        if prompt.is_empty() {
            return Err(ModelError::EmptyPrompt);
        }
        let text = [self.tokens(), prompt].concat();
        self.generate_after(&text, options, tokenizer, host, on_piece).await
    }

    /// Generates the continuation of a text. Reuses the beginning that the session has already computed. Afterwards the
    /// session has the prompt and all new tokens except the last, whose keys and values may not have been computed. If
    /// the context overflowed, it has the remaining tokens.
    ///
    /// An interrupted generation, for example after the loss of a device, can be resumed: the text then ends with the
    /// tokens that it gave, and `options.done` lists them. The result is the same, since sampling depends only on the
    /// seed and the position in the context, and the context depends only on the length of the text.
    ///
    /// Without a tokenizer there is no text, and only `options.stop_tokens` can stop before `max_tokens`.
    ///
    /// *Errors*: a prompt that is empty, too long for the context, or has unknown tokens; more tokens than fit, with
    /// [`Overflow::Error`](crate::Overflow::Error); options out of range; those of the backend; logits that are not
    /// finite.
    pub async fn generate_after(
        &mut self,
        text: &[u32],
        options: &GenerateOptions,
        tokenizer: Option<&Tokenizer>,
        host: &dyn Host,
        on_piece: &mut OnPiece<'_>,
    ) -> Result<Generation, ModelError> {
        let mut sequence = self.sequence(text, options, tokenizer)?;
        self.run(&mut sequence, tokenizer, host, on_piece).await?;
        Ok(sequence.into_generation(on_piece))
    }

    /// Runs a sequence until it ends.
    ///
    /// *Errors*: as [`Self::generate_after`].
    pub async fn run(
        &mut self,
        sequence: &mut Sequence,
        tokenizer: Option<&Tokenizer>,
        host: &dyn Host,
        on_piece: &mut OnPiece<'_>,
    ) -> Result<(), ModelError> {
        let mut run = Run::begin(self, sequence, tokenizer, host, on_piece).await?;
        while run.advance(on_piece).await? {}
        Ok(())
    }
}

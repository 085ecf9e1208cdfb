//! Requests become prompts.

use model::{ChatError, ChatOptions, ChatTemplate, GenerateOptions, ModelError, Overflow, Parts};
use model::{Tokenizer, TokenizerError};

use super::{Generate, Prompt};
use crate::chat::{self, ChatPrompt};
use crate::error::EngineError;

/// What a request's prompt depends on: a model's tokenizer, its template and its sizes.
pub(crate) struct Prompter<'a> {
    pub tokenizer: Result<&'a Tokenizer, &'a TokenizerError>,
    pub chat: Result<&'a ChatTemplate, &'a ChatError>,
    pub n_ctx: usize,
    pub n_vocab: usize,
}

/// A request that was found sound.
pub(crate) struct Prepared {
    pub prompt: Vec<u32>,
    pub options: GenerateOptions,
    pub dropped_messages: usize,
    pub parts: Parts,
}

impl Prompter<'_> {
    /// The prompt of a request whose options are `options` unless it has others.
    pub fn prepare(&self, request: Generate, mut options: GenerateOptions) -> Result<Prepared, EngineError> {
        let Generate { prompt, keep, chat, configure, .. } = request;
        configure(&mut options);
        let mut parts = Parts::default();
        let (prompt, usual, dropped_messages) = match prompt {
            // Without a constraint nothing would see to it.
            Prompt::Chat(_) if chat.tool_choice.demands() && options.constraint.is_none() => {
                return Err(ChatError::Demanded.into());
            }
            Prompt::Chat(messages) => {
                let (chat, tokenizer) = (self.chat(&chat)?, self.tokenizer()?);
                let ChatPrompt { tokens, keep, dropped_messages } =
                    chat::prompt(&chat, tokenizer, self.n_ctx, &messages, &options)?;
                self.check(&tokens)?;
                parts = chat::answer_parts(&chat, tokenizer, &tokens);
                options.shown = chat.marks(tokenizer);
                (tokens, keep, dropped_messages)
            }
            prompt => {
                let tokens = self.tokens(&prompt)?;
                let kept = self.tokenizer().map_or(0, |tokenizer| chat::kept(tokenizer, &tokens));
                (tokens, kept, 0)
            }
        };
        options.overflow = options.overflow.keeping(keep, usual)?;
        let room = match options.overflow {
            Overflow::Shift { .. } => self.n_ctx,
            Overflow::Error | Overflow::Stop => self.n_ctx.saturating_sub(prompt.len()).max(1),
        };
        options.max_tokens = options.max_tokens.or(Some(room));
        options.done = Vec::new();
        Ok(Prepared { prompt, options, dropped_messages, parts })
    }

    /// The tokens of a text.
    pub fn tokens(&self, prompt: &Prompt) -> Result<Vec<u32>, EngineError> {
        let tokens = match prompt {
            Prompt::Text(text) => chat::encode(self.tokenizer()?, text),
            Prompt::Tokens(tokens) => tokens.clone(),
            Prompt::Chat(messages) => self.chat(&ChatOptions::default())?.encode(self.tokenizer()?, messages, true)?,
        };
        self.check(&tokens)?;
        Ok(tokens)
    }

    fn tokenizer(&self) -> Result<&Tokenizer, EngineError> {
        self.tokenizer.map_err(|error| error.clone().into())
    }

    fn chat(&self, options: &ChatOptions) -> Result<ChatTemplate, EngineError> {
        let chat = self.chat.map_err(Clone::clone)?;
        Ok(chat.with(options)?)
    }

    /// Refuses tokens that the model does not know, or none.
    fn check(&self, tokens: &[u32]) -> Result<(), EngineError> {
        match tokens.iter().find(|id| **id as usize >= self.n_vocab) {
            Some(&id) => Err(ModelError::Token { id, vocab: self.n_vocab }.into()),
            None if tokens.is_empty() => Err(ModelError::EmptyPrompt.into()),
            None => Ok(()),
        }
    }
}

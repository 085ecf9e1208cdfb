//! Prompts of requests.

use model::{ChatError, ChatOptions, ChatTemplate, GenerateOptions, ModelError, Overflow, Parts};
use model::{Tokenizer, TokenizerError};

use super::{Encoded, Generate, Prompt};
use crate::chat::{self, ChatPrompt};
use crate::engine::Engine;
use crate::error::EngineError;

/// Maker of prompts: a model's tokenizer, its template and its context size.
pub(crate) struct Prompter<'a> {
    pub tokenizer: Result<&'a Tokenizer, &'a TokenizerError>,
    pub chat: Result<&'a ChatTemplate, &'a ChatError>,
    pub n_ctx: usize,
    /// Most bytes that a token stands for, if texts are to be refused by their length.
    pub most_bytes: Option<usize>,
}

/// A request that was validated.
pub(crate) struct Prepared {
    pub prompt: Vec<u32>,
    pub options: GenerateOptions,
    pub dropped_messages: usize,
    pub parts: Parts,
}

impl Engine {
    /// Returns the maker of prompts of requests.
    pub(crate) fn prompter(&self) -> Prompter<'_> {
        let n_ctx = self.model.recipe().sizes().n_ctx;
        let (tokenizer, chat) = (self.tokenizer.as_deref(), self.chat.as_ref());
        Prompter { tokenizer, chat, n_ctx, most_bytes: None }
    }

    /// Returns the tokenizer and the template, for use on other threads.
    pub(crate) fn texts(&self) -> super::Texts {
        super::Texts::new(self.tokenizer.clone(), self.chat.clone())
    }
}

impl Prompter<'_> {
    /// Makes the prompt of a request for a vocabulary of `n_vocab` tokens. `options` are the defaults, which the
    /// request can change.
    pub fn prepare(
        &self,
        request: Generate,
        mut options: GenerateOptions,
        n_vocab: usize,
    ) -> Result<Prepared, EngineError> {
        let Generate { prompt, keep, chat, configure, .. } = request;
        configure(&mut options);
        let encoded = match prompt {
            Prompt::Encoded(encoded) => (*encoded).clone(),
            prompt => self.encode(&prompt, &chat, options.overflow, options.most())?,
        };
        let Encoded { tokens: prompt, keep: usual, dropped_messages, parts, shown, demands } = encoded;
        // Without a constraint nothing would make the model call a tool.
        if demands && options.constraint.is_none() {
            return Err(ChatError::Demanded.into());
        }
        check(&prompt, n_vocab)?;
        options.shown.extend(shown);
        options.overflow = options.overflow.keeping(keep, usual)?;
        let room = match options.overflow {
            Overflow::Shift { .. } => self.n_ctx,
            Overflow::Error | Overflow::Stop => self.n_ctx.saturating_sub(prompt.len()).max(1),
        };
        options.max_tokens = options.max_tokens.or(Some(room));
        options.done = Vec::new();
        Ok(Prepared { prompt, options, dropped_messages, parts })
    }

    /// Tokenizes a prompt; see [`Handle::encode`](super::Handle::encode).
    pub fn encode(
        &self,
        prompt: &Prompt,
        options: &ChatOptions,
        overflow: Overflow,
        room: usize,
    ) -> Result<Encoded, EngineError> {
        let plain = |tokens: Vec<u32>, keep| Encoded {
            tokens,
            keep,
            dropped_messages: 0,
            parts: Parts::default(),
            shown: Vec::new(),
            demands: false,
        };
        match prompt {
            Prompt::Encoded(encoded) => Ok((**encoded).clone()),
            Prompt::Tokens(tokens) => {
                Ok(plain(tokens.clone(), self.tokenizer().map_or(0, |tokenizer| chat::kept(tokenizer, tokens))))
            }
            Prompt::Text(text) => {
                let tokenizer = self.tokenizer()?;
                if !matches!(overflow, Overflow::Shift { .. }) {
                    self.fits(text)?;
                }
                let tokens = chat::encode(tokenizer, text);
                let keep = chat::kept(tokenizer, &tokens);
                Ok(plain(tokens, keep))
            }
            Prompt::Pair(query, document) => {
                let tokenizer = self.tokenizer()?;
                self.fits(query)?;
                self.fits(document)?;
                Ok(plain(tokenizer.encode_pair(query, document), 0))
            }
            Prompt::Chat(messages) => {
                let (chat, tokenizer) = (self.chat(options)?, self.tokenizer()?);
                let ChatPrompt { tokens, keep, dropped_messages } = match overflow {
                    Overflow::Shift { .. } => {
                        chat::fit(&chat, tokenizer, messages, room.min(self.n_ctx / 2), self.n_ctx)?
                    }
                    Overflow::Error | Overflow::Stop => {
                        let text = chat.render(messages, true)?;
                        self.fits(&text)?;
                        ChatPrompt { tokens: chat.tokens(tokenizer, &text), keep: 0, dropped_messages: 0 }
                    }
                };
                let parts = chat::answer_parts(&chat, tokenizer, &tokens);
                let (shown, demands) = (chat.marks(tokenizer), options.tool_choice.demands());
                Ok(Encoded { tokens, keep, dropped_messages, parts, shown, demands })
            }
        }
    }

    /// Tokenizes a text to embed, for a vocabulary of `n_vocab` tokens.
    pub fn tokens(&self, prompt: &Prompt, n_vocab: usize) -> Result<Vec<u32>, EngineError> {
        let Encoded { tokens, .. } = self.encode(prompt, &ChatOptions::default(), Overflow::Error, 0)?;
        check(&tokens, n_vocab)?;
        Ok(tokens)
    }

    /// Refuses a text that is too long for the context, however it is tokenized.
    fn fits(&self, text: &str) -> Result<(), EngineError> {
        let least = self.most_bytes.map_or(0, |most| text.len().div_ceil(most));
        if least > self.n_ctx {
            return Err(ModelError::ContextFull { tokens: least, used: 0, n_ctx: self.n_ctx }.into());
        }
        Ok(())
    }

    fn tokenizer(&self) -> Result<&Tokenizer, EngineError> {
        self.tokenizer.map_err(|error| error.clone().into())
    }

    fn chat(&self, options: &ChatOptions) -> Result<ChatTemplate, EngineError> {
        let chat = self.chat.map_err(Clone::clone)?;
        Ok(chat.with(options)?)
    }
}

/// Refuses unknown tokens and empty prompts.
fn check(tokens: &[u32], n_vocab: usize) -> Result<(), EngineError> {
    match tokens.iter().find(|id| **id as usize >= n_vocab) {
        Some(&id) => Err(ModelError::Token { id, vocab: n_vocab }.into()),
        None if tokens.is_empty() => Err(ModelError::EmptyPrompt.into()),
        None => Ok(()),
    }
}

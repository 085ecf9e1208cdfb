//! Texts as streams, beside callbacks.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_core::Stream;
use model::{GenerateOptions, Generation, LogProb, Message, Overflowed, Piece, Session};

use crate::chat::ChatPrompt;
use crate::engine::Engine;
use crate::error::EngineError;

/// One event of a text that is generated.
#[derive(Debug, Clone)]
pub enum Generated {
    /// More text: what [`Piece`] has.
    Piece {
        /// The token; none when text that was held back is told at the end.
        token: Option<u32>,
        /// Text that is certain by now; it may be empty.
        text: String,
        /// How likely the token was, if that was asked for.
        log_prob: Option<LogProb>,
    },
    /// The text outgrew the context, and old tokens made room.
    Overflowed(Overflowed),
    /// The end; nothing comes after it.
    Ended(Box<Generation>),
}

impl From<Piece<'_>> for Generated {
    fn from(piece: Piece<'_>) -> Generated {
        match piece.overflow {
            Some(overflow) => Generated::Overflowed(overflow),
            None => Generated::Piece { token: piece.token, text: piece.text.into(), log_prob: piece.log_prob.cloned() },
        }
    }
}

type Ending<'a> = Pin<Box<dyn Future<Output = Result<Generation, EngineError>> + 'a>>;

/// Tokens and options that a stream goes on with.
type Asked<'a> = (Cow<'a, [u32]>, Cow<'a, GenerateOptions>);

/// A text while it is generated: [`Engine::stream`], [`Engine::chat_stream`]. After [`Generated::Ended`] or an error nothing more comes.
#[must_use = "nothing is generated unless the stream is polled"]
pub struct TextStream<'a> {
    told: Rc<RefCell<VecDeque<Generated>>>,
    generation: Option<Ending<'a>>,
}

impl Engine {
    /// [`Self::generate`] as a stream. Whoever drops it before its end has a session without a text: what was computed
    /// may be ahead of what was told.
    ///
    /// ```
    /// use anygpu::native::block_on;
    /// use anygpu::{Choice, Engine, Generated, GenerateOptions};
    /// use futures_util::StreamExt;
    ///
    /// fn main() -> Result<(), anygpu::EngineError> {
    /// #   std::env::set_current_dir("..").unwrap(); // from the package to the repository
    ///     block_on(async {
    ///         let engine = Engine::builder().backend(Choice::Cpu).open("models/gab-q4_0.gguf").await?;
    ///         let mut session = engine.session()?;
    ///         let prompt = engine.encode("Once upon a time")?;
    ///         let options = GenerateOptions { max_tokens: Some(8), ..engine.generate_options() };
    ///         let mut story = engine.stream(&mut session, &prompt, &options);
    ///         while let Some(told) = story.next().await {
    ///             if let Generated::Piece { text, .. } = told? {
    ///                 print!("{text}");
    ///             }
    ///         }
    ///         Ok(())
    ///     })
    /// }
    /// ```
    pub fn stream<'a>(
        &'a self,
        session: &'a mut Session,
        tokens: &'a [u32],
        options: &'a GenerateOptions,
    ) -> TextStream<'a> {
        self.streamed(session, move || Ok((tokens.into(), Cow::Borrowed(options))))
    }

    /// The answer to a conversation as a stream, as [`Self::stream`] has it: text as the model writes it, thoughts and calls
    /// included ([`Self::answer_parts`] tells them apart). Of what the session has computed, what the conversation shares with
    /// it is used again.
    ///
    /// ```
    /// use anygpu::native::block_on;
    /// use anygpu::{Choice, Engine, Generated, GenerateOptions, Message};
    /// use futures_util::StreamExt;
    ///
    /// fn main() -> Result<(), anygpu::EngineError> {
    /// #   std::env::set_current_dir("..").unwrap(); // from the package to the repository
    ///     block_on(async {
    ///         let model = "models/fixtures/by-heart.gguf";
    ///         let engine = Engine::builder().backend(Choice::Cpu).open(model).await?;
    ///         let mut session = engine.session()?;
    ///         let messages = [Message::new("user", "Is it warm in Paris?")];
    ///         let options = GenerateOptions { max_tokens: Some(60), ..engine.generate_options() };
    ///         let mut answer = engine.chat_stream(&mut session, &messages, &options);
    ///         let mut text = String::new();
    ///         while let Some(told) = answer.next().await {
    ///             if let Generated::Piece { text: more, .. } = told? {
    ///                 text.push_str(&more);
    ///             }
    ///         }
    ///         assert_eq!(text, "It is warm.");
    ///         Ok(())
    ///     })
    /// }
    /// ```
    ///
    /// The stream gives an error where [`Self::chat_prompt`] has one.
    pub fn chat_stream<'a>(
        &'a self,
        session: &'a mut Session,
        messages: &'a [Message],
        options: &'a GenerateOptions,
    ) -> TextStream<'a> {
        self.streamed(session, move || {
            let ChatPrompt { tokens, keep, .. } = self.chat_prompt(messages, options)?;
            let overflow = options.overflow.keeping(None, keep)?;
            Ok((tokens.into(), Cow::Owned(GenerateOptions { overflow, ..options.clone() })))
        })
    }

    fn streamed<'a>(
        &'a self,
        session: &'a mut Session,
        asked: impl FnOnce() -> Result<Asked<'a>, EngineError> + 'a,
    ) -> TextStream<'a> {
        let told = Rc::new(RefCell::new(VecDeque::new()));
        let tell = told.clone();
        let generation = Box::pin(async move {
            let (tokens, options) = asked()?;
            let mut text = Text { session, has_ended: false };
            let on_piece = &mut |piece: Piece<'_>| {
                if !piece.is_pause() {
                    tell.borrow_mut().push_back(piece.into());
                }
            };
            let generation = self.generate(text.session, &tokens, &options, on_piece).await;
            text.has_ended = true;
            generation
        });
        TextStream { told, generation: Some(generation) }
    }
}

/// The text of a session while it is generated.
struct Text<'a> {
    session: &'a mut Session,
    has_ended: bool,
}

impl Drop for Text<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.session.rewind(0);
        }
    }
}

impl Stream for TextStream<'_> {
    type Item = Result<Generated, EngineError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = |stream: &TextStream<'_>| stream.told.borrow_mut().pop_front();
        if let Some(told) = next(&self) {
            return Poll::Ready(Some(Ok(told)));
        }
        let Some(generation) = &mut self.generation else { return Poll::Ready(None) };
        let ended = generation.as_mut().poll(context);
        match ended {
            Poll::Pending => next(&self).map_or(Poll::Pending, |told| Poll::Ready(Some(Ok(told)))),
            Poll::Ready(ended) => {
                self.generation = None;
                match ended {
                    Ok(generation) => self.told.borrow_mut().push_back(Generated::Ended(Box::new(generation))),
                    // What was told before it does not matter any more.
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
                Poll::Ready(next(&self).map(Ok))
            }
        }
    }
}

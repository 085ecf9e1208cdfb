//! Streams of generated text, as an alternative to callbacks.

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

/// An event of a generation.
#[derive(Debug, Clone)]
pub enum Generated {
    /// New text, as in a [`Piece`].
    Piece {
        /// The token; absent for held-back text that is released at the end.
        token: Option<u32>,
        /// Text that is final by now; it may be empty.
        text: String,
        /// Probability of the token, if it was requested.
        log_prob: Option<LogProb>,
    },
    /// The text outgrew the context, and its oldest tokens were dropped.
    Overflowed(Overflowed),
    /// The end of the generation and of the stream.
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

/// Tokens and options of a generation.
type Asked<'a> = (Cow<'a, [u32]>, Cow<'a, GenerateOptions>);

/// A text while it is generated: [`Engine::stream`], [`Engine::chat_stream`]. [`Generated::Ended`] or an error is the
/// last item.
#[must_use = "nothing is generated unless the stream is polled"]
pub struct TextStream<'a> {
    told: Rc<RefCell<VecDeque<Generated>>>,
    generation: Option<Ending<'a>>,
}

impl Engine {
    /// Runs [`Self::generate`] as a stream. If the stream is dropped before its end, the session is emptied, since the
    /// device may have computed more tokens than the stream gave.
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

    /// Streams the answer to a conversation, as [`Self::stream`] does. The text is as the model writes it, with
    /// thoughts and calls ([`Self::answer_parts`] splits it). Reuses the common beginning that the session has already
    /// computed.
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
    /// Errors of [`Self::chat_prompt`] come through the stream.
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

/// The session of a stream, which is emptied if the generation does not end.
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
                    // Events that were not read before the error are dropped.
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
                Poll::Ready(next(&self).map(Ok))
            }
        }
    }
}

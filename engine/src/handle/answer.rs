//! What is told of a generation, as a stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_channel::mpsc::{self, Receiver, Sender};
use futures_core::Stream;
use model::{Finish, LogProbEntry, Overflowed, Parts};

use super::HandleError;
use crate::error::EngineError;
use crate::recover::Recovered;

/// Events that nobody has taken yet, at most: who is further behind counts as gone.
const UNREAD: usize = 1 << 16;

/// One event of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// The request is sound, and will be answered.
    Begun {
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Messages that were left out, since others needed their room.
        dropped_messages: usize,
        /// What tells the parts of the text apart, which comes as it is.
        parts: Box<Parts>,
    },
    /// More text.
    Piece {
        /// The token; none when text that was held back is told at the end.
        token: Option<u32>,
        /// Text that is certain by now; it may be empty.
        text: String,
        /// How likely the token was, if that was asked for ([`GenerateOptions::log_probs`](crate::GenerateOptions::log_probs)).
        log_prob: Option<Box<LogProbEntry>>,
    },
    /// The text outgrew the context, and old tokens made room.
    Overflowed(Overflowed),
    /// The device was lost, and the text goes on.
    Recovered(Recovered),
    /// The end.
    Ended(Box<Outcome>),
}

/// A generation that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Those of them that had been computed before.
    pub cached_tokens: usize,
    /// The new tokens, without the one that ended the text.
    pub tokens: Vec<u32>,
    /// Their text, without the string that ended it.
    pub text: String,
    /// Why it ended.
    pub finish: Finish,
    /// From the request to its first turn.
    ///
    /// *Units*: milliseconds, as all times here.
    pub waited_ms: f64,
    /// From the first turn to the first token.
    pub prefill_ms: f64,
    /// From the first token on, turns of others left out.
    pub decode_ms: f64,
    /// Tokens that were drafted from what the text had already.
    pub drafted_tokens: usize,
    /// Those of them that the model chose, too.
    pub accepted_tokens: usize,
    /// What was done if the text outgrew the context.
    pub overflow: Option<Overflowed>,
}

/// The answer to a request for text. After [`Told::Ended`] or an error nothing more comes; if nothing more comes without
/// either, the engine's thread has ended.
#[derive(Debug)]
pub struct Answer(Receiver<Result<Told, EngineError>>);

impl Answer {
    /// Waits for the end.
    ///
    /// *Errors*: what ended it instead.
    pub async fn whole(mut self) -> Result<Outcome, HandleError> {
        loop {
            match std::future::poll_fn(|context| Pin::new(&mut self.0).poll_next(context)).await {
                None => return Err(HandleError::Stopped),
                Some(Ok(Told::Ended(outcome))) => return Ok(*outcome),
                Some(told) => drop(told?),
            }
        }
    }
}

impl Stream for Answer {
    type Item = Result<Told, EngineError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(context)
    }
}

/// Where an answer is told.
pub(crate) struct Teller(Sender<Result<Told, EngineError>>);

impl Teller {
    /// Whether anybody still listens.
    pub fn is_heard(&self) -> bool {
        !self.0.is_closed()
    }

    /// Tells something; whether anybody still listens.
    pub fn tell(&mut self, told: Result<Told, EngineError>) -> bool {
        match self.0.try_send(told) {
            Ok(()) => true,
            Err(_) => {
                self.0.close_channel();
                false
            }
        }
    }
}

pub(crate) fn channel() -> (Teller, Answer) {
    let (told, answer) = mpsc::channel(UNREAD);
    (Teller(told), Answer(answer))
}

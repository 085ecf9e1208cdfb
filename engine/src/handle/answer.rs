//! Events of a generation, as a stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_channel::mpsc::{self, Receiver, Sender};
use futures_core::Stream;
use model::{Finish, LogProbEntry, Overflowed, Parts};

use super::HandleError;
use crate::error::EngineError;
use crate::recover::Recovered;

/// Most events that may be unread; a reader that is further behind counts as gone.
const UNREAD: usize = 1 << 16;

/// One event of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// The request is valid and will be answered.
    Begun {
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Messages that were left out to fit the context.
        dropped_messages: usize,
        /// Parser that splits the text, which comes as the model writes it, into thoughts, content and calls.
        parts: Box<Parts>,
    },
    /// New text.
    Piece {
        /// The token; absent for held-back text that is released at the end.
        token: Option<u32>,
        /// Text that is final by now; it may be empty.
        text: String,
        /// Probability of the token, if requested by [`GenerateOptions::log_probs`](crate::GenerateOptions::log_probs).
        log_prob: Option<Box<LogProbEntry>>,
    },
    /// The text outgrew the context, and its oldest tokens were dropped.
    Overflowed(Overflowed),
    /// The device was lost, and the text continues on another one.
    Recovered(Recovered),
    /// The end of the answer.
    Ended(Box<Outcome>),
}

/// A generation that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Prompt tokens that were reused from earlier requests (prefix cache).
    pub cached_tokens: usize,
    /// The new tokens, without the stop token.
    pub tokens: Vec<u32>,
    /// Their text, without the stop string.
    pub text: String,
    /// Reason for the end.
    pub finish: Finish,
    /// Time from the request to its first turn.
    ///
    /// *Units*: milliseconds, as all times here.
    pub waited_ms: f64,
    /// Time from the first turn to the first token.
    pub prefill_ms: f64,
    /// Time from the first token to the last, without the turns of other requests.
    pub decode_ms: f64,
    /// Tokens that were drafted (speculative decoding).
    pub drafted_tokens: usize,
    /// Drafted tokens that the model accepted.
    pub accepted_tokens: usize,
    /// Dropped tokens, if the text outgrew the context.
    pub overflow: Option<Overflowed>,
}

/// The answer to a request for text. [`Told::Ended`] or an error is its last event; if the stream ends without either,
/// the engine's thread has ended.
#[derive(Debug)]
pub struct Answer(Receiver<Result<Told, EngineError>>);

impl Answer {
    /// Waits for the end and returns the outcome.
    ///
    /// *Errors*: the error that ended the answer.
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

/// Sender of an answer's events.
pub(crate) struct Teller(Sender<Result<Told, EngineError>>);

impl Teller {
    /// Returns whether anybody still listens.
    pub fn is_heard(&self) -> bool {
        !self.0.is_closed()
    }

    /// Sends an event; returns whether anybody still listens.
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

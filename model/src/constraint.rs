//! Constraints on answers: tokens that cannot come next are forbidden on the device, before one is chosen. Formats,
//! such as JSON schemas, are in a crate of their own.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use crate::adjust::Adjust;
use crate::error::ModelError;
use crate::generate::Sink;
use crate::session::Session;

/// Bias of a token that cannot come next: it is larger than any logit, so that the token's probability is 0. Shaders
/// are given no infinities.
const NEVER: f32 = -1e9;

/// Result of [`Constraint::allow`].
pub type AllowFuture<'a> = Pin<Box<dyn Future<Output = Result<bool, ModelError>> + 'a>>;

/// Says which tokens may come next in an answer.
pub trait Constraint: Debug {
    /// Sets the bits of the tokens that may come after those of the answer so far, in which bit `id % 32` of word
    /// `id / 32` stands for a token; all are clear at first. Gives whether the answer may end there. Tokens that end a text
    /// are none of an answer: their bits do not matter. It may take its time: in browsers another thread knows it.
    ///
    /// The answer decides, so that one that was broken off goes on alike; of what was said before, anything may be kept.
    ///
    /// *Errors*: an answer that could not be; a format that takes too much memory or time.
    fn allow<'a>(&'a self, answer: &'a [u32], tokens: &'a mut [u32]) -> AllowFuture<'a>;

    /// Returns the source of the constraint, for those who know its format: it is saved beside a text, in at most
    /// [`MAX_CONSTRAINT`] bytes.
    fn source(&self) -> &str;
}

/// Bytes of what makes a constraint, at most.
pub const MAX_CONSTRAINT: usize = 256 << 10;

/// A constraint at work in one generation.
pub(crate) struct Mask {
    constraint: Rc<dyn Constraint>,
    bits: Vec<u32>,
    /// The bits that the device has, if it has any.
    written: Option<Vec<u32>>,
    /// The biases of the request, and the row that the device gets.
    biases: Vec<f32>,
    row: Vec<f32>,
}

impl Mask {
    pub fn new(constraint: Rc<dyn Constraint>, adjust: &Adjust, n_vocab: usize) -> Mask {
        let biases = adjust.biases(n_vocab);
        let (bits, row) = (vec![0; n_vocab.div_ceil(32)], biases.clone());
        Mask { constraint, bits, written: None, biases, row }
    }

    /// Has the next step choose among tokens that may come after those of the answer so far. Gives whether any may: if
    /// not, the answer ends there.
    pub async fn write(&mut self, session: &mut Session, sink: &Sink<'_>) -> Result<bool, ModelError> {
        self.bits.fill(0);
        let may_end = self.constraint.allow(&sink.tokens, &mut self.bits).await?;
        self.set_all(sink.stop_tokens(), false);
        let n_vocab = self.row.len();
        let goes_on = (0..n_vocab).any(|id| self.is_set(id));
        match (goes_on, may_end) {
            (true, true) => self.set_all(sink.stop_tokens(), true),
            (true, false) => {}
            (false, true) => return Ok(false),
            (false, false) => {
                let why =
                    "no token of this model can come next in the format that was asked for; ask for another format";
                return Err(ModelError::Constraint(why.into()));
            }
        }
        if self.written.as_ref() == Some(&self.bits) {
            return Ok(true);
        }
        for id in 0..n_vocab {
            self.row[id] = if self.is_set(id) { self.biases[id] } else { NEVER };
        }
        session.write_biases(&self.row)?;
        self.written.get_or_insert_default().clone_from(&self.bits);
        Ok(true)
    }

    fn is_set(&self, id: usize) -> bool {
        self.bits[id / 32] >> (id % 32) & 1 == 1
    }

    fn set_all(&mut self, ids: &[u32], value: bool) {
        for id in ids {
            if let Some(word) = self.bits.get_mut(*id as usize / 32) {
                *word = *word & !(1 << (id % 32)) | u32::from(value) << (id % 32);
            }
        }
    }
}

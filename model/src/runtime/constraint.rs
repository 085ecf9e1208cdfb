//! Constraints on answers (structured output): tokens that cannot come next are masked on the device before one is
//! chosen. Formats such as JSON schemas are implemented in a separate crate.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use crate::error::ModelError;
use crate::runtime::adjust::Adjust;
use crate::runtime::session::Session;

/// Bias of a token that cannot come next. It exceeds every logit, so the token's probability is 0. It is finite, since
/// shaders may not handle infinities.
const NEVER: f32 = -1e9;

/// Result of [`Constraint::allow`]: whether the answer may end.
pub type AllowFuture<'a> = Pin<Box<dyn Future<Output = Result<bool, ModelError>> + 'a>>;

/// Constraint on an answer: decides which tokens may come next.
pub trait Constraint: Debug {
    /// Sets the bits of the tokens that may follow `answer`: bit `id % 32` of word `id / 32`. All bits are clear at
    /// first. Returns whether the answer may end there. The bits of end-of-generation tokens are ignored. The call may
    /// wait, for example for another thread in a browser.
    ///
    /// The result must depend only on the answer, so that an interrupted one can be resumed. State of earlier calls may
    /// be cached.
    ///
    /// *Errors*: an answer that violates the constraint; a format that takes too much memory or time.
    fn allow<'a>(&'a self, answer: &'a [u32], tokens: &'a mut [u32]) -> AllowFuture<'a>;

    /// Returns the source of the constraint, in a form that its crate can compile again. It is saved with snapshots,
    /// and has at most [`MAX_CONSTRAINT`] bytes.
    fn source(&self) -> &str;
}

/// Most bytes of a constraint's source.
pub const MAX_CONSTRAINT: usize = 256 << 10;

/// Mask of a constraint in one generation.
pub(crate) struct Mask {
    constraint: Rc<dyn Constraint>,
    bits: Vec<u32>,
    /// Bits that were written to the device, if any.
    written: Option<Vec<u32>>,
    /// Biases of the request, and the row that is written to the device.
    biases: Vec<f32>,
    row: Vec<f32>,
}

impl Mask {
    pub fn new(constraint: Rc<dyn Constraint>, adjust: &Adjust, n_vocab: usize) -> Mask {
        let biases = adjust.biases(n_vocab);
        let (bits, row) = (vec![0; n_vocab.div_ceil(32)], biases.clone());
        Mask { constraint, bits, written: None, biases, row }
    }

    /// Writes the mask of the tokens that may follow the answer so far, for the next step. Returns whether there are
    /// any; if not, the answer ends.
    pub async fn write(
        &mut self,
        session: &mut Session,
        answer: &[u32],
        stop_tokens: &[u32],
    ) -> Result<bool, ModelError> {
        self.bits.fill(0);
        let may_end = self.constraint.allow(answer, &mut self.bits).await?;
        self.set_all(stop_tokens, false);
        let n_vocab = self.row.len();
        let goes_on = (0..n_vocab).any(|id| self.is_set(id));
        match (goes_on, may_end) {
            (true, true) => self.set_all(stop_tokens, true),
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

//! Mask of a constraint: tokens that cannot come next get a bias on the device before one is chosen.

use std::rc::Rc;

use super::Session;
use crate::error::ModelError;
use crate::runtime::sequence::{Adjust, Constraint};

/// Bias of a token that cannot come next. It exceeds every logit, so the token's probability is 0. It is finite, since
/// shaders may not handle infinities.
const NEVER: f32 = -1e9;

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

//! Inputs of steps that adjust the probabilities of tokens.

use super::Session;
use crate::arch::{BIAS, PENALTIES};
use crate::error::ModelError;
use crate::runtime::load::{create_rows, no_storage};
use crate::runtime::sequence::Adjust;

impl Session {
    /// Creates the input rows of steps with adjusted logits, unless they exist.
    pub(crate) fn make_adjustable(&mut self) -> Result<(), ModelError> {
        let n_vocab = self.model().recipe().sizes().n_vocab;
        create_rows(&mut self.inputs, n_vocab, 1)
    }

    /// Writes the penalties for a context whose generated tokens start at a position.
    pub(crate) fn write_penalties(&mut self, adjust: &Adjust, begin: usize) -> Result<(), ModelError> {
        self.write_input(PENALTIES, &adjust.penalties(begin).row())
    }

    /// Writes the bias of every token; before each step if biases change from step to step.
    pub(crate) fn write_biases(&mut self, row: &[f32]) -> Result<(), ModelError> {
        self.write_input(BIAS, row)
    }

    /// Writes a row for the session's own steps and, in a batch, for those that it takes together with others.
    fn write_input(&mut self, name: &str, row: &[f32]) -> Result<(), ModelError> {
        self.make_adjustable()?;
        let id = self.inputs.get(name).ok_or_else(|| no_storage(name))?;
        self.model().backend().write(id, 0, bytemuck::cast_slice(row))?;
        self.seat.iter().try_for_each(|seat| seat.write_input(name, row))
    }
}

//! Inputs of steps that adjust the probabilities of tokens.

use backend_api::op::Penalties;
use backend_api::{DType, Kind, Shape, Tensor};

use crate::arch::{BIAS, PENALTIES};
use crate::error::ModelError;
use crate::runtime::adjust::Adjust;
use crate::runtime::session::Session;
use crate::runtime::storages::no_storage;

impl Session {
    /// Creates the input rows of steps with adjusted logits, unless they exist.
    pub(crate) fn make_adjustable(&mut self) -> Result<(), ModelError> {
        let n_vocab = self.model().recipe().sizes().n_vocab;
        for (name, cols) in [(BIAS, n_vocab), (PENALTIES, Penalties::COLS)] {
            if self.inputs.get(name).is_none() {
                let shape = Shape::new(&[1, cols])?;
                self.inputs.create(&Tensor { name: name.into(), shape, dtype: DType::F32, kind: Kind::Input })?;
            }
        }
        Ok(())
    }

    /// Writes the penalties for a context whose generated tokens start at a position.
    pub(crate) fn write_penalties(&mut self, adjust: &Adjust, begin: usize) -> Result<(), ModelError> {
        self.write_input(PENALTIES, &adjust.penalties(begin).row())
    }

    /// Writes the bias of every token; before each step if biases change from step to step.
    pub(crate) fn write_biases(&mut self, row: &[f32]) -> Result<(), ModelError> {
        self.write_input(BIAS, row)
    }

    fn write_input(&mut self, name: &str, row: &[f32]) -> Result<(), ModelError> {
        self.make_adjustable()?;
        let id = self.inputs.get(name).ok_or_else(|| no_storage(name))?;
        Ok(self.model().backend().write(id, 0, bytemuck::cast_slice(row))?)
    }
}

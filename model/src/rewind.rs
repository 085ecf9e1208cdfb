//! Going back in a text. What it takes follows from how the text's states change, and is known here alone: rows that were
//! appended wait where they are, but states that steps rewrite go on only from where they are, or from a checkpoint.
//! The one checkpoint is the empty text, whose states are zeros.

use backend_api::{Backend, Error, StorageId, Tensor, Update};

/// The states that steps rewrite, and how far they have come.
#[derive(Debug, Default)]
pub(crate) struct Rewritten {
    /// With the bytes of each.
    states: Vec<(StorageId, usize)>,
    /// Tokens that have gone into them.
    position: usize,
}

impl Rewritten {
    /// Takes note of a state of zeros.
    pub fn add(&mut self, id: StorageId, state: &Tensor, update: Update) -> Result<(), Error> {
        match update {
            Update::Append => {}
            Update::Replace => {
                self.states.push((id, state.dtype.row_bytes(state.shape.cols())? * state.shape.rows()));
            }
        }
        Ok(())
    }

    /// Takes note of a step that ends at a position.
    pub fn moved_to(&mut self, position: usize) {
        self.position = position;
    }

    /// The last position, this one or before it, from which steps can go on.
    pub fn checkpoint(&self, position: usize) -> usize {
        if self.are_at(position) { position } else { 0 }
    }

    /// Whether steps can go on from a position as things are.
    pub fn are_at(&self, position: usize) -> bool {
        self.states.is_empty() || self.position == position
    }

    /// Goes back to the empty text.
    ///
    /// *Errors*: the device was lost.
    pub fn clear(&mut self, backend: &dyn Backend) -> Result<(), Error> {
        self.states.iter().try_for_each(|(id, bytes)| backend.write(*id, 0, &vec![0; *bytes]))?;
        self.position = 0;
        Ok(())
    }
}

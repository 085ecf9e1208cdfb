//! KV caches that grow with the text: a context of many thousand tokens takes its memory only once it is used.

use backend_api::run::Host;
use backend_api::{Kind, Shape, Tensor, Update};

use crate::arch::{HISTORY, StateSpec};
use crate::error::ModelError;
use crate::load::{Footprint, Model};
use crate::resume::Appended;
use crate::session::Session;

/// Positions that caches have room for at first: the longest step fits, and most first questions with their answers.
pub(crate) const FIRST: usize = 512;
/// Bytes of caches that are moved at a time, by way of host memory.
const MOVED: usize = 64 << 20;

/// The tensor of a state.
pub(crate) fn tensor(StateSpec { name, shape, dtype, update }: &StateSpec) -> Result<Tensor, backend_api::Error> {
    Ok(Tensor { name: name.clone(), shape: Shape::new(shape)?, dtype: *dtype, kind: Kind::State(*update) })
}

/// Whether a state has as many rows as caches have room for.
fn grows(spec: &StateSpec) -> bool {
    spec.update == Update::Append && spec.name != HISTORY
}

impl Session {
    /// The device memory of the model and of this text, with caches as long as they are now.
    ///
    /// *Errors*: as [`Model::footprint`].
    pub fn footprint(&self) -> Result<Footprint, ModelError> {
        Model::footprint_for(self.model().recipe(), &**self.model().backend(), self.capacity)
    }

    /// Whether caches have room for so many tokens, or for all that the context holds.
    pub(crate) fn has_room(&self, tokens: usize) -> bool {
        tokens.min(self.n_ctx()) <= self.capacity
    }

    /// Makes room for so many tokens, and at least for twice as many as there was room for, unless they have it. The
    /// caches' first `kept` rows stay. Programs are compiled again: they are bound to what was there before.
    ///
    /// *Errors*: memory, the device was lost. Unless it was, the session has no text then, and little room.
    pub(crate) async fn reserve(&mut self, tokens: usize, kept: usize, host: &dyn Host) -> Result<(), ModelError> {
        if self.has_room(tokens) {
            return Ok(());
        }
        let capacity = tokens.max(2 * self.capacity).next_power_of_two().min(self.n_ctx());
        self.drop_programs();
        let grown = self.grow(capacity, kept, host).await;
        if grown.is_err() {
            // Some caches may be longer than others now. Without them all there is memory for short ones again.
            self.rewind(0);
            self.steps = Default::default();
            self.replace_caches(self.capacity)?;
        } else {
            self.capacity = capacity;
        }
        grown
    }

    /// Reserves room for a text that is empty, so that nothing has to be kept.
    pub(crate) fn reserve_empty(&mut self, tokens: usize) -> Result<(), ModelError> {
        if !self.has_room(tokens) && self.tokens().is_empty() {
            self.drop_programs();
            let capacity = tokens.next_power_of_two().min(self.n_ctx());
            self.replace_caches(capacity)?;
            self.capacity = capacity;
        }
        Ok(())
    }

    async fn grow(&mut self, capacity: usize, kept: usize, host: &dyn Host) -> Result<(), ModelError> {
        let specs = self.model().recipe().states_for(capacity)?;
        let mut old = self.appended()?;
        while !old.is_empty() {
            let bytes = old.iter().scan(0, |sum, state| {
                *sum += state.row_bytes * kept;
                Some(*sum)
            });
            let count = bytes.take_while(|bytes| *bytes <= MOVED).count().max(1);
            let now: Vec<Appended> = old.drain(..count).collect();
            let rows = self.read_rows(&now, 0..kept, host).await?;
            for (mut state, rows) in now.into_iter().zip(rows) {
                let Some(spec) = specs.iter().find(|spec| spec.name == state.name) else { continue };
                state.id = self.states.replace(&tensor(spec)?)?;
                self.write_rows(&state, 0, &rows, host).await?;
            }
        }
        Ok(())
    }

    /// Empty caches in the place of those that are there.
    fn replace_caches(&mut self, capacity: usize) -> Result<(), ModelError> {
        let specs = self.model().recipe().states_for(capacity)?;
        let caches = || specs.iter().filter(|spec| grows(spec));
        caches().for_each(|spec| self.states.remove(&spec.name));
        caches().try_for_each(|spec| self.states.create(&tensor(spec)?).map(|_| ()))?;
        Ok(())
    }
}

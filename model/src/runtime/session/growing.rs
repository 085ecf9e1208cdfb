//! Growth of KV caches: a context of many thousand tokens takes memory only as it is used.

use backend_api::Update;
use backend_api::run::Host;

use super::Session;
use super::resume::Appended;
use crate::arch::{HISTORY, StateSpec};
use crate::error::ModelError;
use crate::runtime::load::{Footprint, Model, tensor};

/// Bytes of caches that are moved at a time, through host memory.
const MOVED: usize = 64 << 20;

/// Returns whether a state grows: whether it is part of the KV cache.
fn grows(spec: &StateSpec) -> bool {
    spec.update == Update::Append && spec.name != HISTORY
}

impl Session {
    /// Returns the device memory of the model and of this text, with the caches' current size.
    ///
    /// *Errors*: as [`Model::footprint`].
    pub fn footprint(&self) -> Result<Footprint, ModelError> {
        Model::footprint_for(self.model().recipe(), &**self.model().backend(), self.capacity)
    }

    /// Returns whether caches have room for so many tokens, or for the whole context.
    pub(crate) fn has_room(&self, tokens: usize) -> bool {
        tokens.min(self.n_ctx()) <= self.capacity
    }

    /// Grows the caches to room for so many tokens, and to at least twice their size, unless they have that room. The
    /// first `kept` rows stay. Programs are compiled again, since they are bound to the old caches.
    ///
    /// *Errors*: memory, the device was lost; a session of a batch, whose caches do not grow. Unless the device was lost, the session is then empty, with small caches.
    pub(crate) async fn reserve(&mut self, tokens: usize, kept: usize, host: &dyn Host) -> Result<(), ModelError> {
        if self.has_room(tokens) {
            return Ok(());
        }
        if self.seat.is_some() {
            let n_ctx = self.room();
            return Err(ModelError::ContextFull { tokens: tokens - kept, used: kept, n_ctx });
        }
        let capacity = tokens.max(2 * self.capacity).next_power_of_two().min(self.n_ctx());
        self.drop_programs();
        let grown = self.grow(capacity, kept, host).await;
        if grown.is_err() {
            // Some caches may have grown and others not. Without all of them, there is memory for small ones again.
            self.rewind(0);
            self.steps = Default::default();
            self.replace_caches(self.capacity)?;
        } else {
            self.capacity = capacity;
        }
        grown
    }

    /// Grows the caches of an empty text, so that no rows have to be moved.
    pub(crate) fn reserve_empty(&mut self, tokens: usize) -> Result<(), ModelError> {
        if !self.has_room(tokens) && self.tokens().is_empty() && self.seat.is_none() {
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

    /// Replaces the caches by empty ones.
    fn replace_caches(&mut self, capacity: usize) -> Result<(), ModelError> {
        let specs = self.model().recipe().states_for(capacity)?;
        let caches = || specs.iter().filter(|spec| grows(spec));
        caches().for_each(|spec| self.states.remove(&spec.name));
        caches().try_for_each(|spec| self.states.create(&tensor(spec)?).map(|_| ()))?;
        Ok(())
    }
}

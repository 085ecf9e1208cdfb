//! Storages of a model and its states on a device.

use std::collections::HashMap;
use std::rc::Rc;

use backend_api::op::Penalties;
use backend_api::{Backend, DType, Kind, Shape, StorageDesc, StorageId, Tensor, Update};

use crate::arch::{BIAS, PENALTIES, StateSpec};
use crate::error::ModelError;

/// Positions that caches have room for at first: enough for the longest step, and for most first questions with their
/// answers.
pub(crate) const FIRST: usize = 512;
/// Storages of a backend by name, freed when dropped.
pub(crate) struct Storages {
    backend: Rc<dyn Backend>,
    ids: HashMap<String, StorageId>,
}

impl Storages {
    pub fn new(backend: Rc<dyn Backend>) -> Storages {
        Storages { backend, ids: HashMap::new() }
    }

    pub fn create(&mut self, tensor: &Tensor) -> Result<StorageId, backend_api::Error> {
        let id = self.backend.create(&StorageDesc::of(tensor))?;
        self.ids.insert(tensor.name.clone(), id);
        Ok(id)
    }

    /// Takes ownership of a storage.
    pub fn insert(&mut self, name: String, id: StorageId) {
        self.ids.insert(name, id);
    }

    pub fn remove(&mut self, name: &str) {
        if let Some(id) = self.ids.remove(name) {
            self.backend.destroy(id);
        }
    }

    /// Replaces a storage. The old one is destroyed first, since there may not be memory for both.
    pub fn replace(&mut self, tensor: &Tensor) -> Result<StorageId, backend_api::Error> {
        self.remove(&tensor.name);
        self.create(tensor)
    }

    pub fn get(&self, name: &str) -> Option<StorageId> {
        self.ids.get(name).copied()
    }
}

impl Drop for Storages {
    fn drop(&mut self) {
        self.ids.values().for_each(|id| self.backend.destroy(*id));
    }
}

/// Returns the tensor of a state.
pub(crate) fn tensor(StateSpec { name, shape, dtype, update }: &StateSpec) -> Result<Tensor, backend_api::Error> {
    Ok(Tensor { name: name.clone(), shape: Shape::new(shape)?, dtype: *dtype, kind: Kind::State(*update) })
}

/// Returns the error of a storage that should exist.
pub(crate) fn no_storage(name: &str) -> backend_api::Error {
    backend_api::Error::Invalid(format!("{name} has no storage; report this as a bug"))
}

/// Creates the rows that steps with adjusted logits read, one for each of so many sequences, unless they exist.
pub(crate) fn create_rows(inputs: &mut Storages, n_vocab: usize, sequences: usize) -> Result<(), ModelError> {
    let kind = if sequences > 1 { Kind::State(Update::ByCaller) } else { Kind::Input };
    for (name, cols) in [(BIAS, n_vocab), (PENALTIES, Penalties::COLS)] {
        if inputs.get(name).is_none() {
            let shape = Shape::new(&[sequences, cols])?;
            inputs.create(&Tensor { name: name.into(), shape, dtype: DType::F32, kind })?;
        }
    }
    Ok(())
}

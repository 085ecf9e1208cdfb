//! A model on a device: memory for its weights, and their upload.

mod fill;
mod storages;

pub(crate) use storages::{FIRST, Storages, create_rows, no_storage, tensor};

use std::cell::OnceCell;
use std::rc::Rc;

use backend_api::format::ROW_ALIGN;
use backend_api::run::Host;
use backend_api::{Backend, Shape, StorageDesc, StorageId, Tensor};
use serde::Serialize;

use crate::arch::Identity;
use crate::arch::{Contents, Head, Recipe, Weight};
use crate::error::ModelError;
use crate::gguf::ByteSource;

/// Work of a GPU in about the time that a kernel launch takes: a smaller kernel costs as much.
///
/// *Units*: those of a [`Cost`](backend_api::Cost).
const DISPATCH: u64 = 20_000_000;

/// Times of loading weights, by phase. Phases of a chunk are sequential, but a server, disk or device works on one
/// chunk while another is in a different phase. A phase that takes no time was hidden by the others.
///
/// *Units*: milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct LoadTimes {
    /// Bytes of the file that were read.
    pub bytes: u64,
    /// Time of waiting for the file's bytes, and of copying them to the repacking buffer.
    pub read_ms: f64,
    /// Time of repacking and of passing bytes to the driver.
    pub write_ms: f64,
    /// Time of event-loop turns, and of waiting for the device to process writes.
    pub device_ms: f64,
    /// Total time.
    pub total_ms: f64,
}

/// A model whose weights are on a device, or are being uploaded.
pub struct Model {
    recipe: Recipe,
    weights: Storages,
    backend: Rc<dyn Backend>,
    /// Known once the weights are uploaded.
    pub(crate) loaded: OnceCell<(Identity, LoadTimes)>,
}

impl Model {
    /// Checks that the backend can run the whole model, and uploads the weights. Calls `progress` with the bytes done
    /// and the total.
    ///
    /// *Errors*: as [`Self::create`] and [`Self::fill`].
    pub async fn load(
        source: &dyn ByteSource,
        recipe: Recipe,
        backend: Rc<dyn Backend>,
        host: &dyn Host,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Model, ModelError> {
        let model = Model::create(recipe, backend)?;
        model.fill(source, host, progress).await?;
        Ok(model)
    }

    /// Checks that the backend can run the whole model, and allocates its weights. Programs can be compiled from then
    /// on, but must not run before [`Self::fill`].
    ///
    /// *Errors*: operators that the backend cannot run, limits or memory of the device.
    pub fn create(recipe: Recipe, backend: Rc<dyn Backend>) -> Result<Model, ModelError> {
        Self::check(&recipe, &*backend)?;
        let mut weights = Storages::new(backend.clone());
        for weight in recipe.weights() {
            let tensor = Tensor {
                name: weight.name.clone(),
                shape: Shape::new(&weight.shape)?,
                dtype: weight.dtype,
                kind: backend_api::Kind::Weight,
            };
            weights.create(&tensor).map_err(|error| too_large(&recipe, weight, error))?;
        }
        Ok(Model { recipe, weights, backend, loaded: OnceCell::new() })
    }

    /// Checks that a backend can run a model.
    ///
    /// *Errors*: all operators that it cannot run.
    pub fn check(recipe: &Recipe, backend: &dyn Backend) -> Result<(), ModelError> {
        let prefill = ROW_ALIGN.min(recipe.sizes().n_ctx);
        let text = [(1, Head::GREEDY), (1, Head::SAMPLE), (prefill, Head::LOGITS)];
        let at_once = [(prefill, recipe.head())];
        for (rows, head) in if recipe.head() == Head::GREEDY { &text[..] } else { &at_once } {
            backend.cover(&recipe.graph(*rows, *head)?)?;
        }
        Ok(())
    }

    /// Returns the device memory that a model with a full context takes on a backend, without allocating it.
    ///
    /// *Errors*: tensors that exceed the device's limits.
    pub fn footprint(recipe: &Recipe, backend: &dyn Backend) -> Result<Footprint, ModelError> {
        Self::footprint_for(recipe, backend, recipe.sizes().n_ctx)
    }

    /// Returns the device memory with caches for so many positions.
    pub(crate) fn footprint_for(
        recipe: &Recipe,
        backend: &dyn Backend,
        capacity: usize,
    ) -> Result<Footprint, ModelError> {
        let bytes = |name: &str, shape: &[usize], dtype| {
            let desc = StorageDesc { name: name.into(), shape: Shape::new(shape)?, dtype, guard_rows: 0 };
            backend.storage_bytes(&desc)
        };
        let weights = recipe.weights().iter().map(|w| bytes(&w.name, &w.shape, w.dtype)).sum::<Result<u64, _>>()?;
        let states =
            recipe.states_for(capacity)?.iter().map(|s| bytes(&s.name, &s.shape, s.dtype)).sum::<Result<u64, _>>()?;
        Ok(Footprint { weights, states })
    }

    /// Returns the cost of a decode step at the beginning of a text, summed over its kernels. It can be compared with
    /// that of another model on the same device.
    ///
    /// *Units*: those of a [`Cost`](backend_api::Cost).
    ///
    /// *Errors*: a graph that the backend cannot run, which [`Self::create`] would have refused.
    pub fn step_cost(&self) -> Result<f64, ModelError> {
        let info = self.backend.info();
        let least = if info.software || info.synchronous { 0 } else { DISPATCH };
        let plan = self.backend.plan(self.recipe.graph(1, Head::GREEDY)?)?;
        let costs = plan.covers().iter().map(|cover| cover.cost(plan.graph()).fixed.max(least));
        Ok(costs.map(|cost| cost as f64).sum())
    }

    /// Returns the description of the model in the file.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Returns the identity of the model, or of its stage. All zeros before the weights are uploaded.
    pub fn identity(&self) -> Identity {
        self.loaded.get().map_or(Identity::from([0; 32]), |(identity, _)| *identity)
    }

    /// Returns the backend that it is loaded on.
    pub fn backend(&self) -> &Rc<dyn Backend> {
        &self.backend
    }

    /// Returns the time that uploading the weights took.
    ///
    /// *Units*: milliseconds.
    pub fn load_ms(&self) -> f64 {
        self.load_times().total_ms
    }

    /// Returns the times of loading, by phase.
    pub fn load_times(&self) -> LoadTimes {
        self.loaded.get().map_or_else(LoadTimes::default, |(_, times)| *times)
    }

    /// Returns the storage of a weight in the recipe.
    pub fn weight(&self, name: &str) -> Option<StorageId> {
        self.weights.get(name)
    }
}

/// Device memory of a model.
///
/// *Units*: bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// All weights.
    pub weights: u64,
    /// States of one sequence.
    pub states: u64,
}

/// Returns the error of a weight that could not be created. For experts, which must all fit the device, it says how
/// many bytes of them fit.
fn too_large(recipe: &Recipe, weight: &Weight, error: backend_api::Error) -> ModelError {
    if !weight.is_of_experts() || !matches!(error, backend_api::Error::OutOfMemory { .. }) {
        return error.into();
    }
    let bytes = |weights: &[Weight]| weights.iter().filter(|weight| weight.is_of_experts()).map(file_bytes).sum();
    let made = recipe.weights().iter().take_while(|made| made.name != weight.name).count();
    ModelError::Experts { bytes: bytes(recipe.weights()), fits: bytes(&recipe.weights()[..made]) }
}

/// Returns the bytes of the file that a weight is read from.
pub(crate) fn file_bytes(weight: &Weight) -> u64 {
    match &weight.contents {
        Contents::Tensors(tensors) | Contents::Transposed(tensors) => tensors.iter().map(|t| t.bytes).sum(),
        Contents::Rope(_, factors) => factors.iter().map(|t| t.bytes).sum(),
        Contents::Constant(_) | Contents::Temperature(_) => 0,
    }
}

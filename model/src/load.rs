//! Brings weights from a file to a device, a piece at a time.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use backend_api::format::ROW_ALIGN;
use backend_api::run::Host;
use backend_api::{Backend, DType, Format, Shape, StorageDesc, StorageId, Tensor};
use half::{bf16, f16};

use crate::arch::{Contents, Head, Recipe, Weight};
use crate::error::ModelError;
use crate::gguf::{ByteSource, TensorInfo};
use crate::identity::{Identifier, Identity};

/// Bytes of a tensor that are in host memory at a time, but for rows so long that [`ROW_ALIGN`] of them are more.
const PIECE: usize = 4 << 20;

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

    pub fn get(&self, name: &str) -> Option<StorageId> {
        self.ids.get(name).copied()
    }
}

impl Drop for Storages {
    fn drop(&mut self) {
        self.ids.values().for_each(|id| self.backend.destroy(*id));
    }
}

/// A model whose weights lie on a device.
pub struct Model {
    recipe: Recipe,
    weights: Storages,
    backend: Rc<dyn Backend>,
    identity: Identity,
    load_ms: f64,
}

impl Model {
    /// Checks that the backend can run all of the model, then uploads the weights. `progress` is told the bytes done
    /// and the bytes of the whole.
    ///
    /// *Errors*: operators that the backend cannot run, limits or memory of the device, all before any weight is read; the
    /// file cannot be read; the device was lost.
    pub async fn load(
        source: &dyn ByteSource,
        recipe: Recipe,
        backend: Rc<dyn Backend>,
        host: &dyn Host,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Model, ModelError> {
        let start = host.now_ms();
        Self::check(&recipe, &*backend)?;
        let mut weights = Storages::new(backend.clone());
        let total = recipe.weights().iter().map(file_bytes).sum();
        let mut parts = Vec::new();
        for weight in recipe.weights() {
            let tensor = Tensor {
                name: weight.name.clone(),
                shape: Shape::new(&weight.shape)?,
                dtype: weight.dtype,
                kind: backend_api::Kind::Weight,
            };
            let id = weights.create(&tensor).map_err(|error| too_large(&recipe, weight, error))?;
            parts.extend(Part::of(weight, id));
        }
        // In the order of the file: over a network, each step back is a request of its own.
        parts.sort_by_key(|part| part.tensors.first().map_or(0, |tensor| tensor.offset));
        let (identifier, buffer) = (recipe.identifier(), Vec::new());
        let mut loader = Loader { source, backend: &*backend, host, progress, done: 0, total, buffer, identifier };
        for part in &parts {
            loader.load(part).await?;
        }
        let identity = loader.identifier.finish();
        Ok(Model { recipe, weights, backend, identity, load_ms: host.now_ms() - start })
    }

    /// Whether a backend can run a model.
    ///
    /// *Errors*: all operators that it cannot run.
    pub fn check(recipe: &Recipe, backend: &dyn Backend) -> Result<(), ModelError> {
        let prefill = ROW_ALIGN.min(recipe.sizes().n_ctx);
        let text = [(1, Head::Greedy), (1, Head::Sample), (prefill, Head::Logits)];
        let embedding = [(prefill, Head::Embedding)];
        for (rows, head) in if recipe.pooling().is_none() { &text[..] } else { &embedding } {
            backend.cover(&recipe.graph(*rows, *head)?)?;
        }
        Ok(())
    }

    /// The device memory that a model would take on a backend; nothing is made.
    ///
    /// *Errors*: tensors that exceed the device's limits.
    pub fn footprint(recipe: &Recipe, backend: &dyn Backend) -> Result<Footprint, ModelError> {
        let bytes = |name: &str, shape: &[usize], dtype| {
            let desc = StorageDesc { name: name.into(), shape: Shape::new(shape)?, dtype, guard_rows: 0 };
            backend.storage_bytes(&desc)
        };
        let weights = recipe.weights().iter().map(|w| bytes(&w.name, &w.shape, w.dtype)).sum::<Result<u64, _>>()?;
        let states = recipe.states()?.iter().map(|s| bytes(&s.name, &s.shape, s.dtype)).sum::<Result<u64, _>>()?;
        Ok(Footprint { weights, states })
    }

    /// What the file says of the model.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// What tells it from other models; of a stage, from other stages too.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// The backend that it is loaded on.
    pub fn backend(&self) -> &Rc<dyn Backend> {
        &self.backend
    }

    /// How long loading took.
    ///
    /// *Units*: milliseconds.
    pub fn load_ms(&self) -> f64 {
        self.load_ms
    }

    /// The storage of a weight of the recipe's.
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
    /// The states of one text.
    pub states: u64,
}

/// Why a weight could not be created. Of experts, all of which a device must hold, it says how much of them fits.
fn too_large(recipe: &Recipe, weight: &Weight, error: backend_api::Error) -> ModelError {
    if !weight.is_of_experts() || !matches!(error, backend_api::Error::OutOfMemory { .. }) {
        return error.into();
    }
    let bytes = |weights: &[Weight]| weights.iter().filter(|weight| weight.is_of_experts()).map(file_bytes).sum();
    let made = recipe.weights().iter().take_while(|made| made.name != weight.name).count();
    ModelError::Experts { bytes: bytes(recipe.weights()), fits: bytes(&recipe.weights()[..made]) }
}

/// The rows that a tensor is written in: its matrices lie one below the other, and a vector has rows of one number.
fn rows_of(tensor: &TensorInfo) -> usize {
    let (_, outer) = tensor.shape.split_last().unwrap_or((&1, &[]));
    if outer.is_empty() { tensor.shape.iter().product() } else { outer.iter().product() }
}

/// Bytes of the file that a weight is read from.
fn file_bytes(weight: &Weight) -> u64 {
    match &weight.contents {
        Contents::Tensors(tensors) => tensors.iter().map(|t| t.bytes).sum(),
        Contents::Rope(_, factors) => factors.iter().map(|t| t.bytes).sum(),
        Contents::Constant(_) | Contents::Temperature(_) => 0,
    }
}

/// What tensors of the file, or none, give to a storage at once.
struct Part<'a> {
    weight: &'a Weight,
    id: StorageId,
    /// The storage's row that it begins at.
    first: usize,
    tensors: &'a [TensorInfo],
}

impl<'a> Part<'a> {
    /// All of a weight.
    fn of(weight: &'a Weight, id: StorageId) -> Vec<Part<'a>> {
        match &weight.contents {
            Contents::Tensors(tensors) => {
                let (mut parts, mut from, mut first, mut rows) = (Vec::new(), 0, 0, 0);
                for (at, tensor) in tensors.iter().enumerate() {
                    rows += rows_of(tensor);
                    // Few rows are written together with those that follow.
                    if rows.is_multiple_of(ROW_ALIGN) || at + 1 == tensors.len() {
                        parts.push(Part { weight, id, first, tensors: &tensors[from..=at] });
                        (from, first) = (at + 1, rows);
                    }
                }
                parts
            }
            Contents::Rope(_, factors) => vec![Part { weight, id, first: 0, tensors: factors.as_slice() }],
            Contents::Constant(_) | Contents::Temperature(_) => vec![Part { weight, id, first: 0, tensors: &[] }],
        }
    }
}

struct Loader<'a> {
    source: &'a dyn ByteSource,
    backend: &'a dyn Backend,
    host: &'a dyn Host,
    progress: &'a mut dyn FnMut(u64, u64),
    done: u64,
    total: u64,
    buffer: Vec<u8>,
    identifier: Identifier,
}

impl Loader<'_> {
    async fn load(&mut self, part: &Part<'_>) -> Result<(), ModelError> {
        let Part { weight, id, first, tensors } = *part;
        match &weight.contents {
            Contents::Tensors(_) => match tensors {
                [tensor] => self.tensor(tensor, weight.dtype, id, first).await?,
                _ => self.pieces(tensors, weight, id, first).await?,
            },
            Contents::Constant(value) => {
                let values = vec![*value; weight.shape.iter().product()];
                self.backend.write(id, 0, bytemuck::cast_slice(&values))?;
            }
            Contents::Rope(table, _) => {
                let mut table = table.clone();
                if let [tensor] = tensors {
                    self.read(tensor.offset, tensor.bytes as usize).await?;
                    table.factors = dense(tensor.format, &self.buffer);
                    if let Some(bad) = table.factors.iter().find(|f| !(f.is_finite() && **f > 0.0)) {
                        let reason = format!("the frequency factor {bad} is not a positive number");
                        return Err(ModelError::Tensor { name: tensor.name.to_string(), reason });
                    }
                }
                // At position 0 nothing is turned, at 1 everything by its angle.
                self.identifier.positions(&table.rows(0..2));
                self.positions(weight, id, |positions| table.rows(positions)).await?;
            }
            Contents::Temperature(table) => self.positions(weight, id, |positions| table.rows(positions)).await?,
        }
        Ok(())
    }

    /// Writes a table of a row for each position.
    async fn positions(
        &mut self,
        weight: &Weight,
        id: StorageId,
        rows: impl Fn(Range<u32>) -> Vec<f32>,
    ) -> Result<(), ModelError> {
        let (n_ctx, cols) = (weight.shape[0], weight.shape[1]);
        let step = (PIECE / (4 * cols)).max(1);
        for first in (0..n_ctx).step_by(step) {
            let values = rows(first as u32..n_ctx.min(first + step) as u32);
            self.backend.write(id, first, bytemuck::cast_slice(&values))?;
            self.host.turn().await;
        }
        Ok(())
    }

    /// Writes a tensor from row `first` of a storage on.
    async fn tensor(
        &mut self,
        tensor: &TensorInfo,
        dtype: DType,
        id: StorageId,
        first: usize,
    ) -> Result<(), ModelError> {
        let rows = rows_of(tensor);
        let row = (tensor.bytes / rows as u64) as usize;
        let step = (PIECE / row / ROW_ALIGN).max(1) * ROW_ALIGN;
        for from in (0..rows).step_by(step) {
            let n = step.min(rows - from);
            let backend = self.backend;
            // Tensors may be larger than what 32 bits address.
            self.read(tensor.offset + from as u64 * row as u64, n * row).await?;
            let bytes = &self.buffer;
            match dtype {
                DType::Packed(_) => backend.write(id, first + from, bytes)?,
                _ => backend.write(id, first + from, bytemuck::cast_slice(&dense(tensor.format, bytes)))?,
            }
            if from == 0 {
                self.identifier.tensor(tensor, bytes);
            }
            self.host.turn().await;
        }
        Ok(())
    }

    /// Writes tensors that are too small to be written each by itself.
    async fn pieces(
        &mut self,
        tensors: &[TensorInfo],
        weight: &Weight,
        id: StorageId,
        first: usize,
    ) -> Result<(), ModelError> {
        let total: u64 = tensors.iter().map(|tensor| tensor.bytes).sum();
        if total > PIECE as u64 {
            let reason = format!("it is put together of rows that are no multiples of {ROW_ALIGN}");
            return Err(ModelError::Tensor { name: weight.name.clone(), reason });
        }
        let mut all = Vec::with_capacity(total as usize);
        for tensor in tensors {
            self.read(tensor.offset, tensor.bytes as usize).await?;
            let bytes = &self.buffer;
            self.identifier.tensor(tensor, bytes);
            match weight.dtype {
                DType::Packed(_) => all.extend(bytes),
                _ => all.extend(dense(tensor.format, bytes).iter().flat_map(|value| value.to_le_bytes())),
            }
        }
        self.backend.write(id, first, &all)?;
        self.host.turn().await;
        Ok(())
    }

    /// Fills the buffer.
    async fn read(&mut self, offset: u64, len: usize) -> Result<(), ModelError> {
        self.buffer.resize(len, 0);
        self.source.read_at(offset, &mut self.buffer).await?;
        self.done += len as u64;
        (self.progress)(self.done, self.total);
        Ok(())
    }
}

/// The values of a vector; recipes take no other formats for them.
fn dense(format: Format, bytes: &[u8]) -> Vec<f32> {
    let halves = bytes.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]]));
    match format {
        Format::F16 => halves.map(|h| f16::from_bits(h).to_f32()).collect(),
        Format::BF16 => halves.map(|h| bf16::from_bits(h).to_f32()).collect(),
        _ => bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
    }
}

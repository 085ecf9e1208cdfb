//! Memory budgets of models. They are computed from the header, so too large models are refused before any allocation.

use backend_api::{DType, Shape, Tensor};

use crate::arch::kv_cache::KvCache;
use crate::arch::{Contents, Head, Recipe};
use crate::error::ModelError;
use crate::gguf::Gguf;

/// Bytes of states and tables that any model may have.
const FREE: u64 = 512 << 20;
/// Allowed bytes of states and tables for each byte of weights, beyond [`FREE`]. Caches of the longest contexts take
/// about as much as the weights. A small file that needs far more is damaged, or an attack.
const SHARE: u64 = 4;
/// Most bytes of a tensor within a step.
const TENSOR: u64 = 256 << 20;
/// Rows of the longest steps.
const ROWS: usize = 128;
/// Most bytes of a state that every device can bind: WebGPU's smallest limit.
const STATE: u64 = 128 << 20;
/// Longest default context in tokens: its position tables are computed while the model is loaded.
const LONGEST: usize = 1 << 17;
/// Granularity in tokens of contexts that memory limits.
const STEP: usize = 256;

impl Recipe {
    /// Returns the longest sensible default context of a file's model: that of training, but at most 131,072 tokens. It
    /// is shorter if [`Self::check_memory`] with `most` refuses it, or if a state would exceed 128 MiB, which every
    /// device can bind.
    ///
    /// *Errors*: as [`Recipe::new`].
    pub fn longest_context(gguf: &Gguf, kv_cache: KvCache, most: Option<u64>) -> Result<usize, ModelError> {
        let usual = Recipe::new(gguf, None)?;
        let longest = usual.sizes().n_ctx_train.min(LONGEST);
        let usual = usual.sizes().n_ctx;
        let fits = |n_ctx| {
            let recipe = Recipe::new(gguf, Some(n_ctx))?.with_kv_cache(kv_cache);
            match recipe.check_memory(most) {
                Err(ModelError::Memory { .. }) => return Ok(false),
                checked => checked?,
            }
            for state in recipe.states()? {
                if bytes(&state.shape, state.dtype)? > STATE {
                    return Ok(false);
                }
            }
            Ok::<_, ModelError>(true)
        };
        if longest <= usual || fits(longest)? {
            return Ok(longest.max(usual));
        }
        let (mut few, mut many) = (usual / STEP, longest.div_ceil(STEP));
        while many - few > 1 {
            let middle = few.midpoint(many);
            if fits(middle * STEP)? { few = middle } else { many = middle }
        }
        Ok(usual.max(few * STEP))
    }

    /// Checks the memory of weights and states against the limit `most`. By default, only states are limited: to 512
    /// MiB or four times the weights, whichever is larger. In this case a step's tensors are limited, too.
    ///
    /// *Errors*: a limit is exceeded; inconsistent sizes.
    pub fn check_memory(&self, most: Option<u64>) -> Result<(), ModelError> {
        let (mut weights, mut made) = (0u64, 0u64);
        for weight in self.weights() {
            let bytes = bytes(&weight.shape, weight.dtype)?;
            let sum = if matches!(weight.contents, Contents::Tensors(_)) { &mut weights } else { &mut made };
            *sum = sum.saturating_add(bytes);
        }
        for state in self.states()? {
            made = made.saturating_add(bytes(&state.shape, state.dtype)?);
        }
        let n_ctx = self.sizes().n_ctx;
        let refused = |what, bytes, most| Err(ModelError::Memory { what, bytes, n_ctx, most });
        if let Some(most) = most {
            let all = weights.saturating_add(made);
            return if all > most { refused("weights and states", all, most) } else { Ok(()) };
        }
        let fair = FREE.max(weights.saturating_mul(SHARE));
        if made > fair {
            return refused("states", made, fair);
        }
        let head = if self.pooling().is_some() { Head::EMBEDDING } else { Head::LOGITS };
        let graph = self.graph(ROWS.min(n_ctx), head)?;
        let largest = graph.tensors().map(|(_, tensor)| temporary(tensor)).max().unwrap_or(0);
        if largest > TENSOR { refused("a tensor of a step", largest, TENSOR) } else { Ok(()) }
    }
}

/// Returns the bytes of a tensor that exists only within a step; 0 for others.
fn temporary(tensor: &Tensor) -> u64 {
    if tensor.kind == backend_api::Kind::Temporary { 4 * tensor.shape.len() as u64 } else { 0 }
}

fn bytes(shape: &[usize], dtype: DType) -> Result<u64, ModelError> {
    let shape = Shape::new(shape)?;
    let (rows, cols) = backend_api::host_rows(&shape);
    Ok((rows as u64).saturating_mul(dtype.row_bytes(cols)? as u64))
}

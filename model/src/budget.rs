//! Memory budgets of models: known from the header, and refused before anything is made.

use backend_api::{DType, Shape, Tensor};

use crate::arch::{Contents, Head, Recipe};
use crate::error::ModelError;

/// Bytes of states and tables that are in order for any model.
const FREE: u64 = 512 << 20;
/// Bytes of them for each byte of weights, beyond that. Caches of the longest contexts take about as much as the weights;
/// a small file that asks for far more is damaged, or an attack.
const SHARE: u64 = 4;
/// Bytes of the largest tensor of a step that are in order.
const TENSOR: u64 = 256 << 20;
/// Rows of the longest steps.
const ROWS: usize = 128;

impl Recipe {
    /// Whether it takes no more memory than it may: `most` bytes for weights and states, or, without a word, no more for
    /// states than suits its weights.
    ///
    /// *Errors*: it takes more; sizes that do not fit together.
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
        let head = if self.pooling().is_some() { Head::Embedding } else { Head::Logits };
        let graph = self.graph(ROWS.min(n_ctx), head)?;
        let largest = graph.tensors().map(|(_, tensor)| temporary(tensor)).max().unwrap_or(0);
        if largest > TENSOR { refused("a tensor of a step", largest, TENSOR) } else { Ok(()) }
    }
}

/// Bytes of a tensor that only a step has.
fn temporary(tensor: &Tensor) -> u64 {
    if tensor.kind == backend_api::Kind::Temporary { 4 * tensor.shape.len() as u64 } else { 0 }
}

fn bytes(shape: &[usize], dtype: DType) -> Result<u64, ModelError> {
    let shape = Shape::new(shape)?;
    let (rows, cols) = backend_api::host_rows(&shape);
    Ok((rows as u64).saturating_mul(dtype.row_bytes(cols)? as u64))
}

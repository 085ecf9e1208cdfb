//! Per-layer embeddings: an additional input of each block. It is made of a part of each token's row in a second table,
//! and of a projection of its embedding.
//!
//! *Source*: Google, "Gemma 3n", 2025 (per-layer embeddings).

use backend_api::TensorId;
use backend_api::op::{GluKind, Norm};

use super::Sizes;
use super::recorder::{Recorded, Recorder};

const TABLE: &str = "per_layer_token_embd";

/// Width of a block's additional input.
#[derive(Debug, Clone, Copy)]
pub(super) struct PerLayer {
    pub width: usize,
    /// Norm of the projection, and of the additional input's result.
    pub norm: Norm,
}

impl Recorder<'_> {
    /// Records the additional inputs of all blocks, side by side.
    fn per_layer_inputs(&mut self, p: &PerLayer) -> Recorded {
        let Sizes { n_embd, n_blocks, .. } = *self.step.sizes;
        let all = p.width * n_blocks;
        let x = self.embed_scaled("token_embd")?;
        let x = self.linear("per_layer_model_proj", all, x)?;
        let x = self.scale(1.0 / (n_embd as f32).sqrt(), x)?;
        let x = self.norm("per_layer_proj_norm", Norm { heads: n_blocks, ..p.norm }, x)?;
        let of_tokens = self.rows_of_tokens(TABLE, self.rows_of(TABLE, all)?, all)?;
        let of_tokens = self.scale((p.width as f32).sqrt(), of_tokens)?;
        let sum = self.add(of_tokens, x)?;
        self.scale(0.5f32.sqrt(), sum)
    }

    /// Records the result of block `i` for its part of the inputs, gated by `x`.
    pub fn per_layer(&mut self, p: &PerLayer, i: usize, x: TensorId) -> Recorded {
        // Each stage of a model computes them from the tokens.
        let inputs = self.once("per_layer_inputs", |m| m.per_layer_inputs(p))?;
        let gate = self.linear("inp_gate", p.width, x)?;
        let input = self.slice(i * p.width, p.width, inputs)?;
        let [input] = self.wanted([input])?;
        let e = self.gated(GluKind::GegluTanh, gate, input)?;
        let e = self.linear("proj", self.step.sizes.n_embd, e)?;
        self.norm("post_norm", p.norm, e)
    }
}

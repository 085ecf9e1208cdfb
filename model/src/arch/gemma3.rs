//! Gemma 3, text: sliding windows in most blocks, whose rotation has a base of its own; norms before and after each
//! layer, and of queries and keys; GeGLU (tanh). EmbeddingGemma has the same structure with bidirectional attention.
//!
//! *Source*: Gemma Team, "Gemma 3 Technical Report", 2025; Vera et al., "EmbeddingGemma", 2025.

use backend_api::op::{GluKind, Norm, RopeMode};

use super::attention::Attention;
use super::keys::{Keys, MAX_WIDTH};
use super::recorder::Recorder;
use super::rope::Rope;
use super::{Architecture, Sizes};
use crate::error::ModelError;

/// Period of blocks with full attention.
const PERIOD: usize = 6;
/// Number of blocks of the model that scales its scores differently.
const BLOCKS_OF_27B: usize = 62;

#[derive(Debug)]
struct Gemma3 {
    sizes: Sizes,
    n_ff: usize,
    norm: Norm,
    /// Attention of blocks with a window.
    local: Attention,
    /// Attention of blocks without one.
    global: Attention,
    /// Whether each block has a window.
    is_local: Vec<bool>,
    softcap: Option<f32>,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let sizes = keys.sizes()?;
    let norm = keys.rms_norm()?;
    let rope = Rope::read(keys, &sizes, RopeMode::Neox)?;
    let base = keys.positive("rope.freq_base_swa", Some(10_000.0))?;
    let local_rope = rope.plain("rope_table_swa", base);
    let global = Attention { scale: scale(&sizes), qk_norm: Some(norm), rope: Some(rope), ..Attention::new(&sizes) };
    let window = keys.get::<u32>("attention.sliding_window")?.unwrap_or(0);
    Ok(Box::new(Gemma3 {
        sizes,
        n_ff: keys.size("feed_forward_length", MAX_WIDTH, None)?,
        norm,
        local: Attention { window, rope: Some(local_rope), ..global.clone() },
        global,
        is_local: if window == 0 { vec![false; sizes.n_blocks] } else { keys.windowed(sizes.n_blocks, PERIOD)? },
        softcap: keys.nonzero("final_logit_softcapping", None)?,
    }))
}

/// Returns the factor of the scores.
fn scale(sizes: &Sizes) -> f32 {
    let width = if sizes.n_blocks == BLOCKS_OF_27B { sizes.n_embd / sizes.n_head } else { sizes.head_dim };
    1.0 / (width as f32).sqrt()
}

impl Architecture for Gemma3 {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let Gemma3 { sizes: Sizes { n_embd, .. }, n_ff, norm, .. } = self;
        let x = m.input(|m| m.embed_scaled("token_embd"))?;
        let x = m.blocks(x, |m, i, x| {
            let a = m.norm("attn_norm", *norm, x)?;
            let a = m.attention(if self.is_local[i] { &self.local } else { &self.global }, a)?;
            let [a, x] = m.wanted([a, x])?;
            let a = m.linear("attn_output", *n_embd, a)?;
            let a = m.norm("post_attention_norm", *norm, a)?;
            let x = m.add(a, x)?;
            let f = m.norm("ffn_norm", *norm, x)?;
            let f = m.glu(GluKind::GegluTanh, *n_ff, f)?;
            let f = m.linear("ffn_down", *n_embd, f)?;
            let f = m.norm("post_ffw_norm", *norm, f)?;
            m.add(f, x)
        })?;
        m.output(x, |m, x| {
            let x = m.norm("output_norm", *norm, x)?;
            let logits = m.logits(x)?;
            m.softcap(self.softcap, logits)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_of_27b_are_divided_by_the_width_per_head() {
        let sizes = |n_blocks, n_embd, n_head, head_dim| Sizes {
            n_ctx: 1,
            n_ctx_train: 1,
            n_embd,
            n_head,
            n_head_kv: 1,
            head_dim,
            n_blocks,
            n_vocab: 1,
        };
        assert_eq!(scale(&sizes(62, 5376, 32, 128)), 1.0 / 168f32.sqrt());
        assert_eq!(scale(&sizes(26, 1152, 4, 256)), 1.0 / 16.0);
    }
}

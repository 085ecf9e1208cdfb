//! Gemma 2: sliding windows in every other block, soft caps of scores and logits, norms before and after each layer,
//! GeGLU (tanh).
//!
//! *Source*: Gemma Team, "Gemma 2: Improving Open Language Models at a Practical Size", 2024.

use backend_api::op::{GluKind, Norm, RopeMode};

use super::attention::Attention;
use super::keys::{Keys, MAX_WIDTH};
use super::recorder::Recorder;
use super::rope::Rope;
use super::{Architecture, Sizes};
use crate::error::ModelError;

/// Period of blocks with full attention.
const PERIOD: usize = 2;
/// Number of blocks of the model that scales its scores differently.
const BLOCKS_OF_27B: usize = 46;

#[derive(Debug)]
struct Gemma2 {
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
    let rope = Rope::read(keys, &sizes, RopeMode::Neox)?;
    let local_rope = match keys.nonzero("rope.freq_base_swa", None)? {
        Some(freq_base) => rope.plain("rope_table_swa", freq_base),
        None => rope.clone(),
    };
    let width = if sizes.n_blocks == BLOCKS_OF_27B { sizes.n_embd / sizes.n_head } else { sizes.head_dim };
    let global = Attention {
        scale: 1.0 / (width as f32).sqrt(),
        softcap: keys.nonzero("attn_logit_softcapping", Some(50.0))?.unwrap_or(0.0),
        rope: Some(rope),
        ..Attention::new(&sizes)
    };
    let window = keys.get::<u32>("attention.sliding_window")?.unwrap_or(4096);
    Ok(Box::new(Gemma2 {
        sizes,
        n_ff: keys.size("feed_forward_length", MAX_WIDTH, None)?,
        norm: keys.rms_norm()?,
        local: Attention { window, rope: Some(local_rope), ..global.clone() },
        global,
        is_local: keys.windowed(sizes.n_blocks, PERIOD)?,
        softcap: keys.nonzero("final_logit_softcapping", Some(30.0))?,
    }))
}

impl Architecture for Gemma2 {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let Gemma2 { sizes: Sizes { n_embd, .. }, n_ff, norm, .. } = self;
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

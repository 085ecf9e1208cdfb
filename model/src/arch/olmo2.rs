//! OLMo 2 and 3: norms after each layer instead of before it, and of whole queries and keys. OLMo 3 has sliding windows
//! in most blocks, whose angles are not stretched.
//!
//! *Source*: OLMo Team, "2 OLMo 2 Furious", 2024; "Olmo 3", 2025.

use backend_api::op::{GluKind, Norm, RopeMode};

use super::attention::Attention;
use super::keys::{Keys, MAX_WIDTH};
use super::recorder::Recorder;
use super::rope::Rope;
use super::{Architecture, Sizes};
use crate::error::ModelError;

/// Period of blocks with full attention, if there are windows.
const PERIOD: usize = 4;

#[derive(Debug)]
struct Olmo2 {
    sizes: Sizes,
    n_ff: usize,
    norm: Norm,
    /// Attention of blocks with a window.
    local: Attention,
    /// Attention of blocks without one.
    global: Attention,
    /// Whether each block has a window.
    is_local: Vec<bool>,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    keys.dense()?;
    let sizes = keys.sizes()?;
    let norm = keys.rms_norm()?;
    let rope = Rope::read(keys, &sizes, RopeMode::Neox)?;
    let local_rope = rope.plain("rope_table_swa", rope.angles.freq_base);
    let global = Attention { qk_norm: Some(norm), norm_rows: true, rope: Some(rope), ..Attention::new(&sizes) };
    let window = keys.get::<u32>("attention.sliding_window")?.unwrap_or(0);
    Ok(Box::new(Olmo2 {
        sizes,
        n_ff: keys.size("feed_forward_length", MAX_WIDTH, None)?,
        norm,
        local: Attention { window, rope: Some(local_rope), ..global.clone() },
        global,
        is_local: if window == 0 { vec![false; sizes.n_blocks] } else { keys.windowed(sizes.n_blocks, PERIOD)? },
    }))
}

impl Architecture for Olmo2 {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let Olmo2 { sizes: Sizes { n_embd, .. }, n_ff, norm, .. } = self;
        let x = m.input(|m| m.embed("token_embd"))?;
        let x = m.blocks(x, |m, i, x| {
            let a = m.attention(if self.is_local[i] { &self.local } else { &self.global }, x)?;
            let [a, x] = m.wanted([a, x])?;
            let a = m.linear("attn_output", *n_embd, a)?;
            let a = m.norm("post_attention_norm", *norm, a)?;
            let x = m.add(a, x)?;
            let f = m.glu(GluKind::Swiglu, *n_ff, x)?;
            let f = m.linear("ffn_down", *n_embd, f)?;
            let f = m.norm("post_ffw_norm", *norm, f)?;
            m.add(f, x)
        })?;
        m.output(x, |m, x| m.normed_logits(*norm, x))
    }
}

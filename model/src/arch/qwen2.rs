//! Qwen 2 and 2.5: like Llama, with biases of queries, keys and values, and rotated halves.
//!
//! *Source*: Yang et al., "Qwen2 Technical Report", 2024.

use backend_api::op::{GluKind, Norm, RopeMode};

use super::attention::Attention;
use super::keys::{Keys, MAX_WIDTH};
use super::recorder::Recorder;
use super::rope::Rope;
use super::{Architecture, Sizes};
use crate::error::ModelError;

#[derive(Debug)]
struct Qwen2 {
    sizes: Sizes,
    n_ff: usize,
    norm: Norm,
    attention: Attention,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let sizes = keys.sizes()?;
    let rope = Rope::read(keys, &sizes, RopeMode::Neox)?;
    Ok(Box::new(Qwen2 {
        sizes,
        n_ff: keys.size("feed_forward_length", MAX_WIDTH, None)?,
        norm: keys.rms_norm()?,
        attention: Attention { rope: Some(rope), ..Attention::new(&sizes) },
    }))
}

impl Architecture for Qwen2 {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let Qwen2 { sizes: Sizes { n_embd, .. }, n_ff, norm, attention } = self;
        let x = m.input(|m| m.embed("token_embd"))?;
        let x = m.blocks(x, |m, _, x| {
            let a = m.norm("attn_norm", *norm, x)?;
            let a = m.attention(attention, a)?;
            let [a, x] = m.wanted([a, x])?;
            let a = m.linear("attn_output", *n_embd, a)?;
            let x = m.add(a, x)?;
            let f = m.norm("ffn_norm", *norm, x)?;
            let f = m.glu(GluKind::Swiglu, *n_ff, f)?;
            let f = m.linear("ffn_down", *n_embd, f)?;
            m.add(f, x)
        })?;
        m.output(x, |m, x| {
            let x = m.norm("output_norm", *norm, x)?;
            m.logits(x)
        })
    }
}

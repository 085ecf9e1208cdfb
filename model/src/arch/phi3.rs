//! Phi 3, 3.5 and 4: like Llama, with queries, keys and values in one tensor, and gate and up matrices in another;
//! rotated halves, of only a part of each head in some models; frequency factors for long contexts.
//!
//! Files name a sliding window of 2047, which the published weights do not use: attention is full.
//!
//! *Source*: Abdin et al., "Phi-3 Technical Report", 2024; Ding et al., "LongRoPE", 2024.

use backend_api::op::{GluKind, Norm, RopeMode};

use super::attention::Attention;
use super::keys::{Keys, MAX_WIDTH};
use super::recorder::Recorder;
use super::rope::Rope;
use super::{Architecture, Sizes};
use crate::error::ModelError;

#[derive(Debug)]
struct Phi3 {
    sizes: Sizes,
    n_ff: usize,
    norm: Norm,
    attention: Attention,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    keys.dense()?;
    let sizes = keys.sizes()?;
    let rope = Rope::read(keys, &sizes, RopeMode::Neox)?;
    Ok(Box::new(Phi3 {
        sizes,
        n_ff: keys.size("feed_forward_length", MAX_WIDTH, None)?,
        norm: keys.rms_norm()?,
        attention: Attention { rope: Some(rope), ..Attention::new(&sizes) },
    }))
}

impl Architecture for Phi3 {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let Phi3 { sizes: Sizes { n_embd, .. }, n_ff, norm, attention } = self;
        let x = m.input(|m| m.embed("token_embd"))?;
        let x = m.blocks(x, |m, _, x| {
            let a = m.norm("attn_norm", *norm, x)?;
            let a = m.attention(attention, a)?;
            let [a, x] = m.wanted([a, x])?;
            let a = m.linear("attn_output", *n_embd, a)?;
            let x = m.add(a, x)?;
            let f = m.norm("ffn_norm", *norm, x)?;
            let f = m.fused_glu("ffn_up", GluKind::Swiglu, *n_ff, f)?;
            let f = m.linear("ffn_down", *n_embd, f)?;
            m.add(f, x)
        })?;
        m.output(x, |m, x| {
            let x = m.norm("output_norm", *norm, x)?;
            m.logits(x)
        })
    }
}

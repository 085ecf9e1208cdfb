//! Llama 2 and 3, SmolLM and SmolLM2, TinyLlama: RMS norms, rotary positions, grouped-query attention, SwiGLU. Mixtral
//! has the same structure with experts.
//!
//! *Source*: Touvron et al., "Llama 2: Open Foundation and Fine-Tuned Chat Models", 2023; of the experts: Jiang et al.,
//! "Mixtral of Experts", 2024.

use backend_api::op::{Norm, RopeMode};

use super::attention::Attention;
use super::experts::FeedForward;
use super::keys::Keys;
use super::recorder::Recorder;
use super::rope::Rope;
use super::{Architecture, Sizes};
use crate::error::ModelError;

#[derive(Debug)]
struct Llama {
    sizes: Sizes,
    feed_forward: FeedForward,
    norm: Norm,
    attention: Attention,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let sizes = keys.sizes()?;
    let rope = Rope::read(keys, &sizes, RopeMode::Normal)?;
    Ok(Box::new(Llama {
        sizes,
        feed_forward: keys.feed_forward()?,
        norm: keys.rms_norm()?,
        attention: Attention { rope: Some(rope), ..Attention::new(&sizes) },
    }))
}

impl Architecture for Llama {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let Llama { sizes: Sizes { n_embd, .. }, feed_forward, norm, attention } = self;
        let x = m.input(|m| m.embed("token_embd"))?;
        let x = m.blocks(x, |m, _, x| {
            let a = m.norm("attn_norm", *norm, x)?;
            let a = m.attention(attention, a)?;
            let [a, x] = m.wanted([a, x])?;
            let a = m.linear("attn_output", *n_embd, a)?;
            let x = m.add(a, x)?;
            let f = m.norm("ffn_norm", *norm, x)?;
            let f = m.feed_forward(feed_forward, f)?;
            m.add(f, x)
        })?;
        m.output(x, |m, x| {
            let x = m.norm("output_norm", *norm, x)?;
            m.logits(x)
        })
    }
}

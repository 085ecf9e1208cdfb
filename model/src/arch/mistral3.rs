//! Mistral Small 3 and Ministral 3: like Llama, with heads of any width, YaRN, and queries that grow with the position;
//! some with experts.
//!
//! *Source*: Liu et al., "Ministral 3", 2026; of the queries: Nakanishi, "Scalable-Softmax Is Superior for
//! Attention", 2025.

use backend_api::op::{Norm, RopeMode};

use super::attention::{Attention, Temperature};
use super::experts::FeedForward;
use super::keys::Keys;
use super::recorder::Recorder;
use super::rope::{self, Rope};
use super::{Architecture, Sizes};
use crate::error::ModelError;

#[derive(Debug)]
struct Mistral3 {
    sizes: Sizes,
    feed_forward: FeedForward,
    norm: Norm,
    attention: Attention,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let sizes = keys.sizes()?;
    let rope = Rope::read(keys, &sizes, RopeMode::Normal)?;
    let n_ctx_orig = rope::n_ctx_orig(keys, &sizes)?;
    let temperature = keys.nonzero("attention.temperature_scale", None)?.map(|scale| Temperature { scale, n_ctx_orig });
    Ok(Box::new(Mistral3 {
        sizes,
        feed_forward: keys.feed_forward()?,
        norm: keys.rms_norm()?,
        attention: Attention { rope: Some(rope), temperature, ..Attention::new(&sizes) },
    }))
}

impl Architecture for Mistral3 {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let Mistral3 { sizes: Sizes { n_embd, .. }, feed_forward, norm, attention } = self;
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

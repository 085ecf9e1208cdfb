//! Granite 4, hybrid: Granite's factors, and Mamba 2 in most blocks, with attention in a few; larger models have
//! experts.
//!
//! As in [`granite`](super::granite), the recorded residual stream is divided by the factor of the layers' results.
//!
//! *Source*: IBM, "Granite 4.0 Language Models", 2025.

use backend_api::op::{GluKind, Norm, RopeMode};

use super::attention::Attention;
use super::experts::FeedForward;
use super::keys::Keys;
use super::recorder::Recorder;
use super::recurrent::Ssm;
use super::rope::Rope;
use super::{Architecture, Sizes};
use crate::error::ModelError;

#[derive(Debug)]
struct GraniteHybrid {
    sizes: Sizes,
    feed_forward: FeedForward,
    /// Width of the shared expert.
    shared: Option<usize>,
    /// Norm of the residual stream, divided by the factor of the layers' results.
    norm: Norm,
    /// Norm of a scan's result.
    inner_norm: Norm,
    /// Factor of the embedding, divided by the factor of the layers' results.
    embedding_scale: f32,
    /// Divisor of the logits.
    logit_scale: f32,
    /// Attention of each block that has it.
    attention: Vec<Option<Attention>>,
    ssm: Ssm,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let (sizes, heads) = keys.hybrid_sizes()?;
    let rotated = keys.get::<bool>("rope.scaling.finetuned")?.unwrap_or(true);
    let rope = if rotated { Some(Rope::read(keys, &sizes, RopeMode::Normal)?) } else { None };
    let plain = Attention::new(&sizes);
    let scale = keys.nonzero("attention.scale", Some(plain.scale))?.unwrap_or(plain.scale);
    let residual_scale = keys.nonzero("residual_scale", None)?.unwrap_or(1.0);
    let norm = keys.rms_norm()?;
    let attention = Attention { scale, rope, ..plain };
    Ok(Box::new(GraniteHybrid {
        sizes,
        feed_forward: keys.feed_forward()?,
        shared: keys.shared_expert()?,
        norm: Norm { eps: norm.eps / (residual_scale * residual_scale), ..norm },
        inner_norm: norm,
        embedding_scale: keys.nonzero("embedding_scale", None)?.unwrap_or(1.0) / residual_scale,
        logit_scale: keys.nonzero("logit_scale", None)?.unwrap_or(1.0),
        attention: attention.by_block(&heads),
        ssm: Ssm::read(keys)?,
    }))
}

impl Architecture for GraniteHybrid {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let GraniteHybrid { sizes: Sizes { n_embd, .. }, feed_forward, norm, .. } = self;
        let x = m.input(|m| {
            let x = m.embed("token_embd")?;
            m.scale(self.embedding_scale, x)
        })?;
        let x = m.blocks(x, |m, i, x| {
            let a = m.norm("attn_norm", *norm, x)?;
            let attention = &self.attention[i];
            let a = match attention {
                Some(attention) => m.attention(attention, a)?,
                None => m.mamba2(&self.ssm, a)?,
            };
            let [a, x] = m.wanted([a, x])?;
            let a = match attention {
                Some(_) => m.linear("attn_output", *n_embd, a)?,
                None => m.ssm_out(&self.ssm, self.inner_norm, a)?,
            };
            let x = m.add(a, x)?;
            let f = m.norm("ffn_norm", *norm, x)?;
            let y = m.feed_forward(feed_forward, f)?;
            let x = m.add(y, x)?;
            let Some(n_ff) = self.shared else { return Ok(x) };
            let y = m.shared_expert(GluKind::Swiglu, n_ff, f)?;
            m.add(y, x)
        })?;
        m.output(x, |m, x| {
            let x = m.norm("output_norm", *norm, x)?;
            let logits = m.logits(x)?;
            m.scale(1.0 / self.logit_scale, logits)
        })
    }
}

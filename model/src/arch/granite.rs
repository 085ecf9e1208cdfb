//! Granite 3 and 4, dense or with experts: like Llama, with factors of the embedding, the scores, the layers' results,
//! and the logits.
//!
//! Every layer's result is multiplied by a factor `r` before it is added. The recorded residual stream is divided by
//! `r`, so that results are added unscaled. Each reader of the stream norms it first, and an RMS norm of `x / r` with
//! `eps / r^2` equals that of `x` with `eps`. So the factor costs nothing.
//!
//! *Source*: Granite Team, "Granite 3.0 Language Models", 2024; of the factors: Yang et al., "Tensor Programs V", 2022.

use backend_api::op::{GluKind, Norm, RopeMode};

use super::attention::Attention;
use super::experts::FeedForward;
use super::keys::Keys;
use super::recorder::Recorder;
use super::rope::Rope;
use super::{Architecture, Sizes};
use crate::error::ModelError;

#[derive(Debug)]
struct Granite {
    sizes: Sizes,
    feed_forward: FeedForward,
    /// Width of the shared expert.
    shared: Option<usize>,
    /// Norm of the residual stream, divided by the factor of the layers' results.
    norm: Norm,
    /// Factor of the embedding, divided by the factor of the layers' results.
    embedding_scale: f32,
    /// Divisor of the logits.
    logit_scale: f32,
    attention: Attention,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    keys.dense()?;
    with(keys, None)
}

/// Reads the variant with experts.
pub(super) fn read_moe(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    with(keys, keys.shared_expert()?)
}

fn with(keys: &Keys<'_>, shared: Option<usize>) -> Result<Box<dyn Architecture>, ModelError> {
    let sizes = keys.sizes()?;
    let rotated = keys.get::<bool>("rope.scaling.finetuned")?.unwrap_or(true);
    let rope = if rotated { Some(Rope::read(keys, &sizes, RopeMode::Normal)?) } else { None };
    let plain = Attention::new(&sizes);
    let scale = keys.nonzero("attention.scale", Some(plain.scale))?.unwrap_or(plain.scale);
    let residual_scale = keys.nonzero("residual_scale", None)?.unwrap_or(1.0);
    let norm = keys.rms_norm()?;
    Ok(Box::new(Granite {
        sizes,
        feed_forward: keys.feed_forward()?,
        shared,
        norm: Norm { eps: norm.eps / (residual_scale * residual_scale), ..norm },
        embedding_scale: keys.nonzero("embedding_scale", None)?.unwrap_or(1.0) / residual_scale,
        logit_scale: keys.positive("logit_scale", None)?,
        attention: Attention { scale, rope, ..plain },
    }))
}

impl Architecture for Granite {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let Granite { sizes: Sizes { n_embd, .. }, feed_forward, norm, attention, .. } = self;
        let x = m.input(|m| {
            let x = m.embed("token_embd")?;
            m.scale(self.embedding_scale, x)
        })?;
        let x = m.blocks(x, |m, _, x| {
            let a = m.norm("attn_norm", *norm, x)?;
            let a = m.attention(attention, a)?;
            let [a, x] = m.wanted([a, x])?;
            let a = m.linear("attn_output", *n_embd, a)?;
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

//! Qwen 3.5 and Qwen3-Next: three of four blocks have a gated delta net, the fourth has gated attention.
//!
//! Qwen3-Next and the larger Qwen 3.5 models have experts, one of them shared. Qwen 3.5 rotates by positions of several
//! axes, which are the token's in a text.
//!
//! *Source*: Qwen Team, "Qwen3-Next", 2025; Yang et al., "Gated Delta Networks: Improving Mamba2 with Delta Rule", 2024;
//! Qiu et al., "Gated Attention for Large Language Models", 2025.

use backend_api::op::{GluKind, Norm, RopeMode};

use super::attention::Attention;
use super::experts::{FeedForward, Gate};
use super::keys::{Keys, MAX_WIDTH};
use super::recorder::Recorder;
use super::recurrent::DeltaNet;
use super::rope::{Rope, Sections};
use super::{Architecture, Sizes};
use crate::error::ModelError;

/// Period of blocks with attention.
const PERIOD: usize = 4;

#[derive(Debug)]
struct Qwen35 {
    sizes: Sizes,
    feed_forward: FeedForward,
    /// Width of the shared expert.
    shared: Option<usize>,
    norm: Norm,
    attention: Attention,
    delta_net: DeltaNet,
    /// Whether each block has attention.
    attends: Vec<bool>,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    of(keys, false)
}

/// Reads Qwen3-Next, where neighbouring value heads share a key head.
pub(super) fn read_next(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    of(keys, true)
}

fn of(keys: &Keys<'_>, grouped: bool) -> Result<Box<dyn Architecture>, ModelError> {
    let sizes = keys.predicting_one(keys.sizes()?)?;
    let (feed_forward, shared) = match keys.get::<u64>("expert_count")? {
        Some(n) if n > 0 => {
            let n_ff = keys.size("expert_feed_forward_length", MAX_WIDTH, None)?;
            (FeedForward::Experts(keys.experts(Gate::Softmax, n_ff)?), keys.shared_expert()?)
        }
        _ => (FeedForward::Glu(GluKind::Swiglu, keys.size("feed_forward_length", MAX_WIDTH, None)?), None),
    };
    let (norm, mut rope) = (keys.rms_norm()?, Rope::read(keys, &sizes, RopeMode::Neox)?);
    rope.section(keys, Sections::Interleaved)?;
    Ok(Box::new(Qwen35 {
        sizes,
        feed_forward,
        shared,
        norm,
        attention: Attention { qk_norm: Some(norm), rope: Some(rope), gated: true, ..Attention::new(&sizes) },
        delta_net: DeltaNet::read(keys, grouped, norm)?,
        attends: keys.attending(sizes.n_blocks, PERIOD)?,
    }))
}

impl Architecture for Qwen35 {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let Qwen35 { sizes: Sizes { n_embd, .. }, feed_forward, norm, .. } = self;
        let x = m.input(|m| m.embed("token_embd"))?;
        let x = m.blocks(x, |m, i, x| {
            let a = m.norm("attn_norm", *norm, x)?;
            let (a, output) = if self.attends[i] {
                (m.attention(&self.attention, a)?, "attn_output")
            } else {
                (m.delta_net(&self.delta_net, a)?, "ssm_out")
            };
            let [a, x] = m.wanted([a, x])?;
            let a = m.linear(output, *n_embd, a)?;
            let x = m.add(a, x)?;
            let f = m.norm("post_attention_norm", *norm, x)?;
            let y = m.feed_forward(feed_forward, f)?;
            let x = m.add(y, x)?;
            let Some(n_ff) = self.shared else { return Ok(x) };
            let y = m.shared_expert(GluKind::Swiglu, n_ff, f)?;
            m.add(y, x)
        })?;
        m.output(x, |m, x| m.normed_logits(*norm, x))
    }
}

//! SmolLM3: like Llama, but every fourth block has no rotation.
//!
//! *Source*: Bakouch et al., "SmolLM3: smol, multilingual, long-context reasoner", 2025; of blocks without positions:
//! Yang et al., "RoPE to NoPE and Back Again", 2025.

use backend_api::op::{GluKind, Norm, RopeMode};

use super::attention::Attention;
use super::experts::FeedForward;
use super::keys::{Keys, MAX_WIDTH};
use super::recorder::Recorder;
use super::rope::Rope;
use super::{Architecture, Sizes};
use crate::error::ModelError;

/// Period of blocks without rotation.
const PERIOD: usize = 4;

#[derive(Debug)]
struct SmolLm3 {
    sizes: Sizes,
    feed_forward: FeedForward,
    norm: Norm,
    rotated: Attention,
    unrotated: Attention,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    keys.dense()?;
    let sizes = keys.sizes()?;
    let rope = Rope::read(keys, &sizes, RopeMode::Normal)?;
    Ok(Box::new(SmolLm3 {
        sizes,
        feed_forward: FeedForward::Glu(GluKind::Swiglu, keys.size("feed_forward_length", MAX_WIDTH, None)?),
        norm: keys.rms_norm()?,
        rotated: Attention { rope: Some(rope), ..Attention::new(&sizes) },
        unrotated: Attention::new(&sizes),
    }))
}

impl Architecture for SmolLm3 {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let SmolLm3 { feed_forward, norm, rotated, unrotated, .. } = self;
        let x = m.input(|m| m.embed("token_embd"))?;
        let x = m.blocks(x, |m, i, x| {
            let attention = if (i + 1) % PERIOD == 0 { unrotated } else { rotated };
            m.decoder_block(*norm, attention, feed_forward, x)
        })?;
        m.output(x, |m, x| m.normed_logits(*norm, x))
    }
}

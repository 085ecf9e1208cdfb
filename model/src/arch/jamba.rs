//! Jamba: blocks of Mamba and a few of attention, which does not rotate. Blocks with a router have experts.
//!
//! *Source*: Lieber et al., "Jamba: A Hybrid Transformer-Mamba Language Model", 2024.

use backend_api::op::{GluKind, Norm, Route};

use super::attention::Attention;
use super::experts::{Experts, FeedForward, Gate};
use super::keys::{Keys, MAX_WIDTH};
use super::recorder::Recorder;
use super::recurrent::{Selected, Ssm};
use super::{Architecture, Sizes};
use crate::error::ModelError;

#[derive(Debug)]
struct Jamba {
    sizes: Sizes,
    norm: Norm,
    /// Attention of each block that has it.
    attention: Vec<Option<Attention>>,
    ssm: Ssm,
    dense: FeedForward,
    /// Feed-forward layer of blocks with a router.
    routed: FeedForward,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let (sizes, heads) = keys.hybrid_sizes()?;
    let channels = keys.size("ssm.inner_size", MAX_WIDTH, None)?;
    if channels != 2 * sizes.n_embd {
        let reason = format!("{channels} channels are not twice the width {}", sizes.n_embd);
        return Err(keys.wrong("ssm.inner_size", reason));
    }
    let n_ff = keys.size("feed_forward_length", MAX_WIDTH, None)?;
    let dense = FeedForward::Glu(GluKind::Swiglu, n_ff);
    let routed = if keys.get::<u64>("expert_count")?.unwrap_or(0) > 0 {
        let experts = keys.experts(Gate::Softmax, n_ff)?;
        let route = Route { gate: Gate::Softmax, normalised: false, scale: 1.0, ..experts.route };
        FeedForward::Experts(Experts { route, ..experts })
    } else {
        dense
    };
    let attention = Attention::new(&sizes);
    Ok(Box::new(Jamba {
        sizes,
        norm: keys.rms_norm()?,
        attention: attention.by_block(&heads),
        ssm: Ssm::read(keys)?,
        dense,
        routed,
    }))
}

impl Architecture for Jamba {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let Jamba { sizes: Sizes { n_embd, .. }, norm, .. } = self;
        let x = m.input(|m| m.embed("token_embd"))?;
        let x = m.blocks(x, |m, i, x| {
            let a = m.norm("attn_norm", *norm, x)?;
            let (a, output) = match &self.attention[i] {
                Some(attention) => (m.attention(attention, a)?, "attn_output"),
                None => (m.mamba(&self.ssm, Selected::Weighted(*norm), a)?, "ssm_out"),
            };
            let [a, x] = m.wanted([a, x])?;
            let a = m.linear(output, *n_embd, a)?;
            let x = m.add(a, x)?;
            let f = m.norm("ffn_norm", *norm, x)?;
            let layer = if m.has("ffn_gate_inp.weight") { &self.routed } else { &self.dense };
            let f = m.feed_forward(layer, f)?;
            m.add(f, x)
        })?;
        m.output(x, |m, x| m.normed_logits(*norm, x))
    }
}

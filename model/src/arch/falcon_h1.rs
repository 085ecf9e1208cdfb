//! Falcon-H1: each block has attention and a scan in parallel, whose results are added.
//!
//! *Source*: Falcon LLM Team, "Falcon-H1: A Family of Hybrid-Head Language Models", 2025.

use backend_api::op::{GluKind, Norm, RopeMode};

use super::attention::Attention;
use super::keys::{Keys, MAX_WIDTH};
use super::recorder::Recorder;
use super::recurrent::Ssm;
use super::rope::Rope;
use super::{Architecture, Sizes};
use crate::error::ModelError;

#[derive(Debug)]
struct FalconH1 {
    sizes: Sizes,
    n_ff: usize,
    norm: Norm,
    attention: Attention,
    ssm: Ssm,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    keys.dense()?;
    let sizes = keys.sizes()?;
    let rope = Rope::read(keys, &sizes, RopeMode::Neox)?;
    Ok(Box::new(FalconH1 {
        sizes,
        n_ff: keys.size("feed_forward_length", MAX_WIDTH, None)?,
        norm: keys.rms_norm()?,
        attention: Attention { rope: Some(rope), ..Attention::new(&sizes) },
        ssm: Ssm::read(keys)?,
    }))
}

impl Architecture for FalconH1 {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let FalconH1 { sizes: Sizes { n_embd, .. }, n_ff, norm, .. } = self;
        let x = m.input(|m| m.embed("token_embd"))?;
        let x = m.blocks(x, |m, _, x| {
            let normed = m.norm("attn_norm", *norm, x)?;
            let a = m.attention(&self.attention, normed)?;
            let s = m.mamba2(&self.ssm, normed)?;
            let [a, s, x] = m.wanted([a, s, x])?;
            let a = m.linear("attn_output", *n_embd, a)?;
            let x = m.add(a, x)?;
            let s = m.ssm_out(&self.ssm, *norm, s)?;
            let x = m.add(s, x)?;
            let f = m.norm("ffn_norm", *norm, x)?;
            let f = m.glu(GluKind::Swiglu, *n_ff, f)?;
            let f = m.linear("ffn_down", *n_embd, f)?;
            m.add(f, x)
        })?;
        m.output(x, |m, x| m.normed_logits(*norm, x))
    }
}

//! Mamba: a selective state-space model instead of attention, whose state has a constant size. Falcon Mamba norms step
//! sizes, B and C.
//!
//! *Source*: Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023; Zuo et al., "Falcon
//! Mamba", 2024.

use backend_api::op::Norm;

use super::keys::Keys;
use super::recorder::Recorder;
use super::recurrent::{Selected, Ssm};
use super::{Architecture, Sizes};
use crate::error::ModelError;

#[derive(Debug)]
struct Mamba {
    sizes: Sizes,
    norm: Norm,
    ssm: Ssm,
    /// Norm of step sizes, B and C.
    selected: Selected,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let norm = keys.rms_norm()?;
    let selected = match keys.get("ssm.dt_b_c_rms")? {
        Some(true) => Selected::Unit(norm),
        _ => Selected::Plain,
    };
    Ok(Box::new(Mamba { sizes: keys.sizes_without_heads()?, norm, ssm: Ssm::read(keys)?, selected }))
}

impl Architecture for Mamba {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let x = m.input(|m| m.embed("token_embd"))?;
        let x = m.blocks(x, |m, _, x| {
            let a = m.norm("attn_norm", self.norm, x)?;
            let a = m.mamba(&self.ssm, self.selected, a)?;
            let [a, x] = m.wanted([a, x])?;
            let a = m.linear("ssm_out", self.sizes.n_embd, a)?;
            m.add(a, x)
        })?;
        m.output(x, |m, x| m.normed_logits(self.norm, x))
    }
}

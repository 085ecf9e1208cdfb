//! Mamba 2: like Mamba, but with heads whose channels share a step size and a decay.
//!
//! *Source*: Dao and Gu, "Transformers are SSMs: Generalized Models and Efficient Algorithms Through Structured State Space
//! Duality", 2024.

use backend_api::op::Norm;

use super::keys::Keys;
use super::recorder::Recorder;
use super::recurrent::Ssm;
use super::{Architecture, Sizes};
use crate::error::ModelError;

#[derive(Debug)]
struct Mamba2 {
    sizes: Sizes,
    norm: Norm,
    ssm: Ssm,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let norm = keys.rms_norm()?;
    Ok(Box::new(Mamba2 { sizes: keys.sizes_without_heads()?, norm, ssm: Ssm::read(keys)? }))
}

impl Architecture for Mamba2 {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let x = m.input(|m| m.embed("token_embd"))?;
        let x = m.blocks(x, |m, _, x| {
            let a = m.norm("attn_norm", self.norm, x)?;
            let a = m.mamba2(&self.ssm, a)?;
            let [a, x] = m.wanted([a, x])?;
            let a = m.ssm_out(&self.ssm, self.norm, a)?;
            m.add(a, x)
        })?;
        m.output(x, |m, x| m.normed_logits(self.norm, x))
    }
}

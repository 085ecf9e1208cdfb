//! Nomic Embed: BERT with rotary instead of learned positions, and a gated SiLU.
//!
//! *Source*: Nussbaum et al., "Nomic Embed: Training a Reproducible Long Context Text Embedder", 2024.

use backend_api::op::{GluKind, Norm, RopeMode};

use super::attention::Attention;
use super::keys::{Keys, MAX_WIDTH};
use super::recorder::Recorder;
use super::rope::Rope;
use super::{Architecture, Sizes};
use crate::error::ModelError;

#[derive(Debug)]
struct NomicBert {
    sizes: Sizes,
    n_ff: usize,
    norm: Norm,
    attention: Attention,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let sizes = keys.sizes()?;
    let rope = Rope::read(keys, &sizes, RopeMode::Neox)?;
    Ok(Box::new(NomicBert {
        sizes,
        n_ff: keys.size("feed_forward_length", MAX_WIDTH, None)?,
        norm: keys.layer_norm()?,
        attention: Attention { rope: Some(rope), ..Attention::new(&sizes) },
    }))
}

impl Architecture for NomicBert {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let NomicBert { sizes: Sizes { n_embd, .. }, n_ff, norm, attention } = self;
        let x = m.input(|m| {
            let x = m.embed("token_embd")?;
            let x = m.add_type("token_types", x)?;
            m.norm("token_embd_norm", *norm, x)
        })?;
        let x = m.blocks(x, |m, _, x| {
            let a = m.attention(attention, x)?;
            let [a, x] = m.wanted([a, x])?;
            let a = m.linear("attn_output", *n_embd, a)?;
            let x = m.add(a, x)?;
            let x = m.norm("attn_output_norm", *norm, x)?;
            let f = m.glu(GluKind::Swiglu, *n_ff, x)?;
            let f = m.linear("ffn_down", *n_embd, f)?;
            let x = m.add(f, x)?;
            m.norm("layer_output_norm", *norm, x)
        })?;
        m.output(x, |_, x| Ok(x))
    }
}

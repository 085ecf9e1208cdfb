//! BERT: learned positions, norms after each layer, biases everywhere, GELU, bidirectional attention.
//!
//! The GELU is the tanh form, as in llama.cpp. The squared difference to the paper's is below 1e-5 of that of an
//! embedding.
//! *Source*: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", 2019.

use backend_api::op::{Norm, UnaryKind};

use super::attention::Attention;
use super::keys::{Keys, MAX_WIDTH};
use super::recorder::Recorder;
use super::{Architecture, Sizes};
use crate::error::ModelError;

#[derive(Debug)]
struct Bert {
    sizes: Sizes,
    n_ff: usize,
    norm: Norm,
    attention: Attention,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let sizes = keys.sizes()?;
    Ok(Box::new(Bert {
        sizes,
        n_ff: keys.size("feed_forward_length", MAX_WIDTH, None)?,
        norm: keys.layer_norm()?,
        attention: Attention::new(&sizes),
    }))
}

impl Architecture for Bert {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let Bert { sizes: Sizes { n_embd, .. }, n_ff, norm, attention } = self;
        let x = m.input(|m| {
            let x = m.embed("token_embd")?;
            let positions = m.embed_positions("position_embd")?;
            let x = m.add(x, positions)?;
            let x = m.add_type("token_types", x)?;
            m.norm("token_embd_norm", *norm, x)
        })?;
        let x = m.blocks(x, |m, _, x| {
            let a = m.attention(attention, x)?;
            let [a, x] = m.wanted([a, x])?;
            let a = m.linear("attn_output", *n_embd, a)?;
            let x = m.add(a, x)?;
            let x = m.norm("attn_output_norm", *norm, x)?;
            let f = m.linear("ffn_up", *n_ff, x)?;
            let f = m.unary(UnaryKind::GeluTanh, f)?;
            let f = m.linear("ffn_down", *n_embd, f)?;
            let x = m.add(f, x)?;
            m.norm("layer_output_norm", *norm, x)
        })?;
        m.output(x, |_, x| Ok(x))
    }
}

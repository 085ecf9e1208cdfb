//! GPT-2: learned positions, layer norms, biases everywhere, a tanh GELU.
//!
//! *Source*: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019.

use backend_api::op::{Norm, UnaryKind};

use super::attention::Attention;
use super::experts::FeedForward;
use super::keys::{Keys, MAX_WIDTH};
use super::recorder::Recorder;
use super::{Architecture, Sizes};
use crate::error::ModelError;

#[derive(Debug)]
struct Gpt2 {
    sizes: Sizes,
    n_ff: usize,
    norm: Norm,
    attention: Attention,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let sizes = keys.sizes()?;
    Ok(Box::new(Gpt2 {
        sizes,
        n_ff: keys.size("feed_forward_length", MAX_WIDTH, Some(4 * sizes.n_embd))?,
        norm: keys.layer_norm()?,
        attention: Attention::new(&sizes),
    }))
}

impl Architecture for Gpt2 {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let Gpt2 { sizes: Sizes { n_embd, .. }, n_ff, norm, attention } = self;
        let x = m.input(|m| {
            let x = m.embed("token_embd")?;
            let positions = m.embed_positions("position_embd")?;
            m.add(x, positions)
        })?;
        let x = m.blocks(x, |m, _, x| {
            let a = m.norm("attn_norm", *norm, x)?;
            let a = m.attention(attention, a)?;
            let [a, x] = m.wanted([a, x])?;
            let a = m.linear("attn_output", *n_embd, a)?;
            let x = m.add(a, x)?;
            let f = m.norm("ffn_norm", *norm, x)?;
            let f = m.feed_forward(&FeedForward::Plain(UnaryKind::GeluTanh, *n_ff), f)?;
            m.add(f, x)
        })?;
        m.output(x, |m, x| m.normed_logits(*norm, x))
    }
}

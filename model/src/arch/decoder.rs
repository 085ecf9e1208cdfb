//! The decoder that most families are: in each block an attention and a feed-forward layer, each on a norm of what came in,
//! and added to it.
//!
//! *Source*: Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", 2023.

use backend_api::TensorId;
use backend_api::op::Norm;

use super::attention::Attention;
use super::experts::FeedForward;
use super::recorder::{Recorded, Recorder};
use super::{Architecture, Sizes};
use crate::error::ModelError;

/// Choices of a family of such decoders.
#[derive(Debug)]
pub(super) struct Decoder {
    pub sizes: Sizes,
    /// Norm before each layer, and before the logits.
    pub norm: Norm,
    pub attention: Attention,
    pub feed_forward: FeedForward,
}

impl Architecture for Decoder {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let x = m.input(|m| m.embed("token_embd"))?;
        let x = m.blocks(x, |m, _, x| m.decoder_block(self.norm, &self.attention, &self.feed_forward, x))?;
        m.output(x, |m, x| m.normed_logits(self.norm, x))
    }
}

impl Recorder<'_> {
    /// Records a block: an attention and a feed-forward layer, each on a norm of its input, and added to it.
    pub fn decoder_block(
        &mut self,
        norm: Norm,
        attention: &Attention,
        feed_forward: &FeedForward,
        x: TensorId,
    ) -> Recorded {
        let n_embd = self.cols(x);
        let a = self.norm("attn_norm", norm, x)?;
        let a = self.attention(attention, a)?;
        let [a, x] = self.wanted([a, x])?;
        let a = self.linear("attn_output", n_embd, a)?;
        let x = self.add(a, x)?;
        let f = self.norm("ffn_norm", norm, x)?;
        let f = self.feed_forward(feed_forward, f)?;
        self.add(f, x)
    }

    /// Records the last norm, and the logits.
    pub fn normed_logits(&mut self, norm: Norm, x: TensorId) -> Recorded {
        let x = self.norm("output_norm", norm, x)?;
        self.logits(x)
    }
}

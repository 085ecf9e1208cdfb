//! gpt-oss: experts in every block, with clamped units and biases; attention with sinks, and with a window in every
//! other block.
//!
//! *Source*: OpenAI, "gpt-oss-120b & gpt-oss-20b Model Card", 2025; of sinks: Xiao et al., "Efficient Streaming Language
//! Models with Attention Sinks", 2023.

use backend_api::op::{GluKind, Norm, RopeMode};

use super::attention::Attention;
use super::experts::{Expert, Experts, Gate};
use super::keys::{Keys, MAX_WIDTH};
use super::recorder::Recorder;
use super::rope::Rope;
use super::{Architecture, Sizes};
use crate::error::ModelError;

/// Period of blocks with full attention.
const PERIOD: usize = 2;

#[derive(Debug)]
struct GptOss {
    sizes: Sizes,
    norm: Norm,
    /// Attention of blocks with a window.
    local: Attention,
    /// Attention of blocks without one.
    global: Attention,
    /// Whether each block has a window.
    is_local: Vec<bool>,
    experts: Experts,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let sizes = keys.sizes()?;
    let rope = Rope::read(keys, &sizes, RopeMode::Neox)?;
    let global = Attention { sinks: true, rope: Some(rope), ..Attention::new(&sizes) };
    let window = keys.size("attention.sliding_window", u32::MAX as usize, None)? as u32;
    let experts = keys.experts(Gate::SoftmaxOfChosen, keys.size("expert_feed_forward_length", MAX_WIDTH, None)?)?;
    Ok(Box::new(GptOss {
        sizes,
        norm: keys.rms_norm()?,
        local: Attention { window, ..global.clone() },
        global,
        is_local: keys.windowed(sizes.n_blocks, PERIOD)?,
        experts: Experts { kind: Expert::Glu(GluKind::SwigluOai), ..experts },
    }))
}

impl Architecture for GptOss {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let GptOss { sizes: Sizes { n_embd, .. }, norm, experts, .. } = self;
        let x = m.input(|m| m.embed("token_embd"))?;
        let x = m.blocks(x, |m, i, x| {
            let a = m.norm("attn_norm", *norm, x)?;
            let a = m.attention(if self.is_local[i] { &self.local } else { &self.global }, a)?;
            let [a, x] = m.wanted([a, x])?;
            let a = m.linear("attn_output", *n_embd, a)?;
            let x = m.add(a, x)?;
            // Despite its name, this norm comes before the experts.
            let f = m.norm("post_attention_norm", *norm, x)?;
            let f = m.experts(experts, f)?;
            m.add(f, x)
        })?;
        m.output(x, |m, x| m.normed_logits(*norm, x))
    }
}

//! LFM2: a few blocks have attention; all others mix tokens by a short gated convolution, whose state has a constant
//! size. Some models have experts in all blocks but the first ones.
//!
//! *Source*: Liquid AI, "LFM2 Technical Report", 2025.

use backend_api::TensorId;
use backend_api::op::{GluKind, Norm, RopeMode, ShortConv};

use super::attention::Attention;
use super::experts::{FeedForward, Gate};
use super::keys::{Keys, MAX_WIDTH};
use super::recorder::{Recorded, Recorder};
use super::rope::Rope;
use super::{Architecture, Sizes};
use crate::error::ModelError;

#[derive(Debug)]
struct Lfm2 {
    sizes: Sizes,
    dense: FeedForward,
    /// Feed-forward layer of the blocks after the leading ones.
    routed: FeedForward,
    /// Number of leading blocks, which are dense.
    leading: usize,
    norm: Norm,
    /// Attention of each block that has it.
    attention: Vec<Option<Attention>>,
    /// Width of a convolution in tokens.
    taps: usize,
}

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    keys.dense()?;
    let window = keys.get::<u32>("attention.sliding_window")?.unwrap_or(0);
    with(keys, window, None, 0)
}

/// Reads the variant with experts. The published weights do not use the window that files may name.
pub(super) fn read_moe(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let leading = keys.get::<u32>("leading_dense_block_count")?.unwrap_or(0) as usize;
    let experts = keys.experts(Gate::Sigmoid, keys.size("expert_feed_forward_length", MAX_WIDTH, None)?)?;
    with(keys, 0, Some(FeedForward::Experts(experts)), leading)
}

fn with(
    keys: &Keys<'_>,
    window: u32,
    routed: Option<FeedForward>,
    leading: usize,
) -> Result<Box<dyn Architecture>, ModelError> {
    let dense = FeedForward::Glu(GluKind::Swiglu, keys.size("feed_forward_length", MAX_WIDTH, None)?);
    let (sizes, heads) = keys.hybrid_sizes()?;
    let norm = keys.rms_norm()?;
    let rope = Rope::read(keys, &sizes, RopeMode::Neox)?;
    let taps = keys.size("shortconv.l_cache", ShortConv::MAX_TAPS, None)?;
    if taps < 2 {
        return Err(keys.wrong("shortconv.l_cache", "a convolution needs 2 tokens or more"));
    }
    if keys.get("attention.causal")? == Some(false) {
        return Err(keys.wrong("attention.causal", "convolutions over later tokens are not supported"));
    }
    let attention = Attention { window, qk_norm: Some(norm), rope: Some(rope), ..Attention::new(&sizes) };
    Ok(Box::new(Lfm2 {
        sizes,
        dense,
        routed: routed.unwrap_or(dense),
        leading,
        norm,
        attention: attention.by_block(&heads),
        taps,
    }))
}

impl Lfm2 {
    /// Records `c * conv(b * v)`, where b, c and v are projections of a row.
    fn convolution(&self, m: &mut Recorder<'_>, x: TensorId) -> Recorded {
        let n_embd = self.sizes.n_embd;
        let [b, c, v] = m.thirds("shortconv.in_proj", n_embd, x)?;
        let z = m.mul(b, v)?;
        let y = m.short_conv("shortconv.conv", self.taps, z)?;
        m.mul(c, y)
    }
}

impl Architecture for Lfm2 {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn record(&self, m: &mut Recorder<'_>) -> Result<(), ModelError> {
        let Lfm2 { sizes: Sizes { n_embd, .. }, norm, .. } = self;
        let x = m.input(|m| m.embed("token_embd"))?;
        let x = m.blocks(x, |m, i, x| {
            let a = m.norm("attn_norm", *norm, x)?;
            let (a, output) = match &self.attention[i] {
                Some(attention) => (m.attention(attention, a)?, "attn_output"),
                None => (self.convolution(m, a)?, "shortconv.out_proj"),
            };
            let [a, x] = m.wanted([a, x])?;
            let a = m.linear(output, *n_embd, a)?;
            let x = m.add(a, x)?;
            let f = m.norm("ffn_norm", *norm, x)?;
            let f = m.feed_forward(if i < self.leading { &self.dense } else { &self.routed }, f)?;
            m.add(f, x)
        })?;
        // The last norm has a misleading name in files.
        m.output(x, |m, x| {
            let x = m.norm("token_embd_norm", *norm, x)?;
            m.logits(x)
        })
    }
}

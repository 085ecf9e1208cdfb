//! Qwen 3: like Qwen 2, with a norm of each query and key head instead of biases, and heads of any width. Larger models
//! have experts.
//!
//! *Source*: Yang et al., "Qwen3 Technical Report", 2025.

use backend_api::op::{GluKind, RopeMode};

use super::Architecture;
use super::attention::Attention;
use super::decoder::Decoder;
use super::experts::{FeedForward, Gate};
use super::keys::{Keys, MAX_WIDTH};
use super::rope::Rope;
use crate::error::ModelError;

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    with(keys, FeedForward::Glu(GluKind::Swiglu, keys.size("feed_forward_length", MAX_WIDTH, None)?))
}

/// Reads the variant with experts.
pub(super) fn read_moe(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    // Without a width of experts in the file, the experts in use are together as wide as the dense layer.
    let used = keys.size("expert_used_count", MAX_WIDTH, None)?;
    let shared = keys.size("feed_forward_length", MAX_WIDTH, None)? / used;
    let n_ff = keys.size("expert_feed_forward_length", MAX_WIDTH, Some(shared))?;
    with(keys, FeedForward::Experts(keys.experts(Gate::Softmax, n_ff)?))
}

fn with(keys: &Keys<'_>, feed_forward: FeedForward) -> Result<Box<dyn Architecture>, ModelError> {
    let sizes = keys.sizes()?;
    let rope = Rope::read(keys, &sizes, RopeMode::Neox)?;
    let norm = keys.rms_norm()?;
    Ok(Box::new(Decoder {
        sizes,
        feed_forward,
        norm,
        attention: Attention { qk_norm: Some(norm), rope: Some(rope), ..Attention::new(&sizes) },
    }))
}

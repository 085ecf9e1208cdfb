//! Phi 3, 3.5 and 4: like Llama, with queries, keys and values in one tensor, and gate and up matrices in another;
//! rotated halves, of only a part of each head in some models; frequency factors for long contexts.
//!
//! Files name a sliding window of 2047, which the published weights do not use: attention is full.
//!
//! *Source*: Abdin et al., "Phi-3 Technical Report", 2024; Ding et al., "LongRoPE", 2024.

use backend_api::op::{GluKind, RopeMode};

use super::Architecture;
use super::attention::Attention;
use super::decoder::Decoder;
use super::experts::FeedForward;
use super::keys::{Keys, MAX_WIDTH};
use super::rope::Rope;
use crate::error::ModelError;

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    keys.dense()?;
    let sizes = keys.sizes()?;
    let rope = Rope::read(keys, &sizes, RopeMode::Neox)?;
    Ok(Box::new(Decoder {
        sizes,
        feed_forward: FeedForward::Fused(GluKind::Swiglu, keys.size("feed_forward_length", MAX_WIDTH, None)?),
        norm: keys.rms_norm()?,
        attention: Attention { rope: Some(rope), ..Attention::new(&sizes) },
    }))
}

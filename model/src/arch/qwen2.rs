//! Qwen 2 and 2.5: like Llama, with biases of queries, keys and values, and rotated halves.
//!
//! *Source*: Yang et al., "Qwen2 Technical Report", 2024.

use backend_api::op::{GluKind, RopeMode};

use super::Architecture;
use super::attention::Attention;
use super::decoder::Decoder;
use super::experts::FeedForward;
use super::keys::{Keys, MAX_WIDTH};
use super::rope::Rope;
use crate::error::ModelError;

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let sizes = keys.sizes()?;
    let rope = Rope::read(keys, &sizes, RopeMode::Neox)?;
    Ok(Box::new(Decoder {
        sizes,
        feed_forward: FeedForward::Glu(GluKind::Swiglu, keys.size("feed_forward_length", MAX_WIDTH, None)?),
        norm: keys.rms_norm()?,
        attention: Attention { rope: Some(rope), ..Attention::new(&sizes) },
    }))
}

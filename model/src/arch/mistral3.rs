//! Mistral Small 3 and Ministral 3: like Llama, with heads of any width, YaRN, and queries that grow with the position;
//! some with experts.
//!
//! *Source*: Liu et al., "Ministral 3", 2026; of the queries: Nakanishi, "Scalable-Softmax Is Superior for
//! Attention", 2025.

use backend_api::op::RopeMode;

use super::Architecture;
use super::attention::{Attention, Temperature};
use super::decoder::Decoder;
use super::keys::Keys;
use super::rope::{self, Rope};
use crate::error::ModelError;

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let sizes = keys.sizes()?;
    let rope = Rope::read(keys, &sizes, RopeMode::Normal)?;
    let n_ctx_orig = rope::n_ctx_orig(keys, &sizes)?;
    let temperature = keys.nonzero("attention.temperature_scale", None)?.map(|scale| Temperature { scale, n_ctx_orig });
    Ok(Box::new(Decoder {
        sizes,
        feed_forward: keys.feed_forward()?,
        norm: keys.rms_norm()?,
        attention: Attention { rope: Some(rope), temperature, ..Attention::new(&sizes) },
    }))
}

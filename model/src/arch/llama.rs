//! Llama 2 and 3, SmolLM and SmolLM2, TinyLlama: RMS norms, rotary positions, grouped-query attention, SwiGLU. Mixtral
//! has the same structure with experts.
//!
//! *Source*: Touvron et al., "Llama 2: Open Foundation and Fine-Tuned Chat Models", 2023; of the experts: Jiang et al.,
//! "Mixtral of Experts", 2024.

use backend_api::op::RopeMode;

use super::Architecture;
use super::attention::Attention;
use super::decoder::Decoder;
use super::keys::Keys;
use super::rope::Rope;
use crate::error::ModelError;

pub(super) fn read(keys: &Keys<'_>) -> Result<Box<dyn Architecture>, ModelError> {
    let sizes = keys.sizes()?;
    let rope = Rope::read(keys, &sizes, RopeMode::Normal)?;
    Ok(Box::new(Decoder {
        sizes,
        feed_forward: keys.feed_forward()?,
        norm: keys.rms_norm()?,
        attention: Attention { rope: Some(rope), ..Attention::new(&sizes) },
    }))
}

//! Rotary positions: what metadata says of their angles.

use backend_api::op::{RopeMode, RopeTable, Yarn};

use super::Sizes;
use super::keys::{Keys, MAX_N_CTX};
use crate::error::ModelError;

/// A rotation of queries and keys.
#[derive(Debug, Clone)]
pub(super) struct Rope {
    /// The name that its table of angles has among the weights.
    pub table: &'static str,
    /// The angles.
    pub angles: RopeTable,
    /// The tensor with divisors of the angles, if the file has it.
    pub factors: Option<&'static str>,
    /// Which channels form pairs.
    pub mode: RopeMode,
}

impl Rope {
    /// The base, and linear or YaRN scaling.
    pub fn read(keys: &Keys<'_>, sizes: &Sizes, mode: RopeMode) -> Result<Rope, ModelError> {
        let n_dims = keys.size("rope.dimension_count", sizes.head_dim, Some(sizes.head_dim))?;
        if !n_dims.is_multiple_of(2) {
            return Err(keys.wrong("rope.dimension_count", format!("{n_dims} channels make no pairs")));
        }
        let mut angles = RopeTable::plain(n_dims, keys.positive("rope.freq_base", Some(10_000.0))?);
        let legacy = keys.get::<f32>("rope.scale_linear")?;
        let factor = keys.get::<f32>("rope.scaling.factor")?.or(legacy).unwrap_or(1.0);
        if !(factor.is_finite() && factor >= 0.0) {
            return Err(keys.wrong("rope.scaling.factor", format!("{factor} is not a positive number")));
        }
        let scale = if factor == 0.0 { 1.0 } else { 1.0 / factor };
        match keys.get::<&str>("rope.scaling.type")?.unwrap_or("linear") {
            "none" => {}
            "linear" => angles.freq_scale = scale,
            "yarn" => {
                angles.freq_scale = scale;
                angles.magnitude = keys.positive("rope.scaling.attn_factor", Some(1.0))?;
                let original = "rope.scaling.original_context_length";
                angles.yarn = Some(Yarn {
                    ext_factor: keys.positive("rope.scaling.yarn_ext_factor", Some(1.0))?,
                    beta_fast: keys.positive("rope.scaling.yarn_beta_fast", Some(32.0))?,
                    beta_slow: keys.positive("rope.scaling.yarn_beta_slow", Some(1.0))?,
                    n_ctx_orig: keys.size(original, MAX_N_CTX, Some(sizes.n_ctx_train))? as u32,
                });
            }
            _ => return Err(keys.wrong("rope.scaling.type", "only none, linear and yarn are supported")),
        }
        Ok(Rope { table: "rope_table", angles, factors: None, mode })
    }
}

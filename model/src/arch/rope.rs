//! Rotary positions (RoPE), from metadata.

use backend_api::op::{RopeMode, RopeTable, Yarn};

use super::Sizes;
use super::keys::Keys;
use crate::error::ModelError;

/// Tensor with the frequency factors for contexts longer than the original one.
pub(super) const LONG_FACTORS: &str = "rope_factors_long.weight";

/// A rotation of queries and keys.
#[derive(Debug, Clone)]
pub(super) struct Rope {
    /// Name of the table of angles among the weights.
    pub table: &'static str,
    /// Parameters of the angles.
    pub angles: RopeTable,
    /// Tensor of the file with frequency factors, if there is one.
    pub factors: Option<&'static str>,
    /// Pairing of channels: neighbours or halves.
    pub mode: RopeMode,
}

/// Which pairs of channels rotate by which of the four positions of a token in a picture. Those of a text are equal, but
/// for the fourth, which is 0: its pairs are not rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sections {
    /// So many pairs by the first position, then so many by the second, and so on.
    InTurn,
    /// Pairs by the first three positions in turn, as many of each as its section has.
    Interleaved,
}

impl Sections {
    /// Returns whether a pair is rotated in a text.
    fn rotates(self, sections: &[usize], pair: usize) -> bool {
        let at = pair % sections.iter().sum::<usize>();
        match self {
            Sections::InTurn => at < sections[..3].iter().sum(),
            Sections::Interleaved => at < 3 * sections[at % 3],
        }
    }
}

impl Rope {
    /// Takes the sections of the file, if it has some.
    pub fn section(&mut self, keys: &Keys<'_>, order: Sections) -> Result<(), ModelError> {
        let key = "rope.dimension_sections";
        let Some(listed) = keys.get::<Vec<u32>>(key)? else { return Ok(()) };
        let mut sections: Vec<usize> = listed.iter().map(|pairs| (*pairs as usize).min(self.angles.n_dims)).collect();
        sections.resize(4, 0);
        if listed.len() > 4 || sections.iter().sum::<usize>() == 0 {
            return Err(keys.wrong(key, "up to four sections are possible, and one must have pairs"));
        }
        if self.factors.is_some() {
            return Err(keys.wrong(key, "sections beside frequency factors are not supported"));
        }
        self.mode = RopeMode::Neox;
        // An infinite factor leaves an angle of 0.
        let factor = |pair| if order.rotates(&sections, pair) { 1.0 } else { f32::INFINITY };
        self.angles.factors = (0..self.angles.n_dims / 2).map(factor).collect();
        Ok(())
    }

    /// Reads the base, linear or YaRN scaling, and the frequency factors. If the file has factors for short and for
    /// long contexts, those that suit the session's context are used.
    pub fn read(keys: &Keys<'_>, sizes: &Sizes, mode: RopeMode) -> Result<Rope, ModelError> {
        let n_dims = keys.pairs("rope.dimension_count", sizes.head_dim, sizes.head_dim)?;
        let mut angles = RopeTable::plain(n_dims, keys.positive("rope.freq_base", Some(10_000.0))?);
        let kind = keys.get::<&str>("rope.scaling.type")?.unwrap_or("linear");
        if !matches!(kind, "none" | "linear" | "yarn" | "longrope") {
            return Err(keys.wrong("rope.scaling.type", "only none, linear, yarn and longrope are supported"));
        }
        let legacy = keys.nonzero("rope.scale_linear", None)?;
        let factor = keys.nonzero("rope.scaling.factor", legacy)?.filter(|_| kind != "none").unwrap_or(1.0);
        angles.freq_scale = 1.0 / factor;
        angles.magnitude = keys.positive("rope.scaling.attn_factor", Some(1.0))?;
        let n_ctx_orig = n_ctx_orig(keys, sizes)?;
        if let Some(ext_factor) = keys.nonzero("rope.scaling.yarn_ext_factor", (kind == "yarn").then_some(1.0))? {
            angles.magnitude *= yarn_magnitude(factor, keys.nonzero("rope.scaling.yarn_log_multiplier", None)?);
            angles.yarn = Some(Yarn {
                ext_factor,
                beta_fast: keys.positive("rope.scaling.yarn_beta_fast", Some(32.0))?,
                beta_slow: keys.positive("rope.scaling.yarn_beta_slow", Some(1.0))?,
                n_ctx_orig,
            });
        }
        let long = sizes.n_ctx > n_ctx_orig as usize;
        let factors = ["rope_freqs.weight", if long { LONG_FACTORS } else { "rope_factors_short.weight" }];
        let factors = factors.into_iter().find(|name| keys.tensors.find(name).is_some());
        Ok(Rope { table: "rope_table", angles, factors, mode })
    }

    /// Returns the rotation with another base, under another name.
    pub fn with_base(&self, table: &'static str, freq_base: f32) -> Rope {
        Rope { table, angles: RopeTable { freq_base, ..self.angles.clone() }, ..self.clone() }
    }

    /// Returns the rotation without scaling, under another name and perhaps with another base.
    pub fn plain(&self, table: &'static str, freq_base: f32) -> Rope {
        Rope { table, angles: RopeTable::plain(self.angles.n_dims, freq_base), factors: None, mode: self.mode }
    }
}

/// Returns the context size before the angles were stretched.
pub(super) fn n_ctx_orig(keys: &Keys<'_>, sizes: &Sizes) -> Result<u32, ModelError> {
    let original = keys.get::<u32>("rope.scaling.original_context_length")?;
    Ok(original.filter(|n| *n > 0).unwrap_or(sizes.n_ctx_train as u32))
}

/// Returns the factor of sines and cosines besides the `1 + 0.1 ln factor` that tables have: models that name a
/// multiplier of the logarithm divide by the resulting factor, since their training put that into the scale of the
/// scores.
fn yarn_magnitude(factor: f32, log_multiplier: Option<f32>) -> f32 {
    let grow = |multiplier: f32| if factor > 1.0 { 1.0 + 0.1 * multiplier * factor.ln() } else { 1.0 };
    grow(1.0) / grow(log_multiplier.unwrap_or(0.0)) / (1.0 + 0.1 * factor.ln())
}

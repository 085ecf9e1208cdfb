//! `rope`: rotary position embedding.
//!
//! *Operands*: x `[t, n_head * head_dim]`; table `[n_ctx, n_dims]` of cosines and sines (see [`RopeTable`]).
//! *Results*: like x. Row `i` is rotated by the angles of the step's position plus `i`; channels of a head after the
//! first `n_dims` pass through.
//!
//! Angles come from a table made on the CPU in f64, since shader sines have no guaranteed precision and angles reach
//! thousands of radians; so linear and YaRN scaling and frequency factors cost kernels nothing.
//! *Source*: Su et al., "RoFormer", 2021; Peng et al., "YaRN", 2023.

use super::describe::{Describe, F32, Output, arity, ensure, floats};
use crate::tensor::{DType, Tensor};

/// Which channels form pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RopeMode {
    /// Neighbours: 2p and 2p + 1.
    Normal,
    /// Halves: p and p + n_dims / 2.
    Neox,
}

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rope {
    /// Heads in a row.
    pub n_head: usize,
    /// Channels of a head that rotate; even.
    pub n_dims: usize,
    /// Which channels form pairs.
    pub mode: RopeMode,
}

impl Rope {
    /// Checks the table and the widths for heads of `head_dim`.
    pub(super) fn check(&self, head_dim: usize, t: usize, table: &Tensor) -> Result<(), String> {
        floats(&[table])?;
        let n = self.n_dims;
        ensure(n > 0 && n.is_multiple_of(2) && n <= head_dim, || {
            format!("{n} rotating channels do not fit heads of {head_dim}")
        })?;
        let fits = table.shape.rank() == 2 && table.shape.cols() == n && table.shape.dim(0) >= t;
        ensure(fits, || format!("the table must be [n_ctx, {n}] with at least {t} rows"))
    }
}

/// Table of the rotation angles of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct RopeTable {
    /// Channels of a head that rotate.
    pub n_dims: usize,
    /// The base of the frequencies.
    pub freq_base: f32,
    /// Multiplies positions (1 / factor of linear scaling).
    pub freq_scale: f32,
    /// Multiplies sines and cosines.
    pub magnitude: f32,
    /// YaRN's blend of scaled and unscaled angles.
    pub yarn: Option<Yarn>,
    /// Divides the angle of each pair; empty = 1.
    pub factors: Vec<f32>,
}

/// YaRN parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Yarn {
    /// Strength of the blend, usually 1.
    pub ext_factor: f32,
    /// Rotations above which angles stay unscaled.
    pub beta_fast: f32,
    /// Rotations below which they are wholly scaled.
    pub beta_slow: f32,
    /// The context the model was trained with.
    pub n_ctx_orig: u32,
}

impl RopeTable {
    /// Plain rotary embedding.
    pub fn plain(n_dims: usize, freq_base: f32) -> RopeTable {
        RopeTable { n_dims, freq_base, freq_scale: 1.0, magnitude: 1.0, yarn: None, factors: Vec::new() }
    }

    /// The rows for some positions: for each pair p, cosine at 2p and sine at 2p + 1, computed in f64.
    pub fn rows(&self, positions: impl Iterator<Item = u32>) -> Vec<f32> {
        let n = self.n_dims as f64;
        let (base, scale) = (f64::from(self.freq_base), f64::from(self.freq_scale));
        let (ramp, magnitude) = match &self.yarn {
            None => (None, f64::from(self.magnitude)),
            Some(yarn) => {
                let correction = |rotations: f32| {
                    n * (f64::from(yarn.n_ctx_orig) / (2.0 * std::f64::consts::PI * f64::from(rotations))).ln()
                        / (2.0 * base.ln())
                };
                let low = correction(yarn.beta_fast).floor().max(0.0);
                let high = correction(yarn.beta_slow).ceil().min(n - 1.0);
                let grow = 1.0 + 0.1 * (1.0 / scale).ln();
                (Some((low, high, f64::from(yarn.ext_factor))), f64::from(self.magnitude) * grow)
            }
        };
        let mut out = Vec::new();
        for position in positions {
            for pair in 0..self.n_dims / 2 {
                let factor = self.factors.get(pair).map_or(1.0, |f| f64::from(*f));
                let raw = f64::from(position) * base.powf(-2.0 * pair as f64 / n) / factor;
                let angle = match ramp {
                    None => raw * scale,
                    Some((low, high, strength)) => {
                        let at = ((pair as f64 - low) / (high - low).max(0.001)).clamp(0.0, 1.0);
                        let mix = (1.0 - at) * strength;
                        raw * scale * (1.0 - mix) + raw * mix
                    }
                };
                out.push((angle.cos() * magnitude) as f32);
                out.push((angle.sin() * magnitude) as f32);
            }
        }
        out
    }
}

impl Describe for Rope {
    const NAME: &'static str = "rope";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x, table] = arity(inputs)?;
        floats(&[x])?;
        ensure(x.shape.rank() == 2, || "x must be a matrix of tokens".into())?;
        let whole = self.n_head > 0 && x.shape.cols().is_multiple_of(self.n_head);
        ensure(whole, || format!("{} heads do not divide the width", self.n_head))?;
        self.check(x.shape.cols() / self.n_head, x.shape.dim(0), table)?;
        Ok(vec![Output::New(x.shape, DType::F32)])
    }
}

//! `layer_norm`, `rms_norm`, `l2_norm`: rows, or the heads of rows, brought to unit size.
//!
//! *Operands*: x `[.., heads * n]`, gamma `[n]`, for layer norm beta `[n]`; or both `[heads * n]`, where each head has its
//! own.
//! *Results*: for each head by itself, layer: `(x - mean) / sqrt(var + eps) * gamma + beta`; rms:
//! `x / sqrt(mean(x^2) + eps) * gamma`; L2: `x / max(sqrt(sum(x^2)), eps) * gamma`.
//! *Source*: Ba et al., "Layer Normalization", 2016; Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019;
//! of heads: Henry et al., "Query-Key Normalization for Transformers", 2020.

use super::describe::{Describe, F32, Output, ensure, floats};
use crate::tensor::{DType, Tensor};

/// Which norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NormKind {
    /// Mean and variance.
    Layer,
    /// Root mean square.
    Rms,
    /// Euclidean length.
    L2,
}

impl NormKind {
    /// All kinds.
    pub const ALL: [NormKind; 3] = [NormKind::Layer, NormKind::Rms, NormKind::L2];

    /// Whether it divides by the root of a mean. Only such norms are taken along by kernels of products.
    pub const fn by_mean(self) -> bool {
        match self {
            NormKind::Layer | NormKind::Rms => true,
            NormKind::L2 => false,
        }
    }

    /// The operands that follow x: gamma, and beta for layer norm.
    pub fn params(self) -> usize {
        match self {
            NormKind::Layer => 2,
            NormKind::Rms | NormKind::L2 => 1,
        }
    }
}

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Norm {
    /// Which norm.
    pub kind: NormKind,
    /// Added under the root; of an L2 norm the least that is divided by.
    pub eps: f32,
    /// The equal parts of a row that are normed by themselves; 1 = whole rows.
    pub heads: usize,
}

impl Norm {
    /// Checks gamma (and beta) against the width of x.
    pub(super) fn check(&self, cols: usize, params: &[&Tensor]) -> Result<(), String> {
        let heads = self.heads;
        ensure(heads > 0 && cols.is_multiple_of(heads), || format!("{heads} heads do not divide rows of {cols}"))?;
        let n = cols / heads;
        ensure(params.len() == self.kind.params(), || format!("takes {} norm operands", self.kind.params()))?;
        floats(params)?;
        ensure(self.eps >= 0.0 && self.eps.is_finite(), || "eps must be finite and not negative".into())?;
        let alike = params.iter().all(|p| p.shape.rank() == 1 && p.shape == params[0].shape);
        ensure(alike && [n, cols].contains(&params[0].shape.len()), || {
            format!("gamma and beta must be [{n}] or [{cols}]")
        })
    }
}

impl Describe for Norm {
    const NAME: &'static str = "norm";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let (x, params) = inputs.split_first().ok_or("takes x")?;
        floats(&[x])?;
        self.check(x.shape.cols(), params)?;
        Ok(vec![Output::New(x.shape, DType::F32)])
    }
}

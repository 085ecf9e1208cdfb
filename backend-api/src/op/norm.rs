//! `layer_norm`, `rms_norm`: rows brought to unit size.
//!
//! *Operands*: x `[.., n]`, gamma `[n]`, for layer norm beta `[n]`.
//! *Results*: layer: `(x - mean) / sqrt(var + eps) * gamma + beta`; rms: `x / sqrt(mean(x^2) + eps) * gamma`.
//! *Source*: Ba et al., "Layer Normalization", 2016; Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.

use super::{Describe, F32, Output, ensure, floats};
use crate::case::{Case, Fill};
use crate::step::StepParams;
use crate::tensor::{DType, Tensor};

/// Which norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NormKind {
    /// Mean and variance.
    Layer,
    /// Root mean square.
    Rms,
}

impl NormKind {
    /// Both.
    pub const ALL: [NormKind; 2] = [NormKind::Layer, NormKind::Rms];

    /// The operands that follow x: gamma, and beta for layer norm.
    pub fn params(self) -> usize {
        match self {
            NormKind::Layer => 2,
            NormKind::Rms => 1,
        }
    }
}

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Norm {
    /// Which norm.
    pub kind: NormKind,
    /// Added under the root.
    pub eps: f32,
}

impl Norm {
    /// Checks gamma (and beta) against the width of x.
    pub(super) fn check(&self, n: usize, params: &[&Tensor]) -> Result<(), String> {
        ensure(params.len() == self.kind.params(), || format!("takes {} norm operands", self.kind.params()))?;
        floats(params)?;
        ensure(self.eps >= 0.0 && self.eps.is_finite(), || "eps must be finite and not negative".into())?;
        ensure(params.iter().all(|p| p.shape.rank() == 1 && p.shape.len() == n), || {
            format!("gamma and beta must be [{n}]")
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

    fn cases() -> Vec<Case> {
        let mut cases = Vec::new();
        for kind in NormKind::ALL {
            let shapes: [&[usize]; 6] = [&[1, 64], &[1, 576], &[7, 33], &[3, 5, 100], &[2, 2048], &[4, 1]];
            for dims in shapes {
                for eps in [1e-5, 1e-6, 1e-1] {
                    cases.push(Case::new(
                        Norm { kind, eps },
                        format!("{kind:?} {dims:?} eps {eps}"),
                        StepParams::at(0, 1),
                        |o| {
                            let x = o.filled(dims, Fill::Uniform(-10.0, 11.0));
                            let n = dims[dims.len() - 1];
                            let params = (0..kind.params()).map(|_| o.weight(&[n]));
                            std::iter::once(x).chain(params.collect::<Vec<_>>()).collect()
                        },
                    ));
                }
            }
        }
        cases
    }
}

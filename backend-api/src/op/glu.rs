//! `glu`: a gated linear unit, `act(gate) * up`.
//!
//! *Operands*: gate, up `[..]` of one shape. *Results*: likewise.
//! *Source*: Shazeer, "GLU Variants Improve Transformer", 2020.

use super::describe::{Describe, F32, Output, arity, ensure, floats};
use super::unary::UnaryKind;
use crate::tensor::{DType, Tensor};

/// Which activation gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GluKind {
    /// SiLU.
    Swiglu,
    /// GELU, tanh form.
    GegluTanh,
    /// GELU, erf form.
    GegluErf,
    /// ReLU.
    Reglu,
}

impl GluKind {
    /// All kinds.
    pub const ALL: [GluKind; 4] = [GluKind::Swiglu, GluKind::GegluTanh, GluKind::GegluErf, GluKind::Reglu];

    /// Its name in vectors and reports.
    pub const fn name(self) -> &'static str {
        match self {
            GluKind::Swiglu => "swiglu",
            GluKind::GegluTanh => "geglu_tanh",
            GluKind::GegluErf => "geglu_erf",
            GluKind::Reglu => "reglu",
        }
    }

    /// The function applied to the gate.
    pub const fn activation(self) -> UnaryKind {
        match self {
            GluKind::Swiglu => UnaryKind::Silu,
            GluKind::GegluTanh => UnaryKind::GeluTanh,
            GluKind::GegluErf => UnaryKind::GeluErf,
            GluKind::Reglu => UnaryKind::Relu,
        }
    }
}

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Glu {
    /// Which activation gates.
    pub kind: GluKind,
}

impl Describe for Glu {
    const NAME: &'static str = "glu";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [gate, up] = arity(inputs)?;
        floats(&[gate, up])?;
        ensure(gate.shape == up.shape, || "gate and up have different shapes".into())?;
        Ok(vec![Output::New(gate.shape, DType::F32)])
    }
}

//! `glu`: a gated linear unit, `act(gate) * up`. One with a limit is `act(min(gate, limit)) * (clamp(up) + 1)`, where
//! clamp keeps numbers within the limit on either side of zero.
//!
//! *Operands*: gate, up `[..]` of one shape. *Results*: likewise.
//! *Source*: Shazeer, "GLU Variants Improve Transformer", 2020; of the limit: OpenAI, "gpt-oss-120b & gpt-oss-20b
//! Model Card", 2025.

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
    /// GELU, `x * sigmoid(1.702 x)`.
    GegluQuick,
    /// ReLU.
    Reglu,
    /// `x * sigmoid(1.702 x)`, with a limit of 7.
    SwigluOai,
}

impl GluKind {
    /// All kinds.
    pub const ALL: [GluKind; 6] = [
        GluKind::Swiglu,
        GluKind::GegluTanh,
        GluKind::GegluErf,
        GluKind::GegluQuick,
        GluKind::Reglu,
        GluKind::SwigluOai,
    ];

    /// Its name in vectors and reports.
    pub const fn name(self) -> &'static str {
        match self {
            GluKind::Swiglu => "swiglu",
            GluKind::GegluTanh => "geglu_tanh",
            GluKind::GegluErf => "geglu_erf",
            GluKind::GegluQuick => "geglu_quick",
            GluKind::Reglu => "reglu",
            GluKind::SwigluOai => "swiglu_oai",
        }
    }

    /// The function applied to the gate.
    pub const fn activation(self) -> UnaryKind {
        match self {
            GluKind::Swiglu => UnaryKind::Silu,
            GluKind::GegluTanh => UnaryKind::GeluTanh,
            GluKind::GegluErf => UnaryKind::GeluErf,
            GluKind::Reglu => UnaryKind::Relu,
            GluKind::GegluQuick | GluKind::SwigluOai => UnaryKind::GeluQuick,
        }
    }

    /// Returns the bound that gate and up are clamped to.
    pub const fn limit(self) -> Option<f32> {
        match self {
            GluKind::SwigluOai => Some(7.0),
            GluKind::Swiglu | GluKind::GegluTanh | GluKind::GegluErf | GluKind::GegluQuick | GluKind::Reglu => None,
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

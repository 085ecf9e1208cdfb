//! `glu`: a gated linear unit, `act(gate) * up`. One with a limit is `act(min(gate, limit)) * (clamp(up) + 1)`, where
//! clamp keeps numbers within the limit on either side of zero.
//!
//! *Operands*: gate, up `[..]` of one shape. *Results*: likewise.
//! *Source*: Shazeer, "GLU Variants Improve Transformer", 2020; of the limit: OpenAI, "gpt-oss-120b & gpt-oss-20b
//! Model Card", 2025.

use super::describe::{Describe, F32, Output, arity, ensure, floats};
use super::unary::UnaryKind;
use crate::elementary::Scalar;
use crate::tensor::{DType, Tensor};

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $activation:ident);+ $(;)?) => {
        /// Which activation gates.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum GluKind { $($(#[$doc])* $variant),+ }

        impl GluKind {
            /// All kinds.
            pub const ALL: &'static [GluKind] = &[$(GluKind::$variant),+];

            /// Its name in vectors and reports.
            pub const fn name(self) -> &'static str {
                match self { $(GluKind::$variant => $name),+ }
            }

            /// The name of its function in shaders.
            pub const fn function(self) -> &'static str {
                match self { $(GluKind::$variant => concat!("glu_", $name)),+ }
            }

            /// The function applied to the gate.
            pub const fn activation(self) -> UnaryKind {
                match self { $(GluKind::$variant => UnaryKind::$activation),+ }
            }
        }
    };
}

kinds! {
    /// SiLU.
    Swiglu = "swiglu", Silu;
    /// GELU, tanh form.
    GegluTanh = "geglu_tanh", GeluTanh;
    /// GELU, erf form.
    GegluErf = "geglu_erf", GeluErf;
    /// GELU, `x * sigmoid(1.702 x)`.
    GegluQuick = "geglu_quick", GeluQuick;
    /// ReLU.
    Reglu = "reglu", Relu;
    /// `x * sigmoid(1.702 x)`, with a limit of 7.
    SwigluOai = "swiglu_oai", GeluQuick;
}

impl GluKind {
    /// Returns the bound that gate and up are clamped to.
    pub const fn limit(self) -> Option<f32> {
        match self {
            GluKind::SwigluOai => Some(7.0),
            GluKind::Swiglu | GluKind::GegluTanh | GluKind::GegluErf | GluKind::GegluQuick | GluKind::Reglu => None,
        }
    }

    /// The function of a gate and what it gates.
    #[inline(always)]
    pub fn of<T: Scalar>(self, gate: T, up: T) -> T {
        match self.limit().map(f64::from) {
            None => self.activation().of(gate) * up,
            Some(limit) => {
                self.activation().of(gate.min(T::number(limit))) * (up.clamp(-limit, limit) + T::number(1.0))
            }
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

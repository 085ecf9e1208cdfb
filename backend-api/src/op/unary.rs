//! `unary`: an elementwise function.
//!
//! *Operands*: x `[..]`. *Results*: like x.
//! *Source* of the GELU family: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.

use super::describe::{Describe, F32, Output, arity, floats};
use crate::elementary::Scalar;
use crate::tensor::{DType, Tensor};

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $lo:literal .. $hi:literal);+ $(;)?) => {
        /// Which function.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum UnaryKind { $($(#[$doc])* $variant),+ }

        impl UnaryKind {
            /// All functions, in the order of declaration.
            pub const ALL: &'static [UnaryKind] = &[$(UnaryKind::$variant),+];

            /// Its name in vectors and reports.
            pub const fn name(self) -> &'static str {
                match self { $(UnaryKind::$variant => $name),+ }
            }

            /// The name of its function in shaders.
            pub const fn function(self) -> &'static str {
                match self { $(UnaryKind::$variant => concat!("unary_", $name)),+ }
            }

            /// A range of inputs that shows all of it.
            pub const fn range(self) -> (f32, f32) {
                match self { $(UnaryKind::$variant => ($lo, $hi)),+ }
            }
        }
    };
}

kinds! {
    /// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))`.
    GeluTanh = "gelu_tanh", -150.0 .. 150.0;
    /// `x / 2 * (1 + erf(x / sqrt(2)))`.
    GeluErf = "gelu_erf", -150.0 .. 150.0;
    /// `x / (1 + exp(-1.702 x))`.
    GeluQuick = "gelu_quick", -150.0 .. 150.0;
    /// `x / (1 + exp(-x))`.
    Silu = "silu", -150.0 .. 150.0;
    /// `max(x, 0)`.
    Relu = "relu", -150.0 .. 150.0;
    /// `1 / (1 + exp(-x))`.
    Sigmoid = "sigmoid", -150.0 .. 150.0;
    /// Hyperbolic tangent.
    Tanh = "tanh", -150.0 .. 150.0;
    /// e^x.
    Exp = "exp", -10.0 .. 10.0;
    /// Natural logarithm.
    Log = "log", 0.01 .. 100.0;
    /// Square root.
    Sqrt = "sqrt", 0.0 .. 100.0;
    /// Sine of radians.
    Sin = "sin", -150.0 .. 150.0;
    /// Cosine of radians.
    Cos = "cos", -150.0 .. 150.0;
    /// Absolute value.
    Abs = "abs", -150.0 .. 150.0;
    /// `-x`.
    Neg = "neg", -150.0 .. 150.0;
    /// Largest integer not above x.
    Floor = "floor", -150.0 .. 150.0;
    /// Smallest integer not below x.
    Ceil = "ceil", -150.0 .. 150.0;
    /// `ln(1 + exp(x))`, without overflow.
    Softplus = "softplus", -150.0 .. 150.0;
    /// `x * clamp((x + 3) / 6, 0, 1)`.
    Hardswish = "hardswish", -150.0 .. 150.0;
    /// 1 above zero, -1 below it, 0 at it.
    Sign = "sign", -150.0 .. 150.0;
    /// 1 above zero, else 0.
    Step = "step", -150.0 .. 150.0;
    /// x above zero, else `e^x - 1`.
    Elu = "elu", -150.0 .. 150.0;
    /// `clamp((x + 3) / 6, 0, 1)`.
    Hardsigmoid = "hardsigmoid", -150.0 .. 150.0;
    /// `e^x - 1`, with all its digits near zero.
    Expm1 = "expm1", -10.0 .. 10.0;
    /// Nearest integer, halves away from zero.
    Round = "round", -150.0 .. 150.0;
    /// Nearest integer towards zero.
    Trunc = "trunc", -150.0 .. 150.0;
}

impl UnaryKind {
    /// The function of a number.
    #[inline(always)]
    pub fn of<T: Scalar>(self, x: T) -> T {
        let number = T::number;
        match self {
            // 1 + tanh(u) = 2 * sigmoid(2u), which loses no digits where tanh is near -1.
            UnaryKind::GeluTanh => {
                let cube = number(0.044715) * x.clone() * x.clone() * x.clone();
                x.clone() * (number(TWICE_ROOT_2_OVER_PI) * (x + cube)).sigmoid()
            }
            UnaryKind::GeluErf => {
                number(0.5) * x.clone() * (number(1.0) + (x * number(std::f64::consts::FRAC_1_SQRT_2)).erf())
            }
            UnaryKind::GeluQuick => x.clone() * (number(1.702) * x).sigmoid(),
            UnaryKind::Silu => x.clone() * x.sigmoid(),
            UnaryKind::Relu => x.max(number(0.0)),
            UnaryKind::Sigmoid => x.sigmoid(),
            UnaryKind::Tanh => x.tanh(),
            UnaryKind::Exp => x.exp(),
            UnaryKind::Log => x.log(),
            UnaryKind::Sqrt => x.sqrt(),
            UnaryKind::Sin => x.sin(),
            UnaryKind::Cos => x.cos(),
            UnaryKind::Abs => x.abs(),
            UnaryKind::Neg => -x,
            UnaryKind::Floor => x.floor(),
            UnaryKind::Ceil => x.ceil(),
            UnaryKind::Softplus => x.clone().max(number(0.0)) + (-x.abs()).exp().log1p(),
            UnaryKind::Hardswish => x.clone() * UnaryKind::Hardsigmoid.of(x),
            UnaryKind::Sign => x.sign(),
            UnaryKind::Step => x.above(number(0.0), number(1.0), number(0.0)),
            UnaryKind::Elu => x.clone().above(number(0.0), x.clone(), x.min(number(0.0)).expm1()),
            UnaryKind::Hardsigmoid => ((x + number(3.0)) / number(6.0)).clamp(0.0, 1.0),
            UnaryKind::Expm1 => x.expm1(),
            UnaryKind::Round => {
                let whole = x.clone().trunc();
                let rest = (x.clone() - whole.clone()).abs();
                whole + number(0.5).above(rest, number(0.0), x.sign())
            }
            UnaryKind::Trunc => x.trunc(),
        }
    }
}

/// `2 * sqrt(2 / pi)`.
const TWICE_ROOT_2_OVER_PI: f64 = 1.595_769_121_605_730_7;

/// See the [module page](self).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unary {
    /// Which function.
    pub kind: UnaryKind,
}

impl Describe for Unary {
    const NAME: &'static str = "unary";
    const TOLERANCE: f64 = F32;

    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        let [x] = arity(inputs)?;
        floats(&[x])?;
        Ok(vec![Output::New(x.shape, DType::F32)])
    }
}

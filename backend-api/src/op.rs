//! The operators: a closed list. Each has a file of its own with its parameters, the rule for its results' shapes, its
//! tolerance and its conformance cases.
//!
//! *Primitive* operators are what every backend must have. *Fused* operators are shorter forms of several primitives;
//! [`fuse`](crate::fuse) makes them only where a backend accepts them, and can expand them again.

use crate::case::Case;
use crate::tensor::{DType, Kind, Shape, Tensor};

pub mod append;
pub mod argmax;
pub mod argmax_append;
pub mod attention;
pub mod attention_linear;
pub mod binary;
pub mod concat;
pub mod embed;
pub mod get_rows;
pub mod glu;
pub mod linear;
pub mod linear_qkv;
pub mod matmul;
pub mod norm;
pub mod permute;
pub mod qkv_append;
pub mod rope;
pub mod sample;
pub mod self_attention;
pub mod slice;
pub mod softmax;
pub mod top_k;
pub mod unary;

pub use append::{Append, At};
pub use argmax::ArgMax;
pub use argmax_append::ArgMaxAppend;
pub use attention::{Attention, Masking};
pub use attention_linear::AttentionLinear;
pub use binary::{Binary, BinaryKind};
pub use concat::Concat;
pub use embed::Embed;
pub use get_rows::{GetRows, Index};
pub use glu::{Glu, GluKind};
pub use linear::{Activation, Linear, LinearOperands};
pub use linear_qkv::LinearQkv;
pub use matmul::MatMul;
pub use norm::{Norm, NormKind};
pub use permute::Permute;
pub use qkv_append::QkvAppend;
pub use rope::{Rope, RopeMode, RopeTable, Yarn};
pub use sample::Sample;
pub use self_attention::SelfAttention;
pub use slice::Slice;
pub use softmax::Softmax;
pub use top_k::TopK;
pub use unary::{Unary, UnaryKind};

/// A result of an operator.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// A new tensor.
    New(Shape, DType),
    /// The state that is this operand, after rows were written to it.
    Continues(usize),
}

/// Error tolerance of an operator, as NMSE against the reference: f32 rounding alone.
pub const F32: f64 = 1e-7;
/// The same where values are rounded to halves, which drivers may do either way.
pub const F16: f64 = 1e-6;
/// Nothing is computed, so nothing may differ.
pub const EXACT: f64 = 0.0;

/// What the file of an operator says.
pub(crate) trait Describe {
    /// The operator's name in reports, vectors and shader file names.
    const NAME: &'static str;
    /// The largest NMSE against the reference that a correct kernel may have.
    const TOLERANCE: f64;
    /// Shapes and dtypes of the results, or why these operands do not fit.
    fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String>;
    /// The conformance cases.
    fn cases() -> Vec<Case>;
}

/// The shape rule of an operator whose type is not known.
pub(crate) trait Infer {
    /// See [`Describe::infer`].
    fn results(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String>;
}

impl<T: Describe> Infer for T {
    fn results(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
        self.infer(inputs)
    }
}

macro_rules! ops {
    ($($(#[$doc:meta])* $variant:ident),+ $(,)?) => {
        /// An operator with its parameters.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Op { $($(#[$doc])* $variant($variant)),+ }

        $(impl From<$variant> for Op {
            fn from(op: $variant) -> Op { Op::$variant(op) }
        })+

        impl Op {
            /// The names of all operators, in the order of declaration.
            pub const NAMES: &'static [&'static str] = &[$(<$variant as Describe>::NAME),+];

            /// Its name in reports, vectors and shader file names.
            pub fn name(&self) -> &'static str {
                match self { $(Op::$variant(_) => <$variant as Describe>::NAME),+ }
            }

            /// The largest NMSE against the reference that a correct kernel may have; 0 means exact.
            pub fn tolerance(&self) -> f64 {
                match self { $(Op::$variant(_) => <$variant as Describe>::TOLERANCE),+ }
            }

            /// Shapes and dtypes of the results.
            ///
            /// *Errors*: why these operands do not fit.
            pub fn infer(&self, inputs: &[&Tensor]) -> Result<Vec<Output>, String> {
                match self { $(Op::$variant(op) => op.infer(inputs)),+ }
            }

            /// The conformance cases of all operators.
            pub fn all_cases() -> Vec<Case> {
                let mut cases = Vec::new();
                $(cases.extend(<$variant as Describe>::cases());)+
                cases
            }
        }
    };
}

ops! {
    /// Rows of a table.
    GetRows,
    /// `a * b^T`.
    MatMul,
    /// Layer or RMS norm.
    Norm,
    /// Softmax along rows, with scale, soft cap and mask.
    Softmax,
    /// An elementwise function.
    Unary,
    /// Elementwise arithmetic with broadcasting.
    Binary,
    /// A gated linear unit.
    Glu,
    /// Rotary position embedding.
    Rope,
    /// Copy, reshape and transpose.
    Permute,
    /// Some columns.
    Slice,
    /// Two tensors one after the other.
    Concat,
    /// Writes rows into a state.
    Append,
    /// The index of the largest element.
    ArgMax,
    /// The k largest elements.
    TopK,
    /// Draws one of some candidates.
    Sample,
    /// Fused: norm, matmul, bias, activation, residual.
    Linear,
    /// Fused: split of Q, K and V, RoPE, KV append.
    QkvAppend,
    /// Attention in its flash form.
    Attention,
    /// Fused: projection, split of Q, K and V, RoPE, KV append, attention.
    SelfAttention,
    /// Fused: token and position rows, added.
    Embed,
    /// Fused: argmax, append to the token history.
    ArgMaxAppend,
    /// Fused: linear, then split of Q, K and V, RoPE, KV append.
    LinearQkv,
    /// Fused: attention, then linear.
    AttentionLinear,
}

/// Checks the number of operands.
pub(crate) fn arity<'a, const N: usize>(inputs: &[&'a Tensor]) -> Result<[&'a Tensor; N], String> {
    inputs.try_into().map_err(|_| format!("takes {N} operands, not {}", inputs.len()))
}

/// Results of an operator on the first `front` operands, then of another on that result and the other operands.
pub(crate) fn chained(
    first: &dyn Infer,
    front: usize,
    second: &dyn Infer,
    inputs: &[&Tensor],
) -> Result<Vec<Output>, String> {
    let (head, tail) =
        inputs.split_at_checked(front).ok_or_else(|| format!("does not take {} operands", inputs.len()))?;
    let between = match first.results(head)?.as_slice() {
        [Output::New(shape, dtype)] => {
            Tensor { name: "between".into(), shape: *shape, dtype: *dtype, kind: Kind::Temporary }
        }
        _ => return Err("its first part does not give one new tensor".into()),
    };
    let operands: Vec<&Tensor> = std::iter::once(&between).chain(tail.iter().copied()).collect();
    let renumber = |output| match output {
        Output::Continues(operand) => Output::Continues(front + operand - 1),
        new @ Output::New(..) => new,
    };
    Ok(second.results(&operands)?.into_iter().map(renumber).collect())
}

/// Checks that operands are dense f32.
pub(crate) fn floats(inputs: &[&Tensor]) -> Result<(), String> {
    match inputs.iter().find(|t| t.dtype != DType::F32) {
        Some(tensor) => Err(format!("operand {} must be dense f32, not {}", tensor.name, tensor.dtype)),
        None => Ok(()),
    }
}

/// Checks that operands are dense floats, halves among them.
pub(crate) fn floats_or_halves(inputs: &[&Tensor]) -> Result<(), String> {
    inputs.iter().filter(|t| t.dtype != DType::F16).try_for_each(|t| floats(&[t]))
}

/// Fails with a reason unless a condition holds.
pub(crate) fn ensure(condition: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(why()) }
}

/// A shape, as a reason if it cannot be.
pub(crate) fn shape(dims: &[usize]) -> Result<Shape, String> {
    Shape::new(dims).map_err(|e| e.to_string())
}

/// `shape` with another innermost dimension.
pub(crate) fn with_cols(of: &Shape, cols: usize) -> Result<Shape, String> {
    let mut dims: Vec<usize> = of.dims().collect();
    match dims.last_mut() {
        Some(last) => *last = cols,
        None => dims.push(cols),
    }
    shape(&dims)
}

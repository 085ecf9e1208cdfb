//! The operators: a closed list of primitives. Each has a file of its own with its parameters, the rule for its results'
//! shapes and its tolerance; its conformance cases are in [`cases`](crate::cases).
//!
//! Backends run some operators together; [`form`](crate::form) has what they look for.

use crate::tensor::Tensor;
use describe::Describe;

mod describe;
mod elementwise;

pub mod append;
pub mod argmax;
pub mod attention;
pub mod binary;
pub mod concat;
pub mod gated_delta_net;
pub mod get_rows;
pub mod glu;
pub mod matmul;
pub mod matmul_id;
pub mod norm;
pub mod pad;
pub mod penalize;
pub mod permute;
pub mod pick;
pub mod rope;
pub mod route;
pub mod sample;
pub mod scale;
pub mod short_conv;
pub mod slice;
pub mod softmax;
pub mod ssm_scan;
pub mod top_k;
pub mod unary;
pub mod weighted_sum;

pub mod argsort;
pub mod clamp;
pub mod conv2d;
pub mod cumsum;
pub mod im2col;
pub mod repeat;
pub mod resize;
pub mod set;
pub mod solve_triangular;
pub mod sum;
pub mod tri;
pub mod window;
pub mod xielu;

pub use append::{Append, At};
pub use argmax::ArgMax;
pub use attention::{Attention, HIDDEN, Masking};
pub use binary::{Binary, BinaryKind};
pub use concat::Concat;
pub use describe::{EXACT, F32, Output};
pub use elementwise::{IDENTITY, Region, View, Wrap, function, functions};
pub use gated_delta_net::GatedDeltaNet;
pub use get_rows::{GetRows, Index};
pub use glu::{Glu, GluKind};
pub use matmul::MatMul;
pub use matmul_id::MatMulId;
pub use norm::{Norm, NormKind};
pub use pad::Pad;
pub use penalize::{Penalize, Penalties};
pub use permute::Permute;
pub use pick::Pick;
pub use rope::{Rope, RopeMode, RopeTable, Yarn};
pub use route::{Gate, Groups, Route};
pub use sample::Sample;
pub use scale::Scale;
pub use short_conv::ShortConv;
pub use slice::Slice;
pub use softmax::Softmax;
pub use ssm_scan::SsmScan;
pub use top_k::TopK;
pub use unary::{Unary, UnaryKind};
pub use weighted_sum::WeightedSum;

pub use argsort::Argsort;
pub use clamp::Clamp;
pub use conv2d::Conv2d;
pub use cumsum::Cumsum;
pub use im2col::Im2Col;
pub use repeat::Repeat;
pub use resize::{Positions, Resize, ResizeMode};
pub use set::Set;
pub use solve_triangular::SolveTriangular;
pub use sum::Sum;
pub use tri::{Tri, TriKind};
pub use window::Window;
pub use xielu::Xielu;

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
    /// A factor and an offset for all elements.
    Scale,
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
    /// Zeros around a tensor.
    Pad,
    /// Writes rows into a state.
    Append,
    /// The index of the largest element.
    ArgMax,
    /// The k largest elements.
    TopK,
    /// Logits as a request wants them.
    Penalize,
    /// Elements of each row.
    Pick,
    /// Draws one of some candidates.
    Sample,
    /// Scaled dot-product attention.
    Attention,
    /// A causal convolution of each channel with a few taps.
    ShortConv,
    /// Which experts each token goes to.
    Route,
    /// Products with matrices that are chosen by id.
    MatMulId,
    /// The rows of a token, added up with weights.
    WeightedSum,
    /// A selective state-space model along the rows.
    SsmScan,
    /// Linear attention that fades and corrects itself.
    GatedDeltaNet,

    /// Images of another size.
    Resize,
    /// The elements under a kernel at each of its places, as rows.
    Im2Col,
    /// A convolution of images, in groups of channels.
    Conv2d,
    /// The solution of a lower triangular system.
    SolveTriangular,
    /// Elements between two bounds.
    Clamp,
    /// A parabola above zero, an exponential below.
    Xielu,
    /// The sums of rows.
    Sum,
    /// The sums of rows up to each element.
    Cumsum,
    /// The order of each row's elements.
    Argsort,
    /// A tensor as a tile.
    Repeat,
    /// A tensor of which a box is replaced.
    Set,
    /// Triangles of matrices.
    Tri,
}

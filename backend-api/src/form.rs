//! Forms: what a backend can do in one go, be it a primitive or several nodes of a graph. A form is data, like an
//! operator; each has a file of its own with its operands and the matcher that finds it.
//!
//! None of them names a model family: they follow from who makes and who uses a tensor.

pub mod argmax_append;
pub mod attention_linear;
pub mod chain;
pub mod columns;
pub mod conv;
pub mod delta;
pub mod embed;
pub mod epilogue;
pub mod experts_glu;
pub mod experts_sum;
mod found;
pub mod linear;
pub mod linear_qkv;
pub mod norm_add;
pub mod norm_add_linear;
pub mod norm_gate;
pub mod qkv_append;
pub mod scan;
pub mod self_attention;

pub use argmax_append::ArgMaxAppend;
pub use attention_linear::AttentionLinear;
pub use chain::Chain;
pub use columns::Columns;
pub use conv::Conv;
pub use delta::Delta;
pub use embed::Embed;
pub use epilogue::Epilogue;
pub use experts_glu::{ExpertsGlu, ExpertsGluOperands};
pub use experts_sum::ExpertsSum;
pub use found::Found;
pub use linear::{Activation, Linear, LinearOperands};
pub use linear_qkv::LinearQkv;
pub use norm_add::NormAdd;
pub use norm_add_linear::NormAddLinear;
pub use norm_gate::NormGate;
pub use qkv_append::{QkNorm, QkvAppend};
pub use scan::{Scan, ScanPlaces};
pub use self_attention::SelfAttention;

use crate::error::Error;
use crate::graph::{Graph, TensorId};
use crate::links::Links;
use crate::op::Op;

macro_rules! forms {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// Operators and fusion patterns that a backend runs in one go.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Form {
            /// One node, as its operator says.
            Op(Op),
            $($(#[$doc])* $variant($variant)),+
        }

        $(impl From<$variant> for Form {
            fn from(form: $variant) -> Form { Form::$variant(form) }
        })+

        impl Form {
            /// The names of the forms of several nodes, in the order of declaration.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Its name in reports and shader file names: a primitive's is its operator's.
            pub fn name(&self) -> &'static str {
                match self {
                    Form::Op(op) => op.name(),
                    $(Form::$variant(_) => $name),+
                }
            }

            /// Records its nodes as models do.
            ///
            /// *Errors*: operands that do not fit.
            pub fn record(&self, graph: &mut Graph, operands: &[TensorId]) -> Result<Vec<TensorId>, Error> {
                match self {
                    Form::Op(op) => graph.push_multi(op.clone(), operands),
                    $(Form::$variant(form) => form.record(graph, operands)),+
                }
            }

            /// The matchers of all forms, those of more nodes first.
            pub const MATCHERS: &'static [Matcher] = &[$($variant::matcher),+];
        }

        $(impl $variant {
            /// Its [`Matcher`].
            pub fn matcher(links: &Links<'_>, at: usize) -> Vec<Cover> {
                Self::find(links, at).into_iter().map(|found| found.map(Form::from)).collect()
            }
        })+
    };
}

forms! {
    /// Projection, split of Q, K and V, RoPE, KV append, attention.
    SelfAttention = "self_attention",
    /// Linear, then split of Q, K and V, RoPE, KV append.
    LinearQkv = "linear_qkv",
    /// Attention, then linear.
    AttentionLinear = "attention_linear",
    /// Split of Q, K and V, RoPE, KV append.
    QkvAppend = "qkv_append",
    /// Gate, short convolution, bias, activation, gate.
    Conv = "conv",
    /// Bias, selective scan, gate.
    Scan = "scan",
    /// Gates, gated delta net.
    Delta = "delta",
    /// A product or a norm, then functions of single elements.
    Epilogue = "epilogue",
    /// Norm, residual, then linear.
    NormAddLinear = "norm_add_linear",
    /// Norm, matmul, bias, activation, residual.
    Linear = "linear",
    /// Norm, gate and up products of chosen experts, GLU.
    ExpertsGlu = "experts_glu",
    /// Products of chosen experts, weighted sum, residual.
    ExpertsSum = "experts_sum",
    /// Norm, residual.
    NormAdd = "norm_add",
    /// Norm, gate.
    NormGate = "norm_gate",
    /// Token and position rows, added.
    Embed = "embed",
    /// Argmax, append to the token history.
    ArgMaxAppend = "argmax_append",
    /// Whatever is left of functions of elements, with slices and transpositions between them.
    Chain = "chain",
}

impl<T> From<T> for Form
where
    Op: From<T>,
{
    fn from(op: T) -> Form {
        Form::Op(op.into())
    }
}

/// Nodes of a graph that a backend runs together.
pub type Cover = Found<Form>;

/// Looks at one node and its neighbours and gives what may cover them, the largest first. What it looks at is bounded, so
/// that covering is linear in the nodes.
pub type Matcher = fn(&Links<'_>, usize) -> Vec<Cover>;

//! Operators as `cases.json` has them: the parameters of [`backend_api::op`], under the same names.

use backend_api::op::{
    ArgMax, Attention, Binary, BinaryKind, Concat, GetRows, Index, Masking, MatMul, Norm, NormKind, Pad, Permute, Rope,
    RopeMode, Scale, ShortConv, Slice, Softmax, TopK, Unary, UnaryKind,
};
use backend_api::{Error, Op, Shape};
use serde::Deserialize;

/// A node of a case.
#[derive(Debug, Deserialize)]
pub struct Node {
    /// The operator.
    #[serde(flatten)]
    pub operator: Operator,
    /// The numbers of its operands among the tensors of the case.
    pub inputs: Vec<usize>,
}

/// An operator with its parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Operator {
    /// Rows by ids.
    GetRows,
    /// `a * b^T`.
    Matmul,
    /// A norm of rows.
    Norm { kind: String, eps: f32, heads: usize },
    /// Softmax of rows.
    Softmax { scale: f32 },
    /// An elementwise function.
    Unary { kind: String },
    /// Elementwise arithmetic.
    Binary { kind: String },
    /// A factor and an offset.
    Scale { factor: f32, bias: f32 },
    /// Rotary embedding, by a table of cosines and sines.
    Rope { n_head: usize, n_dims: usize, mode: String },
    /// Copy, reshape and transpose.
    Permute { view: Vec<usize>, perm: Vec<usize> },
    /// Some columns.
    Slice { start: usize, len: usize },
    /// Two tensors one after the other.
    Concat { axis: usize },
    /// Zeros around.
    Pad { before: [usize; 4], after: [usize; 4] },
    /// The index of the largest.
    Argmax,
    /// The k largest.
    TopK { k: usize },
    /// A causal convolution, whose first operand is a state.
    ShortConv,
    /// Attention of one sequence.
    Attention { n_head: usize, n_head_kv: usize, scale: f32, softcap: f32, causal: bool, explicit: bool },
}

impl Operator {
    /// The operator of the graph.
    ///
    /// *Errors*: a name that does not exist; a shape that cannot be.
    pub fn op(self) -> Result<Op, Error> {
        let unknown = |what: &str, name: &str| Error::Invalid(format!("there is no {what} {name:?}"));
        Ok(match self {
            Operator::GetRows => GetRows { index: Index::Ids }.into(),
            Operator::Matmul => MatMul.into(),
            Operator::Norm { kind, eps, heads } => {
                let kind = match kind.as_str() {
                    "layer" => NormKind::Layer,
                    "rms" => NormKind::Rms,
                    other => return Err(unknown("norm", other)),
                };
                Norm { kind, eps, heads }.into()
            }
            Operator::Softmax { scale } => {
                Softmax { scale, softcap: 0.0, masking: Masking::default(), sinks: false }.into()
            }
            Operator::Unary { kind } => {
                let found = UnaryKind::ALL.iter().copied().find(|k| k.name() == kind);
                Unary { kind: found.ok_or_else(|| unknown("elementwise function", &kind))? }.into()
            }
            Operator::Binary { kind } => {
                let found = BinaryKind::ALL.iter().copied().find(|k| k.name() == kind);
                Binary { kind: found.ok_or_else(|| unknown("elementwise operation", &kind))? }.into()
            }
            Operator::Scale { factor, bias } => Scale { factor, bias }.into(),
            Operator::Rope { n_head, n_dims, mode } => {
                let mode = match mode.as_str() {
                    "normal" => RopeMode::Normal,
                    "neox" => RopeMode::Neox,
                    other => return Err(unknown("mode of rope", other)),
                };
                Rope { n_head, n_dims, mode }.into()
            }
            Operator::Permute { view, perm } => Permute { view: Shape::new(&view)?, perm }.into(),
            Operator::Slice { start, len } => Slice { start, len }.into(),
            Operator::Concat { axis } => Concat { axis }.into(),
            Operator::Pad { before, after } => Pad { before, after, circular: false }.into(),
            Operator::Argmax => ArgMax.into(),
            Operator::TopK { k } => TopK { k }.into(),
            Operator::ShortConv => ShortConv.into(),
            Operator::Attention { n_head, n_head_kv, scale, softcap, causal, explicit } => {
                let masking = Masking { causal, explicit, ..Masking::default() };
                Attention { n_head, n_head_kv, scale, softcap, max_bias: 0.0, masking, sinks: false }.into()
            }
        })
    }
}

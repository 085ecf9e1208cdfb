//! The plain definition of each primitive operator, and of attention: f32 data, f64 accumulation.

use crate::args::Args;
use backend_api::{Op, Unsupported};

mod attention;
mod elementwise;
mod matmul;
mod moves;
mod norm;
pub(crate) mod rows;
mod select;
mod softmax;

pub(crate) use elementwise::unary;

/// A kernel: what runs one node.
pub(crate) type Kernel = fn(&Op, &mut Args<'_>);

/// The kernel of an operator.
///
/// *Errors*: fused operators, which run as their expansions.
pub(crate) fn lower(op: &Op) -> Result<Kernel, Unsupported> {
    Ok(match op {
        Op::GetRows(_) => rows::get_rows,
        Op::MatMul(_) => matmul::matmul,
        Op::Norm(_) => norm::norm,
        Op::Softmax(_) => softmax::softmax,
        Op::Unary(_) => elementwise::run_unary,
        Op::Binary(_) => elementwise::run_binary,
        Op::Glu(_) => elementwise::run_glu,
        Op::Rope(_) => rows::rope,
        Op::Permute(_) => moves::permute,
        Op::Slice(_) => moves::slice,
        Op::Concat(_) => moves::concat,
        Op::Append(_) => rows::append,
        Op::ArgMax(_) => select::argmax,
        Op::TopK(_) => select::top_k,
        Op::Sample(_) => select::sample,
        Op::Attention(_) => attention::attention,
        Op::Linear(_)
        | Op::QkvAppend(_)
        | Op::Embed(_)
        | Op::ArgMaxAppend(_)
        | Op::LinearQkv(_)
        | Op::AttentionLinear(_)
        | Op::SelfAttention(_) => {
            return Err(Unsupported {
                op: op.name().into(),
                reason: "the reference defines a fused operator by its expansion".into(),
            });
        }
    })
}

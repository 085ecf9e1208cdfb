//! The fast path: SIMD for what takes the time of a token, fused operators among it; plain functions for the rest.
//!
//! Nearly all of that time goes into dot products, so they alone name instructions: [`lanes`] has the few that are
//! needed for each instruction set, [`ints`] the products with quantised weights, which are never turned into floats.

use crate::args::Args;
use crate::plain::{self, Kernel};
use backend_api::{Op, StepParams, Tensor, Unsupported};

mod attention;
mod fused;
mod ints;
mod lanes;
mod linear;
mod math;

/// The kernel of an operator.
///
/// *Errors*: what neither path has: fused operators that gain nothing here.
pub(crate) fn lower(op: &Op) -> Result<Kernel, Unsupported> {
    Ok(match op {
        Op::MatMul(_) => linear::matmul,
        Op::Linear(_) => linear::linear,
        Op::Attention(_) => attention::attention,
        Op::QkvAppend(_) => fused::qkv_append,
        Op::Embed(_) => fused::embed,
        Op::ArgMaxAppend(_) => fused::argmax_append,
        Op::GetRows(_)
        | Op::Norm(_)
        | Op::Softmax(_)
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::Glu(_)
        | Op::Rope(_)
        | Op::Permute(_)
        | Op::Slice(_)
        | Op::Concat(_)
        | Op::Append(_)
        | Op::ArgMax(_)
        | Op::TopK(_)
        | Op::Sample(_)
        | Op::LinearQkv(_)
        | Op::AttentionLinear(_)
        | Op::SelfAttention(_) => plain::lower(op)?,
    })
}

/// The f32 values of scratch memory that the kernels of an operator need, on either path.
pub(crate) fn scratch(op: &Op, inputs: &[&Tensor]) -> usize {
    let [first, second, ..] = inputs else { return inputs.first().map_or(0, |t| t.shape.cols()) };
    match op {
        Op::MatMul(_) | Op::Linear(_) => linear::scratch(first),
        Op::Attention(_) => second.shape.dim(0),
        _ => first.shape.cols(),
    }
}

/// The row of a clamped token position in a history.
pub(crate) fn token_at(history: &[i32], step: &StepParams, row: usize) -> i64 {
    i64::from(history[(step.position as usize + row).min(history.len() - 1)])
}

/// Rows of `width` that a step appends to a state of `n_ctx` rows: (first row, count).
pub(crate) fn appended(args: &Args<'_>, n_ctx: usize, t: usize) -> (usize, usize) {
    let first = (args.step.position as usize).min(n_ctx);
    (first, (args.step.rows as usize).min(t).min(n_ctx - first))
}

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
mod pairs;
#[cfg(test)]
mod tests;

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

/// What the kernels of an operator need, on either path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Needs {
    /// f32 values of scratch memory.
    pub scratch: usize,
    /// The parts that its work is cut into.
    pub parts: usize,
}

/// What an operator needs where `threads` may share the work.
pub(crate) fn needs(op: &Op, inputs: &[&Tensor], threads: usize) -> Needs {
    let alone = |scratch| Needs { scratch, parts: 1 };
    match (op, inputs) {
        (Op::MatMul(_), [x, w, ..]) => linear::needs(x, w, threads),
        (Op::Linear(op), _) => op.operands(inputs).map_or(alone(0), |o| linear::needs(o.x, o.w, threads)),
        (Op::Attention(op), [q, k, v, ..]) => attention::needs(op, [q, k, v], threads),
        _ => alone(inputs.first().map_or(0, |first| first.shape.cols())),
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

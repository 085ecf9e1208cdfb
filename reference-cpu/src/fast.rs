//! The fast path: SIMD for what takes the time of a token, fused operators among it; plain functions for the rest.
//!
//! Kernels are ordinary loops over lanes, compiled for several instruction sets by `pulp`, which picks one when run.
//! Weights are decoded a row at a time into scratch memory and used for all rows of x at once.

use crate::args::Args;
use crate::plain::{self, Kernel};
use backend_api::{Op, StepParams, Tensor, Unsupported};

mod attention;
mod fused;
mod linear;

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

/// The f32 values of scratch memory that any kernel of either path may need for these operands.
pub(crate) fn scratch(inputs: &[&Tensor]) -> usize {
    let widest = inputs.iter().map(|t| t.shape.cols()).max().unwrap_or(0);
    let longest = inputs.iter().map(|t| t.shape.dims().next().unwrap_or(1)).max().unwrap_or(0);
    let x = inputs.first().map_or(0, |t| t.shape.len());
    x + 2 * widest + longest
}

/// The dot product, in lanes that compilers turn into vectors.
#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 32;
    let mut sums = [0f32; LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0] + rest
}

/// Runs a function compiled for the instruction set at hand.
#[inline]
pub(crate) fn vectorized<R>(f: impl FnOnce() -> R) -> R {
    struct Call<F>(F);
    impl<R, F: FnOnce() -> R> pulp::NullaryFnOnce for Call<F> {
        type Output = R;
        #[inline(always)]
        fn call(self) -> R {
            (self.0)()
        }
    }
    pulp::Arch::new().dispatch(Call(f))
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

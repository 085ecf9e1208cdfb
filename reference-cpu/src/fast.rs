//! The fast path: SIMD for what takes the time of a token, forms of several nodes among it; plain functions for the rest.
//!
//! Nearly all of that time goes into dot products, so they alone name instructions: [`lanes`] has the few that are
//! needed for each instruction set, [`ints`] the products with quantised weights, which are never turned into floats.

use crate::args::Args;
use backend_api::form::{ArgMaxAppend, Embed, Linear, QkvAppend};
use backend_api::{Form, Matcher, Op, StepParams, Tensor};

mod attention;
mod fused;
mod ints;
pub(crate) mod lanes;
mod linear;
mod math;
mod pairs;
mod panels;
#[cfg(test)]
mod tests;

/// The forms of several nodes that have a kernel here.
pub(crate) const MATCHERS: &[Matcher] = &[QkvAppend::matcher, Linear::matcher, Embed::matcher, ArgMaxAppend::matcher];

/// A kernel of the fast path.
pub(crate) type Kernel = fn(&Form, &mut Args<'_>);

/// The kernels by the form that they are for; other operators have their definitions alone.
pub(crate) const KERNELS: &[(&str, Kernel)] = &[
    ("matmul", linear::matmul),
    ("matmul_id", linear::matmul_id),
    ("attention", attention::attention),
    ("linear", linear::linear),
    ("qkv_append", fused::qkv_append),
    ("embed", fused::embed),
    ("argmax_append", fused::argmax_append),
];

/// The kernel of a form, if it has one of its own.
pub(crate) fn kernel(form: &Form) -> Option<Kernel> {
    KERNELS.iter().find(|(name, _)| *name == form.name()).map(|(_, kernel)| *kernel)
}

/// Memory that the kernels of a form need, on either path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Needs {
    /// f32 values of scratch memory.
    pub scratch: usize,
    /// The parts that its work is cut into, for threads.
    pub parts: usize,
    /// The units that can be done one after the other, with the host's turn between them.
    pub units: usize,
}

/// Returns the memory that a form needs where `threads` may share the work.
pub(crate) fn needs(form: &Form, inputs: &[&Tensor], threads: usize) -> Needs {
    let alone = |scratch| Needs { scratch, parts: 1, units: 1 };
    match (form, inputs) {
        (Form::Op(Op::MatMul(_)), [x, w, ..]) => linear::needs(x, w, threads),
        (Form::Op(Op::MatMulId(op)), [x, w, ids @ ..]) => {
            let choices = ids.first().unwrap_or(x).shape;
            linear::needs_id(op, w, choices.dim(0) * choices.dim(1), threads)
        }
        (Form::Linear(op), _) => op.operands(inputs).map_or(alone(0), |o| linear::needs(o.x, o.w, threads)),
        (Form::Op(Op::Attention(op)), [q, k, v, ..]) => attention::needs(op, [q, k, v], threads),
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

//! The plain definition of each operator: f32 data, f64 accumulation.

use crate::args::Args;
use backend_api::Op;

mod attention;
mod conv;
mod elementwise;
pub(crate) mod experts;
mod images;
mod matmul;
pub(crate) mod norm;
mod recurrent;
pub(crate) mod rows;
pub(crate) mod select;
mod softmax;
mod solve;
mod sums;
mod tokens;

/// Function that runs one node.
pub(crate) type Definition = fn(&Op, &mut Args<'_>);

/// The definition of an operator.
pub(crate) fn definition(op: &Op) -> Definition {
    match op {
        Op::GetRows(_) => rows::get_rows,
        Op::MatMul(_) => matmul::matmul,
        Op::Norm(_) => norm::norm,
        Op::Softmax(_) => softmax::softmax,
        Op::Rope(_) => rows::rope,
        Op::Append(_) => rows::append,
        Op::ArgMax(_) => select::argmax,
        Op::TopK(_) => select::top_k,
        Op::Penalize(_) => tokens::penalize,
        Op::Pick(_) => tokens::pick,
        Op::Sample(_) => select::sample,
        Op::Attention(_) => attention::attention,
        Op::ShortConv(_) => conv::short_conv,
        Op::Route(_) => experts::route,
        Op::MatMulId(_) => experts::matmul_id,
        Op::WeightedSum(_) => experts::weighted_sum,
        Op::SsmScan(_) => recurrent::ssm_scan,
        Op::GatedDeltaNet(_) => recurrent::gated_delta_net,

        Op::Resize(_) => images::resize,
        Op::Im2Col(_) => images::im2col,
        Op::Conv2d(_) => images::conv2d,
        Op::SolveTriangular(_) => solve::solve_triangular,
        Op::Sum(_) => sums::sum,
        Op::Cumsum(_) => sums::cumsum,
        Op::Argsort(_) => select::argsort,
        Op::Unary(_)
        | Op::Scale(_)
        | Op::Clamp(_)
        | Op::Glu(_)
        | Op::Xielu(_)
        | Op::Binary(_)
        | Op::Permute(_)
        | Op::Slice(_)
        | Op::Concat(_)
        | Op::Pad(_)
        | Op::Repeat(_)
        | Op::Set(_)
        | Op::Tri(_) => elementwise::elementwise,
    }
}

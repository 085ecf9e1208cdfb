//! From operators to kernels: the only truth about what this backend can run.

mod decode;
mod linear;
mod rows;
mod tokens;
mod wise;

use crate::kernel::{Kernel, dense_bytes};
use crate::shader::SUBGROUPS;
use crate::storage::Limits;
use crate::tuning::Tuning;
use backend_api::{DType, Op, Tensor, Unsupported};

/// Most workgroups of one dimension of a grid.
pub const MAX_GRID: usize = 65_535;

/// A node to lower.
pub struct Node<'a> {
    /// Its operands.
    pub inputs: &'a [&'a Tensor],
    /// Its results.
    pub outputs: &'a [&'a Tensor],
    /// What the device allows.
    pub limits: Limits,
    /// How its kernels are shaped.
    pub tuning: Tuning,
}

impl Node<'_> {
    /// A kernel of one invocation an element of `n`.
    fn elementwise(&self, file: &'static str, n: usize) -> Kernel {
        Kernel::new(file, grid(n.div_ceil(self.tuning.wg))).word("WG", literal(self.tuning.wg))
    }

    /// A kernel whose workgroups of `wg` invocations reduce: to sums, maxima, or the best.
    fn reducing(&self, file: &'static str, grid: [u32; 3], wg: usize) -> Kernel {
        let kernel = Kernel::new(file, grid).word("WG", literal(wg));
        match self.limits.subgroup.min(wg) {
            0 | 1 => kernel,
            subgroup => kernel.flag(SUBGROUPS, true).word("SUBGROUP", literal(subgroup)),
        }
    }
}

/// The kernels of an operator, in order.
///
/// *Errors*: why this backend cannot run it.
pub fn lower(op: &Op, node: &Node<'_>) -> Result<Vec<Kernel>, Unsupported> {
    let unsupported = |reason: String| {
        let list: Vec<String> = node.inputs.iter().map(|t| t.to_string()).collect();
        Unsupported { op: format!("{}({})", op.name(), list.join(", ")), reason }
    };
    op.infer(node.inputs).map_err(unsupported)?;
    for tensor in node.inputs.iter().chain(node.outputs) {
        let bytes = dense_bytes(tensor);
        if !matches!(tensor.dtype, DType::Packed(_)) && bytes > node.limits.binding {
            let reason = format!(
                "{} takes {bytes} bytes, but a binding of this device holds {}; use a smaller context or batch",
                tensor.name, node.limits.binding
            );
            return Err(unsupported(reason));
        }
    }
    let kernels = match op {
        Op::GetRows(op) => rows::get_rows(op, node),
        Op::MatMul(_) => linear::matmul(node),
        Op::Norm(op) => wise::norm(op, node),
        Op::Softmax(op) => wise::softmax(op, node),
        Op::Unary(op) => wise::unary(op, node),
        Op::Binary(op) => wise::binary(op, node),
        Op::Glu(op) => wise::glu(op, node),
        Op::Rope(op) => tokens::rope(op, node),
        Op::Permute(op) => wise::permute(op, node),
        Op::Slice(op) => wise::slice(op, node),
        Op::Concat(op) => wise::concat(op, node),
        Op::Append(op) => tokens::append(op, node),
        Op::ArgMax(_) => tokens::argmax(node),
        Op::TopK(op) => tokens::top_k(op, node),
        Op::Sample(_) => tokens::sample(node),
        Op::Linear(op) => linear::linear(op, node),
        Op::QkvAppend(op) => tokens::qkv_append(op, node),
        Op::Attention(op) => tokens::attention(op, node),
        Op::SelfAttention(_) => Err("one dispatch cannot read the caches that it appends to".into()),
        Op::Embed(_) => rows::embed(node),
        Op::ArgMaxAppend(_) => tokens::argmax_append(node),
        Op::LinearQkv(op) => decode::linear_qkv(op, node),
        Op::AttentionLinear(op) => decode::attention_linear(op, node),
    };
    kernels.map_err(unsupported)
}

/// A grid of `n` workgroups, folded into two dimensions where one does not suffice.
fn grid(n: usize) -> [u32; 3] {
    let width = n.clamp(1, MAX_GRID);
    [width as u32, n.max(1).div_ceil(width) as u32, 1]
}

/// The workgroup size as WGSL.
fn literal(n: usize) -> String {
    format!("{n}u")
}

//! From forms to kernels: the only truth about what this backend can run.

mod choice;
mod decode;
mod elementwise;
mod experts;
mod images;
mod linear;
mod recurrent;
mod rows;
mod rowwise;
mod solve;
mod sorts;
mod sums;
mod tokens;

pub use linear::{FEW, OWN};

use crate::kernel::Kernel;
use crate::shader::SUBGROUPS;
use crate::storage::Limits;
use crate::tuning::Tuning;
use backend_api::form::{
    ArgMaxAppend, AttentionLinear, Chain, Conv, Delta, Embed, Epilogue, ExpertsGlu, ExpertsSum, Linear, LinearQkv,
    NormAdd, NormAddLinear, NormGate, QkvAppend, Scan,
};
use backend_api::op::{At, Index};
use backend_api::{Cover, DType, Form, Graph, Kind, Matcher, Op, Tensor, TensorId, Unsupported};
use elementwise::Following;

/// Most workgroups of one dimension of a grid.
pub const MAX_GRID: usize = 65_535;

/// The forms of several nodes that have kernels here.
pub const MATCHERS: &[Matcher] = &[
    LinearQkv::matcher,
    AttentionLinear::matcher,
    QkvAppend::matcher,
    Conv::matcher,
    Scan::matcher,
    Delta::matcher,
    NormGate::matcher,
    Epilogue::matcher,
    NormAddLinear::matcher,
    Linear::matcher,
    ExpertsGlu::matcher,
    ExpertsSum::matcher,
    NormAdd::matcher,
    Embed::matcher,
    ArgMaxAppend::matcher,
    Chain::matcher,
];

/// Node to lower, with what its kernels depend on.
pub struct Node<'a> {
    /// Its operands.
    pub inputs: &'a [&'a Tensor],
    /// Its results.
    pub outputs: &'a [&'a Tensor],
    /// Limits of the device.
    pub limits: Limits,
    /// How its kernels are shaped.
    pub tuning: Tuning,
    /// Whether rows are to be rounded as a step of one row rounds them.
    pub alike: bool,
    /// How many sequences states hold.
    pub sequences: usize,
    /// Chain that follows the last result.
    pub following: Option<Following<'a>>,
}

impl Node<'_> {
    /// The rows of a state that one sequence has.
    fn capacity(&self, state: &Tensor) -> usize {
        let rows = state.shape.dim(0);
        if matches!(state.kind, Kind::State(_)) { rows / self.sequences } else { rows }
    }

    /// A kernel that walks down rows with a state at hand: a row by itself where each is of a sequence of its own.
    fn each_apart(&self, mut kernel: Kernel, rows: usize) -> Kernel {
        if self.sequences > 1 {
            kernel.grid[2] = rows as u32;
        }
        kernel
    }

    /// Whether so many rows of x go through the kernels of one row.
    fn is_few(&self, rows: usize) -> bool {
        rows == 1 || self.alike && rows <= FEW
    }

    /// A kernel of one invocation an element of `n`.
    fn elementwise(&self, file: &'static str, n: usize) -> Kernel {
        Kernel::new(file, grid(n.div_ceil(self.tuning.wg))).word("WG", literal(self.tuning.wg))
    }

    /// Invocations for a row of so many columns. Mesa's software device ends the loops of a shader after 65,535 rounds in
    /// all, silently, so that rows which are long for few invocations get more.
    fn row_wg(&self, cols: usize) -> usize {
        const COLUMNS: usize = 8192;
        // As many as every device allows.
        const MOST: usize = 256;
        let needed = cols.div_ceil(COLUMNS).next_power_of_two().min(MOST);
        self.tuning.row_wg.max(needed)
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

/// The kernels of a cover, in order.
///
/// *Errors*: why this backend cannot run it.
pub fn lower_cover(graph: &Graph, cover: &Cover, limits: Limits, tuning: Tuning) -> Result<Vec<Kernel>, Unsupported> {
    let tensors = |ids: &[TensorId]| ids.iter().map(|id| graph.tensor(*id)).collect::<Vec<_>>();
    let (inputs, outputs) = (tensors(&cover.inputs), tensors(&cover.outputs));
    let (alike, sequences) = (graph.rows_alike(), graph.sequences());
    let (inputs, outputs) = (&inputs[..], &outputs[..]);
    let node = Node { inputs, outputs, limits, tuning, alike, sequences, following: None };
    let kernels = lower(&cover.form, &node)?;
    let several = |kernel: Kernel| match sequences {
        1 => kernel,
        _ => kernel.flag("SEQUENCES", true).word("MOST_SEQUENCES", literal(FEW)),
    };
    Ok(kernels.into_iter().map(several).collect())
}

/// The kernels of a form, in order.
///
/// *Errors*: why this backend cannot run it.
fn lower(form: &Form, node: &Node<'_>) -> Result<Vec<Kernel>, Unsupported> {
    let unsupported = |reason: String| {
        let list: Vec<String> = node.inputs.iter().map(|t| t.to_string()).collect();
        Unsupported { op: format!("{}({})", form.name(), list.join(", ")), reason }
    };
    for tensor in node.inputs.iter().chain(node.outputs) {
        let bytes = tensor.dense_bytes();
        if !matches!(tensor.dtype, DType::Packed(_)) && bytes > node.limits.binding {
            let reason = format!(
                "{} takes {bytes} bytes, but a binding of this device holds {}; use a smaller context or batch",
                tensor.name, node.limits.binding
            );
            return Err(unsupported(reason));
        }
    }
    if node.sequences > 1 && !is_by_row(form) {
        return Err(unsupported("its rows are of one sequence".into()));
    }
    let kernels = match form {
        Form::Op(op) => primitive(op, node),
        Form::Epilogue(op) => {
            let (inputs, following) = Following::of(op, node.inputs);
            return lower(&op.head, &Node { inputs, following: Some(following), ..*node });
        }
        Form::Linear(op) => linear::linear(op, node),
        Form::Conv(op) => recurrent::conv(op, node),
        Form::Scan(op) => recurrent::scan(op, op.places(node.inputs.len()), node),
        Form::Delta(op) => recurrent::delta(op, node),
        Form::NormAdd(op) => rowwise::norm(&op.norm, node),
        Form::NormAddLinear(op) => linear::norm_add_linear(op, node),
        Form::NormGate(op) => rowwise::norm_gate(op, node),
        Form::QkvAppend(op) => tokens::qkv_append(op, node),
        Form::SelfAttention(_) => Err("one dispatch cannot read the caches that it appends to".into()),
        Form::Embed(_) => rows::embed(node),
        Form::ArgMaxAppend(_) => choice::argmax_append(node),
        Form::Chain(op) => elementwise::chain(op, node),
        Form::LinearQkv(op) => decode::linear_qkv(op, node),
        Form::AttentionLinear(op) => decode::attention_linear(op, node),
        Form::ExpertsGlu(op) => experts::experts_glu(op, node),
        Form::ExpertsSum(op) => experts::experts_sum(op, node),
    };
    kernels.map_err(unsupported)
}

/// Whether rows may be of different sequences: what goes from row to row of one, or takes its last, is not made for that.
fn is_by_row(form: &Form) -> bool {
    let op = match form {
        Form::ArgMaxAppend(_) => return false,
        Form::Op(op) => op,
        _ => return true,
    };
    match op {
        Op::Append(op) => op.at != At::Next,
        Op::GetRows(op) => !matches!(op.index, Index::First | Index::Last),
        Op::Attention(op) => op.masking.cached && op.masking.causal && !op.masking.explicit,
        Op::Softmax(op) => !(op.masking.cached || op.masking.causal || op.masking.explicit),
        _ => true,
    }
}

fn primitive(op: &Op, node: &Node<'_>) -> Result<Vec<Kernel>, String> {
    match op {
        Op::GetRows(op) => rows::get_rows(op, node),
        Op::MatMul(_) => linear::matmul(node),
        Op::Norm(op) => rowwise::norm(op, node),
        Op::Softmax(op) => rowwise::softmax(op, node),
        Op::Rope(op) => tokens::rope(op, node),
        Op::Append(op) => tokens::append(op, node),
        Op::ArgMax(_) => choice::argmax(node),
        Op::TopK(op) => choice::top_k(op, node),
        Op::Penalize(_) => choice::penalize(node),
        Op::Pick(_) => choice::pick(node),
        Op::Sample(_) => choice::sample(node),
        Op::Attention(op) => tokens::attention(op, node),
        Op::Route(op) => experts::route(op, node),
        Op::MatMulId(op) => experts::matmul_id(op, node),
        Op::WeightedSum(_) => experts::weighted_sum(node),
        Op::ShortConv(_) => recurrent::short_conv(node),
        Op::SsmScan(_) => recurrent::ssm_scan(node),
        Op::GatedDeltaNet(op) => recurrent::gated_delta_net(op, node),

        Op::Resize(op) => images::resize(op, node),
        Op::Im2Col(op) => images::im2col(op, node),
        Op::Conv2d(op) => images::conv2d(op, node),
        Op::SolveTriangular(_) => solve::solve_triangular(node),
        Op::Sum(_) => sums::sum(node),
        Op::Cumsum(_) => sums::cumsum(node),
        Op::Argsort(op) => sorts::argsort(op, node),
        // It refuses what is not.
        _ => elementwise::chain(&Chain::of(op, node.inputs, node.outputs[0]), node),
    }
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

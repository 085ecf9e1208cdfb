//! Recurrences along the rows: convolutions and scans, whose states are rewritten.

use super::linear::shared;
use super::{Node, grid, literal};
use crate::kernel::Kernel;
use backend_api::form::{Columns, Conv, Delta, Scan, ScanPlaces};
use backend_api::op::{GatedDeltaNet, IDENTITY};

type Kernels = Result<Vec<Kernel>, String>;

/// Storage buffers that a kernel may bind on every device.
const STORAGES: usize = 8;
/// Invocations of a workgroup that walks along rows.
const WG: usize = 64;
/// Numbers that an invocation goes through in all its rows at most, each of them twice, where others can share them: Mesa's
/// software device ends the loops of a shader after 65,535 rounds.
const ROUNDS: usize = 1 << 14;
/// Most numbers of a state that an invocation has at hand where others can share them.
const OWN: usize = 16;

pub fn short_conv(node: &Node<'_>) -> Kernels {
    conv(&Conv::plain(node.inputs[1].shape.cols()), node)
}

pub fn conv(op: &Conv, node: &Node<'_>) -> Kernels {
    let (out, (kernel_at, bias)) = (node.outputs[0], op.places(node.inputs.len()));
    let (rows, cols, taps) = (out.shape.dim(0), out.shape.cols(), node.inputs[kernel_at]);
    let act = op.activation.map_or(IDENTITY, |kind| kind.function());
    let gates = [("BEFORE", "gate", op.gate), ("AFTER", "gate_out", op.gate_out)];
    let gates = gates.into_iter().filter_map(|(word, name, columns)| Some((word, name, columns?)));
    let all: Vec<View> = [("X", "x", op.x)].into_iter().chain(gates).collect();
    let dispatch = node
        .elementwise("short_conv", cols)
        .flag("GATE", op.gate.is_some())
        .flag("GATE_OUT", op.gate_out.is_some())
        .word("TAPS", literal(taps.shape.cols()))
        .word("ACT", act)
        .u("rows", rows)
        .u("cols", cols);
    let dispatch = node.each_apart(dispatch, rows);
    let dispatch = biased(views(dispatch, node, &all), bias, node).input("kernel", kernel_at, taps);
    Ok(vec![dispatch.output("out", 0, out).output("state", 1, node.outputs[1])])
}

/// Binds a bias, if there is one.
fn biased(kernel: Kernel, bias: Option<usize>, node: &Node<'_>) -> Kernel {
    match bias {
        Some(place) => kernel.flag("BIAS", true).input("bias", place, node.inputs[place]),
        None => kernel,
    }
}

/// Columns that a kernel reads: the word that their operand has in the shader, and its binding.
pub type View = (&'static str, &'static str, Columns);

/// Binds what columns are read of, each operand once.
pub fn views(mut kernel: Kernel, node: &Node<'_>, views: &[View]) -> Kernel {
    for (i, (word, name, columns)) in views.iter().enumerate() {
        let tensor = node.inputs[columns.of];
        kernel = kernel.u(format!("{name}_cols"), tensor.shape.cols()).u(format!("{name}_start"), columns.start);
        let bound = views[..i].iter().find(|(.., other)| other.of == columns.of).map_or(*name, |(_, other, _)| *other);
        kernel = kernel.word(word, bound);
        if bound == *name {
            kernel = kernel.input(name, columns.of, tensor);
        }
    }
    kernel
}

/// A kernel whose invocations share rows of `n` numbers of a state of so many rows.
fn walking(file: &'static str, [channels, n, rows]: [usize; 3], sum: &str, node: &Node<'_>) -> Kernel {
    let walked = if node.sequences > 1 { 1 } else { rows };
    let (wg, fewest) = (WG, (walked * n).div_ceil(ROUNDS).next_power_of_two());
    let lanes = n.div_ceil(OWN).next_power_of_two().min(node.tuning.vec_lanes).max(fewest).min(wg);
    let kernel = node.reducing(file, grid(channels.div_ceil(wg / lanes)), wg);
    let kernel = shared(kernel, lanes, sum, node).word("PER", literal(n.div_ceil(lanes)));
    node.each_apart(kernel.u("channels", channels).u("rows", rows), rows)
}

pub fn ssm_scan(node: &Node<'_>) -> Kernels {
    let [x, a, b] = [1, 3, 4].map(|i| node.inputs[i]);
    let (form, places) = Scan::plain([x.shape.cols(), a.shape.dim(0), b.shape.cols()]);
    scan(&form, places, node)
}

pub fn scan(op: &Scan, places: ScanPlaces, node: &Node<'_>) -> Kernels {
    let (a, skip) = (node.inputs[places.a], node.inputs[places.skip]);
    let (out, state) = (node.outputs[0], node.outputs[1]);
    let (n, heads, channels) = (state.shape.cols(), a.shape.dim(0), op.x.len);
    let mut kernel = walking("ssm_scan", [channels, n, out.shape.dim(0)], "f32", node)
        .u("n", n)
        .u("head_dim", channels / heads)
        .u("group_heads", heads / (op.b.len / n))
        .u("decays", a.shape.cols());
    let mut all = vec![("X", "x", op.x), ("DT", "dt", op.dt), ("B", "b", op.b), ("C", "c", op.c)];
    if let Some((kind, gate)) = op.gate {
        kernel = kernel.flag("GATE", true).word("ACT", kind.activation().function());
        all.push(("Z", "z", gate));
    }
    let kernel = biased(views(kernel, node, &all), places.bias, node);
    let kernel = kernel.input("a", places.a, a).input("skip", places.skip, skip);
    bindable(kernel.output("out", 0, out).output("state", 1, state))
}

pub fn gated_delta_net(op: &GatedDeltaNet, node: &Node<'_>) -> Kernels {
    delta(&Delta::plain(*op, [1, 2, 3, 4, 5].map(|i| node.inputs[i].shape.cols())), node)
}

pub fn delta(op: &Delta, node: &Node<'_>) -> Kernels {
    let (out, state) = (node.outputs[0], node.outputs[1]);
    let (dk, channels, heads) = (state.shape.cols(), out.shape.cols(), op.beta.len);
    let head_k = if op.net.grouped { "head / (p.heads / p.heads_k)" } else { "head % p.heads_k" };
    let kernel = walking("gated_delta_net", [channels, dk, out.shape.dim(0)], "vec3<f32>", node)
        .word("HEAD_K", head_k)
        .u("dk", dk)
        .u("dv", channels / heads)
        .u("heads", heads)
        .u("heads_k", op.q.len / dk)
        .u("gates", op.g.len / heads)
        .f("scale", 1.0 / (dk as f32).sqrt());
    let all = [("Q", "q", op.q), ("K", "k", op.k), ("V", "v", op.v), ("G", "g", op.g), ("BETA", "beta", op.beta)];
    let mut kernel = views(kernel, node, &all);
    if let Some([bias, decays]) = op.vectors(node.inputs.len()) {
        kernel = kernel.flag("GATES", true).input("bias", bias, node.inputs[bias]);
        kernel = kernel.input("decays", decays, node.inputs[decays]);
    }
    bindable(kernel.output("out", 0, out).output("state", 1, state))
}

/// A kernel that every device can bind the operands of.
fn bindable(kernel: Kernel) -> Kernels {
    let count = kernel.bindings.len();
    if count > STORAGES {
        return Err(format!("it reads and writes {count} tensors, of which devices bind {STORAGES}"));
    }
    Ok(vec![kernel])
}

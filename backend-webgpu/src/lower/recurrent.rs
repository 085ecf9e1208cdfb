//! Recurrences along the rows: convolutions and scans, whose states are rewritten.

use super::linear::shared;
use super::{Node, grid, literal};
use crate::kernel::Kernel;
use backend_api::form::{Columns, Conv, Scan, ScanPlaces};
use backend_api::op::GatedDeltaNet;

type Kernels = Result<Vec<Kernel>, String>;

/// Storage buffers that a kernel may bind on every device.
const STORAGES: usize = 8;
/// Most numbers of a state that an invocation has at hand where others can share them.
const OWN: usize = 16;

pub fn short_conv(node: &Node<'_>) -> Kernels {
    conv(&Conv::plain(node.inputs[1].shape.cols()), node)
}

pub fn conv(op: &Conv, node: &Node<'_>) -> Kernels {
    let (out, (kernel_at, bias)) = (node.outputs[0], op.places(node.inputs.len()));
    let (rows, cols, taps) = (out.shape.dim(0), out.shape.cols(), node.inputs[kernel_at]);
    let act = op.activation.map_or("none", |kind| kind.name());
    let gates = [("BEFORE", "gate", op.gate), ("AFTER", "gate_out", op.gate_out)];
    let gates = gates.into_iter().filter_map(|(word, name, columns)| Some((word, name, columns?)));
    let all: Vec<View> = [("X", "x", op.x)].into_iter().chain(gates).collect();
    let dispatch = node
        .elementwise("short_conv", cols)
        .flag("GATE", op.gate.is_some())
        .flag("GATE_OUT", op.gate_out.is_some())
        .word("TAPS", literal(taps.shape.cols()))
        .word("ACT", format!("unary_{act}"))
        .u("rows", rows)
        .u("cols", cols);
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
type View = (&'static str, &'static str, Columns);

/// Binds what columns are read of, each operand once.
fn views(mut kernel: Kernel, node: &Node<'_>, views: &[View]) -> Kernel {
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
    let lanes = n.div_ceil(OWN).next_power_of_two().min(node.tuning.vec_lanes);
    let wg = node.tuning.vec_wg;
    let kernel = node.reducing(file, grid(channels.div_ceil(wg / lanes)), wg);
    shared(kernel, lanes, sum, node).word("PER", literal(n.div_ceil(lanes))).u("channels", channels).u("rows", rows)
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
        kernel = kernel.flag("GATE", true).word("ACT", format!("unary_{}", kind.activation().name()));
        all.push(("Z", "z", gate));
    }
    let kernel = biased(views(kernel, node, &all), places.bias, node);
    let kernel = kernel.input("a", places.a, a).input("skip", places.skip, skip);
    let kernel = kernel.output("out", 0, out).output("state", 1, state);
    if kernel.bindings.len() > STORAGES {
        return Err(format!("it reads and writes {} tensors, of which devices bind {STORAGES}", kernel.bindings.len()));
    }
    Ok(vec![kernel])
}

pub fn gated_delta_net(op: &GatedDeltaNet, node: &Node<'_>) -> Kernels {
    let (heads, heads_k) = GatedDeltaNet::heads(node.inputs);
    let [v, g, beta] = [3, 4, 5].map(|i| node.inputs[i]);
    let (state, dk, channels) = (node.outputs[1], node.outputs[1].shape.cols(), v.shape.cols());
    let head_k = if op.grouped { "head / (p.heads / p.heads_k)" } else { "head % p.heads_k" };
    let kernel = walking("gated_delta_net", [channels, dk, v.shape.dim(0)], "vec3<f32>", node)
        .word("HEAD_K", head_k)
        .u("dk", dk)
        .u("dv", channels / heads)
        .u("heads", heads)
        .u("heads_k", heads_k)
        .u("gates", g.shape.cols() / heads)
        .f("scale", 1.0 / (dk as f32).sqrt());
    let all = [("Q", "q", 1), ("K", "k", 2), ("V", "v", 3)];
    let all = all.map(|(word, name, of)| (word, name, Columns::all(of, node.inputs[of].shape.cols())));
    let kernel = views(kernel, node, &all);
    let kernel = kernel.input("g", 4, g).input("beta", 5, beta);
    Ok(vec![kernel.output("out", 0, node.outputs[0]).output("state", 1, state)])
}

//! Recurrences along the rows: convolutions and scans, whose states are rewritten.

use super::linear::shared;
use super::{Node, grid, literal};
use crate::kernel::Kernel;
use backend_api::op::GatedDeltaNet;

type Kernels = Result<Vec<Kernel>, String>;

/// Most numbers of a state that an invocation has at hand where others can share them.
const OWN: usize = 16;

pub fn short_conv(node: &Node<'_>) -> Kernels {
    let (x, kernel) = (node.inputs[1], node.inputs[2]);
    let (rows, cols) = (x.shape.dim(0), x.shape.cols());
    let dispatch = node
        .elementwise("short_conv", cols)
        .word("TAPS", literal(kernel.shape.cols()))
        .u("rows", rows)
        .u("cols", cols)
        .input("x", 1, x)
        .input("kernel", 2, kernel)
        .output("out", 0, node.outputs[0])
        .output("state", 1, node.outputs[1]);
    Ok(vec![dispatch])
}

/// Columns of an operand that a kernel reads: the word that it has in the shader, its binding, the operand, and the first
/// of them.
type View = (&'static str, &'static str, usize, usize);

/// Binds what columns are read of, each operand once.
fn views(mut kernel: Kernel, node: &Node<'_>, views: &[View]) -> Kernel {
    for (i, (word, name, place, start)) in views.iter().enumerate() {
        let tensor = node.inputs[*place];
        kernel = kernel.u(format!("{name}_cols"), tensor.shape.cols()).u(format!("{name}_start"), *start);
        let bound = views[..i].iter().find(|(_, _, other, _)| other == place).map_or(*name, |(_, other, ..)| *other);
        kernel = kernel.word(word, bound);
        if bound == *name {
            kernel = kernel.input(name, *place, tensor);
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
    let (state, n, heads) = (node.outputs[1], node.outputs[1].shape.cols(), a.shape.dim(0));
    let channels = x.shape.cols();
    let kernel = walking("ssm_scan", [channels, n, x.shape.dim(0)], "f32", node)
        .u("n", n)
        .u("head_dim", channels / heads)
        .u("group_heads", heads / (b.shape.cols() / n))
        .u("decays", a.shape.cols());
    let kernel = views(kernel, node, &[("X", "x", 1, 0), ("DT", "dt", 2, 0), ("B", "b", 4, 0), ("C", "c", 5, 0)]);
    let kernel = kernel.input("a", 3, a).input("skip", 6, node.inputs[6]);
    Ok(vec![kernel.output("out", 0, node.outputs[0]).output("state", 1, state)])
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
    let kernel = views(kernel, node, &[("Q", "q", 1, 0), ("K", "k", 2, 0), ("V", "v", 3, 0)]);
    let kernel = kernel.input("g", 4, g).input("beta", 5, beta);
    Ok(vec![kernel.output("out", 0, node.outputs[0]).output("state", 1, state)])
}

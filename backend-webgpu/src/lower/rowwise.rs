//! Norms and softmax.

use super::elementwise::followed;
use super::recurrent::views;
use super::{Node, grid};
use crate::kernel::Kernel;
use backend_api::form::NormGate;
use backend_api::op::{Attention, Masking, Norm, NormKind, Softmax};

type Kernels = Result<Vec<Kernel>, String>;

/// The parameters that `Masking` is made of in shaders.
pub fn masked(kernel: Kernel, masking: &Masking, scale: f32, softcap: f32, m: usize, n: usize) -> Kernel {
    kernel
        .flag("EXPLICIT", masking.explicit)
        .u("m", m)
        .u("n", n)
        .u("causal", usize::from(masking.causal))
        .u("window", masking.window as usize)
        .u("cached", usize::from(masking.cached))
        .f("scale", scale)
        .f("softcap", softcap)
}

/// Adds the slopes of attention, if there are any.
pub fn sloped(kernel: Kernel, attention: &Attention) -> Kernel {
    match attention.slopes() {
        Some((heads, ratio)) => kernel.flag("SLOPES", true).f("slope_heads", heads as f32).f("slope_ratio", ratio),
        None => kernel,
    }
}

/// Binds the sinks of attention or softmax, if there are any.
pub fn sunk(kernel: Kernel, place: Option<usize>, node: &Node<'_>) -> Kernel {
    match place {
        Some(place) => kernel.flag("SINKS", true).input("sinks", place, node.inputs[place]),
        None => kernel,
    }
}

/// A norm, and what its result is added to if there is one operand more.
pub fn norm(op: &Norm, node: &Node<'_>) -> Kernels {
    let residual = 1 + op.kind.params();
    let mut kernel = normed(op, node);
    if let Some(tensor) = node.inputs.get(residual) {
        kernel = kernel.flag("RESIDUAL", true).input("residual", residual, tensor);
    }
    if op.heads > 1 && node.following.is_some() {
        return Err("what follows a norm of heads is done by itself".into());
    }
    Ok(vec![followed(kernel, node)?.output("out", 0, node.outputs[0])])
}

pub fn norm_gate(op: &NormGate, node: &Node<'_>) -> Kernels {
    let act = op.kind.activation().function();
    let kernel = normed(&op.norm, node).flag("GATE", true).word("ACT", act).u("heads", op.norm.heads);
    Ok(vec![views(kernel, node, &[("Z", "z", op.gate)]).output("out", 0, node.outputs[0])])
}

fn normed(op: &Norm, node: &Node<'_>) -> Kernel {
    let x = node.inputs[0];
    // Heads lie one after the other, so they are rows of their own.
    let (rows, cols) = (x.shape.rows() * op.heads, x.shape.cols() / op.heads);
    let mut kernel = node
        .reducing("norm", grid(rows), node.row_wg(cols))
        .flag("LAYER", op.kind == NormKind::Layer)
        .flag("L2", op.kind == NormKind::L2)
        .u("rows", rows)
        .u("cols", cols)
        .u("params", node.inputs[1].shape.len())
        .f("eps", op.eps)
        .input("x", 0, x);
    let params = 1 + op.kind.params();
    for (name, (i, tensor)) in ["gamma", "beta"].into_iter().zip(node.inputs.iter().enumerate().take(params).skip(1)) {
        kernel = kernel.input(name, i, tensor);
    }
    kernel
}

pub fn softmax(op: &Softmax, node: &Node<'_>) -> Kernels {
    let (x, out) = (node.inputs[0], node.outputs[0]);
    let [_, heads, m, n] = x.shape.dims4();
    let kernel = node.reducing("softmax", grid(x.shape.rows()), node.row_wg(n)).u("rows", x.shape.rows());
    let mut kernel = masked(kernel, &op.masking, op.scale, op.softcap, m, n).input("x", 0, x);
    if op.masking.explicit {
        kernel = kernel.input("mask", 1, node.inputs[1]);
    }
    kernel = sunk(kernel.u("heads", heads), op.sinks_at(), node);
    Ok(vec![kernel.output("out", 0, out)])
}

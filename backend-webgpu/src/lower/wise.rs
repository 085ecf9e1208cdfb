//! Elementwise and row-wise operators, and those that only move data.

use super::recurrent::views;
use super::{Node, grid};
use crate::kernel::{Kernel, Value};
use backend_api::Op;
use backend_api::elementary::{Expr, Language};
use backend_api::form::chain::{self, View};
use backend_api::form::{Chain, NormGate};
use backend_api::op::{Binary, Concat, Masking, Norm, NormKind, Pad, Permute, Set, Slice, Softmax, Tri};
use std::cell::RefCell;

type Kernels = Result<Vec<Kernel>, String>;

/// An elementwise kernel over `n` results.
fn elementwise(node: &Node<'_>, file: &'static str, n: usize) -> Kernel {
    node.elementwise(file, n).u("len", n)
}

/// Strides of row-major dimensions.
fn strides(dims: [usize; 4]) -> [usize; 4] {
    [dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1]
}

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

/// Binds the sinks of attention or softmax, if there are any.
pub fn sunk(kernel: Kernel, place: Option<usize>, node: &Node<'_>) -> Kernel {
    match place {
        Some(place) => kernel.flag("SINKS", true).input("sinks", place, node.inputs[place]),
        None => kernel,
    }
}

/// An operator whose elements are functions of those at the same place.
pub fn pointwise(op: &Op, node: &Node<'_>) -> Kernels {
    let out = node.outputs[0];
    let function = op.function().ok_or("it is no function of elements")?;
    let mut kernel = elementwise(node, "pointwise", out.shape.len()).word("ELEMENT", function);
    for (name, value) in op.parameters() {
        kernel = kernel.f(name, value);
    }
    kernel = kernel.input("x", 0, node.inputs[0]);
    if let Some(second) = node.inputs.get(1) {
        kernel = kernel.flag("PAIR", true).input("y", 1, second);
    }
    Ok(vec![kernel.output("out", 0, out)])
}

/// The names of a chain's operands.
const OPERANDS: [&str; chain::OPERANDS] = ["x0", "x1", "x2", "x3", "x4", "x5"];

/// Whatever functions of elements follow each other. An operand's elements are found by strides, unless they are those of the
/// result.
pub fn chain(op: &Chain, node: &Node<'_>) -> Kernels {
    let out = node.outputs[0];
    let (whole, params) = (View::of(out.shape.dims4()), RefCell::new(Vec::new()));
    let unsigned = |name: String, value: usize| params.borrow_mut().push((name, Value::U(value as u32)));
    let mut views = 0;
    let mut operand = |place: usize, view: View| {
        let name = OPERANDS[place];
        if view == whole && node.inputs[place].shape.len() == out.shape.len() {
            return Expr::name(format!("{name}[i]"));
        }
        let own = views;
        views += 1;
        unsigned(format!("at{own}"), view.at);
        let mut index = format!("p.at{own}");
        for (axis, stride) in view.strides.into_iter().enumerate().filter(|(_, stride)| *stride > 0) {
            unsigned(format!("step{own}_{axis}"), stride);
            index += &format!(" + d{axis} * p.step{own}_{axis}");
        }
        Expr::name(format!("{name}[{index}]"))
    };
    let mut parameter = |step: usize, name: &'static str, value: f32| {
        let name = format!("{name}{step}");
        let named = Language::Wgsl.parameter(&name);
        params.borrow_mut().push((name, Value::F(value)));
        named
    };
    let expression = op.element(&mut operand, &mut parameter).ok_or("its operands have no strides")?;
    let (lines, result) = Language::Wgsl.lines(&expression);
    let mut kernel = elementwise(node, "chain", out.shape.len()).u4("dim", out.shape.dims4());
    kernel.params.extend(params.into_inner());
    for (i, (name, tensor)) in OPERANDS.into_iter().zip(node.inputs).enumerate() {
        kernel = kernel.input(name, i, tensor);
    }
    Ok(vec![kernel.word("LINES", lines).word("RESULT", result).output("out", 0, out)])
}

pub fn binary(op: &Binary, node: &Node<'_>) -> Kernels {
    let (a, b, out) = (node.inputs[0], node.inputs[1], node.outputs[0]);
    if a.shape.dims4() == b.shape.dims4() {
        return pointwise(&Op::Binary(*op), node);
    }
    // A dimension of 1 is repeated: its stride is 0.
    let repeated = |dims: [usize; 4]| {
        let mut steps = strides(dims);
        steps.iter_mut().zip(dims).filter(|(_, dim)| *dim == 1).for_each(|(step, _)| *step = 0);
        steps
    };
    let kernel = elementwise(node, "binary", out.shape.len())
        .word("ELEMENT", op.kind.function())
        .u4("dim", out.shape.dims4())
        .u4("a_step", repeated(a.shape.dims4()))
        .u4("b_step", repeated(b.shape.dims4()));
    Ok(vec![kernel.input("a", 0, a).input("b", 1, b).output("out", 0, out)])
}

pub fn permute(op: &Permute, node: &Node<'_>) -> Kernels {
    let out = node.outputs[0];
    let (view, perm) = op.normalized();
    let kernel = elementwise(node, "permute", out.shape.len())
        .u4("dim", perm.map(|axis| view[axis]))
        .u4("step", perm.map(|axis| strides(view)[axis]));
    Ok(vec![kernel.input("x", 0, node.inputs[0]).output("out", 0, out)])
}

pub fn slice(op: &Slice, node: &Node<'_>) -> Kernels {
    let (x, out) = (node.inputs[0], node.outputs[0]);
    let kernel =
        elementwise(node, "slice", out.shape.len()).u("cols", op.len).u("x_cols", x.shape.cols()).u("start", op.start);
    Ok(vec![kernel.input("x", 0, x).output("out", 0, out)])
}

pub fn concat(op: &Concat, node: &Node<'_>) -> Kernels {
    let (a, b, out) = (node.inputs[0], node.inputs[1], node.outputs[0]);
    let inner = |dims: &mut dyn Iterator<Item = usize>| dims.skip(op.axis).product::<usize>();
    let kernel = elementwise(node, "concat", out.shape.len())
        .u("a_run", inner(&mut a.shape.dims()))
        .u("b_run", inner(&mut b.shape.dims()));
    Ok(vec![kernel.input("a", 0, a).input("b", 1, b).output("out", 0, out)])
}

pub fn pad(op: &Pad, node: &Node<'_>) -> Kernels {
    let kernel = placed(op.before, 0, node).flag("CIRCULAR", op.circular).u4("shift", op.shift(&node.inputs[0].shape));
    Ok(vec![kernel.output("out", 0, node.outputs[0])])
}

pub fn set(op: &Set, node: &Node<'_>) -> Kernels {
    let kernel = placed(op.at, 1, node).flag("OVER", true).u4("shift", [0; 4]).input("under", 0, node.inputs[0]);
    Ok(vec![kernel.output("out", 0, node.outputs[0])])
}

/// Operand `i` as a box of the result.
fn placed(at: [usize; 4], i: usize, node: &Node<'_>) -> Kernel {
    let (x, out) = (node.inputs[i], node.outputs[0]);
    elementwise(node, "pad", out.shape.len())
        .u4("dim", out.shape.dims4())
        .u4("x", x.shape.dims4())
        .u4("before", at)
        .input("x", i, x)
}

pub fn repeat(node: &Node<'_>) -> Kernels {
    let (x, out) = (node.inputs[0], node.outputs[0]);
    let kernel = elementwise(node, "repeat", out.shape.len()).u4("dim", out.shape.dims4()).u4("x", x.shape.dims4());
    Ok(vec![kernel.input("x", 0, x).output("out", 0, out)])
}

pub fn tri(op: &Tri, node: &Node<'_>) -> Kernels {
    let (x, out) = (node.inputs[0], node.outputs[0]);
    let [_, _, rows, cols] = x.shape.dims4();
    let kernel = elementwise(node, "tri", out.shape.len())
        .u("rows", rows)
        .u("cols", cols)
        .u("upper", usize::from(op.kind.is_upper()))
        .u("least", op.kind.least());
    Ok(vec![kernel.input("x", 0, x).output("out", 0, out)])
}

/// A norm, and what its result is added to if there is one operand more.
pub fn norm(op: &Norm, node: &Node<'_>) -> Kernels {
    let residual = 1 + op.kind.params();
    let mut kernel = normed(op, node);
    if let Some(tensor) = node.inputs.get(residual) {
        kernel = kernel.flag("RESIDUAL", true).input("residual", residual, tensor);
    }
    Ok(vec![kernel.output("out", 0, node.outputs[0])])
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

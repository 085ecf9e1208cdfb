//! Images: resized, as rows for a product, convolved.

use super::Node;
use crate::kernel::Kernel;
use backend_api::Tensor;
use backend_api::op::{Conv2d, Im2Col, Resize, ResizeMode, Window};

type Kernels = Result<Vec<Kernel>, String>;

/// Adds parameters `name0` and `name1`, of what goes down and across.
fn both(kernel: Kernel, name: &str, [down, across]: [usize; 2]) -> Kernel {
    kernel.u(format!("{name}0"), down).u(format!("{name}1"), across)
}

/// How a kernel moves over the images x.
fn moving(kernel: Kernel, window: &Window, x: &Tensor, size: [usize; 2], places: [usize; 2]) -> Kernel {
    let [_, channels, h, w] = x.shape.dims4();
    let all = [
        ("image", [h, w]),
        ("kernel", size),
        ("places", places),
        ("stride", window.stride),
        ("before", window.before),
        ("dilation", window.dilation),
    ];
    all.into_iter().fold(kernel.u("channels", channels), |kernel, (name, values)| both(kernel, name, values))
}

pub fn resize(op: &Resize, node: &Node<'_>) -> Kernels {
    let (x, out) = (node.inputs[0], node.outputs[0]);
    let mut kernel = node
        .elementwise("resize", out.shape.len())
        .flag("LINEAR", op.mode == ResizeMode::Linear)
        .flag("CUBIC", op.mode == ResizeMode::Cubic)
        .flag("ANTIALIAS", op.mode == ResizeMode::Antialias)
        .u("len", out.shape.len())
        .u4("dim", out.shape.dims4())
        .u4("x", x.shape.dims4());
    let positions = op.positions(&x.shape);
    kernel = kernel.u4("step", positions.map(|at| at.step)).u4("first", positions.map(|at| at.first));
    kernel = kernel.u4("unit", positions.map(|at| at.unit)).u4("reach", positions.map(|at| at.reach));
    Ok(vec![kernel.input("x", 0, x).output("out", 0, out)])
}

pub fn im2col(op: &Im2Col, node: &Node<'_>) -> Kernels {
    let (x, out) = (node.inputs[0], node.outputs[0]);
    let [_, down, across, _] = out.shape.dims4();
    let kernel = node.elementwise("im2col", out.shape.len()).u("len", out.shape.len());
    let kernel = moving(kernel, &op.window, x, op.kernel, [down, across]);
    Ok(vec![kernel.input("x", 0, x).output("out", 0, out)])
}

pub fn conv2d(op: &Conv2d, node: &Node<'_>) -> Kernels {
    let (x, weights, out) = (node.inputs[0], node.inputs[1], node.outputs[0]);
    let [_, results, down, across] = out.shape.dims4();
    let [_, own, kh, kw] = weights.shape.dims4();
    let kernel = node.elementwise("conv2d", out.shape.len()).u("len", out.shape.len());
    let kernel = moving(kernel, &op.window, x, [kh, kw], [down, across])
        .u("results", results)
        .u("of_group", results / (x.shape.dims4()[1] / own))
        .u("own", own);
    Ok(vec![kernel.input("x", 0, x).input("kernel", 1, weights).output("out", 0, out)])
}

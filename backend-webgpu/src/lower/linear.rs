//! Matmul and linear: one row by a matrix-vector kernel, several by tiles or, on software, by blocks. Weights in several
//! chunks take a dispatch for each range of columns whose rows of weights lie in one chunk (for a GLU: the gate's and the
//! up part's).

use super::{MAX_GRID, Node, grid, literal};
use crate::kernel::{Kernel, MAX_BINDINGS, Operand, row_type};
use crate::storage::{Chunk, chunks};
use crate::tuning::Tuning;
use backend_api::form::{Activation, Linear, NormAddLinear};
use backend_api::format::GROUP;
use backend_api::op::{Norm, NormKind};
use backend_api::{DType, Products, Shape, Tensor};

/// Vectors of four that a staged row has at most. The workgroup's memory holds 1,024 of them, and sums besides.
const STAGED_QUADS: usize = 832;

/// Columns of the result that one dispatch makes.
struct Segment {
    first: usize,
    count: usize,
    w: (Chunk, usize),
    u: Option<(Chunk, usize)>,
}

/// Cuts `n` columns where the chunks of weight row `i` or, for a GLU, of row `i + n` end.
fn segments(chunks: &[Chunk], n: usize, glu: bool) -> Vec<Segment> {
    let at = |row: usize| {
        let chunk = chunks.iter().find(|c| row < c.first + c.rows).copied();
        chunk.map(|c| (c, row - c.first))
    };
    let mut segments = Vec::new();
    let mut first = 0;
    while first < n {
        let Some(w) = at(first) else { break };
        let u = if glu { at(first + n) } else { None };
        let mut count = (w.0.rows - w.1).min(n - first);
        if let Some((chunk, row)) = &u {
            count = count.min(chunk.rows - row);
        }
        segments.push(Segment { first, count, w, u });
        first += count;
    }
    segments
}

/// The batch of a matmul: leading dimensions of x, b and the result.
pub struct Batch {
    x: [usize; 2],
    b: [usize; 2],
    out: [usize; 2],
}

impl Batch {
    /// A single matrix.
    pub const ONE: Batch = Batch { x: [1, 1], b: [1, 1], out: [1, 1] };
}

/// Where a linear finds its x, and the rest of its operands.
pub struct Source<'a> {
    /// The shape of x.
    pub shape: Shape,
    /// Binds x.
    pub bind: &'a dyn Fn(Kernel) -> Kernel,
    /// Invocations of a workgroup, if it is one row.
    pub wg: usize,
    /// The places of the linear's operands among the node's; that of x is not used.
    pub places: Vec<usize>,
}

pub fn matmul(node: &Node<'_>) -> Result<Vec<Kernel>, String> {
    let leading = |t: &Tensor| {
        let [outer, inner, _, _] = t.shape.dims4();
        [outer, inner]
    };
    let batch = Batch { x: leading(node.inputs[0]), b: leading(node.inputs[1]), out: leading(node.outputs[0]) };
    of_tensor(&Linear::PLAIN, node, &batch)
}

pub fn linear(op: &Linear, node: &Node<'_>) -> Result<Vec<Kernel>, String> {
    of_tensor(op, node, &Batch::ONE)
}

fn of_tensor(op: &Linear, node: &Node<'_>, batch: &Batch) -> Result<Vec<Kernel>, String> {
    let x = node.inputs[0];
    let bind = |kernel: Kernel| kernel.bind("x", row_type(x.shape.cols()), Operand::Input(0), x);
    let source =
        Source { shape: x.shape, bind: &bind, wg: node.tuning.vec_wg, places: (0..node.inputs.len()).collect() };
    lower(op, node, &source, batch)
}

/// Adds a norm before the products of a kernel that includes `lib/row.wgsl`; `params` are the places of gamma and beta.
pub fn normed<'a>(kernel: Kernel, norm: Option<&Norm>, params: &[usize], node: &Node<'a>) -> Kernel {
    let Some(norm) = norm else { return kernel };
    let mut kernel = kernel.flag("NORM", true).flag("LAYER", norm.kind == NormKind::Layer).f("eps", norm.eps);
    let quads = params.first().map_or(0, |gamma| node.inputs[*gamma].shape.len().div_ceil(GROUP) * (GROUP / 4));
    // A row that is joined of parts, or a sum, is in that memory already.
    let there = kernel.flags.iter().any(|flag| ["PARTS", "STAGED"].contains(flag));
    if node.tuning.stage > 0 && quads <= STAGED_QUADS && !there {
        kernel = kernel.flag("STAGED", true).word("STAGE", literal(quads));
    }
    for (name, place) in ["gamma", "beta"].into_iter().zip(params) {
        let tensor = node.inputs[*place];
        kernel = kernel.bind(name, row_type(tensor.shape.len()), Operand::Input(*place), tensor);
    }
    kernel
}

/// A linear whose x is a norm of a row added to another: every workgroup makes the sum for itself, the first leaves it for
/// others.
pub fn norm_add_linear(op: &NormAddLinear, node: &Node<'_>) -> Result<Vec<Kernel>, String> {
    let (x, norm) = (node.inputs[0], &op.sum.norm);
    let k = x.shape.cols();
    if x.shape.rows() != 1 {
        return Err("sums of several rows are made once for all products".into());
    }
    let rms = |norm: &Norm| norm.kind == NormKind::Rms && norm.heads == 1;
    if !rms(norm) || !op.linear.norm.as_ref().is_none_or(rms) {
        return Err("norms other than RMS norms of whole rows are kernels of their own".into());
    }
    let quads = k.div_ceil(GROUP) * (GROUP / 4);
    if !k.is_multiple_of(4) {
        return Err(format!("a row of {k} numbers is not a multiple of 4"));
    }
    let total = node.outputs[0];
    let bind = |kernel: Kernel| {
        let kernel = kernel.flag("SUMMED", true).flag("STAGED", quads <= STAGED_QUADS).word("STAGE", literal(quads));
        let kernel = kernel.f("sum_eps", norm.eps).bind("x", row_type(k), Operand::Input(0), x);
        let row = |kernel: Kernel, name, i: usize| kernel.bind(name, row_type(k), Operand::Input(i), node.inputs[i]);
        row(row(kernel, "sum_gamma", 1), "summand", 2).bind("total", row_type(k), Operand::Output(0), total)
    };
    let front = op.sum_operands();
    let source = Source {
        shape: x.shape,
        bind: &bind,
        wg: node.tuning.vec_wg,
        places: std::iter::once(0).chain(front..node.inputs.len()).collect(),
    };
    let kernels = lower(&op.linear, node, &source, &Batch::ONE)?;
    match kernels.iter().find(|kernel| kernel.bindings.len() > MAX_BINDINGS) {
        Some(kernel) => Err(format!("it needs {} storage bindings", kernel.bindings.len())),
        None => Ok(kernels),
    }
}

/// The kernels of a linear whose x is `source`.
pub fn lower(op: &Linear, node: &Node<'_>, source: &Source<'_>, batch: &Batch) -> Result<Vec<Kernel>, String> {
    let o = op.operands(&source.places).ok_or("the number of operands does not fit")?;
    let tensor = |i: &usize| node.inputs[*i];
    // The result is the last, after what the source leaves.
    let last = node.outputs.len() - 1;
    let (w, out) = (tensor(o.w), node.outputs[last]);
    let [_, _, m, k] = source.shape.dims4();
    let [_, _, n, _] = w.shape.dims4();
    let glu = matches!(op.activation, Activation::Glu(_));
    let out_cols = op.out_cols(n);
    let [outer, inner] = batch.out;
    let vector = m == 1 && outer * inner == 1;
    if op.norm.is_some() && !vector {
        return Err("a norm is fused for one row only; apply it before".into());
    }
    let act = match op.activation {
        Activation::None => "none",
        Activation::Unary(kind) => kind.name(),
        Activation::Glu(kind) => kind.activation().name(),
    };
    let all = chunks(w.dtype, &w.shape, &node.limits).map_err(|e| e.to_string())?;
    // A dense b has all its batches in one chunk; columns are those of one matrix.
    let all = if all.iter().all(|c| c.packing.is_none()) {
        vec![Chunk { index: 0, first: 0, rows: n, packing: None }]
    } else {
        all
    };
    let mut kernels = Vec::new();
    for s in segments(&all, out_cols, glu) {
        let mut kernel = if vector {
            let lanes = lanes(k, out_cols, &node.tuning);
            let kernel = node.reducing("linear_vec", grid(s.count.div_ceil(source.wg / lanes)), source.wg);
            shared(kernel, lanes, if glu { "vec2<f32>" } else { "f32" }, node)
        } else {
            several(w.dtype, [m, s.count, outer * inner], glu, node)?
        };
        kernel = kernel
            .flag("VEC4", k.is_multiple_of(4))
            .flag("WHOLE", k.is_multiple_of(GROUP) && !vector)
            .flag("GLU", glu)
            .flag("BIAS", op.bias)
            .flag("RESIDUAL", op.residual)
            .word("ACT", format!("unary_{act}"))
            .u("k", k)
            .u("count", s.count)
            .u("first", s.first)
            .u("out_cols", out_cols)
            .u("w_row", s.w.1);
        kernel = (source.bind)(kernel).table("w", *o.w, w, &s.w.0);
        if let Some((chunk, row)) = &s.u {
            kernel = kernel.u("u_row", *row).table("u", *o.w, w, chunk);
        }
        if !vector {
            kernel = kernel
                .u("m", m)
                .u("x0", batch.x[0])
                .u("x1", batch.x[1])
                .u("b0", batch.b[0])
                .u("b1", batch.b[1])
                .u("out0", outer)
                .u("out1", inner);
        }
        kernel = normed(kernel, op.norm.as_ref(), o.norm, node);
        if let Some(place) = o.bias {
            kernel = kernel.input("bias", *place, tensor(place));
        }
        if let Some(place) = o.residual {
            kernel = kernel.input("residual", *place, tensor(place));
        }
        kernels.push(kernel.output("out", last, out));
    }
    Ok(kernels)
}

/// The kernel of several rows by weights of a dtype: `size` is rows, columns of the result, batches.
fn several(weights: DType, size: [usize; 3], glu: bool, node: &Node<'_>) -> Result<Kernel, String> {
    let products = match weights {
        DType::Packed(format) if format.spec().is_quantised() => node.limits.products,
        _ => Products::F32,
    };
    // An invocation makes 4 columns of the product, and of a GLU half as many results.
    let columns = if glu { 2 } else { 4 };
    let wg = node.tuning.block_wg;
    let blocks = wg > 0 && products == Products::F32;
    let (file, rows, across) = if blocks { ("linear_block", 4, wg) } else { ("linear_tile", 32, 16) };
    let [m, n, batches] = size;
    let grid = [n.div_ceil(across * columns), m.div_ceil(rows), batches];
    if grid.iter().any(|n| *n > MAX_GRID) {
        return Err(format!("a grid of {grid:?} workgroups exceeds {MAX_GRID}"));
    }
    let kernel = Kernel::new(file, grid.map(|n| n as u32)).word("COLUMNS", literal(columns));
    Ok(match products {
        _ if blocks => kernel.word("WG", literal(wg)),
        Products::F32 => kernel,
        Products::Int8 => kernel.flag("INT8", true),
    })
}

/// Makes `lanes` invocations share a row in a kernel that includes `lib/row.wgsl`; each of them has sums of a WGSL type.
pub fn shared(kernel: Kernel, lanes: usize, sum: &str, node: &Node<'_>) -> Kernel {
    kernel.flag("SHUFFLED", (2..=node.limits.subgroup).contains(&lanes)).word("LANES", literal(lanes)).word("SUM", sum)
}

/// Invocations that share a row of `k` weights, where there are `rows` of them: as many as keep the device busy, but few
/// enough that each has a group of weights of its own.
pub fn lanes(k: usize, rows: usize, tuning: &Tuning) -> usize {
    let groups = k.div_ceil(GROUP);
    let mut lanes = tuning.vec_lanes.min(4);
    while lanes < tuning.vec_lanes && lanes * 2 <= groups && (lanes < 8 || rows * lanes < tuning.vec_invocations) {
        lanes *= 2;
    }
    lanes
}

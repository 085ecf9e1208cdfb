//! Matmul and linear: one row by a matrix-vector kernel, several by tiles or, on software, by blocks. Weights in several
//! chunks take a dispatch for each range of columns whose rows of weights lie in one chunk (for a GLU: the gate's and the
//! up part's).

use super::elementwise::followed;
use super::{MAX_GRID, Node, grid, literal};
use crate::kernel::{Kernel, MAX_BINDINGS, Operand, row_type};
use crate::storage::{Chunk, chunks};
use crate::tuning::Tuning;
use backend_api::form::{Activation, Linear, NormAddLinear};
use backend_api::format::GROUP;
use backend_api::op::{IDENTITY, Norm, NormKind};
use backend_api::{DType, Products, Shape, Tensor};

/// Groups of a row that a workgroup has in its memory at a time: 9 KiB with the room between them.
pub const CHUNK: usize = 64;
/// The word for the vectors of four before a row in what is bound.
pub const ROW_AT: &str = "ROW_AT";
/// Rows of x that the matrix-vector kernels multiply at most, where each is to be rounded as if it were the only one.
pub const FEW: usize = 16;
/// Rows that an invocation multiplies with the weights that it has read: sums of more take the registers in which weights are
/// loaded ahead.
pub const OWN: usize = 8;
/// Texels of a group of x as bytes: those of both halves, and what scales them.
const BYTES: usize = 3;
/// Invocations of the smallest workgroup of the matrix-vector kernels.
const FEWEST: usize = 64;
/// Memory of a workgroup that every device has.
///
/// *Units*: bytes.
const WORKGROUP_BYTES: usize = 16 << 10;
/// How many workgroups there must be at least; with fewer, they are smaller.
const WORKGROUPS: usize = 256;

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
    /// Invocations of a workgroup, if each workgroup joins parts.
    pub wg: Option<usize>,
    /// Offset in the scratch memory of a few rows that were prepared for the matmul already.
    pub ready: Option<usize>,
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
        Source { shape: x.shape, bind: &bind, wg: None, ready: None, places: (0..node.inputs.len()).collect() };
    lower(op, node, &source, batch)
}

/// Adds a norm before the products of a kernel that includes `lib/row.wgsl`; `params` are the places of gamma and beta.
pub fn normed<'a>(kernel: Kernel, norm: Option<&Norm>, params: &[usize], node: &Node<'a>) -> Kernel {
    let Some(norm) = norm else { return kernel };
    let mut kernel = kernel.flag("NORM", true).flag("LAYER", norm.kind == NormKind::Layer).f("eps", norm.eps);
    for (name, place) in ["gamma", "beta"].into_iter().zip(params) {
        let tensor = node.inputs[*place];
        kernel = kernel.bind(name, row_type(tensor.shape.len()), Operand::Input(*place), tensor);
    }
    kernel
}

/// Lets workgroups of a kernel that includes `lib/row.wgsl` bring x into their memory, where that is worth it for a matrix of
/// rows of `k` numbers. A row that is joined of parts is made there.
pub fn staged(kernel: Kernel, [rows, k]: [usize; 2], normed: bool, node: &Node<'_>) -> Kernel {
    let joined = kernel.flags.contains(&"PARTS");
    let worth = rows * k >= node.tuning.stage_weights || normed && node.tuning.stage > 0;
    // Where the row begins in what is bound, if nothing else is said.
    let placed = kernel.words.iter().any(|(name, _)| *name == ROW_AT);
    let kernel = if placed { kernel } else { kernel.word(ROW_AT, literal(0)) };
    kernel.flag("STAGED", worth && !joined).word("CHUNK", literal(k.div_ceil(GROUP).min(CHUNK)))
}

/// Vectors of four that `rows` rows of `k` numbers take once they are made ready for products.
pub fn ready_quads(rows: usize, k: usize) -> usize {
    rows * (8 * k.div_ceil(GROUP) + 1)
}

/// Makes a few rows of `k` numbers ready for products in workgroups of `wg` invocations: `bind` binds them, and `params` are the
/// places of the norm's gamma and beta. A norm is that of a kernel for one row, to the last bit.
pub fn ready(
    [rows, k]: [usize; 2],
    wg: usize,
    bind: &dyn Fn(Kernel) -> Kernel,
    norm: Option<&Norm>,
    params: &[usize],
    node: &Node<'_>,
) -> Kernel {
    let kernel = node
        .reducing("rows_ready", [rows as u32, 1, 1], wg)
        .rows(rows)
        .flag("VEC4", k.is_multiple_of(4))
        .word(ROW_AT, literal(0))
        .word("LANES", literal(1))
        .word("SUM", "f32")
        .u("k", k)
        .u("w_groups", k.div_ceil(GROUP));
    normed(bind(kernel), norm, params, node).scratch("ready", true, ready_quads(rows, k))
}

/// Binds a few rows that were made ready, which begin `at` in the memory between kernels.
pub fn of_ready(kernel: Kernel, at: usize, [rows, k]: [usize; 2]) -> Kernel {
    kernel.word(ROW_AT, literal(at)).scratch("x", false, at + ready_quads(rows, k))
}

/// A linear whose x is a norm of a row added to another: every workgroup makes the sum for itself, the first leaves it for
/// others.
pub fn norm_add_linear(op: &NormAddLinear, node: &Node<'_>) -> Result<Vec<Kernel>, String> {
    let (x, norm) = (node.inputs[0], &op.sum.norm);
    let k = x.shape.cols();
    let rows = x.shape.rows();
    if !node.is_few(rows) {
        return Err("sums of several rows are made once for all products".into());
    }
    let rms = |norm: &Norm| norm.kind == NormKind::Rms && norm.heads == 1;
    if !rms(norm) || !op.linear.norm.as_ref().is_none_or(rms) {
        return Err("norms other than RMS norms of whole rows are kernels of their own".into());
    }
    if !k.is_multiple_of(4) {
        return Err(format!("a row of {k} numbers is not a multiple of 4"));
    }
    let total = node.outputs[0];
    let bind = |kernel: Kernel| {
        let kernel = kernel.flag("SUMMED", true).flag("STAGED", rows == 1);
        let kernel = kernel.f("sum_eps", norm.eps).bind("x", row_type(k), Operand::Input(0), x);
        let row = |kernel: Kernel, name, i: usize| kernel.bind(name, row_type(k), Operand::Input(i), node.inputs[i]);
        row(row(kernel, "sum_gamma", 1), "summand", 2).bind("total", row_type(k), Operand::Output(0), total)
    };
    let front = op.sum_operands();
    let source = Source {
        shape: x.shape,
        bind: &bind,
        wg: None,
        ready: None,
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
    let vector = node.is_few(m) && outer * inner == 1;
    if op.norm.is_some() && !vector {
        return Err("a norm is fused for one row only; apply it before".into());
    }
    let act = match op.activation {
        Activation::None => IDENTITY,
        Activation::Unary(kind) => kind.function(),
        Activation::Glu(kind) => kind.activation().function(),
    };
    let all = chunks(w.dtype, &w.shape, &node.limits).map_err(|e| e.to_string())?;
    // A dense b has all its batches in one chunk; columns are those of one matrix.
    let all = if all.iter().all(|c| c.packing.is_none()) {
        vec![Chunk { index: 0, first: 0, rows: n, packing: None }]
    } else {
        all
    };
    let each = if glu { 2 } else { 1 };
    let share = match source.wg {
        Some(wg) => Share::of_joined(k, out_cols, each, wg, &node.tuning),
        None => Share::new(k, out_cols, each, node.tuning.vec_rows, &node.tuning),
    };
    let row_wg = share.wg;
    let share = share.of_rows(m, out_cols, node);
    let few = vector && m > 1;
    let rounded = !vector && products(w.dtype, node) == Products::Int8;
    // Groups of all rows of x. Those of weights may have more, which are padding.
    let groups = source.shape.rows() * k.div_ceil(GROUP);
    let mut kernels = Vec::new();
    if rounded {
        let kernel = node
            .elementwise("rows_bytes", groups)
            .flag("VEC4", k.is_multiple_of(4))
            .flag("WHOLE", k.is_multiple_of(GROUP))
            .u("len", groups)
            .u("k", k)
            .u("x_groups", k.div_ceil(GROUP));
        kernels.push((source.bind)(kernel).scratch_texels("bytes", true, BYTES * groups));
    }
    if few && source.ready.is_none() {
        kernels.push(ready([m, k], row_wg, source.bind, op.norm.as_ref(), o.norm, node));
    }
    for s in segments(&all, out_cols, glu) {
        let mut kernel = if vector {
            share.kernel("linear_vec", share.grid(s.count), node)
        } else {
            several(w.dtype, [m, s.count, outer * inner], glu, node)?
        };
        kernel = kernel
            .flag("VEC4", k.is_multiple_of(4) && !few && !rounded)
            .flag("WHOLE", k.is_multiple_of(GROUP) && !vector && !rounded)
            .flag("GLU", glu)
            .flag("BIAS", op.bias)
            .flag("RESIDUAL", op.residual)
            .word("ACT", act)
            .u("k", k)
            .u("count", s.count)
            .u("first", s.first)
            .u("out_cols", out_cols)
            .u("w_row", s.w.1);
        kernel = match (few, rounded) {
            (true, _) => of_ready(kernel, source.ready.unwrap_or(0), [m, k]),
            (_, true) => kernel.u("x_groups", k.div_ceil(GROUP)).scratch_texels("bytes", false, BYTES * groups),
            _ => (source.bind)(kernel),
        };
        kernel = kernel.table("w", *o.w, w, &s.w.0);
        if vector && !few {
            kernel = staged(kernel, [n, k], op.norm.is_some(), node);
        }
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
        if !few {
            kernel = normed(kernel, op.norm.as_ref(), o.norm, node);
        }
        if let Some(place) = o.bias {
            kernel = kernel.input("bias", *place, tensor(place));
        }
        if let Some(place) = o.residual {
            kernel = kernel.input("residual", *place, tensor(place));
        }
        kernels.push(followed(kernel, node)?.output("out", last, out));
    }
    Ok(kernels)
}

/// How several rows are multiplied by weights of a dtype.
fn products(weights: DType, node: &Node<'_>) -> Products {
    match weights {
        DType::Packed(format) if format.spec().is_quantised() => node.limits.products,
        _ => Products::F32,
    }
}

/// The kernel of several rows by weights of a dtype: `size` is rows, columns of the result, batches.
fn several(weights: DType, size: [usize; 3], glu: bool, node: &Node<'_>) -> Result<Kernel, String> {
    // An invocation makes 4 columns of the product, and of a GLU half as many results.
    let columns = if glu { 2 } else { 4 };
    let wg = node.tuning.block_wg;
    let [m, n, batches] = size;
    let fills = |tiles: usize| tiles > 0 && n.div_ceil(32 * columns) * m.div_ceil(128) * batches >= tiles;
    let (file, rows, across) = match products(weights, node) {
        Products::Int8 => ("linear_bytes", 64, 16),
        Products::F32 if wg > 0 => ("linear_block", 4, wg),
        // Few rows would leave most of a large tile empty, and few tiles most of a large device.
        Products::F32 if m > 64 && fills(node.tuning.large_tiles) => ("linear_large", 128, 32),
        Products::F32 if m > 32 => ("linear_wide", 64, 16),
        Products::F32 => ("linear_tile", 32, 16),
    };
    let grid = [n.div_ceil(across * columns), m.div_ceil(rows), batches];
    if grid.iter().any(|n| *n > MAX_GRID) {
        return Err(format!("a grid of {grid:?} workgroups exceeds {MAX_GRID}"));
    }
    let kernel = Kernel::new(file, grid.map(|n| n as u32)).word("COLUMNS", literal(columns));
    Ok(match (file, weights) {
        ("linear_block", _) => kernel.word("WG", literal(wg)),
        ("linear_bytes", DType::Packed(format)) => kernel.word("ONE_SCALE", format.spec().has_whole_scales()),
        _ => kernel,
    })
}

/// How the products of one row, or a few, with a matrix are shared out.
#[derive(Clone, Copy)]
pub struct Share {
    /// Rows of weights that an invocation multiplies at once.
    rows: usize,
    /// Those among them that make one column of the result: a gate and an up part are two.
    each: usize,
    /// Invocations that share them.
    pub lanes: usize,
    /// Invocations of a workgroup.
    pub wg: usize,
    /// Rows of x, and those among them that an invocation multiplies.
    x_rows: [usize; 2],
}

impl Share {
    /// Rows of `k` weights for `columns` columns of the result, each of which is made of `each` of them. `most` are the rows
    /// that an invocation may multiply at once: what it loads of x serves all of them, but the fewer there are in all, the
    /// more invocations share a row instead, so that the device stays busy. Workgroups are smaller where there are few.
    pub fn new(k: usize, columns: usize, each: usize, most: usize, tuning: &Tuning) -> Share {
        let enough = tuning.vec_invocations;
        let rows = match columns * each {
            rows if rows * 8 >= enough => 4,
            rows if rows * 96 >= enough => 2,
            _ => 1,
        };
        let rows = rows.min(most).max(each);
        let busy = |lanes: usize| (columns * each).div_ceil(rows) * lanes;
        let mut lanes = tuning.vec_lanes.min(4);
        while lanes < tuning.vec_lanes && lanes * 2 <= k.div_ceil(GROUP) && (lanes < 8 || busy(lanes) < enough) {
            lanes *= 2;
        }
        let mut wg = tuning.vec_wg;
        while wg > FEWEST && busy(lanes) < wg * WORKGROUPS {
            wg /= 2;
        }
        Share { rows, each, lanes, wg, x_rows: [1, 1] }.fitting()
    }

    /// Shares out a matvec where every workgroup of `wg` invocations first joins parts of x, for rows that are not
    /// joined once.
    pub fn of_joined(k: usize, columns: usize, each: usize, wg: usize, tuning: &Tuning) -> Share {
        Share { wg, ..Share::new(k, columns, each, each, tuning) }.fitting()
    }

    /// Adapts the share to so many rows of x and columns of the result: an invocation that has sums of several rows
    /// takes fewer rows of weights, and a workgroup has no more of them than its memory has room for. Where that
    /// leaves the device idle, rows of x are shared out, too. As many invocations share a row of weights as before,
    /// so that each sum is added up in the same order.
    pub fn of_rows(self, rows: usize, columns: usize, node: &Node<'_>) -> Share {
        if rows == 1 {
            return self;
        }
        let weights = self.rows.min(node.tuning.few_rows.max(self.each));
        let busy = (columns * self.each).div_ceil(weights) * self.lanes;
        // Large matrices cost more to read again than idle invocations do.
        let enough = node.tuning.vec_invocations;
        let mut own = rows.div_ceil(rows.div_ceil(OWN));
        while own.is_multiple_of(2) && busy * 4 < enough && busy * rows.div_ceil(own) < enough {
            own /= 2;
        }
        let together = node.limits.subgroup.clamp(1, self.lanes);
        // Those of pairs are left once more, when they have turned.
        let bytes = |wg: usize| own * (wg / together * 4 * weights + wg / self.lanes * 8);
        let mut wg = self.wg;
        while wg > self.lanes && bytes(wg) > WORKGROUP_BYTES {
            wg /= 2;
        }
        Share { rows: weights, wg, x_rows: [rows, own], ..self }
    }

    /// Each column is ended by an invocation of its own, and those that share rows are in one workgroup.
    fn fitting(self) -> Share {
        let lanes = self.lanes.min(self.wg);
        Share { rows: self.rows.min(lanes * self.each), lanes, ..self }
    }

    /// Shares out pairs of columns that lie in one workgroup with their neighbours.
    pub fn of_pairs(k: usize, pairs: usize, tuning: &Tuning) -> Share {
        let share = Share::new(k, pairs, 2, 2, tuning);
        Share { lanes: share.lanes.min(share.wg / 2), ..share }
    }

    /// Columns of the result that an invocation works on.
    fn columns(&self) -> usize {
        self.rows / self.each
    }

    /// Columns of the result that a workgroup makes.
    pub fn columns_of_workgroup(&self) -> usize {
        self.wg / self.lanes * self.columns()
    }

    /// Workgroups for so many columns of the result.
    pub fn grid(&self, columns: usize) -> [u32; 3] {
        let [x, y, _] = grid(columns.div_ceil(self.columns_of_workgroup()));
        let [all, own] = self.x_rows;
        [x, y, all.div_ceil(own) as u32]
    }

    /// A kernel of workgroups that share in this way.
    pub fn kernel(&self, file: &'static str, grid: [u32; 3], node: &Node<'_>) -> Kernel {
        let sum = match self.rows {
            1 => "f32",
            2 => "vec2<f32>",
            _ => "vec4<f32>",
        };
        let ([all, own], columns) = (self.x_rows, self.columns());
        let kernel = node.reducing(file, grid, self.wg).rows_of(own, all);
        let kernel = kernel.flag("TWO", columns == 2).flag("FOUR", columns == 4);
        shared(kernel, self.lanes, sum, node).word("COLUMNS", literal(columns))
    }
}

/// Makes `lanes` invocations share sums of a WGSL type in a kernel that includes `lib/lanes.wgsl`.
pub fn shared(kernel: Kernel, lanes: usize, sum: &str, node: &Node<'_>) -> Kernel {
    kernel.flag("SHUFFLED", lanes > 1 && node.limits.subgroup > 1).word("LANES", literal(lanes)).word("SUM", sum)
}

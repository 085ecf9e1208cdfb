//! Mixtures of experts: routing, products with the matrices that ids choose, and their sums.

use super::linear::{Share, normed, staged};
use super::{MAX_GRID, Node, grid, literal};
use crate::kernel::{Kernel, MAX_BINDINGS, Operand, row_type};
use crate::storage::{Chunk, chunks};
use backend_api::form::{ExpertsGlu, ExpertsSum};
use backend_api::format::GROUP;
use backend_api::op::{Gate, Groups, MatMulId, Route};
use backend_api::{Shape, Tensor};

type Kernels = Result<Vec<Kernel>, String>;

pub fn route(op: &Route, node: &Node<'_>) -> Kernels {
    let logits = node.inputs[0];
    let (rows, cols) = (logits.shape.rows(), logits.shape.cols());
    let of_chosen = op.gate == Gate::SoftmaxOfChosen;
    let mut kernel = node
        .reducing("route", grid(rows), node.row_wg(cols))
        .flag("SOFTMAX", op.gate == Gate::Softmax)
        .flag("SIGMOID", op.gate == Gate::Sigmoid)
        .flag("BIASED", op.biased)
        .flag("NORMALISED", op.normalised || of_chosen)
        .word("MOST", literal(Route::MAX))
        .u("rows", rows)
        .u("cols", cols)
        .u("k", op.k)
        .f("scale", op.scale)
        .f("least_sum", if of_chosen { f32::MIN_POSITIVE } else { Route::LEAST_SUM })
        .input("logits", 0, logits);
    if let Some(Groups { count, used }) = op.groups {
        kernel = kernel.flag("GROUPED", true).u("groups", count).u("groups_used", used).u("group", cols / count);
    }
    if op.biased {
        kernel = kernel.input("bias", 1, node.inputs[1]);
    }
    Ok(vec![kernel.output("ids", 0, node.outputs[0]).output("shares", 1, node.outputs[1])])
}

pub fn weighted_sum(node: &Node<'_>) -> Kernels {
    let (x, weights, out) = (node.inputs[0], node.inputs[1], node.outputs[0]);
    let kernel = node
        .elementwise("weighted_sum", out.shape.len())
        .u("len", out.shape.len())
        .u("cols", out.shape.cols())
        .u("choices", weights.shape.cols())
        .input("x", 0, x)
        .input("shares", 1, weights);
    Ok(vec![kernel.output("out", 0, out)])
}

/// The chunks of a packed tensor.
fn chunks_of(tensor: &Tensor, node: &Node<'_>) -> Result<Vec<Chunk>, String> {
    chunks(tensor.dtype, &tensor.shape, &node.limits).map_err(|e| e.to_string())
}

/// The chunk of a row, and how many rows it has from there on.
fn chunk_of(chunks: &[Chunk], row: usize) -> Option<(usize, usize)> {
    chunks.iter().find(|c| (c.first..c.first + c.rows).contains(&row)).map(|c| (c.index, c.first + c.rows - row))
}

/// The pairs of chunks that hold some row of an expert's gate and the same of its up part.
fn pairs(gate: &MatMulId, gates: &[Chunk], up: &MatMulId, ups: &[Chunk], experts: usize) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for id in 0..experts {
        let mut row = 0;
        while row < gate.rows {
            let at = [gate, up].map(|op| op.first + id * op.stride + row);
            let (Some((a, more)), Some((b, more_up))) = (chunk_of(gates, at[0]), chunk_of(ups, at[1])) else { break };
            if !pairs.contains(&(a, b)) {
                pairs.push((a, b));
            }
            row += more.min(more_up);
        }
    }
    pairs
}

/// Rows of a tile of choices of one expert.
const TILE: usize = 32;
/// Choices of an expert, on average, from which tiles are quicker than one choice after the other.
const TILED: usize = 4;
/// Experts whose choices a workgroup can count in its memory.
const MOST_COUNTED: usize = 1024;
/// Choices that an invocation looks at: Mesa's software device ends its loops after 65,535 rounds, silently.
const MOST_LOOKS: usize = 60_000;
/// Invocations that count.
const PLAN_WG: usize = 256;

/// The tiles that the choices of experts may take, if multiplying in tiles is worth it.
fn tiles(ids: &Tensor, experts: usize, node: &Node<'_>) -> Option<usize> {
    let choices = ids.shape.len();
    let worth = !node.is_few(ids.shape.rows()) && choices >= TILED * experts && node.tuning.block_wg == 0;
    let counted = experts <= MOST_COUNTED && 2 * choices * experts.div_ceil(PLAN_WG) <= MOST_LOOKS;
    let tiles = choices / TILE + experts;
    (worth && counted && tiles <= MAX_GRID).then_some(tiles)
}

/// The kernel that tells tiles their choices, and what they share of their own: a grid of columns and tiles.
fn tiled(ids: &Tensor, at: usize, [experts, tiles, cols]: [usize; 3], glu: bool) -> (Kernel, Kernel) {
    let words = 3 * tiles + ids.shape.len();
    let plan = Kernel::new("experts_plan", [1; 3])
        .word("WG", literal(PLAN_WG))
        .word("EXPERTS", literal(experts))
        .u("choices", ids.shape.len())
        .u("tiles", tiles)
        .input("ids", at, ids)
        .scratch_words("plan", true, words);
    let columns = if glu { 2 } else { 4 };
    let grid = [cols.div_ceil(16 * columns), tiles, 1];
    let tile = Kernel::new("experts_tile", grid.map(|n| n as u32))
        .word("COLUMNS", literal(columns))
        .u("cols", cols)
        .u("tiles", tiles)
        .scratch_words("plan", false, words);
    (plan, tile)
}

/// A kernel of columns of several rows: a grid of columns and rows, with the weights of experts as the table `w`.
fn columns(
    file: &'static str,
    rows: usize,
    [k, cols]: [usize; 2],
    each: usize,
    normed: bool,
    node: &Node<'_>,
) -> Result<Kernel, String> {
    let share = Share::new(k, cols, each, each, &node.tuning);
    let grid = [cols.div_ceil(share.columns_of_workgroup()), rows, 1];
    if grid.iter().any(|n| *n > MAX_GRID) {
        return Err(format!("a grid of {grid:?} workgroups exceeds {MAX_GRID}; use a smaller batch"));
    }
    let kernel = share.kernel(file, grid.map(|n| n as u32), node);
    Ok(staged(kernel, [cols * each, k], normed, node)
        .flag("SEVERAL", true)
        .flag("VEC4", k.is_multiple_of(4))
        .u("k", k)
        .u("cols", cols))
}

/// How tiles read rows of `k` numbers.
fn of_rows(tile: Kernel, k: usize) -> Kernel {
    tile.flag("VEC4", k.is_multiple_of(4)).flag("WHOLE", k.is_multiple_of(GROUP)).u("k", k)
}

/// Binds a chunk of the weights of experts.
fn matrices(kernel: Kernel, name: &'static str, op: &MatMulId, place: usize, chunk: &Chunk, node: &Node<'_>) -> Kernel {
    kernel
        .table(name, place, node.inputs[place], chunk)
        .u(format!("{name}_start"), op.first)
        .u(format!("{name}_stride"), op.stride)
        .u(format!("{name}_first"), chunk.first)
        .u(format!("{name}_count"), chunk.rows)
}

/// How many rows of the result a row of x gives.
fn choices(x: Shape, ids: Shape) -> usize {
    ids.len() / x.rows()
}

pub fn matmul_id(op: &MatMulId, node: &Node<'_>) -> Kernels {
    let (x, w, ids, out) = (node.inputs[0], node.inputs[1], node.inputs.get(2), node.outputs[0]);
    let (all, experts, k) = (chunks_of(w, node)?, op.experts(w.shape.rows()), x.shape.cols());
    let tiled = ids.and_then(|ids| Some(tiled(ids, 2, [experts, tiles(ids, experts, node)?, op.rows], false)));
    let kernel = |chunk: &Chunk| {
        let kernel = match (&tiled, ids) {
            (Some((_, tile)), _) => of_rows(tile.clone(), k),
            (None, Some(ids)) => columns("matmul_id", out.shape.rows(), [k, op.rows], 1, false, node)?
                .u("experts", experts)
                .input("ids", 2, ids),
            (None, None) => columns("matmul_id", out.shape.rows(), [k, op.rows], 1, false, node)?
                .flag("IN_TURN", true)
                .u("turns", out.shape.dim(1)),
        };
        let kernel = kernel.flag("CHUNKED", all.len() > 1).u("choices", out.shape.rows() / x.shape.rows()).bind(
            "x",
            row_type(k),
            Operand::Input(0),
            x,
        );
        Ok(matrices(kernel, "w", op, 1, chunk, node).output("out", 0, out))
    };
    let plan = tiled.as_ref().map(|(plan, _)| Ok::<_, String>(plan.clone()));
    plan.into_iter().chain(all.iter().map(kernel)).collect()
}

pub fn experts_glu(op: &ExpertsGlu, node: &Node<'_>) -> Kernels {
    let places: Vec<usize> = (0..node.inputs.len()).collect();
    let o = op.operands(&places).ok_or("the number of operands does not fit")?;
    let tensor = |at: &usize| node.inputs[*at];
    let (x, ids, weights) = (tensor(o.x), tensor(o.ids), o.weights.map(tensor));
    if op.norm.is_some() && !node.is_few(x.shape.rows()) {
        return Err("a norm is fused for one row only; apply it before".into());
    }
    let experts = op.gate.experts(weights[0].shape.rows()).min(op.up.experts(weights[1].shape.rows()));
    let [gates, ups] = [chunks_of(weights[0], node)?, chunks_of(weights[1], node)?];
    let pairs = pairs(&op.gate, &gates, &op.up, &ups, experts);
    let (chunked, k) = (gates.len() > 1 || ups.len() > 1, x.shape.cols());
    let tiles = tiles(ids, experts, node).filter(|_| op.norm.is_none());
    let tiled = tiles.map(|tiles| tiled(ids, *o.ids, [experts, tiles, op.gate.rows], true));
    let kernel = |(gate, up): &(usize, usize)| {
        let kernel = match &tiled {
            Some((_, tile)) => of_rows(tile.clone(), k),
            None => columns("matmul_id", ids.shape.len(), [k, op.gate.rows], 2, op.norm.is_some(), node)?
                .u("experts", experts)
                .input("ids", *o.ids, ids),
        };
        let mut kernel = kernel
            .flag("GLU", true)
            .flag("CHUNKED", chunked)
            .flag("BIAS", op.bias)
            .word("GATED", op.kind.function())
            .u("choices", choices(x.shape, ids.shape))
            .bind("x", row_type(k), Operand::Input(*o.x), x);
        kernel = matrices(kernel, "w", &op.gate, *o.weights[0], &gates[*gate], node);
        kernel = matrices(kernel, "u", &op.up, *o.weights[1], &ups[*up], node);
        kernel = normed(kernel, op.norm.as_ref(), o.norm, node);
        if let Some([gate, up]) = o.biases {
            kernel = kernel.input("bias", *gate, tensor(gate)).input("bias_up", *up, tensor(up));
        }
        let kernel = kernel.output("out", 0, node.outputs[0]);
        match kernel.bindings.len() {
            0..=MAX_BINDINGS => Ok(kernel),
            count => Err(format!("it needs {count} storage bindings, and devices have {MAX_BINDINGS}")),
        }
    };
    let plan = tiled.as_ref().map(|(plan, _)| Ok::<_, String>(plan.clone()));
    plan.into_iter().chain(pairs.iter().map(kernel)).collect()
}

pub fn experts_sum(op: &ExpertsSum, node: &Node<'_>) -> Kernels {
    let (x, w, ids, weights) = (node.inputs[0], node.inputs[1], node.inputs[2], node.inputs[3]);
    let out = node.outputs[0];
    let all = chunks_of(w, node)?;
    let [chunk] = all.as_slice() else {
        return Err("the weights lie in several bindings".into());
    };
    if tiles(ids, op.down.experts(w.shape.rows()), node).is_some() {
        return Err("many choices are multiplied in tiles, and added up after".into());
    }
    let kernel = columns("experts_sum", out.shape.rows(), [x.shape.cols(), op.down.rows], 1, false, node)?
        .flag("BIAS", op.bias)
        .flag("RESIDUAL", op.residual)
        .u("choices", ids.shape.cols())
        .u("experts", op.down.experts(w.shape.rows()))
        .bind("x", row_type(x.shape.cols()), Operand::Input(0), x);
    let mut kernel = matrices(kernel, "w", &op.down, 1, chunk, node).input("ids", 2, ids).input("shares", 3, weights);
    for (name, place) in ["bias", "residual"].into_iter().zip(op.places()) {
        if let Some(place) = place {
            kernel = kernel.input(name, place, node.inputs[place]);
        }
    }
    Ok(vec![kernel.output("out", 0, out)])
}

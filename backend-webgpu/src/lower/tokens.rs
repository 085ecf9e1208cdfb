//! Operators that know tokens: positions, caches, attention, and choosing the next token.

use super::wise::masked;
use super::{Node, grid, literal};
use crate::kernel::{Kernel, Operand, quads_type, row_type};
use backend_api::op::{Append, At, Attention, QkvAppend, Rope, RopeMode, TopK};
use backend_api::{DType, Tensor};

/// Most channels of a query head, which lies in workgroup memory, and of a value head, whose sums lie in registers.
const MAX_HEAD: usize = 1024;

type Kernels = Result<Vec<Kernel>, String>;

/// The parameters of a rotation.
fn rotation(kernel: Kernel, n_dims: usize, mode: RopeMode, head_dim: usize, table: &Tensor) -> Kernel {
    kernel
        .flag("NEOX", mode == RopeMode::Neox)
        .u("n_dims", n_dims)
        .u("head_dim", head_dim)
        .u("table_rows", table.shape.dim(0))
        .input("table", 1, table)
}

pub fn rope(op: &Rope, node: &Node<'_>) -> Kernels {
    let (x, table, out) = (node.inputs[0], node.inputs[1], node.outputs[0]);
    let cols = x.shape.cols();
    let kernel = node
        .elementwise("rope", x.shape.len())
        .flag("ROPE", true)
        .u("len", x.shape.len())
        .u("cols", cols)
        .input("x", 0, x);
    Ok(vec![rotation(kernel, op.n_dims, op.mode, cols / op.n_head, table).output("out", 0, out)])
}

pub fn qkv_append(op: &QkvAppend, node: &Node<'_>) -> Kernels {
    let (qkv, k) = (node.inputs[0], node.outputs[1]);
    let invocations = if k.dtype == DType::F16 { qkv.shape.len() / 2 } else { qkv.shape.len() };
    let kernel = node
        .elementwise("qkv_append", invocations)
        .flag("ROPE", op.rope.is_some())
        .u("len", qkv.shape.len())
        .u("cols", qkv.shape.cols())
        .input("x", 0, qkv);
    let kernel = match op.rope {
        Some((n_dims, mode)) => rotation(kernel, n_dims, mode, op.head_dim, node.inputs[1]),
        None => kernel,
    };
    Ok(vec![put(kernel, node)?])
}

/// The results of the projection to Q, K and V, as `lib/put.wgsl` has them.
pub fn put(kernel: Kernel, node: &Node<'_>) -> Result<Kernel, String> {
    let &[q, k, v] = node.outputs else { return Err("the number of results does not fit".into()) };
    let halves = k.dtype == DType::F16;
    if halves && !q.shape.cols().is_multiple_of(2) {
        return Err("halves are written in pairs".into());
    }
    let (value, row) = if halves { ("vec2<f32>", "array<vec2<f32>>") } else { ("f32", "array<f32>") };
    Ok(kernel
        .halves(k)
        .word("VALUE", value)
        .u("q_cols", q.shape.cols())
        .u("kv_cols", k.shape.cols())
        .u("n_ctx", k.shape.dim(0))
        .bind("q", row, Operand::Output(0), q)
        .output("k_cache", 1, k)
        .output("v_cache", 2, v))
}

pub fn append(op: &Append, node: &Node<'_>) -> Kernels {
    let (x, state) = (node.inputs[1], node.outputs[0]);
    let rows = x.shape.dim(0);
    // Values are moved, not computed with, so floats and ids go as bits; floats that become halves, in pairs.
    let (input, output) = (Operand::Input(1), Operand::Output(0));
    let (each, ty) = if state.dtype == DType::F16 { (2, "array<vec2<f32>>") } else { (1, "array<u32>") };
    let kernel = node
        .elementwise("append", x.shape.len() / each)
        .flag("NEXT", op.at == At::Next)
        .halves(state)
        .u("rows", rows)
        .u("cols", x.shape.len() / rows / each)
        .u("n_ctx", state.shape.dim(0))
        .bind("x", ty, input, x)
        .bind("state", "array<u32>", output, state);
    Ok(vec![kernel])
}

fn search(node: &Node<'_>, at: usize) -> Kernel {
    let x = node.inputs[at];
    let cols = x.shape.cols();
    node.reducing("argmax", grid(x.shape.rows()), node.tuning.search_wg)
        .flag("VEC4", cols.is_multiple_of(4))
        .word("LOADS", literal(node.tuning.search_loads))
        .u("rows", x.shape.rows())
        .u("cols", cols)
        .bind("x", row_type(cols), Operand::Input(at), x)
}

pub fn argmax(node: &Node<'_>) -> Kernels {
    Ok(vec![search(node, 0).output("out", 0, node.outputs[0])])
}

pub fn argmax_append(node: &Node<'_>) -> Kernels {
    let history = node.outputs[0];
    let kernel = search(node, 1).flag("APPEND", true).u("n_ctx", history.shape.len());
    Ok(vec![kernel.output("out", 0, history)])
}

pub fn top_k(op: &TopK, node: &Node<'_>) -> Kernels {
    let x = node.inputs[0];
    let kernel = node
        .reducing("top_k", grid(x.shape.rows()), node.tuning.search_wg)
        .u("rows", x.shape.rows())
        .u("cols", x.shape.cols())
        .u("k", op.k)
        .input("x", 0, x);
    Ok(vec![kernel.output("values", 0, node.outputs[0]).output("ids", 1, node.outputs[1])])
}

pub fn sample(node: &Node<'_>) -> Kernels {
    let (values, ids) = (node.inputs[0], node.inputs[1]);
    let kernel = Kernel::new("sample", grid(1))
        .u("k", values.shape.len())
        .input("values", 0, values)
        .input("ids", 1, ids)
        .output("out", 0, node.outputs[0]);
    Ok(vec![kernel])
}

pub fn attention(op: &Attention, node: &Node<'_>) -> Kernels {
    let (q, k, v, out) = (node.inputs[0], node.inputs[1], node.inputs[2], node.outputs[0]);
    let (m, n) = (q.shape.dim(0), k.shape.dim(0));
    let (d, dv) = op.head_dims(node.inputs);
    if d > MAX_HEAD || dv > MAX_HEAD {
        return Err(format!("heads of {d} and {dv} channels exceed {MAX_HEAD}"));
    }
    let lanes = |width: usize| if width.is_multiple_of(4) { 4 } else { 1 };
    if k.dtype == DType::F16 && (lanes(d), lanes(dv)) != (4, 4) {
        return Err("halves are read four at a time".into());
    }
    let keys = |tensor, width| if lanes(width) == 4 { quads_type(tensor) } else { row_type(width) };
    let number = |width| if lanes(width) == 4 { "vec4<f32>" } else { "f32" };
    // Invocations are (part of the keys, channel of v); wide heads take several channels each.
    let values = dv / lanes(dv);
    let channels = values.next_power_of_two().min(node.tuning.attention_wg);
    let kernel = node
        .reducing("attention", grid(m * op.n_head), node.tuning.attention_wg)
        .flag("VEC4", lanes(d) == 4)
        .word("D", literal(d))
        .halves(k)
        .word("KEY", number(d))
        .word("VALUE", number(dv))
        .word("VALUES", literal(values))
        .word("CHANNELS", literal(channels))
        .word("PER", literal(values.div_ceil(channels)))
        .u("n_head", op.n_head)
        .u("n_head_kv", op.n_head_kv);
    let kernel = masked(kernel, &op.masking, op.scale, op.softcap, m, n);
    let kernel = kernel.bind("q", row_type(d), Operand::Input(0), q).bind("k", keys(k, d), Operand::Input(1), k);
    let mut kernel = kernel.bind("v", keys(v, dv), Operand::Input(2), v);
    if let Some(mask) = node.inputs.get(3) {
        kernel = kernel.input("mask", 3, mask);
    }
    Ok(vec![kernel.bind("out", row_type(dv), Operand::Output(0), out)])
}

//! Operators that know tokens: positions, caches and attention.

use super::rowwise::{masked, sloped, sunk};
use super::{Node, grid, literal};
use crate::kernel::{Kernel, Operand, quads_type, row_type, written_together};
use backend_api::form::{QkNorm, QkvAppend};
use backend_api::op::{Append, At, Attention, Rope, RopeMode};
use backend_api::{DType, Tensor};

/// Most channels of a query head, which lies in workgroup memory, and of a value head, whose sums lie in registers.
const MAX_HEAD: usize = 1024;
/// Queries of a workgroup that takes many together.
const TILE: usize = 64;
/// Most channels of a value head there, whose sums lie in the registers of 128 invocations.
const MAX_TILED: usize = 256;

type Kernels = Result<Vec<Kernel>, String>;

/// The parameters of a rotation.
fn rotation(kernel: Kernel, (n_dims, mode): (usize, RopeMode), place: usize, node: &Node<'_>) -> Kernel {
    let table = node.inputs[place];
    kernel
        .flag("ROPE", true)
        .flag("NEOX", mode == RopeMode::Neox)
        .u("n_dims", n_dims)
        .u("table_rows", table.shape.dim(0))
        .input("table", place, table)
}

pub fn rope(op: &Rope, node: &Node<'_>) -> Kernels {
    let (x, out) = (node.inputs[0], node.outputs[0]);
    let cols = x.shape.cols();
    let kernel = node
        .elementwise("rope", x.shape.len())
        .u("len", x.shape.len())
        .u("cols", cols)
        .u("head_dim", cols / op.n_head)
        .input("x", 0, x);
    Ok(vec![rotation(kernel, (op.n_dims, op.mode), 1, node).output("out", 0, out)])
}

pub fn qkv_append(op: &QkvAppend, node: &Node<'_>) -> Kernels {
    let (qkv, k) = (node.inputs[0], node.outputs[1]);
    let each = written_together(k);
    if !op.head_dim.is_multiple_of(each) && op.norm.is_some() || !node.outputs[0].shape.cols().is_multiple_of(each) {
        return Err(format!("{each} neighbours are written together"));
    }
    let mut kernel = match (op.norm, op.gammas()) {
        (Some(QkNorm { eps, whole, values }), Some([q_gamma, k_gamma])) => {
            let (rows, heads) = (qkv.shape.dim(0), op.n_head + 2 * op.n_head_kv);
            let wg = node.row_wg(if whole { node.outputs[0].shape.cols() } else { op.head_dim });
            let kernel = node
                .reducing("qkv_heads", grid(rows * heads), wg)
                .flag("NORM", true)
                .flag("NORM_VALUES", values)
                .flag("NORM_WHOLE", whole)
                .f("eps", eps)
                .u("rows", rows)
                .u("heads", heads)
                .input("q_gamma", q_gamma, node.inputs[q_gamma])
                .input("k_gamma", k_gamma, node.inputs[k_gamma]);
            match op.v_gamma() {
                Some(v_gamma) => kernel.input("v_gamma", v_gamma, node.inputs[v_gamma]),
                None => kernel,
            }
        }
        _ => node.elementwise("qkv_append", qkv.shape.len() / each).u("len", qkv.shape.len()),
    };
    kernel = kernel.u("cols", qkv.shape.cols()).u("head_dim", op.head_dim).input("x", 0, qkv);
    if let (Some(rope), Some(place)) = (op.rope, op.table()) {
        kernel = rotation(kernel, rope, place, node);
    }
    Ok(vec![put(kernel, node)?])
}

/// The results of the projection to Q, K and V, as `lib/put.wgsl` has them.
pub fn put(kernel: Kernel, node: &Node<'_>) -> Result<Kernel, String> {
    let &[q, k, v] = node.outputs else { return Err("the number of results does not fit".into()) };
    let each = written_together(k);
    let value = match each {
        1 => "f32".to_owned(),
        2 => "vec2<f32>".to_owned(),
        _ => format!("array<f32, {each}>"),
    };
    let row = if each == 2 { "array<vec2<f32>>" } else { "array<f32>" };
    Ok(kernel
        .codec(k, &["k_cache", "v_cache"])
        .word("VALUE", value)
        .word("EACH", literal(each))
        .u("q_cols", q.shape.cols())
        .u("kv_cols", k.shape.cols())
        .u("n_ctx", node.capacity(k))
        .bind("q", row, Operand::Output(0), q)
        .output("k_cache", 1, k)
        .output("v_cache", 2, v))
}

pub fn append(op: &Append, node: &Node<'_>) -> Kernels {
    let (x, state) = (node.inputs[1], node.outputs[0]);
    let rows = x.shape.dim(0);
    // Values are moved, not computed with, so floats and ids go as bits, unless a codec takes floats.
    let (input, output) = (Operand::Input(1), Operand::Output(0));
    let each = written_together(state);
    let ty = match each {
        1 => "array<u32>",
        2 => "array<vec2<f32>>",
        _ => "array<f32>",
    };
    let kernel = node
        .elementwise("append", x.shape.len() / each)
        .flag("NEXT", op.at == At::Next)
        .flag("EACH_NEXT", op.at == At::EachNext)
        .codec(state, &["state"])
        .word("EACH", literal(each))
        .u("rows", rows)
        .u("cols", x.shape.len() / rows / each)
        .u("n_ctx", node.capacity(state))
        .bind("x", ty, input, x)
        .bind("state", "array<u32>", output, state);
    Ok(vec![kernel])
}

pub fn attention(op: &Attention, node: &Node<'_>) -> Kernels {
    let (q, k, v, out) = (node.inputs[0], node.inputs[1], node.inputs[2], node.outputs[0]);
    let (m, n) = (q.shape.dim(0), node.capacity(k));
    let (d, dv) = op.head_dims(node.inputs);
    if d > MAX_HEAD || dv > MAX_HEAD {
        return Err(format!("heads of {d} and {dv} channels exceed {MAX_HEAD}"));
    }
    let lanes = |width: usize| if width.is_multiple_of(4) { 4 } else { 1 };
    for (tensor, width) in [(k, d), (v, dv)] {
        if written_together(tensor) > 2 && lanes(width) != 4 {
            return Err(format!(
                "{} is read four at a time; use f32 or f16 for heads of {width} channels",
                tensor.dtype
            ));
        }
    }
    let keys = |tensor: &Tensor, width| match (lanes(width), tensor.dtype) {
        (4, _) => quads_type(tensor),
        (_, DType::Coded(_)) => "array<u32>",
        _ => row_type(width),
    };
    let number = |width| if lanes(width) == 4 { "vec4<f32>" } else { "f32" };
    let values = dv / lanes(dv);
    let several = m >= node.tuning.attention_tile && node.tuning.attention_tile > 0 && node.sequences == 1;
    let whole = lanes(d) == 4 && lanes(dv) == 4 && dv <= MAX_TILED;
    let kernel = if several && whole && !op.masking.explicit {
        let tiles = m.div_ceil(TILE);
        Kernel::new("attention_tile", grid(tiles * op.n_head))
            .each(values.div_ceil(16))
            .word("CHANNELS", literal(d.div_ceil(32)))
            .u("tiles", tiles)
    } else {
        // Invocations are (part of the keys, channel of v); wide heads take several channels each.
        let channels = values.next_power_of_two().min(node.tuning.attention_wg);
        node.reducing("attention", grid(m * op.n_head), node.tuning.attention_wg)
            .word("CHANNELS", literal(channels))
            .word("PER", literal(values.div_ceil(channels)))
    };
    let kernel = kernel
        .flag("VEC4", lanes(d) == 4)
        .flag("VALUES4", matches!(v.dtype, DType::Coded(_)) && lanes(dv) == 4)
        .word("D", literal(d))
        .keys_and_values(k, v)
        .word("KEY_QUADS", literal(k.shape.cols() / 4))
        .word("VALUE_QUADS", literal(v.shape.cols() / 4))
        .word("KEY", number(d))
        .word("VALUE", number(dv))
        .word("VALUES", literal(values))
        .u("n_head", op.n_head)
        .u("n_head_kv", op.n_head_kv);
    let kernel = sloped(masked(kernel, &op.masking, op.scale, op.softcap, m, n), op);
    let kernel = kernel.bind("q", row_type(d), Operand::Input(0), q).bind("k", keys(k, d), Operand::Input(1), k);
    let mut kernel = kernel.bind("v", keys(v, dv), Operand::Input(2), v);
    if op.masking.explicit {
        kernel = kernel.u("mask_rows", op.mask_rows(node.inputs)).input("mask", 3, node.inputs[3]);
    }
    kernel = sunk(kernel, op.sinks_at(), node);
    Ok(vec![kernel.bind("out", row_type(dv), Operand::Output(0), out)])
}

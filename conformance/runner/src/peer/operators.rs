//! From rows of the list to cases of ours, and why not.

use super::images;
use super::recurrent;
use super::row::{Row, Source};
use backend_api::case::{Case, Fill, Operands};
use backend_api::format::Format;
use backend_api::op::{
    ArgMax, Attention, Binary, BinaryKind, Concat, GetRows, Glu, GluKind, Index, Masking, MatMul, MatMulId, Norm,
    NormKind, Pad, Permute, Rope, RopeMode, RopeTable, Scale, Softmax, TopK, Unary, UnaryKind,
};
use backend_api::{Codec, Shape, StepParams, TensorId};

/// A case, or why there is none.
pub type Mapped = Result<Case, &'static str>;

const SEVERAL: &str = "several operators at once: forms have cases of their own";
pub const NO_OPERATOR: &str = "no operator of ours";
pub const DENSE: &str = "operands in 16 bits, integers or blocks where ours are 32-bit floats";
const VIEW: &str = "operands with strides: ours are contiguous";
const BATCH: &str = "a batch that ours has not";
const REPEAT: &str = "dimensions repeated other than from 1";
const UNKNOWN_TYPE: &str = "a type that ours has not here";

/// The case of a row.
pub fn case(row: &Row) -> Mapped {
    if row.whole_graph {
        return Err(SEVERAL);
    }
    let mut case = unary(row).or_else(|| glu(row)).unwrap_or_else(|| other(row))?;
    case.tolerance = case.tolerance.min(row.threshold);
    Ok(case)
}

fn other(row: &Row) -> Mapped {
    match row.op.as_str() {
        "ADD" => binary(row, BinaryKind::Add, (-1.0, 1.0)),
        "SUB" => binary(row, BinaryKind::Sub, (-1.0, 1.0)),
        "MUL" => binary(row, BinaryKind::Mul, (0.9, 1.1)),
        "DIV" => binary(row, BinaryKind::Div, (0.9, 1.1)),
        "SCALE" => {
            let op = Scale { factor: row.number("scale"), bias: row.number("bias") };
            floats(row)?;
            Ok(Case::new(op, &row.text, StepParams::at(0, 1), |o| vec![o.input(&row.sources[0].shape())]))
        }
        "NORM" => norm(row, NormKind::Layer, (-1.0, 1.0)),
        "RMS_NORM" => norm(row, NormKind::Rms, (-10.0, 10.0)),
        "SOFT_MAX" => softmax(row),
        "ROPE" => rope(row),
        "GET_ROWS" => get_rows(row),
        "MUL_MAT" => matmul(row),
        "MUL_MAT_ID" => matmul_id(row),
        "ADD_ID" => Err("rows looked up and added: two operators of ours"),
        "FLASH_ATTN_EXT" => attention(row),
        "CONCAT" => concat(row),
        "CONT" => cont(row),
        "CPY" => copy(row),
        "PAD" => pad(row),
        "SSM_CONV" => recurrent::short_conv(row),
        "SSM_SCAN" => recurrent::ssm_scan(row),
        "GATED_DELTA_NET" => recurrent::gated_delta_net(row),
        "UPSCALE" => images::upscale(row),
        "IM2COL" => images::im2col(row),
        "CONV_2D" => images::conv_2d(row),
        "CONV_2D_DW" => images::conv_2d_dw(row),
        "SOLVE_TRI" => images::solve_tri(row),
        "MUL_MAT_HADAMARD" => images::hadamard(row),
        "ARGMAX" => {
            floats(row)?;
            let [_, _, rows, cols] = row.sources[0].shape();
            Ok(Case::new(ArgMax, &row.text, StepParams::at(0, 1), |o| vec![o.filled(&[rows, cols], Fill::Shuffled)]))
        }
        "TOP_K" => {
            floats(row)?;
            let op = TopK { k: row.number("k") };
            if op.k > TopK::MAX {
                return Err("more candidates than ours yields");
            }
            Ok(Case::new(op, &row.text, StepParams::at(0, 1), |o| {
                vec![o.filled(&row.sources[0].shape(), Fill::Shuffled)]
            }))
        }
        _ => Err(NO_OPERATOR),
    }
}

/// That all operands are contiguous 32-bit floats.
pub fn floats(row: &Row) -> Result<(), &'static str> {
    if row.sources.iter().any(|source| source.kind != "f32") {
        return Err(DENSE);
    }
    if !row.plain("v", "0") { Err(VIEW) } else { Ok(()) }
}

fn uniform(o: &mut Operands, source: &Source, (lo, hi): (f32, f32)) -> TensorId {
    o.filled(&source.shape(), Fill::Uniform(lo, hi))
}

fn unary(row: &Row) -> Option<Mapped> {
    let (kind, range) = match row.op.as_str() {
        "GELU" => (UnaryKind::GeluTanh, (-150.0, 150.0)),
        "GELU_ERF" => (UnaryKind::GeluErf, (-150.0, 150.0)),
        "GELU_QUICK" => (UnaryKind::GeluQuick, (-150.0, 150.0)),
        "SILU" => (UnaryKind::Silu, (-150.0, 150.0)),
        "RELU" => (UnaryKind::Relu, (-150.0, 150.0)),
        "SIGMOID" => (UnaryKind::Sigmoid, (-150.0, 150.0)),
        "TANH" => (UnaryKind::Tanh, (-150.0, 150.0)),
        "EXP" => (UnaryKind::Exp, (-150.0, 150.0)),
        "ABS" => (UnaryKind::Abs, (-150.0, 150.0)),
        "NEG" => (UnaryKind::Neg, (-150.0, 150.0)),
        "SOFTPLUS" => (UnaryKind::Softplus, (-150.0, 150.0)),
        "HARDSWISH" => (UnaryKind::Hardswish, (-150.0, 150.0)),
        "FLOOR" => (UnaryKind::Floor, (-150.0, 150.0)),
        "CEIL" => (UnaryKind::Ceil, (-150.0, 150.0)),
        "SQRT" => (UnaryKind::Sqrt, (50.0, 100.0)),
        "LOG" => (UnaryKind::Log, (0.9, 1.1)),
        "SIN" => (UnaryKind::Sin, (-6.5, 6.5)),
        "COS" => (UnaryKind::Cos, (-6.5, 6.5)),
        _ => return None,
    };
    let case =
        || Case::new(Unary { kind }, &row.text, StepParams::at(0, 1), |o| vec![uniform(o, &row.sources[0], range)]);
    Some(floats(row).map(|()| case()))
}

fn glu(row: &Row) -> Option<Mapped> {
    let kind = match row.op.as_str() {
        "SWIGLU" => GluKind::Swiglu,
        "GEGLU" => GluKind::GegluTanh,
        "GEGLU_ERF" => GluKind::GegluErf,
        "REGLU" => GluKind::Reglu,
        "SWIGLU_OAI" => GluKind::SwigluOai,
        _ => return None,
    };
    let usual = row.plain("alpha", "1.702000") && row.plain("limit", "7.000000");
    if kind == GluKind::SwigluOai && !usual {
        return Some(Err("factors and limits that no model has"));
    }
    if kind != GluKind::SwigluOai && !row.says("split") {
        return Some(Err("both halves in one operand"));
    }
    let case = || {
        let both = |o: &mut Operands| row.sources.iter().map(|s| uniform(o, s, (-150.0, 150.0))).collect();
        Case::new(Glu { kind }, &row.text, StepParams::at(0, 1), both)
    };
    Some(floats(row).map(|()| case()))
}

fn binary(row: &Row, kind: BinaryKind, range: (f32, f32)) -> Mapped {
    floats(row)?;
    if !row.plain("perm1", "0") || !row.plain("src_overlap", "0") {
        return Err(VIEW);
    }
    let repeats = row.sources[0].dims.iter().zip(row.sources[1].dims).any(|(a, b)| *a != b && b != 1);
    if repeats {
        return Err(REPEAT);
    }
    Ok(Case::new(Binary { kind }, &row.text, StepParams::at(0, 1), |o| {
        row.sources.iter().map(|s| uniform(o, s, range)).collect()
    }))
}

fn norm(row: &Row, kind: NormKind, range: (f32, f32)) -> Mapped {
    floats(row)?;
    if !row.plain("noncontig_rows", "0") {
        return Err(VIEW);
    }
    let op = Norm { kind, eps: row.number("eps"), heads: 1 };
    let cols = row.sources[0].dims[0];
    Ok(Case::new(op, &row.text, StepParams::at(0, 1), |o| {
        let x = uniform(o, &row.sources[0], range);
        // The list's norms have no weights.
        let weights = [1.0, 0.0].into_iter().take(kind.params());
        [x].into_iter().chain(weights.map(|w| o.filled(&[cols], Fill::Values(vec![w]))).collect::<Vec<_>>()).collect()
    }))
}

fn softmax(row: &Row) -> Mapped {
    let sinks = row.text_of("sinks") == "1";
    if row.number::<f32>("max_bias") != 0.0 {
        return Err("biases by distance (ALiBi)");
    }
    let explicit = row.text_of("mask") == "1";
    if explicit && row.sources[1].dims[2..] != [1, 1] {
        return Err(BATCH);
    }
    if row.sources[0].kind != "f32" {
        return Err(DENSE);
    }
    let masking = Masking { explicit, ..Masking::default() };
    let op = Softmax { scale: row.number("scale"), softcap: 0.0, masking, sinks };
    Ok(Case::new(op, &row.text, StepParams::at(0, 1), |o| {
        let x = o.input(&row.sources[0].shape());
        let [_, heads, m, n] = row.sources[0].shape();
        let mask = explicit.then(|| o.input(&[m, n]));
        [x].into_iter().chain(mask).chain(sinks.then(|| o.input(&[heads]))).collect()
    }))
}

fn rope(row: &Row) -> Mapped {
    let mode = match row.text_of("mode") {
        "0" => RopeMode::Normal,
        "2" => RopeMode::Neox,
        _ => return Err("rotations by several positions"),
    };
    if row.sources[0].kind != "f32" {
        return Err(DENSE);
    }
    if !row.plain("v", "0") {
        return Err(VIEW);
    }
    let [batch, tokens, n_head, head_dim] = row.sources[0].shape();
    if batch != 1 {
        return Err(BATCH);
    }
    if !row.plain("n_offs", "0") {
        return Err("rotated channels that are not the first");
    }
    if row.number::<f32>("ef") != 0.0 {
        return Err("YaRN over an original context of 0");
    }
    let n_dims = row.number("n_dims");
    let factors =
        if row.text_of("ff") == "1" { (0..n_dims / 2).map(|i| 0.9 + 0.2 * spread(i)).collect() } else { vec![] };
    let table = RopeTable {
        freq_scale: row.number("fs"),
        magnitude: row.number("af"),
        factors,
        ..RopeTable::plain(n_dims, 10_000.0)
    };
    // Rows of the table are those of the tokens, whose positions are anywhere.
    let table = table.rows((0..tokens).map(|i| (512.0 * spread(i)) as u32));
    Ok(Case::new(Rope { n_head, n_dims, mode }, &row.text, StepParams::at(0, 1), |o| {
        vec![o.input(&[tokens, n_head * head_dim]), o.filled(&[tokens, n_dims], Fill::Values(table))]
    }))
}

/// Numbers in [0, 1) that look like chance.
fn spread(i: usize) -> f32 {
    (i as f32 * 0.618_034).fract()
}

pub fn format(kind: &str) -> Option<Format> {
    Format::ALL.iter().copied().find(|format| format.name().eq_ignore_ascii_case(kind))
}

fn get_rows(row: &Row) -> Mapped {
    let [table, ids] = &row.sources[..] else { return Err(NO_OPERATOR) };
    if !row.plain("v", "0") {
        return Err(VIEW);
    }
    if table.dims[2..] != [1, 1] {
        return Err("several tables at once");
    }
    let (format, [cols, rows, ..]) = (format(&table.kind).ok_or(UNKNOWN_TYPE)?, table.dims);
    if !cols.is_multiple_of(format.spec().block_len) {
        return Err(UNKNOWN_TYPE);
    }
    Ok(Case::new(GetRows { index: Index::Ids }, &row.text, StepParams::at(0, 1), |o| {
        vec![o.packed(format, rows, cols), o.ids(&[ids.dims[0]], rows as u32)]
    }))
}

fn matmul(row: &Row) -> Mapped {
    let strided = [("k_v", "0"), ("per", "[0,1,2,3]"), ("src_overlap", "0")];
    if strided.iter().any(|(name, usual)| !row.plain(name, usual)) {
        return Err(VIEW);
    }
    let [a, b] = &row.sources[..] else { return Err(NO_OPERATOR) };
    if b.kind != "f32" {
        return Err(DENSE);
    }
    if a.kind == "f32" {
        return Ok(Case::new(MatMul, &row.text, StepParams::at(0, 1), |o| {
            vec![o.input(&b.shape()), o.input(&a.shape())]
        }));
    }
    let (format, [k, m, ..]) = (format(&a.kind).ok_or(UNKNOWN_TYPE)?, a.dims);
    if a.dims[2..] != [1, 1] {
        return Err("several packed matrices at once");
    }
    if !k.is_multiple_of(format.spec().block_len) {
        return Err(UNKNOWN_TYPE);
    }
    Ok(Case::new(MatMul, &row.text, StepParams::at(0, 1), |o| vec![o.input(&b.shape()), o.packed(format, m, k)]))
}

fn matmul_id(row: &Row) -> Mapped {
    let [a, b, ids] = &row.sources[..] else { return Err(NO_OPERATOR) };
    if b.kind != "f32" {
        return Err(DENSE);
    }
    let (format, [k, rows, experts, _]) = (format(&a.kind).ok_or(UNKNOWN_TYPE)?, a.dims);
    if !k.is_multiple_of(format.spec().block_len) {
        return Err(UNKNOWN_TYPE);
    }
    let [u, t, ..] = ids.dims;
    // One row for all choices, or one for each.
    let x = if b.dims[1] == u { vec![t, u, k] } else { vec![t, k] };
    Ok(Case::new(MatMulId::dense(rows), &row.text, StepParams::at(0, 1), |o| {
        vec![o.input(&x), o.packed(format, experts * rows, k), o.ids(&[t, u], experts as u32)]
    }))
}

fn attention(row: &Row) -> Mapped {
    let sinks = row.text_of("sinks") == "1";
    if row.number::<f32>("max_bias") != 0.0 {
        return Err("biases by distance (ALiBi)");
    }
    if !row.plain("v_is_view_of_k", "0") {
        return Err(VIEW);
    }
    let [q, k, v, ..] = &row.sources[..] else { return Err(NO_OPERATOR) };
    if q.dims[3] != 1 {
        return Err(BATCH);
    }
    let codec = |source: &Source| match source.kind.as_str() {
        "f32" => Ok(None),
        name => Codec::named(name).map(Some).ok_or("keys and values in a type that no cache of ours has"),
    };
    let codecs = [codec(k)?, codec(v)?];
    let ([d, m, n_head, _], [_, n, n_head_kv, _]) = (q.dims, k.dims);
    let explicit = row.text_of("mask") == "1";
    // Where keys and values are the first half of larger buffers there, they are a cache that is filled so far here.
    let cached = row.text_of("kv_view") == "1";
    let (rows, step) = if cached {
        (2 * n, StepParams::at(n.saturating_sub(m) as u32, m as u32))
    } else {
        (n, StepParams::at(0, m as u32))
    };
    if cached && m > n {
        return Err("more queries than keys in a cache");
    }
    let op = Attention {
        n_head,
        n_head_kv,
        // The list scales by the width that was asked for; blocks round it up.
        scale: 1.0 / row.number::<f32>("hsk").sqrt(),
        softcap: row.number("logit_softcap"),
        masking: Masking { explicit, cached, ..Masking::default() },
        sinks,
    };
    // Ours is token by token, which is the list's order [0, 2, 1, 3]; the other order gives the same case.
    Ok(Case::new(op, &row.text, step, |o| {
        let q = o.input(&[m, n_head * d]);
        let keys = o.keys(codecs[0], &[rows, n_head_kv * d]);
        let values = o.keys(codecs[1], &[rows, n_head_kv * v.dims[0]]);
        [q, keys, values]
            .into_iter()
            .chain(explicit.then(|| o.filled(&[m, rows], Fill::Values(mask(m, rows)))))
            .chain(sinks.then(|| o.filled(&[n_head], Fill::Uniform(-10.0, 10.0))))
            .collect()
    }))
}

/// A mask like the list's: numbers of order 1, and in a fifth of the blocks of 128 keys and 64 queries nothing to see, or
/// nothing added.
fn mask(m: usize, n: usize) -> Vec<f32> {
    let blocks = n.div_ceil(128);
    let value = |row: usize, col: usize| match (row / 64 * blocks + col / 128) % 10 {
        3 if n > 128 => -1e30,
        7 => 0.0,
        _ => 2.0 * spread(row * n + col) - 1.0,
    };
    (0..m).flat_map(|row| (0..n).map(move |col| (row, col))).map(|(row, col)| value(row, col)).collect()
}

fn concat(row: &Row) -> Mapped {
    floats(row)?;
    let op = Concat { axis: 3 - row.number::<usize>("dim").min(3) };
    Ok(Case::new(op, &row.text, StepParams::at(0, 1), |o| row.sources.iter().map(|s| o.input(&s.shape())).collect()))
}

/// A copy whose dimensions are exchanged; both lists are innermost first.
fn permuted(row: &Row, dims: [usize; 4], order: [usize; 4]) -> Mapped {
    let view = Shape::new(&[dims[3], dims[2], dims[1], dims[0]]).map_err(|_| BATCH)?;
    // Dimension i of the source becomes dimension order[i].
    let mut perm = vec![0; 4];
    for (from, to) in order.into_iter().enumerate() {
        perm[3 - to] = 3 - from;
    }
    Ok(Case::new(Permute { view, perm }, &row.text, StepParams::at(0, 1), |o| {
        vec![o.input(&[dims[3], dims[2], dims[1], dims[0]])]
    }))
}

fn order(row: &Row, name: &str) -> Option<[usize; 4]> {
    let order: [usize; 4] = row.list(name).try_into().ok()?;
    (order != [0; 4]).then_some(order)
}

fn cont(row: &Row) -> Mapped {
    floats(row)?;
    if row.text_of("use_view_slice") == "1" {
        return Err(VIEW);
    }
    let dims: [usize; 4] = row.list("ne").try_into().map_err(|_| NO_OPERATOR)?;
    permuted(row, dims, order(row, "permute").unwrap_or([1, 0, 2, 3]))
}

fn copy(row: &Row) -> Mapped {
    if row.text_of("type_src") != "f32" || row.text_of("type_dst") != "f32" {
        return Err(DENSE);
    }
    if order(row, "permute_dst").is_some() || !row.plain("dst_alloc", "[0,0,0,0]") {
        return Err(VIEW);
    }
    let dims: [usize; 4] = row.list("ne_src").try_into().map_err(|_| NO_OPERATOR)?;
    let usual = if row.text_of("_src_transpose") == "1" { [1, 0, 2, 3] } else { [0, 1, 2, 3] };
    permuted(row, dims, order(row, "permute_src").unwrap_or(usual))
}

fn pad(row: &Row) -> Mapped {
    floats(row)?;
    if !row.plain("circular", "0") {
        return Err("padding that goes round");
    }
    if !row.plain("tfrm", "0") {
        return Err(VIEW);
    }
    let by_axis = |letter: char| [3, 2, 1, 0].map(|axis| row.number::<usize>(&format!("{letter}p{axis}")));
    let (before, mut after) = (by_axis('l'), by_axis('r'));
    after[3] += row.number::<usize>("pad_0");
    after[2] += row.number::<usize>("pad_1");
    Ok(Case::new(Pad { before, after, circular: false }, &row.text, StepParams::at(0, 1), |o| vec![o.input(&row.sources[0].shape())]))
}

//! Products: with matrices, those of experts, and attention.

use super::operators::{BATCH, DENSE, Mapped, NO_OPERATOR, UNKNOWN_TYPE, VIEW, graph, spread};
use super::row::{Row, Source};
use super::views::stored;
use backend_api::case::{Case, Fill, Operands};
use backend_api::format::Format;
use backend_api::op::{Attention, Masking, MatMul, MatMulId, Slice};
use backend_api::{Codec, StepParams, TensorId};

pub fn format(kind: &str) -> Option<Format> {
    Format::ALL.iter().copied().find(|format| format.name().eq_ignore_ascii_case(kind))
}

pub fn matmul(row: &Row) -> Mapped {
    let [a, b] = &row.sources[..] else { return Err(NO_OPERATOR) };
    if b.kind != "f32" {
        return Err(DENSE);
    }
    if a.kind == "f32" && row.plain("src_overlap", "0") {
        return Ok(graph(row, |o| {
            let operands = [b, a].map(|source| operand(o, row, source));
            o.push(MatMul, &operands)
        }));
    }
    let strided = [("k_v", "0"), ("per", "[0,1,2,3]"), ("src_overlap", "0")];
    if strided.iter().any(|(name, usual)| !row.plain(name, usual)) {
        return Err(VIEW);
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

/// A dense operand: contiguous, in another order in memory, or columns of wider rows.
fn operand(o: &mut Operands, row: &Row, source: &Source) -> TensorId {
    if let Ok(order) = row.list("per").try_into()
        && order != [0, 1, 2, 3]
    {
        return stored(o, source, order, Fill::Uniform(-1.0, 1.0));
    }
    match row.number("k_v") {
        0 => o.input(&source.shape()),
        wide => {
            let [d0, d1, d2, k] = source.shape();
            let x = o.input(&[d0, d1, d2, wide]);
            o.push(Slice { start: 0, len: k }, &[x])
        }
    }
}

pub fn matmul_id(row: &Row) -> Mapped {
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

pub fn attention(row: &Row) -> Mapped {
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

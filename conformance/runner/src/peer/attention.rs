//! Attention and softmax.

use super::operators::{DENSE, Mapped, NO_OPERATOR, spread};
use super::row::{Row, Source};
use backend_api::case::{Case, Fill, Operands};
use backend_api::op::{Attention, Binary, BinaryKind, Concat, Masking, Scale, Softmax};
use backend_api::{Codec, StepParams, TensorId};

/// Computes the slopes that ALiBi multiplies the mask of each head with.
fn slopes(heads: usize, max_bias: f32) -> Vec<f32> {
    let two = 1 << heads.ilog2();
    let power = |by: f32, i: usize| (-max_bias / by * i as f32).exp2();
    let slope = |head: usize| match head < two {
        true => power(two as f32, head + 1),
        false => power(2.0 * two as f32, 2 * (head - two) + 1),
    };
    (0..heads).map(slope).collect()
}

/// A mask `[.., m, n]`, multiplied for each head if the list has a bias by distance.
fn biased(o: &mut Operands, row: &Row, mask: TensorId, heads: usize) -> TensorId {
    let max_bias = row.number::<f32>("max_bias");
    if max_bias == 0.0 {
        return mask;
    }
    let slopes = o.filled(&[heads, 1, 1], Fill::Values(slopes(heads, max_bias)));
    o.push(Binary { kind: BinaryKind::Mul }, &[mask, slopes])
}

pub fn softmax(row: &Row) -> Mapped {
    let [x, ..] = &row.sources[..] else { return Err(NO_OPERATOR) };
    if x.kind != "f32" {
        return Err(DENSE);
    }
    let (scale, sinks) = (row.number("scale"), row.text_of("sinks") == "1");
    let mask = row.sources.get(1).filter(|_| row.text_of("mask") == "1");
    // One mask for all is the operator's; several are added before it.
    let apart = mask.is_some_and(|mask| mask.dims[2..] != [1, 1]) || row.number::<f32>("max_bias") != 0.0;
    let masking = Masking { explicit: mask.is_some() && !apart, ..Masking::default() };
    let op = Softmax { scale: if apart { 1.0 } else { scale }, softcap: 0.0, masking, sinks };
    let [_, heads, m, n] = x.shape();
    Ok(Case::new(op, &row.text, StepParams::at(0, 1), |o| {
        let mut operands = vec![o.input(&x.shape())];
        match mask {
            Some(mask) if apart => {
                let mask = o.input(&mask.shape());
                let mask = biased(o, row, mask, heads);
                let scaled = o.push(Scale { factor: scale, bias: 0.0 }, &operands);
                operands = vec![o.push(Binary { kind: BinaryKind::Add }, &[scaled, mask])];
            }
            Some(_) => operands.push(o.input(&[m, n])),
            None => {}
        }
        operands.extend(sinks.then(|| o.input(&[heads])));
        operands
    }))
}

pub fn attention(row: &Row) -> Mapped {
    let sinks = row.text_of("sinks") == "1";
    let [q, k, v, ..] = &row.sources[..] else { return Err(NO_OPERATOR) };
    let codec = |source: &Source| match source.kind.as_str() {
        "f32" => Ok(None),
        name => Codec::named(name).map(Some).ok_or("keys and values in a type that no cache of ours has"),
    };
    let codecs = [codec(k)?, codec(v)?];
    let ([d, m, n_head, batch], [_, n, n_head_kv, _]) = (q.dims, k.dims);
    let explicit = row.text_of("mask") == "1";
    // Where keys and values are the first half of larger buffers there, they are a cache that is filled so far here. Values
    // that are a part of the keys there lie by themselves here.
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
        // The list multiplies a mask by the slopes.
        max_bias: 0.0,
        masking: Masking { explicit, cached, ..Masking::default() },
        sinks,
    };
    // Ours is token by token, which is the list's order [0, 2, 1, 3]; the other order gives the same case.
    let operands = |o: &mut Operands| -> Vec<TensorId> {
        let q = o.input(&[m, n_head * d]);
        let keys = o.keys(codecs[0], &[rows, n_head_kv * d]);
        let values = o.keys(codecs[1], &[rows, n_head_kv * v.dims[0]]);
        let mut operands = vec![q, keys, values];
        if explicit {
            let mask = o.filled(&[m, rows], Fill::Values(mask(m, rows)));
            operands.push(biased(o, row, mask, n_head));
        }
        operands.extend(sinks.then(|| o.filled(&[n_head], Fill::Uniform(-10.0, 10.0))));
        operands
    };
    if batch == 1 {
        return Ok(Case::new(op, &row.text, step, operands));
    }
    // A batch is as many nodes.
    Ok(Case::new(Concat { axis: 0 }, &row.text, step, |o| {
        let mut all = Vec::new();
        for left in (0..batch).rev() {
            let each = operands(o);
            all.push(o.push(op, &each));
            if all.len() == 2 && left > 0 {
                all = vec![o.push(Concat { axis: 0 }, &all)];
            }
        }
        all
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

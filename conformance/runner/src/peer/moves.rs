//! Operators that only move data.

use super::operators::{DENSE, Mapped, NO_OPERATOR, VIEW, floats, graph};
use super::row::Row;
use super::views::{exchange, inverse, part, reshaped, spaced, stored};
use backend_api::TensorId;
use backend_api::case::{Fill, Operands};
use backend_api::op::{Concat, Pad, Repeat, Set, Tri, TriKind};

const UNIT: Fill = Fill::Uniform(-1.0, 1.0);

pub fn concat(row: &Row) -> Mapped {
    floats(row)?;
    let [a, b] = &row.sources[..] else { return Err(NO_OPERATOR) };
    let strided = row.number::<usize>("v");
    if strided > 3 {
        return Err(VIEW);
    }
    let axis = 3 - row.number::<usize>("dim").min(3);
    Ok(graph(row, |o| {
        let a = spaced(o, a, if strided & 1 == 0 { [1; 4] } else { [2, 4, 3, 1] }, UNIT);
        let b = spaced(o, b, if strided & 2 == 0 { [1; 4] } else { [3, 2, 4, 1] }, UNIT);
        o.push(Concat { axis }, &[a, b])
    }))
}

/// The order that a row exchanges dimensions in, innermost first.
fn order(row: &Row, name: &str) -> Option<[usize; 4]> {
    let order: [usize; 4] = row.list(name).try_into().ok()?;
    (order != [0; 4]).then_some(order)
}

pub fn cont(row: &Row) -> Mapped {
    floats(row)?;
    let dims: [usize; 4] = row.list("ne").try_into().map_err(|_| NO_OPERATOR)?;
    let [n0, n1, n2, n3] = dims;
    let usual = if row.op == "DUP" { [0, 1, 2, 3] } else { [1, 0, 2, 3] };
    let last = row.text_of("use_view_slice") == "1";
    Ok(graph(row, |o| {
        let x = o.input(&[n3, n2, n1, n0]);
        if last && n1 > 1 {
            return part(o, x, [n3, n2, n1, n0], [0, 0, n1 - 1, 0], [n3, n2, 1, n0]);
        }
        let order = if last { [0, 1, 2, 3] } else { order(row, "permute").unwrap_or(usual) };
        o.push(exchange(dims, order), &[x])
    }))
}

pub fn copy(row: &Row) -> Mapped {
    if row.text_of("type_src") != "f32" || row.text_of("type_dst") != "f32" {
        return Err(DENSE);
    }
    let dims: [usize; 4] = row.list("ne_src").try_into().map_err(|_| NO_OPERATOR)?;
    let [n0, n1, n2, n3] = dims;
    let usual = if row.text_of("_src_transpose") == "1" { [1, 0, 2, 3] } else { [0, 1, 2, 3] };
    let to = row.sources.last().ok_or(NO_OPERATOR)?.dims;
    Ok(graph(row, |o| {
        let x = o.input(&[n3, n2, n1, n0]);
        let y = o.push(exchange(dims, order(row, "permute_src").unwrap_or(usual)), &[x]);
        if let Some(order) = order(row, "permute_dst") {
            return o.push(exchange(to, inverse(order)), &[y]);
        }
        match row.list("dst_alloc")[..] {
            // Into the first part of a larger buffer.
            [a0, a1, a2, a3] if a0 > 0 => {
                let (buffer, y) = (o.input(&[a3, a2, a1, a0]), reshaped(o, y, &[to[3], to[2], to[1], to[0]]));
                o.push(Set { at: [0; 4] }, &[buffer, y])
            }
            _ => y,
        }
    }))
}

pub fn pad(row: &Row) -> Mapped {
    floats(row)?;
    let by_axis = |letter: char| [3, 2, 1, 0].map(|axis| row.number::<usize>(&format!("{letter}p{axis}")));
    let (before, mut after) = (by_axis('l'), by_axis('r'));
    after[3] += row.number::<usize>("pad_0");
    after[2] += row.number::<usize>("pad_1");
    let source = &row.sources[0];
    Ok(graph(row, |o| {
        let x = match row.text_of("tfrm") {
            "1" => spaced(o, source, [2; 4], UNIT),
            "2" => stored(o, source, [2, 1, 0, 3], UNIT),
            _ => o.input(&source.shape()),
        };
        if row.plain("circular", "0") {
            return o.push(Pad { before, after }, &[x]);
        }
        (0..4).fold((x, source.shape()), |(x, dims), axis| around(o, x, dims, axis, before[axis], after[axis])).0
    }))
}

/// A tensor that goes round along an axis: what it ends with before it, what it begins with after it.
fn around(
    o: &mut Operands,
    x: TensorId,
    mut dims: [usize; 4],
    axis: usize,
    before: usize,
    after: usize,
) -> (TensorId, [usize; 4]) {
    let run = |o: &mut Operands, first: usize, count: usize| {
        let (mut at, mut len) = ([0; 4], dims);
        (at[axis], len[axis]) = (first, count);
        part(o, x, dims, at, len)
    };
    let mut out = x;
    if before > 0 {
        let end = run(o, dims[axis] - before, before);
        out = o.push(Concat { axis }, &[end, out]);
    }
    if after > 0 {
        let start = run(o, 0, after);
        out = o.push(Concat { axis }, &[out, start]);
    }
    dims[axis] += before + after;
    (out, dims)
}

pub fn repeat(row: &Row) -> Mapped {
    floats(row)?;
    let [t0, t1, t2, t3] = row.list("nr").try_into().map_err(|_| NO_OPERATOR)?;
    Ok(graph(row, |o| {
        let x = o.input(&row.sources[0].shape());
        o.push(Repeat { times: [t3, t2, t1, t0] }, &[x])
    }))
}

/// The part is in the middle of the dimensions that are larger.
pub fn set(row: &Row) -> Mapped {
    floats(row)?;
    let [whole, part] = &row.sources[..] else { return Err(NO_OPERATOR) };
    let (whole, part) = (whole.shape(), part.shape());
    Ok(graph(row, |o| {
        let (x, y) = (o.input(&whole), o.input(&part));
        o.push(Set { at: std::array::from_fn(|axis| (whole[axis] - part[axis]) / 2) }, &[x, y])
    }))
}

pub fn tri(row: &Row) -> Mapped {
    floats(row)?;
    let kind = *TriKind::ALL.get(row.number::<usize>("tri_type")).ok_or(NO_OPERATOR)?;
    Ok(graph(row, |o| {
        let x = o.input(&row.sources[0].shape());
        o.push(Tri { kind }, &[x])
    }))
}

/// Rows repeated to squares, of which both triangles with the diagonal leave the diagonal.
pub fn diag(row: &Row) -> Mapped {
    floats(row)?;
    let source = &row.sources[0];
    Ok(graph(row, |o| {
        let x = o.input(&source.shape());
        let square = o.push(Repeat { times: [1, 1, source.dims[0], 1] }, &[x]);
        let upper = o.push(Tri { kind: TriKind::UpperWithDiagonal }, &[square]);
        o.push(Tri { kind: TriKind::LowerWithDiagonal }, &[upper])
    }))
}

//! Operators along rows: norms, sums, orders.

use super::operators::{DENSE, Mapped, NO_OPERATOR, floats, graph, uniform};
use super::row::Row;
use super::views::{exchange, part, reshaped, stored};
use backend_api::case::{Case, Fill, Operands};
use backend_api::op::{ArgMax, Argsort, Binary, BinaryKind, Cumsum, GetRows, Index, Norm, NormKind, Scale, Sum, TopK};
use backend_api::{StepParams, TensorId};

pub fn norm(row: &Row, kind: NormKind, range: (f32, f32)) -> Mapped {
    floats(row)?;
    let source = &row.sources[0];
    let fill = Fill::Uniform(range.0, range.1);
    let whole: [usize; 4] = row.list("ne").try_into().map_err(|_| NO_OPERATOR)?;
    Ok(graph(row, |o| {
        let x = if !row.plain("v", "0") {
            // The first half in each dimension.
            let [n0, n1, n2, n3] = whole;
            let dims = [n3, n2, n1, n0];
            let x = o.filled(&dims, fill);
            part(o, x, dims, [0; 4], source.shape())
        } else {
            let transposed = !row.plain("noncontig_rows", "0");
            stored(o, source, if transposed { [1, 0, 2, 3] } else { [0, 1, 2, 3] }, fill)
        };
        // The list's norms have no weights.
        let weights = [1.0, 0.0].into_iter().take(kind.params());
        let weights = weights.map(|w| o.filled(&[source.dims[0]], Fill::Values(vec![w]))).collect::<Vec<_>>();
        o.push(Norm { kind, eps: row.number("eps"), heads: 1 }, &[&[x], &weights[..]].concat())
    }))
}

/// Rows of a table by expert, added: two operators of ours.
pub fn add_id(row: &Row) -> Mapped {
    let [a, b, ids] = &row.sources[..] else { return Err(NO_OPERATOR) };
    let ([n, used, tokens, _], experts) = (a.dims, b.dims[1]);
    if [&a.kind, &b.kind].iter().any(|kind| *kind != "f32") || ids.dims[..2] != [used, tokens] {
        return Err(DENSE);
    }
    Ok(graph(row, |o| {
        let (a, b) = (o.input(&[tokens, used, n]), o.input(&[experts, n]));
        let ids = o.ids(&[tokens, used], experts as u32);
        let rows = o.push(GetRows { index: Index::Ids }, &[b, ids]);
        o.push(Binary { kind: BinaryKind::Add }, &[a, rows])
    }))
}

/// Maps the sum of a whole tensor, which is one row here.
pub fn sum(row: &Row) -> Mapped {
    floats(row)?;
    let source = &row.sources[0];
    let len = source.dims.iter().product();
    Ok(graph(row, |o| {
        let fill = Fill::Uniform(-0.9, 1.1);
        let x = match row.list("permute")[..] {
            [a, b, c, d] => {
                let x = stored(o, source, [a, b, c, d], fill);
                reshaped(o, x, &[len])
            }
            _ => o.filled(&[len], fill),
        };
        o.push(Sum, &[x])
    }))
}

pub fn sum_rows(row: &Row) -> Mapped {
    floats(row)?;
    let dims: [usize; 4] = row.list("ne").try_into().map_err(|_| NO_OPERATOR)?;
    let [n0, n1, n2, n3] = dims;
    let (sliced, permuted) = (row.text_of("slice") == "1", row.text_of("permute") == "1");
    Ok(graph(row, |o| {
        let mut x = o.input(&[n3, n2, n1, n0]);
        let mut dims = dims;
        if sliced {
            // Every second matrix, without those of the last of the outermost dimension.
            x = part(o, x, [n3, n2 / 2, 2, n1 * n0], [0; 4], [n3 - 1, n2 / 2, 1, n1 * n0]);
            dims = [n0, n1, n2 / 2, n3 - 1];
        }
        if sliced || permuted {
            x = o.push(exchange(dims, if permuted { [0, 2, 3, 1] } else { [0, 1, 2, 3] }), &[x]);
        }
        o.push(Sum, &[x])
    }))
}

pub fn mean(row: &Row) -> Mapped {
    floats(row)?;
    let source = &row.sources[0];
    Ok(graph(row, |o| {
        let x = uniform(o, source, (-0.9, 1.1));
        let sum = o.push(Sum, &[x]);
        o.push(Scale { factor: 1.0 / source.dims[0] as f32, bias: 0.0 }, &[sum])
    }))
}

pub fn cumsum(row: &Row) -> Mapped {
    floats(row)?;
    Ok(Case::new(Cumsum, &row.text, StepParams::at(0, 1), |o| vec![uniform(o, &row.sources[0], (-1.0, 1.0))]))
}

fn shuffled(o: &mut Operands, row: &Row) -> TensorId {
    o.filled(&row.sources[0].shape(), Fill::Shuffled)
}

pub fn argmax(row: &Row) -> Mapped {
    floats(row)?;
    let [_, _, rows, cols] = row.sources[0].shape();
    Ok(Case::new(ArgMax, &row.text, StepParams::at(0, 1), |o| vec![o.filled(&[rows, cols], Fill::Shuffled)]))
}

pub fn argsort(row: &Row) -> Mapped {
    floats(row)?;
    let op = Argsort { descending: row.text_of("order") == "1" };
    Ok(Case::new(op, &row.text, StepParams::at(0, 1), |o| vec![shuffled(o, row)]))
}

pub fn top_k(row: &Row) -> Mapped {
    floats(row)?;
    let op = TopK { k: row.number("k") };
    if op.k > TopK::MAX {
        return Err("more candidates than ours yields");
    }
    Ok(Case::new(op, &row.text, StepParams::at(0, 1), |o| vec![shuffled(o, row)]))
}

//! Operators along rows: norms, softmax, rotation, rows of tables, sums, orders.

use super::operators::{BATCH, DENSE, Mapped, NO_OPERATOR, UNKNOWN_TYPE, VIEW, floats, graph, spread, uniform};
use super::products::format;
use super::row::Row;
use super::views::{exchange, part, reshaped, spaced, stored};
use backend_api::case::{Case, Fill, Operands};
use backend_api::op::{
    ArgMax, Argsort, Binary, BinaryKind, Cumsum, GetRows, Index, Masking, Norm, NormKind, Rope, RopeMode, RopeTable,
    Scale, Softmax, Sum, TopK,
};
use backend_api::{DType, Kind, StepParams, TensorId};

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

pub fn softmax(row: &Row) -> Mapped {
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

pub fn rope(row: &Row) -> Mapped {
    let mode = match row.text_of("mode") {
        "0" => RopeMode::Normal,
        "2" => RopeMode::Neox,
        _ => return Err("rotations by several positions"),
    };
    if row.sources[0].kind != "f32" {
        return Err(DENSE);
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
    Ok(graph(row, |o| {
        let source = &row.sources[0];
        let x = match row.text_of("v") {
            "1" => spaced(o, source, [2, 4, 3, 1], Fill::Uniform(-1.0, 1.0)),
            "2" => {
                let dims = [batch, tokens, n_head, 2 * head_dim];
                let both = o.input(&dims);
                part(o, both, dims, [0, 0, 0, head_dim], source.shape())
            }
            _ => o.input(&[tokens, n_head * head_dim]),
        };
        let x = if row.plain("v", "0") { x } else { reshaped(o, x, &[tokens, n_head * head_dim]) };
        let table = o.filled(&[tokens, n_dims], Fill::Values(table));
        o.push(Rope { n_head, n_dims, mode }, &[x, table])
    }))
}

/// The bytes of a tensor that every WebGPU device binds.
const BINDING: usize = 128 << 20;

pub fn get_rows(row: &Row) -> Mapped {
    let [table, ids] = &row.sources[..] else { return Err(NO_OPERATOR) };
    let ([cols, rows, tables, more], [each, _, _, _]) = (table.dims, ids.dims);
    // Of one list the first half is as contiguous as the whole.
    if !row.plain("v", "0") && tables * more > 1 {
        return Err(VIEW);
    }
    let format = format(&table.kind).ok_or(UNKNOWN_TYPE)?;
    if !cols.is_multiple_of(format.spec().block_len) {
        return Err(UNKNOWN_TYPE);
    }
    // Several tables are one below the other here, and their ids begin where they do.
    let tables = tables * more;
    if tables * each * cols * 4 > BINDING {
        return Err("results beyond the 128 MiB that every WebGPU device binds");
    }
    let id = |i: usize| i / each * rows + (rows as f32 * spread(i)) as usize % rows;
    let ids = (0..tables * each).map(|i| id(i) as f32).collect();
    Ok(Case::new(GetRows { index: Index::Ids }, &row.text, StepParams::at(0, 1), |o| {
        let table = o.packed(format, tables * rows, cols);
        vec![table, o.external(Kind::Input, &[tables * each], DType::I32, Fill::Values(ids))]
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

/// Of a whole tensor: it is one row here.
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

//! Products, and rows of tables.

use super::operators::{DENSE, Mapped, NO_OPERATOR, UNKNOWN_TYPE, VIEW, format, spread};
use super::row::{Row, Source};
use super::views::{part, reshaped, stored};
use backend_api::case::{Case, Fill, Operands};
use backend_api::op::{GetRows, Index, MatMul, MatMulId};
use backend_api::{DType, Kind, StepParams, TensorId};

/// Bytes of floats that all devices bind.
const BINDING: usize = 128 << 20;

pub fn get_rows(row: &Row) -> Mapped {
    let [table, ids] = &row.sources[..] else { return Err(NO_OPERATOR) };
    let (format, [cols, rows, ..]) = (format(&table.kind).ok_or(UNKNOWN_TYPE)?, table.dims);
    if !cols.is_multiple_of(format.spec().block_len) {
        return Err(UNKNOWN_TYPE);
    }
    let tables = table.dims[2] * table.dims[3];
    if tables * ids.dims[0] * cols * 4 > BINDING {
        return Err("results that not all devices bind");
    }
    // Several tables lie one below the other, and ids count from the first row of all.
    let ids_of_all =
        |count: usize| (0..tables * count).map(move |i| i / count * rows + (spread(i) * rows as f32) as usize);
    Ok(Case::new(GetRows { index: Index::Ids }, &row.text, StepParams::at(0, 1), |o| {
        let w = o.packed(format, tables * rows, cols);
        let count = ids.dims[0];
        if tables == 1 {
            return vec![w, o.ids(&[count], rows as u32)];
        }
        let values = ids_of_all(count).map(|id| id as f32).collect();
        vec![w, o.external(Kind::Input, &[tables, count], DType::I32, Fill::Values(values))]
    }))
}

/// An operand of floats, in the order or as the beginning of the rows that the list's lies in.
fn operand(o: &mut Operands, row: &Row, source: &Source) -> TensorId {
    let order = row.list("per").try_into().unwrap_or([0, 1, 2, 3]);
    let (shape, width) = (source.shape(), row.number::<usize>("k_v"));
    if width == 0 {
        return stored(o, source, order, Fill::Uniform(-1.0, 1.0));
    }
    let whole = [shape[0], shape[1], shape[2], width];
    let x = o.input(&whole);
    part(o, x, whole, [0; 4], shape)
}

pub fn matmul(row: &Row) -> Mapped {
    if !row.plain("src_overlap", "0") {
        return Err(VIEW);
    }
    let [a, b] = &row.sources[..] else { return Err(NO_OPERATOR) };
    if b.kind != "f32" {
        return Err(DENSE);
    }
    if a.kind == "f32" {
        return Ok(Case::new(MatMul, &row.text, StepParams::at(0, 1), |o| {
            vec![operand(o, row, b), operand(o, row, a)]
        }));
    }
    let (format, [k, m, a0, a1]) = (format(&a.kind).ok_or(UNKNOWN_TYPE)?, a.dims);
    if !k.is_multiple_of(format.spec().block_len) {
        return Err(UNKNOWN_TYPE);
    }
    if a0 * a1 == 1 {
        return Ok(Case::new(MatMul, &row.text, StepParams::at(0, 1), |o| {
            vec![operand(o, row, b), o.packed(format, m, k)]
        }));
    }
    // Several packed matrices are those of experts, of which each row goes to one.
    let [_, n, b0, b1] = b.dims;
    let matrix = |i: usize| i / n / b0 * a1 / b1 * a0 + i / n % b0 * a0 / b0;
    let ids: Vec<f32> = (0..n * b0 * b1).map(|i| matrix(i) as f32).collect();
    Ok(Case::new(MatMulId::dense(m), &row.text, StepParams::at(0, ids.len() as u32), |o| {
        let rows = ids.len();
        let x = operand(o, row, b);
        let x = reshaped(o, x, &[rows, k]);
        let w = o.packed(format, a0 * a1 * m, k);
        vec![x, w, o.external(Kind::Input, &[rows, 1], DType::I32, Fill::Values(ids))]
    }))
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

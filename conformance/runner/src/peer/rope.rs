//! Rotations. Their angles are data of ours, whatever positions they follow from.

use super::operators::{DENSE, Mapped, NO_OPERATOR, spread};
use super::row::Row;
use super::views::{part, reshaped};
use backend_api::case::{Case, Fill, Operands};
use backend_api::op::{Concat, Rope, RopeMode, RopeTable, Slice, Yarn};
use backend_api::{StepParams, TensorId};

/// The list's numbers of its modes.
const NORMAL: usize = 0;
const NEOX: usize = 2;
const MROPE: usize = 8;
const VISION: usize = 24;
const IMROPE: usize = 40;

/// Which of a token's four positions turns pair `p`, with sections of so many pairs.
fn stream(mode: usize, p: usize, section: usize) -> usize {
    match mode {
        MROPE => (p / section).min(3),
        VISION => p / section,
        IMROPE if p < 3 * section => p % 3,
        IMROPE => 3,
        _ => 0,
    }
}

/// Cosines and sines of so many channels for tokens whose positions are anywhere.
fn table(row: &Row, mode: usize, n_dims: usize, tokens: usize) -> Vec<f32> {
    let section = if mode == VISION { n_dims / 4 } else { n_dims / 3 };
    let factors: Vec<f32> = (0..n_dims / 2).map(|i| 0.9 + 0.2 * spread(i)).collect();
    let factors = if row.text_of("ff") == "1" { factors } else { Vec::new() };
    let ext_factor: f32 = row.number("ef");
    // Frequencies of images begin anew with each section.
    let (width, sections) = if mode == VISION { (n_dims / 2, 2) } else { (n_dims, 1) };
    let angles = |pairs: usize| RopeTable {
        freq_scale: row.number("fs"),
        magnitude: row.number("af"),
        factors: factors.iter().copied().skip(pairs).collect(),
        yarn: (ext_factor != 0.0).then_some(Yarn { ext_factor, beta_fast: 1.0, beta_slow: 1.0, n_ctx_orig: 0 }),
        ..RopeTable::plain(width, 10_000.0)
    };
    let streams = if matches!(mode, NORMAL | NEOX) { 1 } else { 4 };
    let tables: Vec<RopeTable> = (0..sections).map(|at| angles(at * section)).collect();
    let mut rows = Vec::new();
    for token in 0..tokens {
        let position = |stream: usize| (512.0 * spread(token + 97 * stream)) as u32;
        let turned: Vec<Vec<f32>> = tables.iter().map(|table| table.rows((0..streams).map(position))).collect();
        for p in 0..n_dims / 2 {
            let (at, pair) = if sections == 1 { (0, p) } else { (p / section, p % section) };
            let first = stream(mode, p, section) * width + 2 * pair;
            rows.extend(&turned[at][first..first + 2]);
        }
    }
    rows
}

/// The heads of the tokens, perhaps as a part of a larger operand.
fn heads(o: &mut Operands, row: &Row, [batch, tokens, n_head, head_dim]: [usize; 4]) -> TensorId {
    let whole = match row.number("v") {
        0 => return o.input(&[batch * tokens, n_head * head_dim]),
        1 => [batch, 3 * tokens, 4 * n_head, 2 * head_dim],
        _ => [batch, tokens, n_head, 2 * head_dim],
    };
    let start = if row.number::<usize>("v") == 2 { head_dim } else { 0 };
    let x = o.input(&whole);
    let x = part(o, x, whole, [0, 0, 0, start], [batch, tokens, n_head, head_dim]);
    reshaped(o, x, &[batch * tokens, n_head * head_dim])
}

pub fn rope(row: &Row) -> Mapped {
    let [x, ..] = &row.sources[..] else { return Err(NO_OPERATOR) };
    if x.kind != "f32" {
        return Err(DENSE);
    }
    let mode = row.number("mode");
    let pairs = match mode {
        NORMAL => RopeMode::Normal,
        NEOX | MROPE | VISION | IMROPE => RopeMode::Neox,
        _ => return Err(NO_OPERATOR),
    };
    let [batch, tokens, n_head, head_dim] = x.shape();
    let (n_dims, before) = (row.number("n_dims"), row.number::<usize>("n_offs"));
    let table = table(row, mode, n_dims, tokens);
    // The texts of a batch have the same positions, so the table's rows come again.
    let rows = batch * tokens;
    let op = Rope { n_head, n_dims, mode: pairs };
    let angles = |o: &mut Operands| o.filled(&[rows, n_dims], Fill::Values(table));
    if before == 0 {
        return Ok(Case::new(op, &row.text, StepParams::at(0, 1), |o| vec![heads(o, row, x.shape()), angles(o)]));
    }
    // Channels before those that turn are put before the result.
    Ok(Case::new(Concat { axis: 1 }, &row.text, StepParams::at(0, 1), |o| {
        let x = heads(o, row, x.shape());
        let x = reshaped(o, x, &[rows * n_head, head_dim]);
        let [kept, turning] =
            [(0, before), (before, head_dim - before)].map(|(start, len)| o.push(Slice { start, len }, &[x]));
        let turning = [reshaped(o, turning, &[rows, n_head * (head_dim - before)]), angles(o)];
        let turned = o.push(op, &turning);
        vec![kept, reshaped(o, turned, &[rows * n_head, head_dim - before])]
    }))
}

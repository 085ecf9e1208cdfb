//! Cases of `experts_sum`.

use super::matmul_id::SOME;
use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    // Sizes are tokens, choices, columns of x, rows of an expert, experts.
    let mut add = |format: Format, [t, u, k, rows, n]: [usize; 5], bias, residual| {
        let op = ExpertsSum { down: MatMulId::dense(rows), bias, residual };
        let name = format!("{} {t}x{u}x{k} to {rows} of {n} bias {bias} residual {residual}", format.name());
        cases.push(Case::new(op, name, StepParams::at(0, t as u32), |o| {
            let mut list = vec![o.input(&[t, u, k]), o.packed(format, n * rows, k), o.ids(&[t, u], n as u32)];
            list.push(o.filled(&[t, u], Fill::Uniform(0.0, 1.0)));
            list.extend(bias.then(|| o.weight(&[n, rows])));
            list.extend(residual.then(|| o.input(&[t, rows])));
            list
        }));
    };
    for format in Format::ALL {
        let len = format.spec().block_len;
        let k = if len == 256 { 512 } else { 96_usize.next_multiple_of(len) };
        add(*format, [1, 2, k, 24, 5], false, true);
        if SOME.contains(format) {
            add(*format, [3, 2, k, 13, 4], false, false);
        }
    }
    add(Format::MXFP4, [1, 4, 288, 100, 8], true, true);
    add(Format::MXFP4, [5, 4, 64, 33, 8], true, true);
    add(Format::F32, [1, 2, 70, 13, 4], true, false);
    add(Format::MXFP4, [20, 2, 96, 40, 3], true, true);
    add(Format::Q8_0, [1, 8, 256, 768, 6], false, true);
    cases
}

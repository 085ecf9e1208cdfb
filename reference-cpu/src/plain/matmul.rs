//! `a * b^T`.

use crate::args::Args;
use backend_api::Op;

pub(super) fn matmul(_: &Op, args: &mut Args<'_>) {
    let (a, b) = (args.input(0), args.input(1));
    let ([a0, a1, m, k], [b0, b1, n, _]) = (a.shape().dims4(), b.shape().dims4());
    let (batch0, batch1) = (a0.max(b0), a1.max(b1));
    let (out, scratch) = args.out_and_scratch();
    for i0 in 0..batch0 {
        for i1 in 0..batch1 {
            let first_a = (i0 * a0 / batch0 * a1 + i1 * a1 / batch1) * m;
            let first_b = (i0 * b0 / batch0 * b1 + i1 * b1 / batch1) * n;
            let out = &mut out[(i0 * batch1 + i1) * m * n..][..m * n];
            for j in 0..n {
                let b_row = b.row(first_b + j, scratch);
                for i in 0..m {
                    let a_row = &a.floats()[(first_a + i) * k..][..k];
                    let dot: f64 = a_row.iter().zip(b_row).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
                    out[i * n + j] = dot as f32;
                }
            }
        }
    }
}

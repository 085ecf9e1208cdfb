//! Triangular systems.

use crate::args::Args;
use backend_api::Op;

pub(super) fn solve_triangular(_: &Op, args: &mut Args<'_>) {
    let (a, b) = (args.input(0), args.input(1));
    let (n, k) = (a.shape().cols(), b.shape().cols());
    let matrices = a.floats().chunks_exact(n * n).zip(b.floats().chunks_exact(n * k));
    for ((a, b), x) in matrices.zip(args.out().chunks_exact_mut(n * k)) {
        for i in 0..n {
            for col in 0..k {
                let known: f64 = (0..i).map(|j| f64::from(a[i * n + j]) * f64::from(x[j * k + col])).sum();
                x[i * k + col] = ((f64::from(b[i * k + col]) - known) / f64::from(a[i * n + i])) as f32;
            }
        }
    }
}

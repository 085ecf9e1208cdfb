//! Sums of rows, whole and up to each element.

use crate::args::Args;
use backend_api::Op;

pub(super) fn sum(_: &Op, args: &mut Args<'_>) {
    let x = args.input(0);
    let rows = x.floats().chunks_exact(x.shape().cols());
    for (out, row) in args.out().iter_mut().zip(rows) {
        *out = row.iter().map(|v| f64::from(*v)).sum::<f64>() as f32;
    }
}

pub(super) fn cumsum(_: &Op, args: &mut Args<'_>) {
    let x = args.input(0);
    let cols = x.shape().cols();
    for (out, row) in args.out().chunks_exact_mut(cols).zip(x.floats().chunks_exact(cols)) {
        let mut running = 0.0;
        for (out, v) in out.iter_mut().zip(row) {
            running += f64::from(*v);
            *out = running as f32;
        }
    }
}

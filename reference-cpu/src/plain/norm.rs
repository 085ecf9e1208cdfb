//! Layer, RMS and L2 norm.

use crate::args::Args;
use backend_api::Op;
use backend_api::op::{Norm, NormKind};

pub(super) fn norm(op: &Op, args: &mut Args<'_>) {
    let Op::Norm(norm) = op else { return };
    let (x, gamma) = (args.input(0), args.input(1).floats());
    let beta = if norm.kind == NormKind::Layer { args.input(2).floats() } else { &[] };
    // Heads of a row lie one after the other, as rows do.
    let n = x.shape().cols() / norm.heads;
    for (at, (x, out)) in x.floats().chunks_exact(n).zip(args.out().chunks_exact_mut(n)).enumerate() {
        // Of parameters that heads have to themselves, those of this one.
        let first = at * n % gamma.len();
        let (gamma, beta) = (&gamma[first..], beta.get(first..).unwrap_or(&[]));
        let mean = match norm.kind {
            NormKind::Layer => x.iter().map(|v| f64::from(*v)).sum::<f64>() / n as f64,
            NormKind::Rms | NormKind::L2 => 0.0,
        };
        let scale = factor(norm, x.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum(), n);
        for (i, out) in out.iter_mut().enumerate() {
            let shift = beta.get(i).map_or(0.0, |b| f64::from(*b));
            *out = ((f64::from(x[i]) - mean) * scale * f64::from(gamma[i]) + shift) as f32;
        }
    }
}

/// Returns the factor of the deviations of `n` elements whose squares have this sum.
pub(crate) fn factor(norm: &Norm, squares: f64, n: usize) -> f64 {
    let eps = f64::from(norm.eps);
    match norm.kind {
        NormKind::Layer | NormKind::Rms => 1.0 / (squares / n as f64 + eps).sqrt(),
        NormKind::L2 => 1.0 / squares.sqrt().max(eps),
    }
}

//! Cases of `unary`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &kind in UnaryKind::ALL {
        let (lo, hi) = kind.range();
        let narrow = (lo.max(-4.0), hi.min(4.0));
        let shapes: [(&[usize], (f32, f32)); 3] = [(&[7, 33], (lo, hi)), (&[2, 3, 5, 16], narrow), (&[1000], narrow)];
        for (dims, (lo, hi)) in shapes {
            cases.push(Case::new(
                Unary { kind },
                format!("{} {dims:?} {lo}..{hi}", kind.name()),
                StepParams::at(0, 1),
                |o| vec![o.filled(dims, Fill::Uniform(lo, hi))],
            ));
        }
    }
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    // Soft caps end in it: what is NaN must not become a number there.
    cases.push(Case::new(Unary { kind: UnaryKind::Tanh }, "tanh of nan and infinity", StepParams::at(0, 1), |o| {
        vec![o.filled(&[3, 20], Fill::Values(vec![0.5, nan, inf, -inf, 1e30, -1e-3, -7.0]))]
    }));
    cases
}

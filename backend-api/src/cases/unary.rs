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
    let edges = vec![0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.499_999_97, -0.499_999_97, 1e-20, -1e-20];
    let large = vec![8_388_607.5, 8_388_609.0, -8_388_609.0, 4_194_303.5];
    for kind in [UnaryKind::Sign, UnaryKind::Step, UnaryKind::Round, UnaryKind::Trunc] {
        for (name, values) in [("at its edges", &edges), ("of large numbers", &large)] {
            cases.push(Case::new(Unary { kind }, format!("{} {name}", kind.name()), StepParams::at(0, 1), |o| {
                vec![o.filled(&[3, 24], Fill::Values(values.clone()))]
            }));
        }
    }
    // Where e^x - 1 would have few digits left.
    for kind in [UnaryKind::Expm1, UnaryKind::Elu] {
        for size in [1e-6, 1e-3, 0.4] {
            let name = format!("{} near zero, {size}", kind.name());
            cases.push(Case::new(Unary { kind }, name, StepParams::at(0, 1), |o| {
                vec![o.filled(&[5, 33], Fill::Uniform(-size, size))]
            }));
        }
    }
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    // Soft caps end in it: what is NaN must not become a number there.
    cases.push(Case::new(Unary { kind: UnaryKind::Tanh }, "tanh of nan and infinity", StepParams::at(0, 1), |o| {
        vec![o.filled(&[3, 20], Fill::Values(vec![0.5, nan, inf, -inf, 1e30, -1e-3, -7.0]))]
    }));
    cases
}

//! Cases of `norm_add`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let norm = |kind, heads| Norm { kind, eps: 1e-5, heads };
    let rows = [
        ("decode", 1, 2304, norm(NormKind::Rms, 1)),
        ("prefill", 5, 576, norm(NormKind::Rms, 1)),
        ("odd", 3, 37, norm(NormKind::Rms, 1)),
        ("layer, decode", 1, 96, norm(NormKind::Layer, 1)),
        ("layer, prefill", 4, 70, norm(NormKind::Layer, 1)),
        ("heads", 2, 64, norm(NormKind::Rms, 4)),
    ];
    let case = |(name, t, n, norm): (&str, usize, usize, Norm)| {
        Case::new(NormAdd { norm }, name, StepParams::at(0, t as u32), |o| {
            let mut list = vec![o.input(&[t, n])];
            list.extend((0..norm.kind.params()).map(|_| o.weight(&[n / norm.heads])).collect::<Vec<_>>());
            list.push(o.input(&[t, n]));
            list
        })
    };
    rows.into_iter().map(case).collect()
}

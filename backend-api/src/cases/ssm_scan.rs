//! Cases of `ssm_scan`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    // Channels, heads, columns of a, numbers of a state, groups: Mamba's, where each channel is a head; then Mamba 2's.
    for [d, heads, decays, n, groups] in [
        [6, 6, 6, 6, 1],
        [70, 70, 16, 16, 1],
        [48, 6, 1, 8, 2],
        [40, 4, 1, 31, 1],
        [64, 2, 1, 128, 2],
        [24, 3, 5, 5, 3],
    ] {
        for (t, rows) in [(1, 1), (5, 5), (5, 3), (35, 33)] {
            let name = format!("{d} channels of {heads} heads, states of {n}, {groups} groups, {rows} of {t} rows");
            cases.push(Case::new(SsmScan, name, StepParams::at(3, rows), |o| {
                let [state, x] = [o.replaced(&[d, n]), o.input(&[t, d])];
                let dt = o.filled(&[t, heads], Fill::Uniform(-6.0, 3.0));
                let a = o.external(Kind::Weight, &[heads, decays], DType::F32, Fill::Uniform(-1.5, -0.1));
                vec![state, x, dt, a, o.input(&[t, groups * n]), o.input(&[t, groups * n]), o.weight(&[heads])]
            }));
        }
    }
    cases
}

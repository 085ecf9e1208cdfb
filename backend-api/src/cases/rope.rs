//! Cases of `rope`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for mode in [RopeMode::Normal, RopeMode::Neox] {
        for (t, n_head, d, n_dims) in [(1, 9, 64, 64), (5, 2, 64, 48), (3, 3, 20, 10), (2, 1, 6, 6)] {
            cases.push(Case::new(
                Rope { n_head, n_dims, mode },
                format!("{mode:?} {t}x{n_head}x{d} of {n_dims}"),
                StepParams::at(6, t as u32),
                |o| {
                    let table = RopeTable::plain(n_dims, 10_000.0).rows((0..16).map(|p| p * 37));
                    vec![o.input(&[t, n_head * d]), o.filled(&[16, n_dims], Fill::Values(table))]
                },
            ));
        }
    }
    cases
}

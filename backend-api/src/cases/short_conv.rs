//! Cases of `short_conv`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (taps, d) in [(3, 6), (4, 64), (3, 130), (4, 33), (7, 10)] {
        for (t, rows) in [(1, 1), (2, 2), (5, 5), (5, 1), (5, 3), (8, 4)] {
            let name = format!("{taps} taps of {d} channels, {rows} of {t} rows");
            cases.push(Case::new(ShortConv, name, StepParams::at(3, rows), |o| {
                vec![o.replaced(&[taps - 1, d]), o.input(&[t, d]), o.weight(&[d, taps])]
            }));
        }
    }
    cases
}

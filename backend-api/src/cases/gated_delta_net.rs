//! Cases of `gated_delta_net`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    // Heads, heads of keys, channels of a key, channels of a value.
    for [heads, heads_k, dk, dv] in [[2, 2, 8, 8], [4, 2, 6, 10], [3, 1, 33, 5], [4, 2, 128, 128]] {
        for (t, rows) in [(1, 1), (5, 5), (5, 3)] {
            for (grouped, gates) in [(false, 1), (true, 1), (false, dk)] {
                let [of, by] =
                    [if grouped { "neighbouring" } else { "alternating" }, if gates > 1 { "columns" } else { "" }];
                let name =
                    format!("{heads} {of} heads, keys of {heads_k} x {dk}, values of {dv}, {rows} of {t} rows {by}");
                // Keys of unit length, as models have them.
                let key = (3.0 / dk as f32).sqrt();
                cases.push(Case::new(GatedDeltaNet { grouped }, name.trim_end(), StepParams::at(3, rows), |o| {
                    let state = o.replaced(&[heads * dv, dk]);
                    let [q, k] = [0, 1].map(|_| o.filled(&[t, heads_k * dk], Fill::Uniform(-key, key)));
                    let [v, g] = [o.input(&[t, heads * dv]), o.filled(&[t, heads * gates], Fill::Uniform(-2.0, 0.0))];
                    vec![state, q, k, v, g, o.filled(&[t, heads], Fill::Uniform(0.0, 1.0))]
                }));
            }
        }
    }
    cases
}

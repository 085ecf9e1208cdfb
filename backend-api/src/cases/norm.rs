//! Cases of `norm`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in NormKind::ALL {
        let mut add = |dims: &[usize], heads: usize, own: usize, eps: f32, name: String| {
            cases.push(Case::new(Norm { kind, eps, heads }, name, StepParams::at(0, 1), |o| {
                let x = o.filled(dims, Fill::Uniform(-10.0, 11.0));
                let n = dims[dims.len() - 1] / heads;
                let params = (0..kind.params()).map(|_| o.weight(&[own * n]));
                std::iter::once(x).chain(params.collect::<Vec<_>>()).collect()
            }));
        };
        let shapes: [&[usize]; 6] = [&[1, 64], &[1, 576], &[7, 33], &[3, 5, 100], &[2, 2048], &[4, 1]];
        for dims in shapes {
            // The last is more than the length of short rows.
            for eps in [1e-5, 1e-6, 1e-1, 40.0] {
                add(dims, 1, 1, eps, format!("{kind:?} {dims:?} eps {eps}"));
            }
        }
        let split: [(&[usize], usize); 6] =
            [(&[1, 512], 4), (&[6, 128], 4), (&[2, 1024], 4), (&[5, 35], 5), (&[3, 6], 3), (&[3, 4], 4)];
        for (dims, heads) in split {
            add(dims, heads, 1, 1e-5, format!("{kind:?} {dims:?} in {heads} heads"));
            add(dims, heads, heads, 1e-5, format!("{kind:?} {dims:?} in {heads} heads with a gamma each"));
        }
    }
    cases
}

//! Cases of `matmul`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let step = StepParams::at(0, 1);
    let mut cases = Vec::new();
    for format in Format::ALL {
        let len = format.spec().block_len.max(32);
        // One block, and an odd number of them.
        for k in [len, 3 * len] {
            for (m, n) in [(1, 37), (20, 72)] {
                cases.push(Case::new(MatMul, format!("{} {m}x{n}x{k}", format.name()), step, |o| {
                    vec![o.input(&[m, k]), o.packed(*format, n, k)]
                }));
            }
        }
    }
    for (m, n, k) in [(1, 3, 7), (3, 2, 70), (1, 40, 33)] {
        for format in [Format::F32, Format::F16, Format::BF16] {
            cases.push(Case::new(MatMul, format!("{} odd {m}x{n}x{k}", format.name()), step, |o| {
                vec![o.input(&[m, k]), o.packed(format, n, k)]
            }));
        }
    }
    let shapes: &[(&[usize], &[usize])] = &[
        (&[1, 1], &[1, 1]),
        (&[4, 64], &[8, 64]),
        (&[1, 576], &[100, 576]),
        (&[3, 60], &[5, 60]),
        (&[1, 60], &[5, 60]),
        (&[20, 65], &[17, 65]),
        (&[33, 65], &[17, 65]),
        (&[40, 60], &[36, 60]),
        (&[64, 128], &[96, 128]),
        (&[66, 65], &[17, 65]),
        (&[70, 60], &[36, 60]),
        (&[65, 128], &[40, 128]),
        (&[6, 5, 16], &[2, 9, 16]),
        (&[3, 1, 12], &[3, 7, 12]),
        (&[2, 4, 3, 20], &[1, 2, 5, 20]),
        (&[5, 8], &[3, 6, 8]),
    ];
    for (a, b) in shapes {
        cases.push(Case::new(MatMul, format!("f32 {a:?} {b:?}"), step, |o| vec![o.input(a), o.input(b)]));
    }
    cases
}

//! Cases of `argmax`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let rows: &[(&str, &[usize], Fill)] = &[
        ("one", &[1, 1], Fill::Shuffled),
        ("rows", &[7, 33], Fill::Shuffled),
        ("vocabulary", &[1, 49_152], Fill::Shuffled),
        ("odd vocabulary", &[2, 1001], Fill::Shuffled),
        ("3d", &[2, 3, 100], Fill::Uniform(-5.0, 5.0)),
        ("ties", &[5, 300], Fill::Values(vec![0.0, 2.0, 1.0, 2.0, -1.0, 2.0, 0.5])),
        ("all equal", &[2, 65], Fill::Values(vec![-3.0])),
        ("negative", &[3, 50], Fill::Uniform(-1e30, -1e20)),
        ("largest finite", &[2, 65], Fill::Values(vec![0.0, f32::MAX, -f32::MAX])),
        ("all nan", &[2, 300], Fill::Values(vec![nan])),
        ("all infinite", &[2, 300], Fill::Values(vec![inf])),
        ("all minus infinite", &[2, 65], Fill::Values(vec![-inf])),
        ("infinite is best", &[1, 40], Fill::Values(vec![1.0, inf, 2.0])),
        ("one nan in some rows", &[5, 33], Fill::odd_one(97, nan)),
        ("one nan in a vocabulary", &[1, 49_152], Fill::odd_one(40_000, nan)),
        ("one infinite in a vocabulary", &[2, 5256], Fill::odd_one(5250, -inf)),
    ];
    rows.iter()
        .map(|(name, dims, fill)| {
            Case::new(ArgMax, *name, StepParams::at(0, 1), |o| vec![o.filled(dims, fill.clone())])
        })
        .collect()
}

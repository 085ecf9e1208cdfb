//! Cases of `top_k`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let rows: &[(&str, &[usize], usize, Fill)] = &[
        ("one of one", &[1, 1], 1, Fill::Shuffled),
        ("three of rows", &[4, 33], 3, Fill::Shuffled),
        ("all", &[2, 20], 20, Fill::Shuffled),
        ("of a vector", &[70], 9, Fill::Shuffled),
        ("vocabulary", &[1, 49_152], 64, Fill::Shuffled),
        ("vocabularies", &[3, 9_300], 40, Fill::Shuffled),
        ("ties in a vocabulary", &[2, 5_001], 33, Fill::Values(vec![0.0, 2.0, 1.0, 2.0, -1.0])),
        ("more than a segment has at its end", &[2, 2_051], 64, Fill::Shuffled),
        ("a nan at the end of a vocabulary", &[2, 9_300], 9, Fill::odd_one(18_599, nan)),
        ("forty", &[1, 5256], 40, Fill::Uniform(-10.0, 20.0)),
        ("all nan", &[2, 300], 9, Fill::Values(vec![nan])),
        ("one nan in some rows", &[5, 333], 7, Fill::odd_one(900, nan)),
        ("one nan in a vocabulary", &[1, 49_152], 64, Fill::odd_one(40_000, nan)),
        ("infinite is best", &[1, 150], 3, Fill::Values(vec![0.0, inf, 2.0])),
        ("minus infinite", &[1, 65], 3, Fill::odd_one(64, -inf)),
        ("ties", &[2, 300], 9, Fill::Values(vec![0.0, 2.0, 1.0, 2.0, -1.0])),
    ];
    rows.iter()
        .map(|(name, dims, k, fill)| {
            Case::new(TopK { k: *k }, *name, StepParams::at(0, 1), |o| vec![o.filled(dims, fill.clone())])
        })
        .collect()
}

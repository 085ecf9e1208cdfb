//! Cases of `argsort`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let rows: &[(&str, &[usize], Fill)] = &[
        ("one", &[1, 1], Fill::Shuffled),
        ("pairs", &[9, 2], Fill::Shuffled),
        ("rows", &[4, 33], Fill::Shuffled),
        ("one list", &[3, 64], Fill::Uniform(-1.0, 1.0)),
        ("a vector", &[150], Fill::Shuffled),
        ("an odd number of lists", &[2, 3, 300], Fill::Shuffled),
        ("long rows", &[2, 5000], Fill::Uniform(-10.0, 10.0)),
        ("ties", &[2, 300], Fill::Values(vec![0.0, 2.0, -0.0, 1.0, 2.0, -1.0])),
        ("nan and infinity", &[2, 150], Fill::Values(vec![1.0, nan, -inf, 0.5, inf, 1e30, -nan, -7.0])),
    ];
    let mut cases = Vec::new();
    for (name, dims, fill) in rows {
        for descending in [false, true] {
            let order = if descending { "descending" } else { "ascending" };
            cases.push(Case::new(Argsort { descending }, format!("{name}, {order}"), StepParams::at(0, 1), |o| {
                vec![o.filled(dims, fill.clone())]
            }));
        }
    }
    cases
}

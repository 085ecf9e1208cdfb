//! Cases of `sample`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (temperature, top_k, top_p) in
        [(0.0, 0, 1.0), (1.0, 0, 1.0), (0.8, 40, 0.95), (1.5, 3, 1.0), (1.0, 0, 0.3), (0.1, 10, 0.9)]
    {
        for seed in 0..6 {
            let params =
                StepParams { temperature, top_k, top_p, seed_lo: seed, seed_hi: 7, ..StepParams::at(11, 1 + seed) };
            let name = format!("T {temperature}, k {top_k}, p {top_p}, seed {seed}");
            cases.push(Case::new(Sample, name, params, |o| {
                let values = o.filled(&[1, 64], Fill::Descending(8.0));
                vec![values, o.external(Kind::Input, &[1, 64], DType::I32, Fill::Shuffled)]
            }));
        }
    }
    // A row of candidates for each row of the step, as when drafts are verified; some of a step may not be real.
    for (rows, real, temperature) in [(2, 2, 0.9), (3, 2, 0.0), (8, 8, 1.2)] {
        let params = StepParams { temperature, top_p: 0.9, seed_lo: 5, ..StepParams::at(11, real) };
        cases.push(Case::new(Sample, format!("{rows} rows, {real} of them real, T {temperature}"), params, |o| {
            let values = o.filled(&[rows, 64], Fill::Descending(8.0));
            vec![values, o.external(Kind::Input, &[rows, 64], DType::I32, Fill::Shuffled)]
        }));
    }
    // Of descending values with gaps of up to a half, few weigh a tenth of the best.
    for (rows, min_p, top_p) in [(1, 0.1, 1.0), (1, 0.02, 0.9), (1, 0.0, 1.0), (1, 1.0, 1.0), (4, 0.05, 1.0)] {
        for seed in 0..4 {
            let params =
                StepParams { temperature: 1.3, top_p, seed_lo: seed, seed_hi: 3, ..StepParams::at(11, rows as u32) };
            let penalties =
                Penalties { repetition: 1.0, last: 0, presence: 0.0, frequency: 0.0, counted: 0, begin: 0, min_p };
            let name = format!("{rows} rows, min p {min_p}, p {top_p}, seed {seed}");
            cases.push(Case::new(Sample, name, params, |o| {
                let values = o.filled(&[rows, 64], Fill::Descending(8.0));
                let ids = o.external(Kind::Input, &[rows, 64], DType::I32, Fill::Shuffled);
                vec![values, ids, o.filled(&[1, Penalties::COLS], Fill::Values(penalties.row().to_vec()))]
            }));
        }
    }
    for (name, fill) in [
        ("nan", Fill::Values(vec![f32::NAN])),
        ("the last is nan", Fill::odd_one(63, f32::NAN)),
        ("infinite is best", Fill::Values(vec![f32::INFINITY, 1.0])),
    ] {
        for temperature in [0.0, 1.0] {
            let params = StepParams { temperature, top_p: 1.0, ..StepParams::at(11, 1) };
            cases.push(Case::new(Sample, format!("{name}, T {temperature}"), params, |o| {
                let values = o.filled(&[1, 64], fill.clone());
                vec![values, o.external(Kind::Input, &[1, 64], DType::I32, Fill::Shuffled)]
            }));
        }
    }
    cases
}

//! Cases of `penalize`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let none = Penalties { repetition: 1.0, last: 0, presence: 0.0, frequency: 0.0, counted: 0, begin: 0, min_p: 0.0 };
    let repetition = Penalties { repetition: 1.3, last: 64, ..none };
    let presence = Penalties { presence: 0.75, counted: 1024, begin: 11, ..none };
    let frequency = Penalties { frequency: -0.5, counted: 1024, begin: 11, ..none };
    let all =
        Penalties { repetition: 0.8, last: 7, presence: -0.25, frequency: 0.375, counted: 9, begin: 4, min_p: 0.1 };
    let mut cases = Vec::new();
    // A mask would outweigh all else, so that it has a case of its own.
    let uneven = vec![0.0, 0.0, 1.5, 0.0, -0.5];
    let mut add = |name: &str, penalties: Penalties, [rows, n, n_ctx]: [usize; 3], step: StepParams, fill: Fill| {
        let bias = if name == "mask" { vec![0.0, -1e9, 0.0] } else { uneven.clone() };
        let name = format!("{name} {rows}x{n}, history of {n_ctx}, position {}", step.position);
        cases.push(Case::new(Penalize, name, step, |o| {
            let logits = o.filled(&[rows, n], fill);
            let history = o.history(n_ctx, 40);
            let bias = o.filled(&[1, n], Fill::Values(bias));
            vec![logits, history, bias, o.filled(&[1, Penalties::COLS], Fill::Values(penalties.row().to_vec()))]
        }));
    };
    let wide = Fill::Uniform(-4.0, 4.0);
    for (name, penalties) in
        [("bias", none), ("repetition", repetition), ("presence", presence), ("frequency", frequency), ("all", all)]
    {
        add(name, penalties, [1, 50, 100], StepParams::at(39, 1), wide.clone());
        // The last of several rows, as after a prompt.
        add(name, penalties, [1, 64, 128], StepParams::at(20, 60), wide.clone());
        // A row each, as when drafts are verified.
        add(name, penalties, [5, 45, 64], StepParams::at(17, 4), wide.clone());
    }
    add("nothing counts yet", presence, [1, 48, 64], StepParams::at(9, 1), wide.clone());
    add("the first token", all, [1, 48, 64], StepParams::at(0, 1), wide.clone());
    add("the last place", all, [1, 48, 64], StepParams::at(63, 1), wide.clone());
    add("mask", all, [2, 48, 64], StepParams::at(30, 2), wide.clone());
    add("nan", all, [1, 48, 64], StepParams::at(30, 1), Fill::odd_one(5, f32::NAN));
    add("infinite", all, [1, 48, 64], StepParams::at(30, 1), Fill::odd_one(6, f32::INFINITY));
    add("a vocabulary", all, [1, 49_155, 2048], StepParams::at(1500, 1), wide);
    cases
}

//! Cases of `argmax_append`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, n: usize, fill: Fill, step| {
        Case::new(ArgMaxAppend, name, step, |o| vec![o.history(16, 100), o.filled(&[1, n], fill)])
    };
    let nan = f32::NAN;
    vec![
        case("decode", 5256, Fill::Shuffled, StepParams::at(4, 1)),
        case("after prefill", 49_152, Fill::Shuffled, StepParams::at(0, 7)),
        case("ties", 300, Fill::Values(vec![0.0, 2.0, 1.0, 2.0]), StepParams::at(14, 1)),
        case("all nan", 300, Fill::Values(vec![nan]), StepParams::at(4, 1)),
        case("one nan in a vocabulary", 49_152, Fill::odd_one(20_001, nan), StepParams::at(4, 1)),
        case("infinite is best", 100, Fill::Values(vec![0.0, f32::INFINITY]), StepParams::at(4, 1)),
        case("history is full", 100, Fill::Shuffled, StepParams::at(15, 1)),
    ]
}

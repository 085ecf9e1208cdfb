//! Cases of `append`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let dense = |name: &str, n: usize, t: usize, d: usize, step| {
        Case::new(Append { at: At::Position }, name, step, |o| vec![o.state(None, &[n, d]), o.input(&[t, d])])
    };
    let halves = |name: &str, t: usize, d: usize, step| {
        let wide = Fill::Uniform(-1000.0, 1000.0);
        Case::new(Append { at: At::Position }, name, step, |o| {
            vec![o.state(Some(Codec::F16), &[12, d]), o.filled(&[t, d], wide)]
        })
    };
    let mut cases = vec![
        dense("one row", 12, 1, 192, StepParams::at(5, 1)),
        dense("some rows", 12, 4, 33, StepParams::at(3, 4)),
        dense("fewer real rows", 12, 4, 20, StepParams::at(3, 2)),
        dense("at the end", 12, 1, 20, StepParams::at(11, 1)),
        dense("wide and folded", 3, 1, 5000, StepParams::at(1, 1)),
        halves("halves, one row", 1, 192, StepParams::at(5, 1)),
        halves("halves, fewer real rows", 4, 40, StepParams::at(9, 2)),
        halves("halves, at the end", 3, 8, StepParams::at(10, 2)),
        Case::new(Append { at: At::Next }, "next token", StepParams::at(4, 3), |o| {
            vec![o.history(16, 1000), o.ids(&[1], 50_000)]
        }),
        Case::new(Append { at: At::EachNext }, "after each row", StepParams::at(4, 3), |o| {
            vec![o.history(16, 1000), o.ids(&[5], 50_000)]
        }),
        Case::new(Append { at: At::EachNext }, "after each row, at the end", StepParams::at(9, 2), |o| {
            vec![o.state(Some(Codec::F16), &[11, 8]), o.input(&[2, 8])]
        }),
        Case::new(Append { at: At::Next }, "next row", StepParams::at(4, 3), |o| {
            vec![o.state(None, &[9, 6]), o.filled(&[1, 6], Fill::Uniform(-3.0, 3.0))]
        }),
    ];
    for codec in Codec::ALL {
        let mut coded = |name: &str, t: usize, d: usize, fill: Fill, step| {
            let name = format!("{}, {name}", codec.spec().name);
            cases.push(Case::new(Append { at: At::Position }, name, step, |o| {
                vec![o.state(Some(*codec), &[12, d]), o.filled(&[t, d], fill)]
            }));
        };
        let wide = || Fill::Uniform(-30.0, 30.0);
        coded("one row", 1, 192, wide(), StepParams::at(5, 1));
        coded("fewer real rows", 4, 96, wide(), StepParams::at(9, 2));
        coded("at the end", 3, 32, wide(), StepParams::at(10, 2));
        coded("wide and folded", 2, 4128, wide(), StepParams::at(3, 2));
        coded("small numbers", 1, 64, Fill::Uniform(-1e-3, 1e-3), StepParams::at(0, 1));
        let nan = vec![0.5, -1.0, f32::NAN, 0.25, 1.0, 0.0, 2.0];
        coded("a number that is none", 1, 64, Fill::Values(nan), StepParams::at(0, 1));
        coded("zeros", 1, 64, Fill::Values(vec![0.0]), StepParams::at(0, 1));
    }
    cases
}

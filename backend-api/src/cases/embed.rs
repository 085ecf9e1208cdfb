//! Cases of `embed`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let rows: &[(&str, Format, Format, usize, usize)] = &[
        ("decode", Format::Q8_0, Format::F32, 1, 512),
        ("prefill", Format::Q8_0, Format::F32, 5, 512),
        ("halves", Format::F16, Format::F16, 3, 40),
        ("same format", Format::F32, Format::F32, 2, 96),
    ];
    let formats = Format::ALL.iter().map(|format| {
        let d = format.spec().block_len.max(64);
        (format.name(), *format, *format, 2, d)
    });
    rows.iter()
        .copied()
        .chain(formats)
        .map(|(name, a, b, rows, d)| {
            Case::new(Embed { rows }, name, StepParams::at(3, rows as u32), |o| {
                let tokens = o.packed(a, 50, d);
                let history = o.history(24, 50);
                vec![tokens, history, o.packed(b, 24, d)]
            })
        })
        .collect()
}

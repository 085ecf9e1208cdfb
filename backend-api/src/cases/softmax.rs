//! Cases of `softmax`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let none = Masking::default();
    let causal = Masking { causal: true, ..none };
    let cached = Masking { cached: true, ..causal };
    let window = Masking { window: 3, ..cached };
    let explicit = Masking { explicit: true, ..none };
    // (name, dimensions, scale, soft cap, masking, step)
    type Row = (&'static str, &'static [usize], f32, f32, Masking, StepParams);
    let rows: &[Row] = &[
        ("one", &[1, 1], 1.0, 0.0, none, StepParams::at(0, 1)),
        ("rows", &[7, 33], 1.0, 0.0, none, StepParams::at(0, 1)),
        ("wide", &[2, 5000], 0.5, 0.0, none, StepParams::at(0, 1)),
        ("as long as a vocabulary", &[1, 20000], 0.5, 0.0, none, StepParams::at(0, 1)),
        ("4d", &[2, 3, 4, 20], 2.0, 0.0, none, StepParams::at(0, 1)),
        ("causal", &[3, 5, 9], 0.25, 0.0, causal, StepParams::at(0, 5)),
        ("cached", &[3, 4, 40], 0.25, 0.0, cached, StepParams::at(11, 4)),
        ("window", &[2, 4, 24], 0.25, 0.0, window, StepParams::at(7, 4)),
        ("window around", &[3, 5, 9], 0.25, 0.0, Masking { window: 4, ..none }, StepParams::at(0, 5)),
        ("softcap", &[2, 4, 24], 1.0, 4.0, cached, StepParams::at(7, 4)),
        ("explicit", &[3, 5, 9], 0.25, 0.0, explicit, StepParams::at(0, 5)),
        ("hidden rows", &[3, 5, 9], 0.25, 0.0, explicit, StepParams::at(0, 5)),
        ("hidden rows, wide", &[4, 700], 0.25, 0.0, explicit, StepParams::at(0, 4)),
        ("hidden rows, causal", &[2, 6, 40], 0.25, 3.0, Masking { explicit: true, ..causal }, StepParams::at(0, 6)),
        ("rows hidden by the lowest number", &[3, 5, 9], 0.25, 0.0, explicit, StepParams::at(0, 5)),
    ];
    let sinks: &[Row] = &[
        ("sink", &[7, 33], 1.0, 0.0, none, StepParams::at(0, 1)),
        ("sinks", &[2, 3, 4, 20], 2.0, 0.0, none, StepParams::at(0, 1)),
        ("sinks, one row", &[3, 1, 40], 0.25, 0.0, cached, StepParams::at(11, 1)),
        ("sinks, window", &[2, 4, 24], 0.25, 0.0, window, StepParams::at(7, 4)),
        ("sinks, explicit", &[3, 5, 9], 0.25, 0.0, explicit, StepParams::at(0, 5)),
        ("sinks, hidden rows", &[3, 5, 9], 0.25, 0.0, explicit, StepParams::at(0, 5)),
        ("sink, one of one", &[1, 9], 1.0, 0.0, none, StepParams::at(0, 1)),
    ];
    let plain = rows.iter().map(|row| (row, false));
    plain
        .chain(sinks.iter().map(|row| (row, true)))
        .map(|(&(name, dims, scale, softcap, masking, step), sinks)| {
            Case::new(Softmax { scale, softcap, masking, sinks }, name, step, |o| {
                let mut inputs = vec![o.filled(dims, Fill::Uniform(-20.0, 20.0))];
                if masking.explicit {
                    let hidden = if name.contains("lowest") { f32::MIN } else { f32::NEG_INFINITY };
                    let keys = dims[dims.len() - 1];
                    let fill = if name.contains("hidden") { Fill::hiding(keys, hidden) } else { Fill::Mask };
                    inputs.push(o.filled(&dims[dims.len() - 2..], fill));
                }
                if sinks {
                    let heads = if dims.len() > 2 { dims[dims.len() - 3] } else { 1 };
                    inputs.push(o.filled(&[heads], Fill::Uniform(-10.0, 20.0)));
                }
                inputs
            })
        })
        .collect()
}

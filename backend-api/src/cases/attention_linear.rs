//! Cases of `attention_linear`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let cached = Masking { causal: true, cached: true, ..Masking::default() };
    let window = Masking { window: 100, ..cached };
    let explicit = Masking { explicit: true, ..Masking::default() };
    // (name, masking, softcap, queries, keys, heads, KV heads, head_dim, format, outputs, bias, residual, step)
    type Row = (&'static str, Masking, f32, [usize; 2], [usize; 3], Format, usize, [bool; 2], StepParams);
    let at = StepParams::at;
    let (q4, q8) = (Format::Q4_1, Format::Q8_0);
    let rows: &[Row] = &[
        ("first token", cached, 0.0, [1, 48], [9, 3, 64], q4, 96, [false, true], at(0, 1)),
        ("decode", cached, 0.0, [1, 48], [9, 3, 64], q4, 576, [false, true], at(20, 1)),
        ("decode, bias", cached, 0.0, [1, 300], [8, 8, 64], Format::Q4_0, 64, [true, true], at(299, 1)),
        ("decode, long", cached, 0.0, [1, 1300], [3, 1, 64], q8, 40, [false, true], at(1280, 1)),
        ("decode, longer", cached, 0.0, [1, 2600], [2, 1, 16], q8, 40, [false, false], at(2500, 1)),
        ("window", window, 0.0, [1, 400], [4, 2, 16], q8, 33, [false, false], at(333, 1)),
        ("softcap", cached, 5.0, [1, 200], [4, 4, 32], q4, 32, [true, false], at(150, 1)),
        ("head of 96", cached, 0.0, [1, 150], [2, 2, 96], q8, 24, [false, true], at(140, 1)),
        ("head of 320", cached, 0.0, [1, 150], [2, 1, 320], q8, 24, [false, false], at(140, 1)),
        ("odd sizes", cached, 0.0, [1, 90], [3, 3, 7], Format::F32, 5, [true, false], at(80, 1)),
        ("wide", cached, 0.0, [1, 70], [64, 8, 64], q8, 16, [false, false], at(66, 1)),
        ("prefill", cached, 0.0, [5, 48], [4, 2, 16], q8, 24, [false, true], at(17, 5)),
        ("explicit mask", explicit, 0.0, [1, 9], [4, 2, 16], q8, 24, [false, false], at(0, 1)),
    ];
    let halves: &[Row] = &[
        ("halves", cached, 0.0, [1, 48], [9, 3, 64], q4, 96, [false, true], at(20, 1)),
        ("halves, long", cached, 0.0, [1, 1300], [3, 1, 64], q8, 40, [false, true], at(1280, 1)),
        ("halves, prefill", cached, 0.0, [5, 48], [4, 2, 16], q8, 24, [false, true], at(17, 5)),
    ];
    let case =
        |&(name, masking, softcap, [m, n], [h, g, d], format, out, [bias, residual], step): &Row, codec, sinks| {
            let max_bias = if name.starts_with("slopes") { 8.0 } else { 0.0 };
            let scale = 1.0 / (d as f32).sqrt();
            let attention = Attention { n_head: h, n_head_kv: g, scale, softcap, max_bias, masking, sinks };
            let linear = Linear { bias, residual, ..Linear::PLAIN };
            Case::new(AttentionLinear { attention, linear }, name, step, |o| {
                let mut list = vec![o.filled(&[m, h * d], Fill::Uniform(-2.0, 2.0))];
                list.extend([(); 2].map(|()| o.keys(codec, &[n, g * d])));
                if masking.explicit {
                    list.push(o.filled(&[m, n], Fill::Mask));
                }
                list.extend(sinks.then(|| o.filled(&[h], Fill::Uniform(-1.0, 3.0))));
                list.push(o.packed(format, out, h * d));
                if bias {
                    list.push(o.weight(&[out]));
                }
                if residual {
                    list.push(o.input(&[m, out]));
                }
                list
            })
        };
    let with_sinks: &[Row] = &[
        ("sinks, first token", cached, 0.0, [1, 48], [9, 3, 64], q4, 96, [true, true], at(0, 1)),
        ("sinks, long", cached, 0.0, [1, 1300], [3, 1, 64], q8, 40, [true, true], at(1280, 1)),
        ("sinks, window", window, 0.0, [1, 400], [4, 2, 16], q8, 33, [false, false], at(333, 1)),
        ("sinks, wide", cached, 0.0, [1, 70], [64, 8, 64], q8, 16, [false, true], at(66, 1)),
        ("sinks, prefill", cached, 0.0, [5, 48], [4, 2, 16], q8, 24, [false, true], at(17, 5)),
    ];
    let with_slopes: &[Row] = &[
        ("slopes, decode", cached, 0.0, [1, 48], [9, 3, 64], q4, 96, [false, true], at(20, 1)),
        ("slopes, long", cached, 0.0, [1, 1300], [3, 1, 64], q8, 40, [true, true], at(1280, 1)),
        ("slopes, window", window, 5.0, [1, 400], [4, 2, 16], q8, 33, [false, false], at(333, 1)),
        ("slopes, prefill", cached, 0.0, [5, 48], [4, 2, 16], q8, 24, [false, true], at(17, 5)),
    ];
    let plain = rows.iter().chain(with_slopes).map(|row| case(row, None, false));
    let halves = halves.iter().map(|row| case(row, Some(Codec::F16), false));
    let sinks = with_sinks.iter().map(|row| case(row, None, true));
    // Rows of which each is to be rounded as if it were the only one.
    let few: &[Row] = &[
        ("few", cached, 0.0, [4, 48], [9, 3, 64], q4, 96, [false, true], at(20, 4)),
        ("few, window", window, 0.0, [8, 400], [3, 1, 40], Format::F32, 24, [true, true], at(333, 8)),
        ("few, long", cached, 5.0, [2, 1300], [3, 1, 64], q8, 40, [false, false], at(1280, 2)),
        ("slopes, few", cached, 0.0, [3, 200], [6, 3, 16], q8, 24, [false, true], at(150, 3)),
        ("many", cached, 0.0, [12, 48], [9, 3, 64], q4, 96, [true, true], at(20, 12)),
    ];
    let with = [(None, false), (Some(Codec::F16), true)];
    let few = with.into_iter().flat_map(|(codec, sinks)| {
        few.iter().map(move |row| {
            let case = case(row, codec, sinks).alike();
            let name = if sinks { format!("halves and sinks, {}", case.name) } else { case.name.clone() };
            Case { name, ..case }
        })
    });
    let mut cases: Vec<Case> = plain.chain(halves).chain(sinks).chain(few).collect();
    for codec in Codec::ALL {
        let coded: &[Row] = &[
            ("decode", cached, 0.0, [1, 48], [9, 3, 64], q4, 96, [false, true], at(20, 1)),
            ("long", cached, 0.0, [1, 1300], [3, 1, 64], q8, 40, [false, true], at(1280, 1)),
        ];
        cases.extend(coded.iter().map(|row| {
            let case = case(row, Some(*codec), false);
            Case { name: format!("{}, {}", codec.spec().name, case.name), ..case }
        }));
    }
    cases
}

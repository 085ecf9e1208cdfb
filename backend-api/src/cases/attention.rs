//! Cases of `attention`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let causal = Masking { causal: true, ..Masking::default() };
    let cached = Masking { causal: true, cached: true, ..Masking::default() };
    let window = Masking { window: 4, ..cached };
    let explicit = Masking { explicit: true, ..Masking::default() };
    let both = Masking { cached: true, ..Masking::default() };
    let both_explicit = Masking { explicit: true, ..both };
    let around = |window| Masking { window, ..both };
    let free = Masking { window: 4, ..Masking::default() };
    // (name, masking, softcap, m, n, heads, KV heads, d, dv, step)
    type Row = (&'static str, Masking, f32, usize, usize, usize, usize, usize, usize, StepParams);
    let rows: &[Row] = &[
        ("plain", Masking::default(), 0.0, 3, 5, 2, 2, 16, 16, StepParams::at(0, 3)),
        ("causal", causal, 0.0, 6, 6, 2, 2, 64, 64, StepParams::at(0, 6)),
        ("causal, more keys", causal, 0.0, 4, 9, 2, 1, 32, 32, StepParams::at(0, 4)),
        ("decode", cached, 0.0, 1, 48, 9, 3, 64, 64, StepParams::at(20, 1)),
        ("decode, first token", cached, 0.0, 1, 48, 8, 8, 64, 64, StepParams::at(0, 1)),
        ("decode, full cache", cached, 0.0, 1, 300, 4, 2, 16, 16, StepParams::at(299, 1)),
        ("decode, long", cached, 0.0, 1, 1100, 3, 1, 64, 64, StepParams::at(1030, 1)),
        ("prefill", cached, 0.0, 8, 48, 9, 3, 64, 64, StepParams::at(0, 8)),
        ("prefill, continued", cached, 0.0, 5, 48, 4, 2, 8, 8, StepParams::at(17, 5)),
        ("window", window, 0.0, 6, 24, 4, 2, 16, 16, StepParams::at(9, 6)),
        ("window, decode", window, 0.0, 1, 24, 4, 2, 16, 16, StepParams::at(2, 1)),
        ("both sides", both, 0.0, 6, 6, 4, 2, 16, 16, StepParams::at(0, 6)),
        ("both sides, fewer rows", both, 0.0, 6, 40, 3, 3, 32, 32, StepParams::at(2, 6)),
        ("both sides, head of 12", both, 0.0, 5, 5, 2, 2, 12, 12, StepParams::at(0, 5)),
        ("one query of all keys", both, 0.0, 1, 40, 3, 3, 20, 20, StepParams::at(0, 33)),
        ("window around", around(6), 0.0, 9, 9, 4, 2, 16, 16, StepParams::at(0, 9)),
        ("window around, odd", around(5), 0.0, 9, 24, 2, 2, 64, 64, StepParams::at(7, 9)),
        ("window around, wide", around(128), 0.0, 3, 200, 2, 1, 32, 32, StepParams::at(100, 3)),
        ("window around of one", around(1), 0.0, 4, 8, 2, 2, 16, 16, StepParams::at(3, 4)),
        ("window around, all keys", free, 0.0, 5, 7, 3, 3, 7, 5, StepParams::at(0, 5)),
        ("softcap", cached, 5.0, 4, 24, 4, 4, 32, 32, StepParams::at(3, 4)),
        ("explicit mask", explicit, 0.0, 5, 7, 4, 2, 16, 16, StepParams::at(0, 5)),
        ("explicit mask of each head", explicit, 0.0, 5, 7, 4, 2, 16, 16, StepParams::at(0, 5)),
        ("explicit mask of each head, cached", both_explicit, 0.0, 3, 24, 3, 1, 12, 8, StepParams::at(9, 3)),
        ("mask that hides rows", explicit, 0.0, 5, 7, 4, 2, 16, 16, StepParams::at(0, 5)),
        ("mask that hides rows of each head", explicit, 0.0, 7, 600, 3, 1, 12, 8, StepParams::at(0, 7)),
        ("mask that hides rows by the lowest number", explicit, 0.0, 4, 70, 2, 1, 64, 64, StepParams::at(0, 4)),
        ("mask that hides rows, many queries", explicit, 0.0, 70, 90, 2, 1, 32, 32, StepParams::at(0, 70)),
        (
            "mask that hides rows, cached",
            Masking { causal: true, ..both_explicit },
            0.0,
            6,
            40,
            2,
            1,
            16,
            16,
            StepParams::at(9, 6),
        ),
        ("dv differs", causal, 0.0, 5, 7, 4, 2, 24, 12, StepParams::at(0, 5)),
        ("head of 96", cached, 0.0, 3, 16, 2, 2, 96, 96, StepParams::at(4, 3)),
        ("head of 256", cached, 0.0, 2, 16, 2, 1, 256, 256, StepParams::at(4, 2)),
        ("head of 576", cached, 0.0, 2, 16, 4, 1, 576, 576, StepParams::at(4, 2)),
        ("decode, head of 576", cached, 0.0, 1, 300, 4, 1, 576, 576, StepParams::at(260, 1)),
        ("tiles, heads of 576", cached, 0.0, 66, 90, 2, 1, 576, 576, StepParams::at(9, 66)),
        ("odd sizes", causal, 0.0, 3, 5, 3, 3, 7, 5, StepParams::at(0, 3)),
        ("tiles", cached, 0.0, 130, 300, 4, 2, 64, 64, StepParams::at(0, 130)),
        ("tiles, continued", cached, 0.0, 67, 300, 2, 1, 96, 96, StepParams::at(150, 67)),
        ("tiles, window", Masking { window: 40, ..cached }, 0.0, 80, 300, 2, 2, 32, 32, StepParams::at(97, 80)),
        ("tiles, wide heads", cached, 0.0, 70, 90, 2, 1, 256, 256, StepParams::at(9, 70)),
        ("tiles, both sides", both, 0.0, 65, 65, 2, 2, 20, 12, StepParams::at(0, 65)),
        ("tiles, window around", around(20), 0.0, 90, 90, 2, 1, 16, 80, StepParams::at(0, 90)),
        ("tiles, softcap", cached, 5.0, 40, 70, 2, 1, 128, 128, StepParams::at(21, 40)),
    ];
    let halves: &[Row] = &[
        ("halves, decode", cached, 0.0, 1, 48, 9, 3, 64, 64, StepParams::at(20, 1)),
        ("halves, decode, long", cached, 0.0, 1, 1100, 2, 1, 64, 64, StepParams::at(1030, 1)),
        ("halves, prefill", cached, 0.0, 5, 48, 4, 2, 16, 16, StepParams::at(17, 5)),
        ("halves, window", window, 0.0, 6, 24, 4, 2, 4, 4, StepParams::at(9, 6)),
        ("halves, tiles", cached, 0.0, 70, 150, 3, 1, 32, 32, StepParams::at(60, 70)),
        ("halves, odd heads", cached, 0.0, 2, 24, 8, 8, 3, 5, StepParams::at(9, 2)),
    ];
    let coded: &[Row] = &[
        ("decode", cached, 0.0, 1, 48, 9, 3, 64, 64, StepParams::at(20, 1)),
        ("decode, long", cached, 0.0, 1, 1100, 2, 1, 64, 64, StepParams::at(1030, 1)),
        ("prefill", cached, 0.0, 5, 48, 4, 2, 16, 16, StepParams::at(17, 5)),
        ("window, wide heads", window, 0.0, 3, 24, 2, 1, 256, 256, StepParams::at(9, 3)),
        ("dv differs", cached, 0.0, 2, 24, 8, 4, 24, 8, StepParams::at(9, 2)),
        ("tiles", cached, 0.0, 40, 80, 2, 1, 32, 32, StepParams::at(30, 40)),
    ];
    let plain = rows.iter().map(|row| (row, None)).chain(halves.iter().map(|row| (row, Some(Codec::F16))));
    let all = Codec::ALL.iter().flat_map(|codec| coded.iter().map(move |row| (row, Some(*codec), codec.spec().name)));
    let mixed = [
        ("halves and q4_0", Some(Codec::F16), Some(Codec::Q4_0)),
        ("q8_0 and halves", Some(Codec::Q8_0), Some(Codec::F16)),
        ("floats and q5_1", None, Some(Codec::Q5_1)),
        ("q4_1 and floats", Some(Codec::Q4_1), None),
    ];
    let mixed = mixed
        .iter()
        .flat_map(|(name, k, v)| [&coded[0], &coded[2], &coded[5]].map(|row| (row, [*k, *v], *name, false)));
    let of_sinks = [
        "causal",
        "decode",
        "decode, long",
        "prefill, continued",
        "window",
        "explicit mask",
        "mask that hides rows",
        "odd sizes",
        "tiles",
    ];
    let sinks = rows.iter().chain(halves).filter(|row| of_sinks.contains(&row.0) || row.0.starts_with("halves, p"));
    let sinks = sinks.map(|row| (row, [row.0.starts_with("halves").then_some(Codec::F16); 2], "sinks", true));
    // Biases by distance; heads of all numbers, and slopes that none has as its usual ones.
    let of_slopes = |name: &str| {
        let others =
            ["plain", "window around, odd", "window around, all keys", "softcap", "mask that hides rows, cached"];
        of_sinks.contains(&name) || others.contains(&name) || name.starts_with("tiles") || name.starts_with("halves, p")
    };
    let slopes = rows.iter().chain(halves).filter(|row| of_slopes(row.0));
    let slopes = slopes.map(|row| (row, [row.0.starts_with("halves").then_some(Codec::F16); 2], "slopes", false));
    let both = rows.iter().filter(|row| ["decode", "tiles, continued"].contains(&row.0));
    let both = both.map(|row| (row, [None; 2], "sinks and slopes", true));
    let plain = plain.map(|(row, codec)| (row, [codec; 2], "", false));
    let all = all.map(|(row, codec, name)| (row, [codec; 2], name, false));
    plain
        .chain(all)
        .chain(mixed)
        .chain(sinks)
        .chain(slopes)
        .chain(both)
        .map(|(&(name, masking, softcap, m, n, h, g, d, dv, step), codecs, prefix, sinks)| {
            let name = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}, {name}") };
            let max_bias = if !prefix.ends_with("slopes") {
                0.0
            } else if h == 2 {
                2.5
            } else {
                8.0
            };
            let scale = 1.0 / (d as f32).sqrt();
            let op = Attention { n_head: h, n_head_kv: g, scale, softcap, max_bias, masking, sinks };
            Case::new(op, &name, step, |o| {
                let mut inputs = vec![o.filled(&[m, h * d], Fill::Uniform(-2.0, 2.0))];
                inputs.extend([o.keys(codecs[0], &[n, g * d]), o.keys(codecs[1], &[n, g * dv])]);
                if masking.explicit {
                    let mask = [h, m, n];
                    let hidden = if name.contains("lowest") { f32::MIN } else { f32::NEG_INFINITY };
                    let fill = if name.contains("hides rows") { Fill::hiding(n, hidden) } else { Fill::Mask };
                    inputs.push(o.filled(if name.contains("each head") { &mask } else { &mask[1..] }, fill));
                }
                inputs.extend(sinks.then(|| o.filled(&[h], Fill::Uniform(-1.0, 3.0))));
                inputs
            })
        })
        .collect()
}

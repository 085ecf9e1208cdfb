//! Cases of `linear_qkv`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let rms = Some(Norm { kind: NormKind::Rms, eps: 1e-5, heads: 1 });
    let layer = Some(Norm { kind: NormKind::Layer, eps: 1e-5, heads: 1 });
    let (normal, neox) = (|n| Some((n, RopeMode::Normal)), |n| Some((n, RopeMode::Neox)));
    // (name, tokens, format, k, heads, KV heads, head_dim, rope, norm, bias, step)
    type Row =
        (&'static str, usize, Format, usize, [usize; 3], Option<(usize, RopeMode)>, Option<Norm>, bool, StepParams);
    let rows: &[Row] = &[
        ("decode", 1, Format::Q4_1, 576, [9, 3, 64], normal(64), rms, false, StepParams::at(7, 1)),
        ("decode neox, bias", 1, Format::Q8_0, 128, [4, 2, 32], neox(32), rms, true, StepParams::at(7, 1)),
        ("decode, no rope", 1, Format::Q4_0, 512, [8, 8, 64], None, layer, true, StepParams::at(15, 1)),
        ("decode, k quants", 1, Format::Q4_K, 512, [2, 1, 64], normal(64), rms, false, StepParams::at(0, 1)),
        ("partial neox", 1, Format::F16, 60, [3, 3, 20], neox(12), None, false, StepParams::at(3, 1)),
        ("partial normal", 1, Format::F32, 70, [3, 1, 6], normal(4), rms, false, StepParams::at(1, 1)),
        ("odd heads", 1, Format::F32, 33, [2, 2, 5], normal(4), None, true, StepParams::at(2, 1)),
        ("prefill", 5, Format::Q4_1, 64, [4, 2, 16], normal(16), rms, false, StepParams::at(0, 5)),
        ("prefill, fewer real rows", 5, Format::Q5_0, 64, [4, 2, 16], neox(16), None, true, StepParams::at(3, 4)),
    ];
    let halves: &[Row] = &[
        ("halves", 1, Format::Q4_1, 576, [9, 3, 64], normal(64), rms, false, StepParams::at(7, 1)),
        ("halves, neox", 1, Format::Q8_0, 128, [4, 2, 32], neox(32), rms, true, StepParams::at(7, 1)),
        ("halves, no rope", 1, Format::Q4_0, 512, [8, 8, 64], None, layer, true, StepParams::at(15, 1)),
        ("halves, partial neox", 1, Format::F16, 60, [3, 2, 20], neox(12), None, false, StepParams::at(3, 1)),
        ("halves, prefill", 3, Format::F16, 64, [2, 2, 16], neox(16), None, false, StepParams::at(3, 2)),
    ];
    let case = |&(name, t, format, k, [h, g, d], rope, norm, bias, step): &Row, codec| {
        let linear = Linear { norm, bias, ..Linear::PLAIN };
        let qkv = QkvAppend { n_head: h, n_head_kv: g, head_dim: d, norm: None, rope };
        Case::new(LinearQkv { linear, qkv }, name, step, |o| {
            let n = (h + 2 * g) * d;
            let mut list = vec![o.input(&[t, k])];
            list.extend((0..norm.map_or(0, |n| n.kind.params())).map(|_| o.weight(&[k])).collect::<Vec<_>>());
            list.push(o.packed(format, n, k));
            if bias {
                list.push(o.weight(&[n]));
            }
            if let Some((n, _)) = rope {
                let table = RopeTable::plain(n, 10_000.0).rows((0..16).map(|p| p * 5));
                list.push(o.filled(&[16, n], Fill::Values(table)));
            }
            list.extend([o.state(codec, &[16, g * d]), o.state(codec, &[16, g * d])]);
            list
        })
    };
    let formats = Format::ALL.iter().map(|format| -> Row {
        let len = format.spec().block_len;
        let k = if len == 256 { 256 } else { 3 * len.max(32) };
        (format.name(), 1, *format, k, [2, 1, 16], normal(16), None, false, StepParams::at(3, 1))
    });
    // Rows of which each is to be rounded as if it were the only one.
    let few: &[(Row, Option<Codec>)] = &[
        (("few", 4, Format::Q4_1, 576, [9, 3, 64], normal(64), rms, false, StepParams::at(7, 4)), None),
        (("few, fewer real rows", 5, Format::Q8_0, 64, [4, 2, 16], None, layer, true, StepParams::at(3, 4)), None),
        (
            ("few, halves", 8, Format::Q8_0, 128, [4, 2, 32], neox(32), rms, true, StepParams::at(7, 8)),
            Some(Codec::F16),
        ),
        (
            ("few, partial", 2, Format::F16, 60, [3, 2, 20], normal(12), None, false, StepParams::at(13, 2)),
            Some(Codec::F16),
        ),
        (("many", 13, Format::Q4_1, 576, [9, 3, 64], normal(64), rms, true, StepParams::at(3, 13)), None),
        (
            ("many, halves", 16, Format::Q8_0, 128, [4, 2, 32], neox(32), None, false, StepParams::at(0, 16)),
            Some(Codec::F16),
        ),
    ];
    let plain = rows.iter().copied().chain(formats).map(|row| case(&row, None));
    let few = few.iter().map(|(row, codec)| case(row, *codec).alike());
    plain.chain(halves.iter().map(|row| case(row, Some(Codec::F16)))).chain(few).collect()
}

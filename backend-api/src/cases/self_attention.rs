//! Cases of `self_attention`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    type Row = (&'static str, Option<(Format, Linear)>, [usize; 4], Option<(usize, RopeMode)>, u32, StepParams);
    let normal = |n| Some((n, RopeMode::Normal));
    let neox = |n| Some((n, RopeMode::Neox));
    let layer = Norm { kind: NormKind::Layer, eps: 1e-5, heads: 1 };
    let biased = Linear { norm: Some(layer), bias: true, ..Linear::PLAIN };
    let rms = Linear { norm: Some(Norm { kind: NormKind::Rms, eps: 1e-5, heads: 1 }), ..Linear::PLAIN };
    let (q4, q8) = (Format::Q4_0, Format::Q8_0);
    // (name, projection, [rows, heads, KV heads, width of a head], rope, window, step)
    let rows: &[Row] = &[
        ("decode", None, [1, 9, 3, 64], normal(64), 0, StepParams::at(20, 1)),
        ("decode neox", None, [1, 4, 2, 32], neox(32), 0, StepParams::at(30, 1)),
        ("first token", None, [1, 4, 4, 32], normal(32), 0, StepParams::at(0, 1)),
        ("full cache", None, [1, 4, 2, 16], neox(16), 0, StepParams::at(47, 1)),
        ("some channels rotate", None, [1, 2, 1, 32], normal(12), 0, StepParams::at(9, 1)),
        ("some channels rotate, neox", None, [1, 2, 1, 32], neox(24), 0, StepParams::at(9, 1)),
        ("window", None, [1, 4, 2, 16], normal(16), 5, StepParams::at(19, 1)),
        ("no rope", None, [1, 8, 8, 64], None, 0, StepParams::at(33, 1)),
        ("odd heads", None, [1, 3, 1, 6], normal(6), 0, StepParams::at(5, 1)),
        ("prefill", None, [5, 4, 2, 16], normal(16), 0, StepParams::at(3, 5)),
        ("projected", Some((q4, biased)), [1, 8, 8, 64], None, 0, StepParams::at(21, 1)),
        ("projected, rms norm", Some((q8, rms)), [1, 2, 2, 16], None, 0, StepParams::at(0, 1)),
        ("projected, plain", Some((Format::F16, Linear::PLAIN)), [1, 3, 3, 24], None, 4, StepParams::at(47, 1)),
        ("projected, grouped heads", Some((q4, rms)), [1, 4, 2, 16], normal(16), 0, StepParams::at(7, 1)),
        ("projected, prefill", Some((q4, biased)), [4, 2, 2, 16], None, 0, StepParams::at(7, 4)),
    ];
    let halves: &[Row] = &[
        ("halves", None, [1, 9, 3, 64], normal(64), 0, StepParams::at(20, 1)),
        ("halves, no rope", None, [1, 8, 8, 64], None, 0, StepParams::at(33, 1)),
        ("halves, prefill", None, [5, 4, 2, 16], neox(16), 0, StepParams::at(3, 5)),
        ("halves, projected", Some((q4, biased)), [1, 8, 8, 64], None, 0, StepParams::at(21, 1)),
        ("halves, projected, plain", Some((Format::F16, Linear::PLAIN)), [1, 3, 3, 24], None, 4, StepParams::at(47, 1)),
    ];
    let normed: &[Row] = &[
        ("normed", None, [1, 4, 2, 32], neox(32), 0, StepParams::at(30, 1)),
        ("normed, wide heads, window", None, [1, 2, 1, 256], neox(256), 7, StepParams::at(20, 1)),
        ("normed, some channels rotate", None, [1, 3, 3, 24], normal(12), 0, StepParams::at(5, 1)),
        ("normed, no rope", None, [1, 4, 2, 16], None, 0, StepParams::at(9, 1)),
        ("normed, prefill", None, [5, 4, 2, 16], normal(16), 0, StepParams::at(3, 5)),
        ("normed, projected", Some((q8, rms)), [1, 4, 2, 32], neox(32), 0, StepParams::at(11, 1)),
    ];
    let whole: &[Row] = &[
        ("normed whole", None, [1, 4, 2, 32], neox(32), 0, StepParams::at(30, 1)),
        ("normed whole, some channels rotate", None, [1, 3, 1, 24], normal(12), 0, StepParams::at(5, 1)),
        ("normed whole, no rope", None, [1, 4, 2, 16], None, 0, StepParams::at(9, 1)),
    ];
    let values: &[Row] = &[
        ("normed with values", None, [1, 4, 2, 32], neox(32), 0, StepParams::at(30, 1)),
        ("normed with values, window", None, [1, 3, 1, 16], neox(16), 7, StepParams::at(21, 1)),
    ];
    let of = |whole, values| Some(QkNorm { eps: 1e-6, whole, values });
    let lists = [
        (rows, None, None),
        (halves, Some(Codec::F16), None),
        (normed, None, of(false, false)),
        (whole, None, of(true, false)),
        (values, None, of(false, true)),
    ];
    let all =
        lists.into_iter().flat_map(|(rows, codec, norm)| rows.iter().map(move |row| (row, codec, norm, "", false)));
    let sinks = [&rows[0], &rows[6], &rows[9], &rows[10], &normed[0]];
    let sinks = sinks.into_iter().map(|row| (row, None, None, "sinks", true));
    let slopes = [&rows[0], &rows[6], &rows[7], &rows[9], &rows[10], &normed[0]];
    let slopes = slopes.into_iter().map(|row| (row, None, None, "slopes", false));
    let coded: &[Row] = &[
        ("decode", None, [1, 9, 3, 64], normal(64), 0, StepParams::at(20, 1)),
        ("no rope", None, [1, 8, 8, 64], None, 0, StepParams::at(33, 1)),
        ("projected", Some((q4, biased)), [1, 8, 8, 64], None, 0, StepParams::at(21, 1)),
        ("prefill", None, [5, 4, 2, 16], neox(16), 0, StepParams::at(3, 5)),
    ];
    let coded = Codec::ALL
        .iter()
        .flat_map(|codec| coded.iter().map(move |row| (row, Some(*codec), None, codec.spec().name, false)));
    all.chain(coded)
        .chain(sinks)
        .chain(slopes)
        .map(|(&(name, project, [t, n_head, n_head_kv, head_dim], rope, window, step), codec, norm, prefix, sinks)| {
            let name = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}, {name}") };
            let masking = Masking { causal: true, cached: true, window, ..Masking::default() };
            let scale = 1.0 / (head_dim as f32).sqrt();
            let max_bias = if prefix == "slopes" { 8.0 } else { 0.0 };
            let op = SelfAttention {
                project: project.map(|(_, linear)| linear),
                qkv: QkvAppend { n_head, n_head_kv, head_dim, norm, rope },
                attention: Attention { n_head, n_head_kv, scale, softcap: 0.0, max_bias, masking, sinks },
            };
            Case::new(op, name, step, |o| {
                let width = (n_head + 2 * n_head_kv) * head_dim;
                let mut list = Vec::new();
                if let Some((format, linear)) = project {
                    let k = 64;
                    list.push(o.input(&[t, k]));
                    list.extend((0..linear.norm.map_or(0, |n| n.kind.params())).map(|_| o.weight(&[k])));
                    list.push(o.packed(format, width, k));
                    if linear.bias {
                        list.push(o.weight(&[width]));
                    }
                } else {
                    list.push(o.input(&[t, width]));
                }
                if let Some(QkNorm { whole, values, .. }) = norm {
                    let heads = [n_head, n_head_kv].map(|heads| if whole { heads } else { 1 });
                    list.extend(heads.map(|heads| o.weight(&[heads * head_dim])));
                    list.extend(values.then(|| o.weight(&[head_dim])));
                }
                if let Some((n, _)) = rope {
                    let table = RopeTable::plain(n, 10_000.0).rows((0..48).map(|p| p * 5));
                    list.push(o.filled(&[48, n], Fill::Values(table)));
                }
                let cache = [48, n_head_kv * head_dim];
                list.extend([o.state(codec, &cache), o.state(codec, &cache)]);
                list.extend(sinks.then(|| o.filled(&[n_head], Fill::Uniform(-1.0, 3.0))));
                list
            })
        })
        .collect()
}

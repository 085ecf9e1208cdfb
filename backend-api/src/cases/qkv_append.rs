//! Cases of `qkv_append`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    // (name, rows, heads, KV heads, width of a head, rope, step), and whether the caches hold halves
    type Row = (&'static str, usize, usize, usize, usize, Option<(usize, RopeMode)>, StepParams);
    let rows: &[Row] = &[
        ("decode", 1, 9, 3, 64, Some((64, RopeMode::Normal)), StepParams::at(7, 1)),
        ("decode neox", 1, 4, 2, 32, Some((32, RopeMode::Neox)), StepParams::at(7, 1)),
        ("decode, no rope", 1, 8, 8, 64, None, StepParams::at(15, 1)),
        ("prefill", 5, 4, 2, 16, Some((16, RopeMode::Normal)), StepParams::at(0, 5)),
        ("prefill, fewer real rows", 5, 4, 2, 16, Some((16, RopeMode::Neox)), StepParams::at(3, 4)),
        ("partial", 2, 3, 3, 20, Some((12, RopeMode::Neox)), StepParams::at(3, 2)),
        ("odd heads", 3, 3, 1, 6, Some((4, RopeMode::Normal)), StepParams::at(1, 3)),
        ("prefill, no rope", 3, 2, 2, 10, None, StepParams::at(1, 3)),
    ];
    let halves: &[Row] = &[
        ("halves, decode", 1, 9, 3, 64, Some((64, RopeMode::Normal)), StepParams::at(7, 1)),
        ("halves, prefill neox", 5, 4, 2, 16, Some((16, RopeMode::Neox)), StepParams::at(3, 4)),
        ("halves, no rope", 3, 4, 4, 10, None, StepParams::at(1, 3)),
    ];
    let normed: &[Row] = &[
        ("normed, decode", 1, 4, 2, 32, Some((32, RopeMode::Neox)), StepParams::at(7, 1)),
        ("normed, wide heads", 1, 2, 1, 256, Some((256, RopeMode::Neox)), StepParams::at(2, 1)),
        ("normed, prefill", 5, 4, 2, 16, Some((16, RopeMode::Normal)), StepParams::at(3, 4)),
        ("normed, some channels rotate", 2, 3, 3, 20, Some((12, RopeMode::Neox)), StepParams::at(3, 2)),
        ("normed, no rope", 3, 4, 2, 24, None, StepParams::at(1, 3)),
        ("normed, odd heads", 3, 3, 1, 6, Some((4, RopeMode::Normal)), StepParams::at(1, 3)),
    ];
    let normed_halves: &[Row] = &[
        ("normed, halves", 1, 4, 2, 32, Some((32, RopeMode::Neox)), StepParams::at(7, 1)),
        ("normed, halves, prefill", 4, 4, 2, 16, Some((8, RopeMode::Normal)), StepParams::at(3, 3)),
    ];
    let whole: &[Row] = &[
        ("normed whole, decode", 1, 4, 2, 32, Some((32, RopeMode::Neox)), StepParams::at(7, 1)),
        ("normed whole, prefill", 5, 4, 2, 16, Some((16, RopeMode::Normal)), StepParams::at(3, 4)),
        ("normed whole, odd heads", 3, 3, 1, 6, Some((4, RopeMode::Neox)), StepParams::at(1, 3)),
    ];
    let half = Some(Codec::F16);
    let values: &[Row] = &[
        ("normed with values, decode", 1, 4, 2, 32, Some((32, RopeMode::Neox)), StepParams::at(7, 1)),
        ("normed with values, prefill", 5, 4, 2, 16, Some((16, RopeMode::Normal)), StepParams::at(3, 4)),
        ("normed with values, no rope", 3, 4, 2, 24, None, StepParams::at(1, 3)),
        ("normed with values, odd heads", 3, 3, 1, 6, Some((4, RopeMode::Neox)), StepParams::at(1, 3)),
    ];
    let values_halves: &[Row] =
        &[("normed with values, halves", 1, 4, 2, 32, Some((32, RopeMode::Neox)), StepParams::at(7, 1))];
    let of = |whole, values| Some(QkNorm { eps: 1e-6, whole, values });
    let eps = of(false, false);
    let lists = [
        (rows, None, None),
        (halves, half, None),
        (normed, None, eps),
        (normed_halves, half, eps),
        (whole, None, of(true, false)),
        (values, None, of(false, true)),
        (values_halves, half, of(false, true)),
    ];
    let coded: &[Row] = &[
        ("decode", 1, 9, 3, 64, Some((64, RopeMode::Normal)), StepParams::at(7, 1)),
        ("prefill neox", 5, 4, 2, 16, Some((16, RopeMode::Neox)), StepParams::at(3, 4)),
        ("no rope", 3, 4, 4, 8, None, StepParams::at(1, 3)),
    ];
    let coded_normed: &[Row] = &[
        ("normed", 1, 4, 2, 32, Some((32, RopeMode::Neox)), StepParams::at(7, 1)),
        ("normed, prefill", 4, 2, 1, 64, Some((64, RopeMode::Normal)), StepParams::at(3, 3)),
    ];
    let coded_values: &[Row] = &[("normed with values", 3, 4, 2, 32, Some((32, RopeMode::Neox)), StepParams::at(7, 3))];
    let all = lists.into_iter().flat_map(|(rows, codec, norm)| rows.iter().map(move |row| (row, codec, norm, "")));
    let coded = Codec::ALL.iter().flat_map(|codec| {
        let rows = [(coded, None), (coded_normed, eps), (coded_values, of(false, true))].into_iter();
        rows.flat_map(move |(rows, norm)| rows.iter().map(move |row| (row, Some(*codec), norm, codec.spec().name)))
    });
    all.chain(coded)
        .map(|(&(name, t, h, g, d, rope, step), codec, norm, prefix)| {
            let name = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}, {name}") };
            Case::new(QkvAppend { n_head: h, n_head_kv: g, head_dim: d, norm, rope }, name, step, |o| {
                let mut list = vec![o.input(&[t, (h + 2 * g) * d])];
                if let Some(QkNorm { whole, values, .. }) = norm {
                    list.extend([h, g].map(|heads| o.weight(&[if whole { heads * d } else { d }])));
                    list.extend(values.then(|| o.weight(&[d])));
                }
                if let Some((n, _)) = rope {
                    let table = RopeTable::plain(n, 10_000.0).rows((0..16).map(|p| p * 5));
                    list.push(o.filled(&[16, n], Fill::Values(table)));
                }
                list.extend([o.state(codec, &[16, g * d]), o.state(codec, &[16, g * d])]);
                list
            })
        })
        .collect()
}

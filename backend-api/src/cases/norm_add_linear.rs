//! Cases of `norm_add_linear`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let rms = Norm { kind: NormKind::Rms, eps: 1e-5, heads: 1 };
    let layer = Norm { kind: NormKind::Layer, ..rms };
    let l2 = Norm { kind: NormKind::L2, ..rms };
    let geglu = Activation::Glu(GluKind::GegluTanh);
    let none = Activation::None;
    // (name, first norm, its rows and columns, second norm, format, weight rows, bias, activation)
    type Row = (&'static str, Norm, [usize; 2], Option<Norm>, Format, usize, bool, Activation);
    let rows: &[Row] = &[
        ("decode, glu", rms, [1, 640], Some(rms), Format::Q4_0, 96, false, geglu),
        ("decode, projection", rms, [1, 1280], Some(rms), Format::Q4_K, 70, false, none),
        ("decode, no second norm", rms, [1, 576], None, Format::Q8_0, 33, false, none),
        ("decode, bias", rms, [1, 96], Some(rms), Format::F32, 24, true, none),
        ("decode, wide", rms, [1, 4096], Some(rms), Format::Q8_0, 24, false, none),
        ("decode, codebook", rms, [1, 512], Some(rms), Format::IQ2_XXS, 64, false, geglu),
        ("decode, odd", rms, [1, 37], Some(rms), Format::F32, 12, false, none),
        ("decode, layer norms", layer, [1, 64], Some(layer), Format::Q8_0, 12, true, none),
        ("decode, layer norm second", rms, [1, 64], Some(layer), Format::Q8_0, 12, true, none),
        ("decode, L2 norm", l2, [1, 64], Some(rms), Format::Q8_0, 12, true, none),
        ("prefill", rms, [5, 576], Some(rms), Format::Q4_0, 96, false, geglu),
    ];
    let case = |&(name, first, [m, k], second, format, n, bias, activation): &Row| {
        let linear = Linear { norm: second, bias, activation, residual: false };
        Case::new(NormAddLinear { sum: NormAdd { norm: first }, linear }, name, StepParams::at(0, m as u32), |o| {
            let mut list = vec![o.input(&[m, k])];
            list.extend((0..first.kind.params()).map(|_| o.weight(&[k])).collect::<Vec<_>>());
            list.push(o.input(&[m, k]));
            list.extend((0..second.map_or(0, |norm| norm.kind.params())).map(|_| o.weight(&[k])).collect::<Vec<_>>());
            list.push(o.packed(format, n, k));
            list.extend(bias.then(|| o.weight(&[n])));
            list
        })
    };
    // Rows of which each is to be rounded as if it were the only one.
    let few = case(&("few", rms, [3, 640], Some(rms), Format::Q4_0, 96, false, geglu)).alike();
    let many = case(&("many", rms, [10, 640], Some(rms), Format::Q4_0, 96, false, geglu)).alike();
    rows.iter().map(case).chain([few, many]).collect()
}

//! Cases of `linear`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let rms = Some(Norm { kind: NormKind::Rms, eps: 1e-5, heads: 1 });
    let layer = Some(Norm { kind: NormKind::Layer, eps: 1e-5, heads: 1 });
    let silu = Activation::Unary(UnaryKind::Silu);
    let gelu = Activation::Unary(UnaryKind::GeluTanh);
    let swiglu = Activation::Glu(GluKind::Swiglu);
    let geglu = Activation::Glu(GluKind::GegluTanh);
    let none = Activation::None;
    let case = |format: Format, m: usize, n: usize, k: usize, norm, bias, activation, residual| {
        let op = Linear { norm, bias, activation, residual };
        let kind = norm.map(|n: Norm| n.kind);
        let name =
            format!("{} {m}x{n}x{k} norm {kind:?} bias {bias} {activation:?} residual {residual}", format.name());
        Case::new(op, name, StepParams::at(0, m as u32), |o| {
            let mut list: Vec<TensorId> = vec![o.input(&[m, k])];
            list.extend((0..norm.map_or(0, |n| n.kind.params())).map(|_| o.weight(&[k])).collect::<Vec<_>>());
            list.push(o.packed(format, n, k));
            if bias {
                list.push(o.weight(&[n]));
            }
            if residual {
                list.push(o.input(&[m, op.out_cols(n)]));
            }
            list
        })
    };
    // A few rows of which each is to be rounded as if it were the only one.
    let mut cases = vec![
        case(Format::Q4_0, 5, 96, 576, rms, false, swiglu, false).alike(),
        case(Format::Q8_0, 8, 64, 512, layer, true, gelu, false).alike(),
        case(Format::F32, 3, 33, 70, layer, true, silu, true).alike(),
        case(Format::F16, 2, 22, 100, rms, true, geglu, true).alike(),
        case(Format::Q4_K, 7, 40, 512, None, true, none, true).alike(),
        case(Format::Q4_0, 9, 40, 64, rms, false, none, false).alike(),
        case(Format::Q4_K, 11, 72, 2304, None, true, none, true).alike(),
        case(Format::Q8_0, 16, 160, 576, layer, true, geglu, false).alike(),
        case(Format::F32, 12, 33, 70, layer, true, silu, true).alike(),
        case(Format::Q4_0, 17, 40, 64, rms, false, none, false).alike(),
    ];
    let mut add = |format, m, n, k, norm, bias, activation, residual| {
        cases.push(case(format, m, n, k, norm, bias, activation, residual));
    };
    for m in [1, 6] {
        for format in Format::ALL {
            let len = format.spec().block_len;
            let k = if len == 256 { 512 } else { 576_usize.next_multiple_of(len) };
            add(*format, m, 96, k, rms, false, swiglu, false);
            add(*format, m, 40, k, None, true, none, true);
        }
        add(Format::Q4_0, m, 72, 576, rms, false, none, false);
        add(Format::Q4_0, m, 64, 512, layer, true, none, false);
        add(Format::Q4_0, m, 64, 512, layer, true, gelu, false);
        add(Format::Q4_0, m, 64, 512, None, true, none, true);
        add(Format::Q8_0, m, 5256, 512, layer, false, none, false);
        add(Format::F32, m, 33, 70, layer, true, silu, true);
        add(Format::F16, m, 22, 100, rms, true, geglu, true);
        add(Format::Q4_1, m, 576, 1536, None, false, none, true);
    }
    // Tiles of many rows, and one that is not full.
    for format in Format::ALL {
        for m in [33, 66] {
            add(*format, m, 68, format.spec().block_len.max(64), None, false, none, false);
        }
    }
    add(Format::Q4_0, 40, 148, 64, None, true, swiglu, false);
    add(Format::Q4_0, 70, 148, 512, None, true, swiglu, false);
    add(Format::Q4_K, 67, 76, 512, None, true, none, true);
    add(Format::F32, 65, 33, 70, None, false, silu, false);
    add(Format::Q4_0, 133, 140, 96, None, true, none, true);
    add(Format::Q8_0, 129, 140, 64, None, true, swiglu, false);
    // Several blocks of rows, and one that is smaller.
    add(Format::Q4_0, 19, 328, 64, None, true, none, false);
    add(Format::Q8_0, 4, 96, 64, None, false, swiglu, false);
    // One row whose activation needs whole sums, though no norm does.
    add(Format::Q4_0, 1, 98, 512, None, true, swiglu, false);
    // One row with more weights than a workgroup brings its x for at once, and so many that invocations take several.
    add(Format::Q4_0, 1, 1100, 2080, None, true, none, true);
    add(Format::Q8_0, 1, 1102, 4128, rms, false, none, false);
    add(Format::Q4_1, 1, 16_402, 64, None, true, silu, true);
    add(Format::Q8_0, 1, 16_396, 64, rms, true, swiglu, false);
    cases
}

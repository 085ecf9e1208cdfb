//! Cases of `experts_glu`.

use super::matmul_id::SOME;
use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let rms = Some(Norm { kind: NormKind::Rms, eps: 1e-5, heads: 1 });
    let layer = Some(Norm { kind: NormKind::Layer, eps: 1e-5, heads: 1 });
    let mut cases = Vec::new();
    // Sizes are tokens, choices, columns of x, rows of an expert, experts.
    let mut add = |format: Format, [t, u, k, rows, n]: [usize; 5], norm, bias, kind, fused: bool| {
        let (gate, up) = match fused {
            false => (MatMulId::dense(rows), MatMulId::dense(rows)),
            true => (MatMulId { rows, stride: 2 * rows, first: 0 }, MatMulId { rows, stride: 2 * rows, first: rows }),
        };
        let op = ExpertsGlu { norm, gate, up, bias, kind };
        let norm_kind = norm.map(|n: Norm| n.kind);
        let name = format!(
            "{} {t}x{u}x{k} to {rows} of {n} norm {norm_kind:?} bias {bias} {} fused {fused}",
            format.name(),
            kind.name()
        );
        cases.push(Case::new(op, name, StepParams::at(0, t as u32), |o| {
            let mut list = vec![o.input(&[t, k])];
            list.extend((0..norm.map_or(0, |n| n.kind.params())).map(|_| o.weight(&[k])).collect::<Vec<_>>());
            let first = o.packed(format, n * if fused { 2 * rows } else { rows }, k);
            let second = if fused { first } else { o.packed(format, n * rows, k) };
            list.extend([first, second, o.ids(&[t, u], n as u32)]);
            if bias {
                list.extend([o.weight(&[n, rows]), o.weight(&[n, rows])]);
            }
            list
        }));
    };
    let (swiglu, geglu, oai) = (GluKind::Swiglu, GluKind::GegluTanh, GluKind::SwigluOai);
    for format in &SOME {
        let len = format.spec().block_len;
        let k = if len == 256 { 512 } else { 96_usize.next_multiple_of(len) };
        add(*format, [1, 2, k, 24, 5], rms, false, swiglu, false);
        add(*format, [3, 2, k, 16, 4], None, false, swiglu, true);
    }
    add(Format::MXFP4, [1, 4, 288, 100, 8], rms, true, oai, false);
    add(Format::MXFP4, [5, 4, 64, 33, 8], None, true, oai, false);
    // Many choices of each expert.
    for format in &SOME {
        let len = format.spec().block_len;
        let k = if len == 256 { 256 } else { 64_usize.next_multiple_of(len) };
        add(*format, [9, 3, k, 20, 4], None, false, swiglu, false);
    }
    add(Format::MXFP4, [70, 2, 96, 40, 3], None, true, oai, false);
    add(Format::F32, [20, 2, 71, 33, 2], None, true, geglu, true);
    add(Format::F32, [1, 2, 70, 13, 4], rms, true, oai, false);
    add(Format::F32, [4, 3, 33, 7, 6], rms, true, geglu, true);
    add(Format::Q8_0, [1, 8, 768, 256, 6], rms, false, swiglu, false);
    add(Format::Q4_0, [1, 2, 64, 24, 3], layer, false, geglu, false);
    cases
}

//! Cases of `matmul_id`.

use super::prelude::*;

/// Formats that the expert matmuls are tested with: one of each family, and the common ones. Decoders are shared by
/// all forms.
pub(super) const SOME: [Format; 10] = [
    Format::F32,
    Format::F16,
    Format::Q4_0,
    Format::Q4_1,
    Format::Q8_0,
    Format::Q4_K,
    Format::Q6_K,
    Format::IQ2_XXS,
    Format::TQ1_0,
    Format::MXFP4,
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |format: Format, op: MatMulId, [t, u, k]: [usize; 3], experts: usize, each: bool| {
        let rows = op.first + experts * op.stride;
        let name = format!("{} {op:?} of {experts} {t}x{u}x{k} each {each}", format.name());
        cases.push(Case::new(op, name, StepParams::at(0, t as u32), |o| {
            let x = if each { o.input(&[t, u, k]) } else { o.input(&[t, k]) };
            vec![x, o.packed(format, rows, k), o.ids(&[t, u], experts as u32)]
        }));
    };
    for format in Format::ALL {
        let len = format.spec().block_len;
        let k = if len == 256 { 512 } else { 96_usize.next_multiple_of(len) };
        add(*format, MatMulId::dense(24), [1, 2, k], 5, false);
        add(*format, MatMulId::dense(13), [3, 2, k], 4, true);
    }
    add(Format::Q4_0, MatMulId { rows: 16, stride: 32, first: 0 }, [2, 3, 64], 4, false);
    add(Format::Q4_0, MatMulId { rows: 16, stride: 32, first: 16 }, [2, 3, 64], 4, false);
    add(Format::F32, MatMulId { rows: 5, stride: 5, first: 20 }, [4, 1, 70], 4, false);
    add(Format::F32, MatMulId::dense(7), [2, 3, 33], 8, true);
    add(Format::MXFP4, MatMulId::dense(200), [1, 4, 288], 32, false);
    add(Format::MXFP4, MatMulId::dense(96), [19, 4, 64], 8, true);
    // Many choices of each expert.
    for format in Format::ALL {
        let len = format.spec().block_len;
        add(
            *format,
            MatMulId::dense(40),
            [9, 3, if len == 256 { 256 } else { 64_usize.next_multiple_of(len) }],
            4,
            false,
        );
    }
    add(Format::Q4_0, MatMulId { rows: 70, stride: 72, first: 3 }, [90, 2, 96], 3, true);
    add(Format::F32, MatMulId::dense(33), [40, 1, 71], 2, false);
    add(Format::Q8_0, MatMulId::dense(256), [1, 8, 768], 6, false);
    // Each choice has an expert of its own.
    for (format, op, dims) in [
        (Format::F32, MatMulId::dense(9), [3, 4, 33]),
        (Format::Q8_0, MatMulId { rows: 12, stride: 20, first: 8 }, [2, 5, 96]),
        (Format::Q4_0, MatMulId::dense(70), [1, 3, 64]),
        (Format::F16, MatMulId::dense(40), [40, 2, 64]),
    ] {
        let name = format!("{} {op:?} in turn {dims:?}", format.name());
        cases.push(Case::new(op, name, StepParams::at(0, dims[0] as u32), |o| {
            vec![o.input(&dims), o.packed(format, op.first + dims[1] * op.stride, dims[2])]
        }));
    }
    let outside = Fill::Values(vec![-1.0, 9.0, 2.0, -5.0]);
    cases.push(Case::new(MatMulId::dense(8), "ids of no expert", StepParams::at(0, 2), |o| {
        let (x, w) = (o.input(&[2, 64]), o.packed(Format::Q8_0, 24, 64));
        vec![x, w, o.external(Kind::Input, &[2, 2], DType::I32, outside)]
    }));
    cases
}

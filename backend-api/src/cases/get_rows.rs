//! Cases of `get_rows`.

use super::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    let step = StepParams::at(3, 2);
    let mut cases = Vec::new();
    for format in Format::ALL {
        let len = format.spec().block_len;
        let k = if len == 256 { 512 } else { 3 * len.max(32) };
        let mut case = Case::new(GetRows { index: Index::Ids }, format!("packed {}", format.name()), step, |o| {
            vec![o.packed(*format, 40, k), o.ids(&[7], 40)]
        });
        case.tolerance = F32;
        cases.push(case);
        // What broken files may have. Infinite scales stay infinite in grids, which have no level 0; elsewhere a backend may
        // take the zero point off after scaling, which leaves no number.
        let grid = format.spec().codebook().is_some();
        for (what, bits) in [("ones", 0xFFFF)].into_iter().chain(grid.then_some(("infinities", 0x7C00))) {
            let name = format!("packed {} full of {what}", format.name());
            cases.push(Case::new(GetRows { index: Index::Ids }, name, step, |o| {
                let dtype = DType::Packed(*format);
                vec![o.external(Kind::Weight, &[5, k], dtype, Fill::Bits(bits)), o.ids(&[3], 5)]
            }));
        }
    }
    let mut dense = |name: &str, index, v: usize, d: usize, ids: &[usize]| {
        let mut case = Case::new(GetRows { index }, format!("f32 {name}"), step, |o| match index {
            Index::Ids => vec![o.input(&[v, d]), o.ids(ids, v as u32)],
            Index::Tokens { .. } => vec![o.input(&[v, d]), o.history(16, v as u32)],
            Index::Positions { .. } | Index::First | Index::Last => vec![o.input(&[v, d])],
        });
        case.tolerance = EXACT;
        cases.push(case);
    };
    dense("ids 2d", Index::Ids, 19, 33, &[3, 2]);
    dense("ids, narrow rows", Index::Ids, 19, 20, &[6]);
    dense("tokens", Index::Tokens { rows: 2 }, 19, 64, &[]);
    dense("positions", Index::Positions { rows: 2 }, 19, 30, &[]);
    dense("first", Index::First, 5, 33, &[]);
    dense("last", Index::Last, 5, 33, &[]);
    cases.push(Case::new(GetRows { index: Index::Ids }, "ids out of range are clamped", step, |o| {
        let table = o.packed(Format::Q8_0, 8, 32);
        vec![table, o.ids(&[12], 20)]
    }));
    cases
}

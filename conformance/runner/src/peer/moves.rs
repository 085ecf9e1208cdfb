//! Copies.

use super::operators::{DENSE, Mapped, NO_OPERATOR, floats_of};
use super::row::Row;
use super::views::{beginning, part, perm, permute, stored};
use backend_api::StepParams;
use backend_api::case::Case;
use backend_api::op::{Concat, Pad};

/// How many times larger than an operand the one is that it is a part of.
fn times(views: usize, [inner, outer]: [usize; 2]) -> [usize; 4] {
    let of_inner = if views & inner != 0 { [1, 3, 4, 2] } else { [1; 4] };
    let of_outer = if views & outer != 0 { [2, 3, 1, 1] } else { [1; 4] };
    [0, 1, 2, 3].map(|axis| of_inner[axis] * of_outer[axis])
}

pub fn concat(row: &Row) -> Mapped {
    floats_of(row)?;
    let [a, b] = &row.sources[..] else { return Err(NO_OPERATOR) };
    let (op, views) = (Concat { axis: 3 - row.number::<usize>("dim").min(3) }, row.number::<usize>("v"));
    Ok(Case::new(op, &row.text, StepParams::at(0, 1), |o| {
        vec![beginning(o, a.shape(), times(views, [1, 4])), beginning(o, b.shape(), times(views, [2, 8]))]
    }))
}

fn order(row: &Row, name: &str) -> Option<[usize; 4]> {
    let order: [usize; 4] = row.list(name).try_into().ok()?;
    (order != [0; 4]).then_some(order)
}

pub fn cont(row: &Row) -> Mapped {
    floats_of(row)?;
    let ne: [usize; 4] = row.list("ne").try_into().map_err(|_| NO_OPERATOR)?;
    let dims = [ne[3], ne[2], ne[1], ne[0]];
    if row.text_of("use_view_slice") == "1" {
        // The last of the second dimension.
        let cut = [(0, dims[0]), (0, dims[1]), (dims[2] - 1, 1), (0, dims[3])];
        let shape = cut.map(|(_, len)| len);
        return Ok(Case::new(permute(&shape, &[0, 1, 2, 3]), &row.text, StepParams::at(0, 1), |o| {
            let x = o.input(&dims);
            vec![part(o, x, dims, cut)]
        }));
    }
    let op = permute(&dims, &perm(order(row, "permute").unwrap_or([1, 0, 2, 3])));
    Ok(Case::new(op, &row.text, StepParams::at(0, 1), |o| vec![o.input(&dims)]))
}

pub fn copy(row: &Row) -> Mapped {
    if row.text_of("type_src") != "f32" || row.text_of("type_dst") != "f32" {
        return Err(DENSE);
    }
    let [from, to] = &row.sources[..] else { return Err(NO_OPERATOR) };
    let transposed = if row.text_of("_src_transpose") == "1" { [1, 0, 2, 3] } else { [0, 1, 2, 3] };
    let source = order(row, "permute_src").unwrap_or(transposed);
    if let Some(target) = order(row, "permute_dst") {
        // What is written lies in another order, too: from it, the order that is asked for.
        let (perm, mut back) = (perm(target), [0; 4]);
        perm.into_iter().enumerate().for_each(|(axis, from)| back[from] = axis);
        let op = permute(&to.shape(), &back);
        return Ok(Case::new(op, &row.text, StepParams::at(0, 1), |o| vec![stored(o, from.shape(), source)]));
    }
    let perm = perm(source);
    let mut dims = [0; 4];
    perm.into_iter().enumerate().for_each(|(axis, at)| dims[at] = from.shape()[axis]);
    Ok(Case::new(permute(&dims, &perm), &row.text, StepParams::at(0, 1), |o| vec![o.input(&dims)]))
}

pub fn pad(row: &Row) -> Mapped {
    floats_of(row)?;
    let by_axis = |letter: char| [3, 2, 1, 0].map(|axis| row.number::<usize>(&format!("{letter}p{axis}")));
    let (before, mut after, circular) = (by_axis('l'), by_axis('r'), row.text_of("circular") == "1");
    after[3] += row.number::<usize>("pad_0");
    after[2] += row.number::<usize>("pad_1");
    let ne: [usize; 4] = row.list("ne_a").try_into().map_err(|_| NO_OPERATOR)?;
    let (whole, shape) = ([ne[3], ne[2], ne[1], ne[0]], row.sources[0].shape());
    Ok(Case::new(Pad { before, after, circular }, &row.text, StepParams::at(0, 1), |o| {
        let x = match row.text_of("tfrm") {
            "1" => {
                let x = o.input(&whole);
                part(o, x, whole, shape.map(|len| (0, len)))
            }
            "2" => stored(o, shape, [2, 1, 0, 3]),
            _ => o.input(&shape),
        };
        vec![x]
    }))
}

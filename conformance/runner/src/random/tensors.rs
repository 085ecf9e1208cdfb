//! Random cases of operators on tensors of any meaning: bounds, sums, orders, tiles, boxes, triangles, choices.

use super::draw::Draw;
use super::operators::{case, once, wide};
use backend_api::case::{Case, Fill};
use backend_api::op::{Argsort, Clamp, Cumsum, Penalize, Penalties, Pick, Repeat, Set, Sum, Tri, TriKind, Xielu};
use backend_api::{DType, Kind, StepParams};

pub fn clamp(draw: &mut Draw<'_>) -> Case {
    let (dims, lo) = (draw.dims(1..=4, 300), draw.pick(&[-0.5, 0.0, f32::MIN]));
    let hi = draw.pick(&[0.5, 0.25, f32::MAX]);
    case(Clamp { lo, hi }, once(), |o| vec![o.input(&dims)])
}

pub fn xielu(draw: &mut Draw<'_>) -> Case {
    let (dims, positive, negative) = (wide(draw), draw.pick(&[0.8, 20.0]), draw.pick(&[1.3, 4.5]));
    let op = Xielu { positive, negative, linear: 0.5, eps: draw.pick(&[-1e-6, 0.0, 1e-7]) };
    let size = draw.pick(&[4.0, 150.0]);
    case(op, once(), |o| vec![o.filled(&dims, Fill::Uniform(-size, size))])
}

/// Numbers that do not add up to nothing, where a sum would have few digits left.
const AWAY: Fill = Fill::Uniform(-0.5, 1.5);

pub fn sum(draw: &mut Draw<'_>) -> Case {
    let dims = draw.dims(1..=4, 2000);
    case(Sum, once(), |o| vec![o.filled(&dims, AWAY)])
}

pub fn cumsum(draw: &mut Draw<'_>) -> Case {
    let dims = draw.dims(1..=4, 2000);
    case(Cumsum, once(), |o| vec![o.filled(&dims, AWAY)])
}

pub fn argsort(draw: &mut Draw<'_>) -> Case {
    let (dims, descending) = (draw.dims(1..=4, 2000), draw.chance());
    // Integers of few values have ties.
    let fill = draw.pick(&[Fill::Shuffled, Fill::Uniform(-1.0, 1.0), Fill::Integers(9)]);
    case(Argsort { descending }, once(), |o| vec![o.filled(&dims, fill)])
}

pub fn repeat(draw: &mut Draw<'_>) -> Case {
    let dims = draw.dims(1..=4, 60);
    let times = std::array::from_fn(|axis| if axis < 4 - dims.len() { 1 } else { draw.number(1, 3) });
    case(Repeat { times }, once(), |o| vec![o.input(&dims)])
}

pub fn set(draw: &mut Draw<'_>) -> Case {
    let part = draw.dims(1..=4, 60);
    let (mut at, mut whole) = ([0; 4], part.clone());
    for (at, dim) in at[4 - part.len()..].iter_mut().zip(&mut whole) {
        *at = draw.number(0, 3);
        *dim += *at + draw.number(0, 3);
    }
    case(Set { at }, once(), |o| vec![o.input(&whole), o.input(&part)])
}

pub fn tri(draw: &mut Draw<'_>) -> Case {
    let (dims, kind) = (draw.dims(2..=4, 60), draw.pick(&TriKind::ALL));
    case(Tri { kind }, once(), |o| vec![o.input(&dims)])
}

pub fn penalize(draw: &mut Draw<'_>) -> Case {
    let (n, n_ctx, real) = (draw.size(500) + 16, draw.size(300), draw.size(5));
    let real = real.min(n_ctx);
    let rows = draw.pick(&[1, real]);
    let step = StepParams::at(draw.number(0, n_ctx - real) as u32, real as u32);
    let penalties = Penalties {
        repetition: draw.pick(&[0.7, 1.0, 1.1, 2.0]),
        last: draw.size(100) as u32,
        presence: draw.pick(&[-0.5, 0.0, 1.5]),
        frequency: draw.pick(&[-0.25, 0.0, 0.5]),
        counted: draw.size(300) as u32,
        begin: draw.size(n_ctx) as u32,
        min_p: 0.0,
    };
    case(Penalize, step, |o| {
        let logits = o.filled(&[rows, n], Fill::Uniform(-4.0, 4.0));
        let (history, bias) = (o.history(n_ctx, n as u32), o.input(&[1, n]));
        vec![logits, history, bias, o.filled(&[1, Penalties::COLS], Fill::Values(penalties.row().to_vec()))]
    })
}

pub fn pick(draw: &mut Draw<'_>) -> Case {
    let (rows, n, k) = (draw.size(20), draw.size(300), draw.size(30));
    let ids = draw.pick(&[vec![rows], vec![rows, k]]);
    case(Pick, once(), |o| {
        let x = o.input(&[rows, n]);
        vec![x, o.external(Kind::Input, &ids, DType::I32, Fill::Integers(n as u32))]
    })
}

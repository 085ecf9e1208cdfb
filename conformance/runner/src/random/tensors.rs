//! Random cases of operators on tensors of any meaning: bounds, sums, orders, tiles, boxes, triangles, choices.

use super::draw::Draw;
use super::operators::{case, once, wide};
use backend_api::case::{Case, Fill};
use backend_api::op::{
    Argsort, Binary, BinaryKind, Clamp, Concat, Cumsum, Pad, Penalize, Penalties, Permute, Pick, Repeat, Scale, Set,
    Slice, Sum, Tri, TriKind, Unary, UnaryKind, Xielu,
};
use backend_api::{DType, Kind, Op, Shape, StepParams};

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

/// Nodes one after the other that go together, or not all of them.
pub fn chain(draw: &mut Draw<'_>) -> Case {
    let (mut dims, mut told) = (draw.dims(1..=4, 40), Vec::new());
    let mut case = Case::graph("chain", "", once(), |o| {
        let mut x = o.input(&dims);
        told.push(format!("{dims:?}"));
        for _ in 0..draw.number(2, 8) {
            let op = match draw.number(0, 8) {
                0 => Op::from(Scale { factor: draw.pick(&[0.5, -1.25]), bias: draw.pick(&[0.0, 0.75]) }),
                1 => Op::from(Unary { kind: draw.pick(&[UnaryKind::Tanh, UnaryKind::Silu, UnaryKind::Abs]) }),
                2 => Op::from(Binary { kind: draw.pick(&[BinaryKind::Add, BinaryKind::Mul, BinaryKind::Sub]) }),
                3 => {
                    let cols = dims.last_mut().expect("dims has a column");
                    let start = draw.number(0, *cols - 1);
                    *cols = draw.number(1, *cols - start);
                    Op::from(Slice { start, len: *cols })
                }
                4 => Op::from(Concat { axis: draw.number(0, dims.len() - 1) }),
                5 => {
                    let [before, after] = [draw.number(0, 2), draw.number(0, 2)];
                    let cols = dims.last_mut().expect("dims has a column");
                    *cols += before + after;
                    Op::from(Pad { before: [0, 0, 0, before], after: [0, 0, 0, after], circular: draw.chance() })
                }
                6 if dims[0] < 100 => {
                    dims[0] *= 2;
                    let mut times = [1; 4];
                    times[4 - dims.len()] = 2;
                    Op::from(Repeat { times })
                }
                7 if dims.len() > 1 => Op::from(Tri { kind: draw.pick(&TriKind::ALL) }),
                _ => {
                    // The same elements in another shape, or in another order.
                    let reshaped: Vec<usize> = dims.iter().rev().copied().collect();
                    let view = if draw.chance() { reshaped } else { dims.clone() };
                    let perm = if draw.chance() { draw.order(view.len()) } else { (0..view.len()).collect() };
                    dims = perm.iter().map(|axis| view[*axis]).collect();
                    Op::from(Permute { view: Shape::new(&view).expect("at most four dimensions"), perm })
                }
            };
            told.push(format!("{op:?}"));
            let more = match op {
                Op::Binary(_) => {
                    let repeated = dims.iter().map(|dim| if draw.number(0, 2) == 2 { 1 } else { *dim });
                    let whole: Vec<usize> = repeated.collect();
                    Some(o.input(&whole[draw.number(0, whole.len() - 1)..]))
                }
                Op::Concat(Concat { axis }) => {
                    let mut other = dims.clone();
                    other[axis] = draw.number(1, 3);
                    dims[axis] += other[axis];
                    Some(o.input(&other))
                }
                _ => None,
            };
            x = match more {
                Some(more) if draw.chance() => o.push(op, &[more, x]),
                Some(more) => o.push(op, &[x, more]),
                None => o.push(op, &[x]),
            };
        }
        vec![x]
    });
    case.name = told.join(", ");
    case
}

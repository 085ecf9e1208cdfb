//! Operands with strides: what the list looks at in place, copies of ours make before the operator. Dimensions are outermost
//! first unless a name says otherwise.

use super::row::Source;
use backend_api::case::{Fill, Operands};
use backend_api::op::{Permute, Slice};
use backend_api::{Shape, TensorId};

/// Views the elements in other dimensions.
pub fn reshaped(o: &mut Operands, x: TensorId, dims: &[usize]) -> TensorId {
    let view = Shape::new(dims).expect("the list has shapes that can be");
    o.push(Permute { view, perm: (0..dims.len()).collect() }, &[x])
}

/// The box of x, whose dimensions are `dims`, that begins at `at`.
pub fn part(o: &mut Operands, x: TensorId, mut dims: [usize; 4], at: [usize; 4], len: [usize; 4]) -> TensorId {
    let mut out = x;
    for axis in (0..4).filter(|axis| at[*axis] > 0 || len[*axis] < dims[*axis]).collect::<Vec<_>>() {
        // What lies within the axis moves as one run, so that the axis is one of columns.
        let (outer, inner) = (dims[..axis].iter().product(), dims[axis + 1..].iter().product::<usize>());
        out = reshaped(o, out, &[outer, dims[axis] * inner]);
        out = o.push(Slice { start: at[axis] * inner, len: len[axis] * inner }, &[out]);
        dims[axis] = len[axis];
    }
    if out == x { x } else { reshaped(o, out, &dims) }
}

/// An operand that is the first part of a buffer which is so many times as large, by dimension, innermost first.
pub fn spaced(o: &mut Operands, source: &Source, [t0, t1, t2, t3]: [usize; 4], fill: Fill) -> TensorId {
    let (len, times) = (source.shape(), [t3, t2, t1, t0]);
    let dims = std::array::from_fn(|axis| len[axis] * times[axis]);
    let x = o.filled(&dims, fill);
    part(o, x, dims, [0; 4], len)
}

/// How dimensions change places: dimension i of these, innermost first, becomes dimension `order[i]`.
pub fn exchange(dims: [usize; 4], order: [usize; 4]) -> Permute {
    let view = Shape::new(&[dims[3], dims[2], dims[1], dims[0]]).expect("the list has shapes that can be");
    let mut perm = vec![0; 4];
    for (from, to) in order.into_iter().enumerate() {
        perm[3 - to] = 3 - from;
    }
    Permute { view, perm }
}

/// The order that undoes one.
pub fn inverse(order: [usize; 4]) -> [usize; 4] {
    std::array::from_fn(|to| order.iter().position(|from| *from == to).unwrap_or(to))
}

/// An operand that lies in another order in memory, from where dimension i comes to be dimension `order[i]`.
pub fn stored(o: &mut Operands, source: &Source, order: [usize; 4], fill: Fill) -> TensorId {
    if order == [0, 1, 2, 3] {
        return o.filled(&source.shape(), fill);
    }
    let dims = order.map(|to| source.dims[to]);
    let x = o.filled(&[dims[3], dims[2], dims[1], dims[0]], fill);
    o.push(exchange(dims, order), &[x])
}

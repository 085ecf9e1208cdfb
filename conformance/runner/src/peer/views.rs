//! The list's views, as nodes that copy: tensors of ours have no strides.

use backend_api::case::Operands;
use backend_api::op::{Permute, Slice};
use backend_api::{Shape, TensorId};

/// As many elements in another shape.
pub fn shaped(o: &mut Operands, x: TensorId, dims: &[usize]) -> TensorId {
    let order: Vec<usize> = (0..dims.len()).collect();
    ordered(o, x, dims, &order)
}

/// Dimension `perm[i]` of these comes as dimension `i`.
pub fn ordered(o: &mut Operands, x: TensorId, dims: &[usize], perm: &[usize]) -> TensorId {
    o.made(permute(dims, perm), &[x])
}

/// The operator of [`ordered`].
///
/// # Panics
/// If a shape cannot be: the list's can.
pub fn permute(dims: &[usize], perm: &[usize]) -> Permute {
    Permute { view: Shape::new(dims).expect("the list's shapes can be"), perm: perm.to_vec() }
}

/// The list says where dimensions go, innermost first; ours is asked where they come from, outermost first.
pub fn perm(order: [usize; 4]) -> [usize; 4] {
    let mut perm = [0; 4];
    for (from, to) in order.into_iter().enumerate() {
        perm[3 - to] = 3 - from;
    }
    perm
}

/// An input of a shape whose dimensions lie in another order in memory, which the list gives.
pub fn stored(o: &mut Operands, shape: [usize; 4], order: [usize; 4]) -> TensorId {
    let (perm, mut dims) = (perm(order), [0; 4]);
    for (axis, from) in perm.into_iter().enumerate() {
        dims[from] = shape[axis];
    }
    let x = o.input(&dims);
    if dims == shape && order == [0, 1, 2, 3] { x } else { ordered(o, x, &dims, &perm) }
}

/// Of each dimension of an operand so many elements from one on.
pub fn part(o: &mut Operands, mut x: TensorId, mut dims: [usize; 4], part: [(usize, usize); 4]) -> TensorId {
    let whole = dims;
    for (axis, (start, len)) in part.into_iter().enumerate() {
        if len == dims[axis] {
            continue;
        }
        let outer: usize = dims[..axis].iter().product();
        let inner: usize = dims[axis + 1..].iter().product();
        x = shaped(o, x, &[outer, dims[axis] * inner]);
        x = o.made(Slice { start: start * inner, len: len * inner }, &[x]);
        dims[axis] = len;
    }
    if dims == whole { x } else { shaped(o, x, &dims) }
}

/// An input that is the beginning of one so many times larger in each dimension.
pub fn beginning(o: &mut Operands, shape: [usize; 4], times: [usize; 4]) -> TensorId {
    let whole = [0, 1, 2, 3].map(|axis| shape[axis] * times[axis]);
    let x = o.input(&whole);
    part(o, x, whole, shape.map(|len| (0, len)))
}

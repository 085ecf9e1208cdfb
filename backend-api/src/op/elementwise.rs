//! Operators each of whose elements is a function of single elements of the operands: what the reference computes with, and
//! what is printed for shaders.
//!
//! Three things describe one. [`Op::views`] says which element of each operand belongs to an element of the result;
//! [`Op::region`] says which elements of the result are made apart, such as the zeros that `pad` puts around; and
//! [`Op::element`] is the function.

use super::{Binary, BinaryKind, Clamp, Glu, GluKind, Op, Scale, TriKind, Unary, UnaryKind, Xielu};
use crate::elementary::{Expr, Language, Scalar};
use crate::tensor::Shape;

/// Rule that finds the element of a tensor that belongs to an element of a result. It is always one of the tensor's.
///
/// *Units*: elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// The one that belongs to the first element.
    pub at: usize,
    /// How many further it is along each of the result's four dimensions.
    pub strides: [usize; 4],
    /// Shift and size of the dimensions in which a coordinate goes round.
    pub wraps: [Option<Wrap>; 4],
}

/// A coordinate is shifted, and goes round in a dimension of the tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wrap {
    /// How far it is shifted.
    pub shift: usize,
    /// The size of the dimension.
    pub dim: usize,
}

impl View {
    /// Each element of a row-major tensor, of which dimensions of 1 are repeated.
    pub fn of(dims: [usize; 4]) -> View {
        let strides = [dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1];
        let strides = std::array::from_fn(|axis| if dims[axis] == 1 { 0 } else { strides[axis] });
        View { at: 0, strides, wraps: [None; 4] }
    }

    /// A row-major tensor that lies in a result of `whole` dimensions from `first` on, and is repeated around.
    fn around(dims: [usize; 4], first: [usize; 4], whole: [usize; 4]) -> View {
        let wrap = |axis: usize| {
            let dim = dims[axis];
            let wrap = Wrap { shift: (dim - first[axis] % dim) % dim, dim };
            (dim > 1 && (dim, wrap.shift) != (whole[axis], 0)).then_some(wrap)
        };
        View { wraps: std::array::from_fn(wrap), ..View::of(dims) }
    }

    /// The coordinates of an element of a row-major result.
    pub fn place(i: usize, whole: [usize; 4]) -> [usize; 4] {
        let [_, d1, d2, d3] = whole;
        [i / (d1 * d2 * d3), i / (d2 * d3) % d1, i / d3 % d2, i % d3]
    }

    /// How far along an axis the element is that belongs to a coordinate.
    #[inline(always)]
    pub fn along(&self, axis: usize, coordinate: usize) -> usize {
        self.wraps[axis].map_or(coordinate, |wrap| (coordinate + wrap.shift) % wrap.dim) * self.strides[axis]
    }

    /// The first element of the row with these coordinates, to which the way [along](Self::along) columns is to be added.
    pub fn row(&self, place: [usize; 4]) -> usize {
        self.at + (0..3).map(|axis| self.along(axis, place[axis])).sum::<usize>()
    }
}

/// Elements of a result that are made apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Region {
    /// So many along each dimension.
    Box {
        /// Coordinates of the first one.
        first: [usize; 4],
        /// How many.
        dims: [usize; 4],
    },
    /// A triangle of each matrix.
    Triangle(TriKind),
}

impl Region {
    /// Whether the element with these coordinates is one of them.
    pub fn contains(&self, place: [usize; 4]) -> bool {
        match self {
            Region::Box { first, dims } => {
                (0..4).all(|axis| (first[axis]..first[axis] + dims[axis]).contains(&place[axis]))
            }
            Region::Triangle(kind) => {
                let (near, far) = if kind.is_upper() { (place[2], place[3]) } else { (place[3], place[2]) };
                far >= near + kind.least()
            }
        }
    }
}

impl Op {
    /// Whether each of its elements is a function of single elements of the operands.
    pub fn is_elementwise(&self) -> bool {
        self.element(&[0.0, 0.0], &mut |_, value| f64::from(value)).is_some()
    }

    /// The views that it has of its operands, of which there are two at most; nothing for operators of another kind. The elements are those of a result of
    /// `whole` dimensions to which the operator's own result may only be a step; `view` is which element of that belongs to each.
    /// If those are not the same ones, an operator that does not take all operands at one place has none.
    pub fn views(&self, shapes: &[Shape], shape: &Shape, whole: [usize; 4], view: View) -> Option<[View; 2]> {
        let is_whole = shape.dims4() == whole && view == View::of(whole);
        let first = shapes.first()?.dims4();
        let second = shapes.get(1).unwrap_or(&shapes[0]).dims4();
        let views = match self {
            Op::Permute(op) => {
                let (dims, perm) = op.normalized();
                if perm == [0, 1, 2, 3] {
                    // Another shape of the same elements.
                    return Some([view; 2]);
                }
                [View { strides: perm.map(|axis| View::of(dims).strides[axis]), ..View::of(dims) }; 2]
            }
            Op::Slice(op) => {
                let mut strides = View::of(first).strides;
                // Of columns that are left out, none is repeated.
                strides[3] = usize::from(op.len > 1);
                [View { at: op.start, strides, wraps: [None; 4] }; 2]
            }
            Op::Repeat(_) => [View::around(first, [0; 4], whole); 2],
            Op::Pad(op) => [View::around(first, op.before, whole); 2],
            Op::Set(op) => [view, View::around(second, op.at, whole)],
            Op::Concat(op) => [View::around(first, [0; 4], whole), View::around(second, op.first(&shapes[0]), whole)],
            Op::Tri(_) => [view; 2],
            Op::Unary(_) | Op::Scale(_) | Op::Clamp(_) | Op::Glu(_) | Op::Binary(_) | Op::Xielu(_) => {
                let of = |dims| match dims == shape.dims4() {
                    true => Some(view),
                    false => is_whole.then(|| View::of(dims)),
                };
                return Some([of(first)?, of(second)?]);
            }
            _ => return None,
        };
        is_whole.then_some(views)
    }

    /// The elements of its result that are made apart.
    pub fn region(&self, shapes: &[Shape]) -> Option<Region> {
        let dims = |operand: usize| shapes.get(operand).map(Shape::dims4);
        match self {
            Op::Pad(op) if !op.circular => Some(Region::Box { first: op.before, dims: dims(0)? }),
            Op::Set(op) => Some(Region::Box { first: op.at, dims: dims(1)? }),
            Op::Concat(op) => Some(Region::Box { first: op.first(shapes.first()?), dims: dims(1)? }),
            Op::Tri(op) => Some(Region::Triangle(op.kind)),
            _ => None,
        }
    }

    /// An element of the result, of the operands' elements that belong to it, then 1 or 0 if there is a [region](Op::region):
    /// whether it lies there. Nothing for operators that are no such functions. `parameter` makes a number of each of the
    /// operator's own, which has a name.
    pub fn element<T: Scalar>(&self, x: &[T], parameter: &mut dyn FnMut(&'static str, f32) -> T) -> Option<T> {
        let first = x.first()?.clone();
        let second = || x.get(1).cloned();
        let inside = |then: T, otherwise: T| Some(x.last()?.clone().above(T::number(0.5), then, otherwise));
        Some(match self {
            Op::Unary(op) => op.kind.of(first),
            Op::Scale(op) => parameter("factor", op.factor) * first + parameter("bias", op.bias),
            Op::Clamp(op) => first.max(parameter("lo", op.lo)).min(parameter("hi", op.hi)),
            Op::Glu(op) => op.kind.of(first, second()?),
            Op::Binary(op) => op.kind.of(first, second()?),
            Op::Xielu(op) => {
                let positive = parameter("positive", op.positive) * first.clone() * first.clone();
                let bent = first.clone().min(parameter("eps", op.eps)).expm1() - first.clone();
                let negative = parameter("negative", op.negative) * bent;
                let line = parameter("linear", op.linear) * first.clone();
                first.above(T::number(0.0), positive, negative) + line
            }
            Op::Pad(op) if op.circular => first,
            Op::Permute(_) | Op::Slice(_) | Op::Repeat(_) => first,
            Op::Pad(_) | Op::Tri(_) => inside(first, T::number(0.0))?,
            Op::Set(_) | Op::Concat(_) => inside(second()?, first)?,
            _ => return None,
        })
    }
}

/// The name of the function that returns what it is given.
pub const IDENTITY: &str = "unary_none";

/// The text of a function of shaders, by its name: of an activation or a gated unit.
pub fn function(name: &str, language: Language) -> Option<String> {
    let [x, y] = ["x", "y"].map(Expr::name);
    let unit = UnaryKind::ALL.iter().find(|kind| kind.function() == name);
    let (parameters, expression) = match unit {
        _ if name == IDENTITY => (&["x"][..], x),
        Some(kind) => (&["x"][..], kind.of(x)),
        None => (&["x", "y"][..], GluKind::ALL.iter().find(|kind| kind.function() == name)?.of(x, y)),
    };
    Some(language.function(name, parameters, &expression))
}

/// An operator for each of the functions of elements at one place.
pub fn functions() -> impl Iterator<Item = Op> {
    let units = UnaryKind::ALL.iter().map(|kind| Op::Unary(Unary { kind: *kind }));
    let units = units.chain(GluKind::ALL.iter().map(|kind| Op::Glu(Glu { kind: *kind })));
    let units = units.chain(BinaryKind::ALL.iter().map(|kind| Op::Binary(Binary { kind: *kind })));
    let xielu = Xielu { positive: 1.0, negative: 1.0, linear: 1.0, eps: 0.0 };
    units.chain([Op::Scale(Scale { factor: 1.0, bias: 0.0 }), Op::Clamp(Clamp { lo: 0.0, hi: 1.0 }), Op::Xielu(xielu)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Concat, Pad, Permute, Repeat, Set, Slice, Tri};

    /// Numbers of a range, some close to zero.
    fn numbers((lo, hi): (f32, f32)) -> impl Iterator<Item = f32> {
        let whole = (0..=20_000).map(move |i| lo + (hi - lo) * i as f32 / 20_000.0);
        whole.chain((0..2_000).map(|i| (i as f32 - 1_000.0) / 997.0)).filter(move |x| (lo..=hi).contains(x))
    }

    #[test]
    fn functions_in_f32_are_those_in_f64() {
        let exact = |value: f32| f64::from(value);
        for op in functions() {
            let range = if let Op::Unary(op) = &op { op.kind.range() } else { (-150.0, 150.0) };
            let (mut worst, mut squares) = (0.0, [0.0; 2]);
            for x in numbers(range) {
                let ours = op.element(&[x, 0.5], &mut |_, value| value).map(exact).unwrap();
                let truth = op.element(&[exact(x), 0.5], &mut |_, value| exact(value)).unwrap();
                worst = f64::max(worst, (ours - truth).abs() / truth.abs().max(1.0));
                squares[0] += (ours - truth).powi(2);
                squares[1] += truth.powi(2);
            }
            assert!(worst < 3e-6, "{op:?} is off by {worst}");
            assert!(squares[0] / squares[1] < 1e-12, "{op:?} has an NMSE of {}", squares[0] / squares[1]);
        }
    }

    /// Small values too: those of an activation far below zero, and powers of any size.
    #[test]
    fn each_value_of_what_models_use_in_every_block_is_near() {
        use UnaryKind::{Exp, GeluQuick, GeluTanh, Relu, Sigmoid, Silu};
        for i in -87_000..88_000 {
            let x = i as f32 / 1000.0;
            for (kind, nearest) in
                [(Exp, 2e-7), (GeluTanh, 1e-5), (GeluQuick, 1e-5), (Silu, 1e-5), (Sigmoid, 1e-5), (Relu, 0.0)]
            {
                let (ours, truth) = (f64::from(kind.of(x)), kind.of(f64::from(x)));
                let epsilon = if kind == Exp { 0.0 } else { 1e-14 };
                assert!(
                    (ours - truth).abs() <= f64::max(epsilon, nearest * truth.abs()),
                    "{kind:?} of {x}: {ours}, not {truth}"
                );
            }
        }
    }

    #[test]
    fn ends_of_the_range() {
        let large = [f32::MAX, 1e20, 1e4];
        for kind in [UnaryKind::Silu, UnaryKind::GeluTanh, UnaryKind::GeluErf, UnaryKind::Relu, UnaryKind::Softplus] {
            large.into_iter().for_each(|x| assert_eq!(kind.of(x), x, "{kind:?} of {x}"));
            assert!(kind.of(-1e4_f32).abs() < 1e-30, "{kind:?}");
        }
        for (kind, low) in [(UnaryKind::Tanh, -1.0), (UnaryKind::Sigmoid, 0.0), (UnaryKind::Sign, -1.0_f32)] {
            for x in large.into_iter().chain([f32::INFINITY]) {
                assert_eq!(kind.of(x), 1.0, "{kind:?} of {x}");
                assert!((kind.of(-x) - low).abs() < 1e-37, "{kind:?} of -{x}");
            }
            assert!(kind == UnaryKind::Sign || kind.of(f32::NAN).is_nan(), "{kind:?}");
        }
        assert_eq!([Scalar::exp(0.0_f32), UnaryKind::Expm1.of(0.0), UnaryKind::Tanh.of(0.0)], [1.0, 0.0, 0.0]);
        assert!(Scalar::exp(f32::NAN).is_nan() && Scalar::exp(f32::NEG_INFINITY) < 1e-37);
        let halves = [-2.5, -1.5, -0.5, 0.49, 0.5, 1.5].map(|x: f32| UnaryKind::Round.of(x));
        assert_eq!(halves, [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0]);
    }

    #[test]
    fn each_is_printed_with_what_it_uses_twice_computed_once() {
        let silu = function("unary_silu", Language::Wgsl).unwrap();
        let text = "fn unary_silu(x: f32) -> f32 {\n    let v0 = exp(-(abs(x)));\n    return (x * (select(v0, 1.0, x > 0.0) / (1.0 + v0)));\n}\n";
        assert_eq!(silu, text);
        let gated = function("glu_reglu", Language::Glsl).unwrap();
        assert_eq!(gated, "vec4 glu_reglu(vec4 x, vec4 y) {\n    return (max(x, vec4(0.0)) * y);\n}\n");
        assert_eq!(function("unary_nothing", Language::Glsl), None);
    }

    /// Every element of small results, of numbers that tell where they come from.
    #[test]
    fn operators_that_move_elements_take_those_that_they_say() {
        let numbers = |count: usize, first: usize| (first..first + count).map(|i| i as f64).collect::<Vec<_>>();
        let made = |op: Op, dims: &[&[usize]], out: &[usize]| {
            let shapes: Vec<Shape> = dims.iter().map(|dims| Shape::new(dims).unwrap()).collect();
            let operands: Vec<_> = shapes.iter().enumerate().map(|(i, s)| numbers(s.len(), 100 * i + 1)).collect();
            let (shape, region) = (Shape::new(out).unwrap(), op.region(&shapes));
            let whole = shape.dims4();
            let views = op.views(&shapes, &shape, whole, View::of(whole)).unwrap();
            let mut list = Vec::new();
            for i in 0..shape.len() {
                let place = View::place(i, whole);
                let mut x: Vec<f64> =
                    views.iter().zip(&operands).map(|(view, x)| x[view.row(place) + view.along(3, place[3])]).collect();
                x.extend(region.map(|region| f64::from(u8::from(region.contains(place)))));
                list.push(op.element(&x, &mut |_, value| f64::from(value)).unwrap() as i32);
            }
            list
        };
        let slice = Op::Slice(Slice { start: 1, len: 2 });
        assert_eq!(made(slice, &[&[2, 3]], &[2, 2]), [2, 3, 5, 6]);
        let turned = Op::Permute(Permute { view: Shape::new(&[2, 3]).unwrap(), perm: vec![1, 0] });
        assert_eq!(made(turned, &[&[6]], &[3, 2]), [1, 4, 2, 5, 3, 6]);
        assert_eq!(made(Op::Repeat(Repeat { times: [1, 1, 2, 1] }), &[&[1, 2]], &[2, 2]), [1, 2, 1, 2]);
        let pad = |circular| Op::Pad(Pad { before: [0, 0, 0, 1], after: [0, 0, 0, 2], circular });
        assert_eq!(made(pad(false), &[&[2]], &[5]), [0, 1, 2, 0, 0]);
        assert_eq!(made(pad(true), &[&[2]], &[5]), [2, 1, 2, 1, 2]);
        let set = Op::Set(Set { at: [0, 0, 1, 1] });
        assert_eq!(made(set, &[&[2, 3], &[1, 2]], &[2, 3]), [1, 2, 3, 4, 101, 102]);
        let concat = |axis| Op::Concat(Concat { axis });
        assert_eq!(made(concat(1), &[&[2, 1], &[2, 2]], &[2, 3]), [1, 101, 102, 2, 103, 104]);
        assert_eq!(made(concat(0), &[&[1, 2], &[2, 2]], &[3, 2]), [1, 2, 101, 102, 103, 104]);
        let tri = Op::Tri(Tri { kind: TriKind::Lower });
        assert_eq!(made(tri, &[&[2, 2]], &[2, 2]), [0, 0, 3, 0]);
    }
}

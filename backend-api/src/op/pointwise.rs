//! Operators each of whose results is a function of the operands' elements at the same place: what the reference computes
//! with, and what is printed for shaders.

use super::{Binary, Clamp, Glu, Xielu};
use super::{BinaryKind, GluKind, Op, Scale, Unary, UnaryKind};
use crate::elementary::{Expr, Language, Scalar};

impl Op {
    /// An element of the result, of the operands' elements at its place; nothing for operators that are no such functions.
    /// `parameter` makes a number of each of the operator's own, which has a name.
    pub fn element<T: Scalar>(&self, x: &[T], parameter: &mut dyn FnMut(&'static str, f32) -> T) -> Option<T> {
        let first = x.first()?.clone();
        let second = || x.get(1).cloned();
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
            _ => return None,
        })
    }

    /// The operator's own numbers that an [element](Op::element) needs, by name.
    pub fn parameters(&self) -> Vec<(&'static str, f32)> {
        let mut parameters = Vec::new();
        self.element(&[0.0, 0.0], &mut |name, value| {
            parameters.push((name, value));
            f64::from(value)
        });
        parameters
    }

    /// The name of its function in shaders, if it is one.
    pub fn function(&self) -> Option<&'static str> {
        match self {
            Op::Unary(op) => Some(op.kind.function()),
            Op::Glu(op) => Some(op.kind.function()),
            Op::Binary(op) => Some(op.kind.function()),
            Op::Scale(_) => Some("scaled"),
            Op::Clamp(_) => Some("clamped"),
            Op::Xielu(_) => Some("xielu"),
            _ => None,
        }
    }
}

/// The name of the function that returns what it is given.
pub const IDENTITY: &str = "unary_none";

/// The text of a function that shaders call, by its name. Parameters of the operator are read from the shader's own.
pub fn function(name: &str, language: Language) -> Option<String> {
    let names = ["x", "y"];
    let operands = names.map(Expr::name);
    if name == IDENTITY {
        return Some(language.function(name, &names[..1], &operands[0]));
    }
    let op = functions().find(|op| op.function() == Some(name))?;
    let expression = op.element(&operands, &mut |name, _| language.parameter(name))?;
    let names = if matches!(op, Op::Glu(_) | Op::Binary(_)) { &names[..] } else { &names[..1] };
    Some(language.function(op.function()?, names, &expression))
}

/// An operator for each of the functions.
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
            let name = op.function().unwrap();
            assert!(worst < 3e-6, "{name} is off by {worst}");
            assert!(squares[0] / squares[1] < 1e-12, "{name} has an NMSE of {}", squares[0] / squares[1]);
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
        let clamped = function("clamped", Language::Glsl).unwrap();
        assert_eq!(clamped, "vec4 clamped(vec4 x) {\n    return min(max(x, vec4(lo)), vec4(hi));\n}\n");
        let added = function("binary_add", Language::Wgsl).unwrap();
        assert_eq!(added, "fn binary_add(x: f32, y: f32) -> f32 {\n    return (x + y);\n}\n");
        assert_eq!(function("unary_nothing", Language::Glsl), None);
        let names: std::collections::HashSet<_> = functions().filter_map(|op| op.function()).collect();
        assert_eq!(names.len(), functions().count());
    }
}

//! Elementary functions in f32, good to some 1e-7 of the value: far less than the tolerance of any operator, and
//! several times faster than the definition's f64.

use super::lanes::Lanes;
use crate::plain::unary;
use backend_api::op::UnaryKind;

/// `e^x`; 0 below, and the largest powers above, what f32 holds in normal numbers.
///
/// *Source*: Cody and Waite, "Software Manual for the Elementary Functions", 1980: a multiple of ln 2, in two parts, is
/// taken off; the rest is at most ln(2) / 2, where Taylor's series is short.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    /// Added to a number below 2^22, it leaves the nearest integer in the lowest bits.
    const SHIFT: f32 = 12_582_912.0;
    const LN2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    let x = if x < -87.0 { -87.0 } else { x };
    let x = if x > 88.0 { 88.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + SHIFT;
    let n = shifted - SHIFT;
    let r = (x - n * LN2[0]) - n * LN2[1];
    let p = 1.0 / 720.0 + r * (1.0 / 5040.0);
    let p = 1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * p));
    let p = 1.0 + r * (1.0 + r * (0.5 + r * p));
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1f32.to_bits()));
    if x.is_nan() { x } else { p * power }
}

#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// An elementwise function: in f32 where models use it in every block.
#[inline(always)]
pub(super) fn activate(kind: UnaryKind, x: f32) -> f32 {
    match kind {
        // 1 + tanh(u) = 2 * sigmoid(2u), which loses no digits where tanh is near -1.
        UnaryKind::GeluTanh => {
            const TWICE_ROOT_2_OVER_PI: f32 = 1.595_769;
            x * sigmoid(TWICE_ROOT_2_OVER_PI * (x + 0.044715 * x * x * x))
        }
        UnaryKind::GeluQuick => x * sigmoid(1.702 * x),
        UnaryKind::Silu => x * sigmoid(x),
        UnaryKind::Sigmoid => sigmoid(x),
        UnaryKind::Relu => x.max(0.0),
        kind => unary(kind, f64::from(x)) as f32,
    }
}

/// The dot product, in several sums at once, since each has to wait for the addition before.
#[inline(always)]
pub(super) fn dot(lanes: impl Lanes, a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks(), b.as_chunks());
    let ((a4, a), (b4, b)) = (a.as_chunks(), b.as_chunks());
    let mut sums = lanes.zero();
    for (a, b) in a4.iter().zip(b4) {
        sums = lanes.add_floats(sums, a, b);
    }
    for (a, b) in a.iter().zip(b) {
        sums = lanes.add_eight(sums, a, b);
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
    let [a, b, c, d] = lanes.total(sums);
    (a + b) + (c + d) + rest
}

/// Adds `scale * a` to `out`.
#[inline(always)]
pub(super) fn accumulate(lanes: impl Lanes, out: &mut [f32], scale: f32, a: &[f32]) {
    let ((out, out_rest), (a, a_rest)) = (out.as_chunks_mut(), a.as_chunks());
    for (out, a) in out.iter_mut().zip(a) {
        lanes.accumulate(out, scale, a);
    }
    for (out, a) in out_rest.iter_mut().zip(a_rest) {
        *out += scale * a;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::{assert_abs_diff_eq, relative_eq};

    #[test]
    fn functions_are_as_good_as_f32() {
        let kinds = [UnaryKind::GeluTanh, UnaryKind::GeluQuick, UnaryKind::Silu, UnaryKind::Sigmoid, UnaryKind::Relu];
        for i in -87_000..88_000 {
            let x = i as f32 / 1000.0;
            let exact = f64::from(x).exp();
            assert!(
                relative_eq!(f64::from(exp(x)), exact, epsilon = 0.0, max_relative = 2e-7),
                "exp({x}) = {}",
                exp(x)
            );
            for kind in kinds {
                let (ours, exact) = (f64::from(activate(kind, x)), unary(kind, f64::from(x)));
                let near = relative_eq!(ours, exact, epsilon = 1e-14, max_relative = 1e-5);
                assert!(near, "{kind:?} of {x}: {ours}, not {exact}");
            }
        }
    }

    #[test]
    fn ends_of_the_range() {
        assert!(exp(f32::NAN).is_nan() && exp(f32::NEG_INFINITY) < 1e-37 && exp(f32::INFINITY) > 1e38);
        assert_eq!(exp(0.0), 1.0);
        for kind in [UnaryKind::Silu, UnaryKind::GeluTanh] {
            assert_eq!(activate(kind, 1e4), 1e4);
            assert_abs_diff_eq!(activate(kind, -1e4), 0.0, epsilon = 1e-30);
            assert!(activate(kind, f32::NAN).is_nan());
        }
    }
}

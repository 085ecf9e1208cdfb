//! Sums of products in lanes.

use super::lanes::Lanes;

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

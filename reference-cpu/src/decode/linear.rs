//! Linear blocks: `scale * (q - zero)`, or `scale * q + minimum`.

use super::scales;
use backend_api::format::Linear;

#[inline(always)]
pub(super) fn block(linear: &Linear, b: &[u8], out: &mut [f32]) {
    for (half, out) in out.chunks_exact_mut(16).enumerate() {
        let [scale, min] = scales::of(&linear.scales, b, half);
        for (i, out) in out.iter_mut().enumerate() {
            let product = scale * f32::from(code(linear, b, 16 * half + i));
            *out = if linear.scales.minima() { product + min } else { product };
        }
    }
}

/// The code of element `e`, less what stands for 0.
#[inline(always)]
fn code(linear: &Linear, b: &[u8], e: usize) -> i16 {
    let low = linear.low.get(b, e);
    let high = linear.high.map_or(0, |high| high.get(b, e) << linear.low.bits);
    let code = match linear.bits() {
        8 => i16::from(low as i8),
        1 => 2 * i16::from(low),
        _ => i16::from(low | high),
    };
    code - i16::from(linear.zero)
}
